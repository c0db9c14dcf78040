"""Times of tables: exactly, of one kind a column, and nothing that is none."""

import numpy as np
import pytest

from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.table_times import (
    CalendarReader,
    Origin,
    TimeForm,
    TimeHeader,
    TimeReader,
    parse_ticks,
    settle_form,
    settle_number,
)
from flopwitness.measure.sources.values import Unreadable

SECOND = 10**9
NAIVE = TimeForm(times=Times.LOCAL)
ZONED = TimeForm(times=Times.UTC, has_zone=True)
SECONDS = TimeForm(times=Times.UTC, unit_ns=SECOND)


@pytest.mark.parametrize(
    ("text", "unit_ns", "time_ns"),
    [
        (b"1700000000.123456789", SECOND, 1_700_000_000_123_456_789),
        (b"1773080608.630477", SECOND, 1_773_080_608_630_477_000),
        (b"1700000000123", 10**6, 1_700_000_000_123_000_000),
        (b"0.1", SECOND, 100_000_000),
        (b"-2.5", SECOND, -2_500_000_000),
        (b"+7.", SECOND, 7 * SECOND),
        (b"1.7e9", SECOND, 1_700_000_000 * SECOND),
        (b"5e-05", SECOND, 50_000),
        (b"0e99", SECOND, 0),
        (b"0.0000000019", SECOND, 1),
    ],
)
def test_numbers_are_exact(text: bytes, unit_ns: int, time_ns: int) -> None:
    assert parse_ticks(text, unit_ns) == time_ns


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nan",
        b"inf",
        b"1e999",
        b"1e24",
        b"9" * 40,
        b"9" * 5_000,
        b"0x10",
        b"1_000",
        b"1,5",
        b"--1",
        b"1e",
        b".",
        b"1 2",
        b"\xd9\xa1",
        b"1\x00",
        b"4611686018.5e1",
    ],
)
def test_what_is_no_number_or_no_time_is_refused(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_ticks(text, SECOND)


@pytest.mark.parametrize(
    ("text", "time_ns", "has_zone"),
    [
        (b"1970-01-01T00:00:01", SECOND, False),
        (b"2024-02-29 12:00:00.5", 1_709_208_000_500_000_000, False),
        (b"2024/02/29 12:00:00,25", 1_709_208_000_250_000_000, False),
        (b"2024-02-29 12:00", 1_709_208_000 * SECOND, False),
        (b"2024-02-29T12:00:00Z", 1_709_208_000 * SECOND, True),
        (b"2024-02-29T12:00:00+00:00", 1_709_208_000 * SECOND, True),
        (b"2024-02-29T14:30:00.000000001+02:30", 1_709_208_000_000_000_001, True),
        (b"2024-02-29T07:00:00-0500", 1_709_208_000 * SECOND, True),
        (b"2024-02-29 12:00:00 UTC", 1_709_208_000 * SECOND, True),
        (b"2024-02-29 12:00:00.1234567891", 1_709_208_000_123_456_789, False),
    ],
)
def test_calendar_text(text: bytes, time_ns: int, has_zone: bool) -> None:
    assert CalendarReader().read(text) == (time_ns, has_zone)


@pytest.mark.parametrize(
    "text",
    [
        b"0000-01-01 00:00:00",
        b"1969-12-31 23:59:59",
        b"9999-01-01 00:00:00",
        b"99999-01-01 00:00:00",
        b"2024-02-30 00:00:00",
        b"2023-02-29 00:00:00",
        b"2024-13-01 00:00:00",
        b"2024-01-01 24:00:00",
        b"2024-01-01 00:60:00",
        b"2024-01-01 00:00:60",
        b"2024-01-01",
        b"2024-01-01 00:00:0",
        b"12:00:00",
        b"",
        b"2024-01-01 00:00:00 CET",
        b"2024-01-01 00:00:00x",
        b"2024-01-01 00:00:00." + b"1" * 40,
        b"\xff" * 30,
    ],
)
def test_no_such_calendar_text(text: bytes) -> None:
    with pytest.raises(Unreadable):
        CalendarReader().read(text)


def test_a_minute_is_known_again_and_many_are_forgotten() -> None:
    reader = CalendarReader()
    first = reader.read(b"2024-01-01 00:00:01")
    for day in range(1, 29):
        for minute in range(0, 1_440, 7):
            reader.read(b"2024-02-%02d %02d:%02d:00" % (day, *divmod(minute, 60)))
    assert reader.read(b"2024-01-01 00:00:01") == first


@pytest.mark.parametrize(
    ("cell", "header", "form"),
    [
        (b"2024-01-01T00:00:00", TimeHeader(), NAIVE),
        (b" 2024-01-01T00:00:00 ", TimeHeader(is_utc=True), TimeForm(times=Times.UTC)),
        (b"2024-01-01T00:00:00Z", TimeHeader(), ZONED),
        (b"0.5", TimeHeader(unit_ns=SECOND), TimeForm(times=Times.RELATIVE, unit_ns=SECOND)),
        (b"1700000000", TimeHeader(unit_ns=SECOND), SECONDS),
        (b"1700000000000", TimeHeader(unit_ns=10**6), TimeForm(times=Times.UTC, unit_ns=10**6)),
        (b"5", TimeHeader(unit_ns=1, origin=Origin.EPOCH), TimeForm(times=Times.UTC, unit_ns=1)),
        (
            b"1700000000",
            TimeHeader(unit_ns=10**6, origin=Origin.START),
            TimeForm(times=Times.RELATIVE, unit_ns=10**6),
        ),
    ],
)
def test_the_form_is_settled_by_name_and_first_cell(cell: bytes, header: TimeHeader, form: TimeForm) -> None:
    assert settle_form(cell, header) == form


@pytest.mark.parametrize(
    ("number", "unit_ns", "word"),
    [
        (1_700_000_000, SECOND, "seconds"),
        (1_700_000_000_000, 10**6, "milliseconds"),
        (1_700_000_000_000_000, 10**3, "microseconds"),
        (1_700_000_000_000_000_000, 1, "nanoseconds"),
    ],
)
def test_an_epoch_without_a_unit_is_known_by_its_size_and_said(number: int, unit_ns: int, word: str) -> None:
    form = settle_number(number, TimeHeader())
    assert (form.times, form.unit_ns, form.is_weak) == (Times.UTC, unit_ns, False)
    assert form.assumed.startswith(word)


def test_small_numbers_without_a_unit_are_weakly_assumed_to_be_seconds() -> None:
    form = settle_number(12, TimeHeader())
    assert (form.times, form.unit_ns, form.is_weak) == (Times.RELATIVE, SECOND, True)
    assert settle_number(12, TimeHeader(origin=Origin.START)).is_weak


def test_epochs_of_training_are_no_times() -> None:
    with pytest.raises(Unreadable):
        settle_number(3, TimeHeader(origin=Origin.EPOCH))


@pytest.mark.parametrize("cell", [b"", b"now", b"2024-01-01 99:00:00", b"99999999999999999999", b"14:00"])
def test_a_first_cell_that_is_no_time_settles_nothing(cell: bytes) -> None:
    with pytest.raises(Unreadable):
        settle_form(cell, TimeHeader())


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-01 00:01:59", b"2023-12-31 23:59:00"]),
        (NAIVE, [b"2024-01-01 00:00:01.5", b"2024-01-01 00:00:01.25", b"2024-01-01 00:00:01.123456"]),
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-01 00:00:01.25", b" 2024-01-01 00:00:02"]),
        (ZONED, [b"2024-01-01T00:00:01+01:00", b"2024-01-01T00:00:02+01:00"]),
        (ZONED, [b"2024-01-01T00:00:01+01:00", b"2024-01-01T00:00:02-05:30"]),
        (ZONED, [b"2024-01-01T00:00:01.5Z", b"2024-01-01T00:00:02.25Z"]),
        (SECONDS, [b"1700000000.5", b"1700000000.25", b"1700000001.0"]),
        (SECONDS, [b"1", b"10", b"-3.5"]),
        (SECONDS, [b"1.5e3", b"1.5e+08"]),
        (SECONDS, [b"0.1234567891", b"0.1234567899"]),
        (TimeForm(times=Times.UTC, unit_ns=1), [b"1700000000000000000", b"1700000000000000001"]),
        (SECONDS, [b"+1", b"+2"]),
        (SECONDS, []),
    ],
)
def test_many_cells_are_read_as_each_by_itself(form: TimeForm, cells: list[bytes]) -> None:
    reader = TimeReader(form)
    assert reader.read_all(cells).tolist() == [reader.read(cell) for cell in cells]
    assert reader.read_all(cells).dtype == np.int64


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-01 00:00:61"]),
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-32 00:00:01"]),
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-01 00:00:0x"]),
        (NAIVE, [b"2024-01-01 00:00:01", b"2024-01-01T00:00:01Z"]),
        (ZONED, [b"2024-01-01 00:00:01"]),
        (ZONED, [b"2024-01-01 00:00:01.5Z", b"2024-01-01 00:00:01.25"]),
        (SECONDS, [b"1", b""]),
        (SECONDS, [b"9" * 18, b"9" * 18]),
        (SECONDS, [b"1.5", b"1.5x"]),
    ],
)
def test_one_bad_cell_among_many_is_not_read(form: TimeForm, cells: list[bytes]) -> None:
    with pytest.raises(Unreadable):
        TimeReader(form).read_all(cells)
