"""Stamps of meters: by integers, and what no clock shows is none."""

import pytest

from flopwitness.measure.sources.clock_text import (
    ClockStamp,
    parse_clock_number,
    parse_stamp,
    parse_us_stamp,
)
from flopwitness.measure.sources.recording import Times

NINE = 1_747_213_200 * 10**9  # 2025-05-14 09:00:00 by UTC


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        (b"05-14-2025 09:00:00.000", NINE),
        (b"05-14-2025 09:00:00.954", NINE + 954_000_000),
        (b"05-14-2025 09:00:00.9", NINE + 900_000_000),
        (b"02-29-2024 00:00:00.001", 1_709_164_800 * 10**9 + 1_000_000),
    ],
)
def test_a_daemons_stamp_is_the_wall_clocks(text: bytes, time_ns: int) -> None:
    assert parse_us_stamp(text) == time_ns


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"14-05-2025 09:00:00.000",
        b"02-29-2025 09:00:00.000",
        b"05-14-2025 24:00:00.000",
        b"05-14-2025 09:60:00.000",
        b"05-14-2025 09:00:60.000",
        b"05-14-2025 09:00:00",
        b"05-14-2025 09:00:00.0000000000",
        b"05-14-0000 09:00:00.000",
        b"05-14-9999 09:00:00.000",
        b"05-14-2025T09:00:00.000",
        b" 05-14-2025 09:00:00.000",
        "\u0660\u0665-14-2025 09:00:00.000".encode(),
    ],
)
def test_what_no_clock_shows_is_no_stamp(text: bytes) -> None:
    assert parse_us_stamp(text) is None


@pytest.mark.parametrize(
    "text",
    [
        b"2025-05-14 09:00:00",
        b"2025/05/14 09:00",
        b"  2025-05-14T09:00:00.000  ",
        b"05/14/2025 09:00:00",
        b"05/14/2025 - 09:00:00",
        b"05/14/2025 09:00:00 AM",
        b"5/14/2025 9:00",
        b"14.05.2025 09:00:00",
        b"Wed May 14 09:00:00 2025",
        b"Wed 14 May 2025 09:00:00 AM CEST",
        b"05/14/2025 09:00:00 AM EDT",
    ],
)
def test_a_stamp_without_a_zone_stays_local(text: bytes) -> None:
    assert parse_stamp(text) == ClockStamp(NINE, Times.LOCAL)


@pytest.mark.parametrize(
    "text",
    [
        b"2025-05-14T09:00:00Z",
        b"2025-05-14 09:00:00 UTC",
        b"2025-05-14T11:00:00+02:00",
        b"2025-05-14T11:00:00 +0200",
        b"2025-05-14T04:30:00-04:30",
        b"Wed May 14 09:00:00 UTC 2025",
        b"Wed May 14 09:00:00 GMT 2025",
        b"1747213200",
        b"1747213200.000",
    ],
)
def test_a_stamp_with_a_zone_stands_in_utc(text: bytes) -> None:
    assert parse_stamp(text) == ClockStamp(NINE, Times.UTC)


@pytest.mark.parametrize(
    ("text", "hour"),
    [(b"12:00:00 AM", 0), (b"12:30:00 PM", 12), (b"01:00 p.m.", 13), (b"11:59:00 PM", 23)],
)
def test_a_clock_of_twelve_hours_is_read(text: bytes, hour: int) -> None:
    stamp = parse_stamp(b"05/14/2025 " + text)
    assert stamp is not None
    assert stamp.time_ns // (3_600 * 10**9) % 24 == hour


def test_the_day_stands_first_where_the_caller_knows() -> None:
    assert parse_stamp(b"03/04/2025 09:00:00") != parse_stamp(b"03/04/2025 09:00:00", is_day_first=True)
    assert parse_stamp(b"14/05/2025 09:00:00", is_day_first=True) == ClockStamp(NINE, Times.LOCAL)
    assert parse_stamp(b"14/05/2025 09:00:00") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"yesterday",
        b"2025-05-14",
        b"2025-13-14 09:00:00",
        b"2025-05-32 09:00:00",
        b"0000-05-14 09:00:00",
        b"99999-05-14 09:00:00",
        b"1969-12-31 23:59:59",
        b"2025-05-14T09:00:00+99:00",
        b"05/14/2025 13:00:00 PM",
        b"05/14/2025 00:00:00 AM",
        b"Wed Foo 14 09:00:00 2025",
        b"14 Foo 2025 09:00:00",
        b"9999999999",
        b"17472132",
        b"17472132000",
        b"2025-05-14 09:00:00" + b" " * 100 + b"x",
        b"2025-05-14 09:00:00\x00",
    ],
)
def test_text_that_is_no_stamp_is_none(text: bytes) -> None:
    assert parse_stamp(text) is None


@pytest.mark.parametrize(
    ("text", "unit", "time_ns", "times"),
    [
        (b"1747213200", "", NINE, Times.UTC),
        (b"1747213200.25", "", NINE + 250_000_000, Times.UTC),
        (b"1747213200250", "", NINE + 250_000_000, Times.UTC),
        (b"1747213200250000", "", NINE + 250_000_000, Times.UTC),
        (b"1747213200250000001", "", NINE + 250_000_001, Times.UTC),
        (b"1747213200.123456789", "s", NINE + 123_456_789, Times.UTC),
        (b"0", "", 0, Times.RELATIVE),
        (b"12.5", "", 12_500_000_000, Times.RELATIVE),
        (b"12.5", "ms", 12_500_000, Times.RELATIVE),
        (b"12500", "us", 12_500_000, Times.RELATIVE),
        (b"12.9", "ns", 12, Times.RELATIVE),
        (b"0.1234567891", "s", 123_456_789, Times.RELATIVE),
    ],
)
def test_a_number_is_a_date_or_a_length_by_its_size(
    text: bytes, unit: str, time_ns: int, times: Times
) -> None:
    assert parse_clock_number(text, unit=unit) == ClockStamp(time_ns, times)


@pytest.mark.parametrize(
    "text", [b"", b"-1", b"1e9", b"nan", b"1_000", b"9" * 30, b"9999999999999999999", b"1."]
)
def test_a_number_that_is_no_time_is_none(text: bytes) -> None:
    assert parse_clock_number(text) is None


def test_a_time_beyond_this_century_is_none_in_its_unit() -> None:
    assert parse_clock_number(b"5000000000", unit="s") is None
    assert parse_clock_number(b"5000000000", unit="ms") is not None
