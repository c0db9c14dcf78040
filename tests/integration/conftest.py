"""What the tests of one case each share: its folder, and the right answer that it states."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, cases: Path) -> Path:
    """The folder of the case that the test's file is named after: `test_case_h01.py` tests `h01_...`."""
    number = Path(request.module.__file__).stem.split("_")[2]
    (folder,) = cases.glob(f"{number}_*")
    return folder


@pytest.fixture(scope="module")
def expected(case: Path) -> dict[str, Any]:
    """The case's `expected.json`."""
    loaded: dict[str, Any] = json.loads((case / "expected.json").read_text())
    return loaded
