"""Stamps as meters write them: local dates in many orders, dates with a zone, seconds since 1970.

Each becomes nanoseconds by integer arithmetic. A stamp without a zone stays what the wall clock showed: which
zone that was is for the recording to say. Years outside 1970 to 2099 are no stamps: a clock that shows one
was never set.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.sources.recording import Times

__all__ = ["ClockStamp", "parse_clock_number", "parse_stamp", "parse_us_stamp"]

_FIRST_YEAR, _LAST_YEAR = 1970, 2099
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_LAST_EPOCH_S: Final = (date(_LAST_YEAR + 1, 1, 1).toordinal() - _EPOCH_DAY) * 86_400
_FIRST_EPOCH_NS: Final = 300_000_000 * NANOSECOND_PER_SECOND  # 1979: below it a number is a length
_DECIMAL: Final = re.compile(rb"([0-9]{1,19})(?:\.([0-9]{1,18}))?")
_DIGITS: Final = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_LONGEST_STAMP: Final = 64
_NOON: Final = 12
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"),
        start=1,
    )
}
_CLOCK: Final = rb"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
_ZONE: Final = rb"(?: ?(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[A-Z]{2,5}))?"
_US: Final = re.compile(rb"(\d{2})-(\d{2})-(\d{4}) (\d{2}):(\d{2}):(\d{2})\.(\d{1,9})")
_ISO: Final = re.compile(rb"(\d{4})[-/](\d{1,2})[-/](\d{1,2})[T ]" + _CLOCK + _ZONE)
_SLASHES: Final = re.compile(
    rb"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}) (?:- )?" + _CLOCK + rb"(?: ?([AaPp])\.?[Mm]\.?)?" + _ZONE
)
_UNIX: Final = re.compile(
    rb"(?:[A-Za-z]{3},? )?([A-Za-z]{3}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2})" + _ZONE + rb" (\d{4})"
)
_DAY_MONTH: Final = re.compile(
    rb"(?:[A-Za-z]{3},? )?(\d{1,2}) ([A-Za-z]{3}) (\d{4}),? " + _CLOCK + rb"(?: ?([AaPp])\.?[Mm]\.?)?" + _ZONE
)
_EPOCH_S: Final = re.compile(rb"(\d{9,10})(?:\.(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class ClockStamp:
    """One stamp.

    Attributes:
        time_ns: Nanoseconds since 1970, or from any origin.
        times: By which clock: UTC where the stamp says its zone, local where it does not, relative where it
            counts from the start of something.
    """

    time_ns: int
    times: Times


def parse_us_stamp(text: bytes) -> int | None:
    """The nanoseconds of `03-17-2021 12:56:13.954` by the wall clock; None where it is no such stamp."""
    found = _US.fullmatch(text)
    if found is None:
        return None
    month, day, year, hour, minute, second, fraction = found.groups()
    return _wall_ns((year, month, day), (hour, minute, second), fraction)


def parse_stamp(text: bytes, *, is_day_first: bool = False) -> ClockStamp | None:
    """A stamp in any of the forms that meters write; None where the text is none.

    Args:
        text: Such as `2021-03-04 08:07:20`, `2021-03-04T08:07:20.5Z`, `03/04/2021 08:07:20 AM`,
            `Thu Mar  4 08:07:20 2021`, or seconds since 1970 with or without a fraction. Abbreviations of
            zones other than UTC and GMT name no zone for certain, so such a stamp stays local.
        is_day_first: Whether `03/04/2021` is the third of April; with dots it always is.
    """
    text = text.strip()
    if len(text) > _LONGEST_STAMP:
        return None
    for pattern, read in _FORMS:
        found = pattern.fullmatch(text)
        if found is not None:
            return read(found, is_day_first)
    return None


def parse_clock_number(text: bytes, *, unit: str = "") -> ClockStamp | None:
    """A number as a time: since 1970 where it is large enough, else from the start of the recording.

    Args:
        text: Such as `1700000000.25`, `1700000000250` or `12.5`; None comes back for anything else.
        unit: `s`, `ms`, `us` or `ns`; "" takes the unit in which the number lies before the year 2100, and
            seconds for small ones.
    """
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    digits = _DIGITS[unit] if unit else _digits_of(int(found[1]))
    fraction = (found[2] or b"")[:digits].ljust(digits, b"0")
    time_ns = int(found[1]) * 10**digits + int(fraction or b"0")
    if not time_ns < _LAST_EPOCH_S * NANOSECOND_PER_SECOND:
        return None
    return ClockStamp(time_ns, Times.UTC if time_ns >= _FIRST_EPOCH_NS else Times.RELATIVE)


def _digits_of(number: int) -> int:
    """How many decimal digits turn a number into nanoseconds, by its size."""
    return next((digits for digits in (9, 6, 3) if number < _LAST_EPOCH_S * 10 ** (9 - digits)), 0)


def _read_iso(found: "re.Match[bytes]", is_day_first: bool) -> ClockStamp | None:  # noqa: FBT001 (one signature)
    del is_day_first
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    return _placed(_wall_ns((year, month, day), (hour, minute, second), fraction), zone)


def _read_slashes(found: "re.Match[bytes]", is_day_first: bool) -> ClockStamp | None:  # noqa: FBT001
    first, separator, second_part, year, hour, minute, second, fraction, half, zone = found.groups()
    is_day_first = is_day_first or separator == b"."
    month, day = (second_part, first) if is_day_first else (first, second_part)
    return _placed(_wall_ns((year, month, day), (_of_24(hour, half), minute, second), fraction), zone)


def _read_unix(found: "re.Match[bytes]", is_day_first: bool) -> ClockStamp | None:  # noqa: FBT001
    del is_day_first
    name, day, hour, minute, second, zone, year = found.groups()
    month = b"%d" % _MONTHS.get(name.lower(), 0)
    return _placed(_wall_ns((year, month, day), (hour, minute, second), None), zone)


def _read_day_month(found: "re.Match[bytes]", is_day_first: bool) -> ClockStamp | None:  # noqa: FBT001
    del is_day_first
    day, name, year, hour, minute, second, fraction, half, zone = found.groups()
    month = b"%d" % _MONTHS.get(name.lower(), 0)
    return _placed(_wall_ns((year, month, day), (_of_24(hour, half), minute, second), fraction), zone)


def _read_epoch(found: "re.Match[bytes]", is_day_first: bool) -> ClockStamp | None:  # noqa: FBT001
    del is_day_first
    seconds = int(found[1])
    if seconds >= _LAST_EPOCH_S:
        return None
    return ClockStamp(seconds * NANOSECOND_PER_SECOND + _fraction_ns(found[2]), Times.UTC)


_Read = Callable[["re.Match[bytes]", bool], ClockStamp | None]
_FORMS: Final[tuple[tuple["re.Pattern[bytes]", _Read], ...]] = (
    (_ISO, _read_iso),
    (_SLASHES, _read_slashes),
    (_UNIX, _read_unix),
    (_DAY_MONTH, _read_day_month),
    (_EPOCH_S, _read_epoch),
)


def _wall_ns(
    day_parts: tuple[bytes, bytes, bytes],
    clock_parts: tuple[bytes, bytes, bytes | None],
    fraction: bytes | None,
) -> int | None:
    """What the wall clock showed, in nanoseconds since 1970; None where no clock shows that."""
    year, month, day = map(int, day_parts)
    hour, minute, second = (int(part or 0) for part in clock_parts)
    if not _FIRST_YEAR <= year <= _LAST_YEAR or hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return seconds * NANOSECOND_PER_SECOND + _fraction_ns(fraction)


def _of_24(hour: bytes, half: bytes | None) -> bytes:
    """The hour by a clock of 24; one that no clock shows where a clock of 12 does not show it."""
    if half is None:
        return hour
    if not 1 <= int(hour) <= _NOON:
        return b"99"
    return b"%d" % (int(hour) % _NOON + (_NOON if half in b"Pp" else 0))


def _fraction_ns(digits: bytes | None) -> int:
    return int(digits.ljust(9, b"0")) if digits else 0


def _placed(time_ns: int | None, zone: bytes | None) -> ClockStamp | None:
    if time_ns is None:
        return None
    if zone is None or zone[:1].isalpha():
        return ClockStamp(time_ns, Times.UTC if zone in (b"Z", b"UTC", b"GMT") else Times.LOCAL)
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 15 or minutes > 59:  # noqa: PLR2004 (no zone is further from UTC)
        return None
    offset_ns = (hours * 60 + minutes) * 60 * NANOSECOND_PER_SECOND
    return ClockStamp(time_ns + (offset_ns if zone[:1] == b"-" else -offset_ns), Times.UTC)
