"""Fixtures that all tests share."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command sets it; before anything loads numpy

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder that holds the real recordings; the test is skipped, with the reason, where it is absent."""
    named = os.environ.get("FLOPWITNESS_SHARED_DATA")
    root = Path(named) if named else REPOSITORY.parent / "shared"
    if not (root / "data" / "README.md").is_file():
        if os.environ.get("CI"):
            pytest.fail(f"the recordings are not at {root}; set FLOPWITNESS_SHARED_DATA")
        pytest.skip(f"the recordings are not at {root}; set FLOPWITNESS_SHARED_DATA to run this test")
    return root


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of small failing inputs made from real bug reports, each with the right answer."""
    return REPOSITORY / "tests" / "cases"
