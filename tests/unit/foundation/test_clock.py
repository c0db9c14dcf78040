import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.clock import FrozenClock, Moment, SystemClock, format_utc, parse_utc, utc_year
from flopwitness.foundation.errors import DecodeError


def test_the_systems_clock_reads_both_clocks() -> None:
    before = Moment(utc_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
    found = SystemClock().now()
    after = Moment(utc_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
    assert before.monotonic_ns <= found.monotonic_ns <= after.monotonic_ns
    assert before.utc_ns <= found.utc_ns <= after.utc_ns


def test_a_frozen_clock_moves_only_when_told() -> None:
    clock = FrozenClock(utc_ns=1_000, monotonic_ns=5)
    assert clock.now() == clock.now() == Moment(utc_ns=1_000, monotonic_ns=5)
    clock.advance(elapsed_ns=7)
    assert clock.now() == Moment(utc_ns=1_007, monotonic_ns=12)
    clock.advance(elapsed_ns=0)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(elapsed_ns=-1)
    assert clock.now() == Moment(utc_ns=1_007, monotonic_ns=12)


def test_an_instant_for_the_eye() -> None:
    assert format_utc(0) == "1970-01-01T00:00:00Z"
    assert format_utc(1_769_860_800_999_999_999) == "2026-01-31T12:00:00Z"
    assert utc_year(1_798_761_599_000_000_000) == 2026
    assert utc_year(1_798_761_600_000_000_000) == 2027


@pytest.mark.parametrize("utc_ns", [-1, 9_223_372_036 * 10**9 + 1])
def test_what_no_signed_64_bit_count_holds_is_no_instant(utc_ns: int) -> None:
    with pytest.raises(ValueError, match="not an instant"):
        format_utc(utc_ns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-31T12:00:00Z", 1_769_860_800 * 10**9),
        ("2026-01-31 12:00:00Z", 1_769_860_800 * 10**9),
        ("2026-01-31T14:00:00+02:00", 1_769_860_800 * 10**9),
        ("2026-01-31T06:30:00-05:30", 1_769_860_800 * 10**9),
        ("2026-01-31T12:00:00.5Z", 1_769_860_800_500_000_000),
        ("2026-01-31T12:00:00.123456789Z", 1_769_860_800_123_456_789),
        ("2026-01-31T12:00:00.1234567899Z", 1_769_860_800_123_456_789),
    ],
)
def test_an_instant_is_read_to_the_nanosecond(text: str, expected: int) -> None:
    assert parse_utc(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:30:00Z",
        "2026-01-31T12:00:00+25:00",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00Z\n",
        "20260131T120000Z",
        "2026-W05-6T12:00:00Z",
        "٢026-01-31T12:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "2262-04-11T23:47:17Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+23:59",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="instant"):
        parse_utc(text, where="log:1")


@given(st.integers(0, 9_223_372_036))
def test_an_instant_comes_back_as_it_went(second: int) -> None:
    assert parse_utc(format_utc(second * 10**9)) == second * 10**9
