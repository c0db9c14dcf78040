"""The page of findings lists every code that the package can give, and no other."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_code_stands_on_the_page_and_the_page_names_no_other() -> None:
    sources = "\n".join(path.read_text() for path in (REPOSITORY / "src").rglob("*.py"))
    given = set(re.findall(r'code="([a-z-]+)"', sources))
    listed = re.findall(
        r"^\| `([a-z-]+)` \|", (REPOSITORY / "docs" / "findings.md").read_text(), re.MULTILINE
    )
    assert given == set(listed)
    assert listed == sorted(listed)
