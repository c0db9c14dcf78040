"""Time stamps as tools write them, one by one and by the thousand.

A stamp without a zone is a local calendar's time; where it lies in UTC is not this module's to say. Both ways
of reading, alone and in bulk, accept the same stamps and give the same nanoseconds: what the bulk cannot read
it leaves to the other. Years outside 1970 to 2099 are no times of a recording: a clock that shows one was
never set, and one wrong stamp must not take a whole log with it.
"""

import re
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.sources.values import Unreadable

__all__ = ["LONGEST_STAMP", "parse_asctime", "parse_stamp", "parse_stamps", "parse_zoned_stamp"]

LONGEST_STAMP: Final = 29  # to the nanosecond
_FIRST_YEAR, _LAST_YEAR = 1970, 2099
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_WHOLE_SECONDS: Final = 19
_STAMP: Final = re.compile(
    rb"([0-9]{4})([-/])([0-9]{2})\2([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
)
_ZONE: Final = re.compile(rb" ?(?:(Z|UTC)|([-+])([0-9]{2}):?([0-9]{2}))")
_ASCTIME: Final = re.compile(
    rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) +([0-9]{1,2}) "
    rb"([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})"
)
_MONTHS: Final = (
    b"Jan",
    b"Feb",
    b"Mar",
    b"Apr",
    b"May",
    b"Jun",
    b"Jul",
    b"Aug",
    b"Sep",
    b"Oct",
    b"Nov",
    b"Dec",
)
_HOURS, _MINUTES, _SECONDS = 24, 60, 60
_DAY_NS: Final = _HOURS * _MINUTES * _SECONDS * NANOSECOND_PER_SECOND
_MOST_DECIMALS: Final = 9
_DAY_PLACES: Final = [0, 1, 2, 3, 5, 6, 8, 9]
_DAY_WEIGHTS: Final = 10.0 ** np.arange(7, -1, -1)
_TIME_PLACES: Final = (11, 12, 14, 15, 17, 18)
_TIME_WEIGHTS: Final = tuple(s * NANOSECOND_PER_SECOND for s in (36_000, 3_600, 600, 60, 10, 1))


def parse_stamp(text: bytes) -> int:
    """Nanoseconds since 1970 by the stamp's own calendar; `2025/05/14 09:00:00.000` and ISO 8601, no zone.

    Raises:
        Unreadable: No such stamp, a day that does not exist, or a year outside 1970 to 2099.
    """
    match = _STAMP.fullmatch(text)
    if match is None:
        raise Unreadable(_shown(text))
    return _from_match(match, text)


def parse_zoned_stamp(text: bytes) -> int:
    """Nanoseconds since 1970 UTC; ISO 8601 with a zone: `Z`, `UTC`, `+01:00` or `+0100`.

    Raises:
        Unreadable: No such stamp, or none with a zone.
    """
    match = _STAMP.match(text)
    zone = _ZONE.fullmatch(text, match.end()) if match else None
    if match is None or zone is None:
        raise Unreadable(_shown(text))
    offset_s = 0
    if zone[2]:
        hours, minutes = int(zone[3]), int(zone[4])
        if hours >= _HOURS or minutes >= _MINUTES:
            raise Unreadable(_shown(text))
        offset_s = (hours * _MINUTES + minutes) * _SECONDS * (-1 if zone[2] == b"-" else 1)
    return _from_match(match, text) - offset_s * NANOSECOND_PER_SECOND


def parse_asctime(text: bytes) -> int:
    """Nanoseconds since 1970 by the stamp's own calendar; C's form, `Wed May 14 09:00:00 2025`.

    Raises:
        Unreadable: No such stamp; names of days and months are English, as C's are.
    """
    match = _ASCTIME.fullmatch(text)
    if match is None or match[1] not in _MONTHS:
        raise Unreadable(_shown(text))
    day = _day(int(match[6]), _MONTHS.index(match[1]) + 1, int(match[2]), text)
    return _join(day, int(match[3]), int(match[4]), int(match[5]), text) * NANOSECOND_PER_SECOND


def parse_stamps(text: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Stamps of one width, as `parse_stamp` reads each.

    Args:
        text: Their bytes, shape (width, n): the first characters of all, then the second ones, and so on.

    Returns:
        The nanoseconds and which of them were read, both of shape (n,); those of the others mean nothing.
    """
    width, n = text.shape
    n_decimals = width - _WHOLE_SECONDS - 1
    if width != _WHOLE_SECONDS and not 1 <= n_decimals <= _MOST_DECIMALS:
        return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    digit = text - np.uint8(ord("0"))
    places = [*_TIME_PLACES, *range(_WHOLE_SECONDS + 1, width)]
    is_read = _has_marks(text) & (digit[[*_DAY_PLACES, *places]].max(axis=0) <= 9)  # noqa: PLR2004 (a digit)
    is_read &= digit[11] * np.uint8(10) + digit[12] < _HOURS
    is_read &= (digit[14] < _MINUTES // 10) & (digit[17] < _SECONDS // 10)
    day, is_day = _days(_DAY_WEIGHTS @ digit[_DAY_PLACES])
    weights = [*_TIME_WEIGHTS, *(NANOSECOND_PER_SECOND // 10**place for place in range(1, n_decimals + 1))]
    of_day_ns = np.array(weights, dtype=np.float64) @ digit[places]  # exact: a day has fewer than 2**53 ns
    return day * _DAY_NS + of_day_ns.astype(np.int64), is_read & is_day


def _days(written: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Days since 1970 of numbers such as 20250514, and which of them are days."""
    unlike, place = np.unique(written, return_inverse=True) if np.ptp(written) else (written[:1], 0)
    days = [_find_day(int(number)) for number in unlike]
    return (
        np.broadcast_to(np.array([day or 0 for day in days], dtype=np.int64)[place], written.shape),
        np.broadcast_to(np.array([day is not None for day in days])[place], written.shape),
    )


def _find_day(written: int) -> int | None:
    year, month, day = written // 10_000, written // 100 % 100, written % 100
    try:
        return _day(year, month, day, b"")
    except Unreadable:
        return None


def _has_marks(text: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which stamps have the marks between their digits."""
    mark, between = text[4], text[10]
    is_marked = ((mark == ord("/")) | (mark == ord("-"))) & (text[7] == mark)
    is_marked &= (between == ord(" ")) | (between == ord("T"))
    is_marked &= (text[13] == ord(":")) & (text[16] == ord(":"))
    if len(text) > _WHOLE_SECONDS:
        is_marked &= text[_WHOLE_SECONDS] == ord(".")
    return np.asarray(is_marked)


def _from_match(match: re.Match[bytes], text: bytes) -> int:
    day = _day(int(match[1]), int(match[3]), int(match[4]), text)
    seconds = _join(day, int(match[5]), int(match[6]), int(match[7]), text)
    return seconds * NANOSECOND_PER_SECOND + int((match[8] or b"").ljust(9, b"0"))


def _day(year: int, month: int, day: int, text: bytes) -> int:
    try:
        if _FIRST_YEAR <= year <= _LAST_YEAR:
            return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        pass
    raise Unreadable(_shown(text))


def _join(day: int, hour: int, minute: int, second: int, text: bytes) -> int:
    if hour >= _HOURS or minute >= _MINUTES or second >= _SECONDS:
        raise Unreadable(_shown(text))
    return ((day * _HOURS + hour) * _MINUTES + minute) * _SECONDS + second


def _shown(text: bytes) -> str:
    return text[:LONGEST_STAMP].decode("utf-8", "backslashreplace")
