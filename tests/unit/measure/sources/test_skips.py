"""What could not be read is counted whole, located for the first twenty, and quoted on one line."""

import pytest

from flopwitness.measure.samples import Skipped
from flopwitness.measure.sources.skips import SkipTally, excerpt


def _skipped(number: int) -> Skipped:
    return Skipped(where=f"log:{number}", expected="x", found="y")


def test_nothing_skipped_is_nothing() -> None:
    tally = SkipTally()
    assert (tally.first, tally.count, tally.is_full) == ((), 0, False)


def test_all_are_counted_and_the_first_twenty_kept() -> None:
    tally = SkipTally()
    for number in range(1, 26):
        tally.add(f"log:{number}", expected="x", found="y")
        assert tally.is_full is (number >= 20)
    assert tally.count == 25
    assert tally.first == tuple(map(_skipped, range(1, 21)))


def test_tallies_of_several_files_add_up() -> None:
    tally = SkipTally()
    tally.add_all(map(_skipped, range(15)), count=700)
    tally.add_all([], count=3)
    tally.add_all(map(_skipped, range(15, 30)), count=15)
    tally.add_all([_skipped(99)], count=1)
    assert tally.count == 719
    assert tally.first == tuple(map(_skipped, range(20)))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        (b"plain, 5 W", "plain, 5 W"),
        (b"a\r\nb\tc\x00", "a\\r\\nb\\tc\\x00"),
        (b"\x1b[2J\x9b", "\\x1b[2J\\x9b"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("é\u202e\u2028".encode(), "é\\u202e\\u2028"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        (b"a" * 80, "a" * 80),
        (b"a" * 81, "a" * 80 + "..."),
        (b"a" * 79 + "é".encode(), "a" * 79 + "\\xc3..."),
    ],
)
def test_an_excerpt_is_one_line_that_a_terminal_can_show(data: bytes, shown: str) -> None:
    assert excerpt(data) == shown
    assert excerpt(data).isprintable()


def test_an_excerpt_of_a_mebibyte_is_short() -> None:
    assert len(excerpt(b"\x00" * (1 << 20))) < 400
