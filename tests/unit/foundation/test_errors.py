import inspect
import re

import pytest

from flopwitness.foundation import errors
from flopwitness.foundation.errors import (
    BackendError,
    DecodeError,
    EvidenceError,
    FlopwitnessError,
    InputError,
    SourceError,
)

CLASSES: list[type[FlopwitnessError]] = [
    each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, FlopwitnessError)
]


def test_every_class_is_public_and_drawn_in_the_tree() -> None:
    assert sorted(each.__name__ for each in CLASSES) == sorted(errors.__all__)
    drawn = set(re.findall(r"\w+Error", errors.__doc__ or ""))
    assert {each.__name__ for each in CLASSES} == drawn
    assert len(CLASSES) <= 17


@pytest.mark.parametrize("kind", CLASSES)
def test_the_exit_status_follows_the_family(kind: type[FlopwitnessError]) -> None:
    families: dict[type, int] = {InputError: 2, EvidenceError: 1, SourceError: 4, BackendError: 4}
    expected = [status for family, status in families.items() if issubclass(kind, family)]
    assert [kind.exit_status] == (expected or [4])


def test_the_fields_are_kept_and_told_in_one_line() -> None:
    error = DecodeError("not a count", where="log:3", expected="digits", found="'x'")
    assert (error.message, error.where, error.expected, error.found) == (
        "not a count",
        "log:3",
        "digits",
        "'x'",
    )
    assert str(error) == "log:3: not a count (expected digits; found 'x')"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "gone"),
        ({"where": "a"}, "a: gone"),
        ({"expected": "b"}, "gone (expected b)"),
        ({"found": "c"}, "gone (found c)"),
    ],
)
def test_empty_fields_are_left_out(fields: dict[str, str], expected: str) -> None:
    assert str(InputError("gone", **fields)) == expected


@pytest.mark.parametrize("hostile", ["a\nb", "a\rb", "\x1b[31mred", "\u2028", "\u202eabc", "\ud800", "\x00"])
def test_what_an_error_quotes_cannot_break_the_line_or_the_terminal(hostile: str) -> None:
    text = str(InputError("bad", where=hostile, found=hostile))
    assert text.isprintable()
    assert len(text.splitlines()) == 1
    text.encode("utf-8")
