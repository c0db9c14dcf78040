"""One thing is told as one."""

import pytest

from flopwitness.measure.wording import agree, plural


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 readings"), (1, "1 reading"), (2, "2 readings"), (1_702, "1,702 readings")]
)
def test_a_noun_goes_with_its_count(count: int, told: str) -> None:
    assert plural(count, "reading") == told


@pytest.mark.parametrize(("count", "verb"), [(0, "have"), (1, "has"), (2, "have"), (1_001, "have")])
def test_a_verb_goes_with_its_count(count: int, verb: str) -> None:
    assert agree(count, "has", "have") == verb
