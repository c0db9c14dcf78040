from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import (
    decode_flop,
    encode_flop,
    format_duration,
    format_energy,
    format_flop,
    format_times,
    parse_flop,
    scale_count,
)


@given(st.integers(0, 10**64 - 1))
def test_a_count_comes_back_as_it_went(flop: int) -> None:
    assert decode_flop(encode_flop(flop)) == flop
    assert parse_flop(encode_flop(flop)) == flop


def test_a_negative_count_is_no_count() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        encode_flop(-1)


@pytest.mark.parametrize(
    "text", ["", "00", "01", "-1", "+1", "1.0", "1e25", " 1", "1\n", "1_000", "٣", "1" * 65, "0x1"]
)
def test_only_the_written_form_of_a_count_is_read(text: str) -> None:
    with pytest.raises(DecodeError, match="not a count of operations"):
        decode_flop(text, where="file")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("10000", 10_000),
        ("1e25", 10**25),
        ("1E+25", 10**25),
        (" 2.5e24 ", 25 * 10**23),
        ("10000000000000000000000001", 10**25 + 1),
        ("1.50e1", 15),
        ("9e63", 9 * 10**63),
    ],
)
def test_what_a_person_wrote_is_read_exactly(text: str, expected: int) -> None:
    assert parse_flop(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1.5",
        "1e-1",
        "-1",
        "nan",
        "inf",
        "-inf",
        "sNaN",
        "1e64",
        "1e999999",
        "1e-999999",
        "1e",
        "0x1",
        "1_000",
        "1e2_5",
        "٣",
        "\uff11e25",
        "Infinity",
        "1e" + "9" * 20,
        "0e-999999999",
        "1" * 201,
        "1." + "0" * 100_000,
    ],
)
def test_what_is_no_whole_count_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        parse_flop(text, where="--flop")


def test_rounding_never_flatters() -> None:
    assert (scale_count(2.5), scale_count(2.5, up=True)) == (2, 3)
    assert (scale_count(3.0), scale_count(3.0, up=True)) == (3, 3)
    assert (scale_count(-0.5), scale_count(-0.5, up=True)) == (-1, 0)
    assert scale_count(1e25) == int(1e25) != 10**25


@given(st.floats(-1e30, 1e30))
def test_the_whole_count_lies_next_to_the_float(value: float) -> None:
    low, high = scale_count(value), scale_count(value, up=True)
    assert low <= Fraction(value) <= high
    assert high - low == (0 if value == low else 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_has_no_count(value: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        scale_count(value)


@pytest.mark.parametrize(
    ("flop", "expected"),
    [
        (0, "0"),
        (9_999, "9999"),
        (10_000, "1.0e4"),
        (612 * 10**18, "6.1e20"),
        (10**25, "1.0e25"),
        (10**63, "1.0e63"),
    ],
)
def test_a_count_for_the_eye(flop: int, expected: str) -> None:
    assert format_flop(flop) == expected


def test_a_count_is_rounded_at_the_digits_asked_for() -> None:
    assert format_flop(999 * 10**18, digits=1) == "1e21"
    assert format_flop(1002 * 10**22, digits=4) == "1.002e25"


@pytest.mark.parametrize(
    ("energy_j", "expected"),
    [
        (0.0, "0 J"),
        (0.25, "0.2500 J"),
        (9_999.0, "9999 J"),
        (10_000.0, "10.00 kJ"),
        (3_599_000.0, "3599 kJ"),
        (3_600_000.0, "1.000 kWh"),
        (415.3 * 3.6e6, "415.3 kWh"),
        (3.6e10, "10.00 MWh"),
        (-5.0, "-5.000 J"),
    ],
)
def test_an_energy_for_the_eye(energy_j: float, expected: str) -> None:
    assert format_energy(energy_j) == expected


@pytest.mark.parametrize(
    ("time_s", "expected"),
    [
        (0.0, "0 s"),
        (0.5, "0.5 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min"),
        (60.0, "1 min"),
        (3_413.0, "56 min 53 s"),
        (3_599.7, "1 h"),
        (3_604.0, "1 h"),
        (86_399.9, "1 d"),
        (273_600.0, "3 d 4 h"),
    ],
)
def test_a_length_for_the_eye(time_s: float, expected: str) -> None:
    assert format_duration(time_s) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Fraction(1), "1"),
        (Fraction(29, 10), "2.9"),
        (Fraction(57), "57"),
        (Fraction(2_953), "2,900"),
        (Fraction(999_999_999), "990,000,000"),
        (Fraction(10**10), "1.0e10"),
        (Fraction(1, 3), "0.33"),
    ],
)
def test_how_many_times_for_the_eye(ratio: Fraction, expected: str) -> None:
    assert format_times(ratio) == expected
