"""The times of tables: calendar text with or without a zone, epochs in four units, seconds from a start.

A column says in its first readable cell what its times are, and all of its cells are then read alike. Whole
nanoseconds are kept exactly: a double holds an epoch to a fifth of a microsecond only. Many cells that are
written alike, digit under digit, are read at once; others one by one.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.values import Unreadable

__all__ = [
    "CalendarReader",
    "Origin",
    "TimeForm",
    "TimeHeader",
    "TimeReader",
    "parse_ticks",
    "settle_form",
    "settle_number",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NS: Final = 2**62
_CALENDAR: Final = re.compile(rb"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::|$)")
_REST: Final = re.compile(rb"([0-9]{2})(?:[.,]([0-9]{1,18}))? ?(Z|z|UTC|GMT|[-+][0-9]{2}:?[0-9]{2})?")
_PLAIN: Final = re.compile(rb"([-+]?)([0-9]{1,24})(?:\.([0-9]{0,40}))?")
_SCIENTIFIC: Final = re.compile(rb"[-+]?[0-9]{1,24}(?:\.[0-9]{0,40})?[eE][-+]?[0-9]{1,2}")
_MINUTE_BYTES: Final = 17
_MOST_MINUTES: Final = 4_096
_NANOSECOND_DIGITS: Final = 9
_FIRST_EPOCH_S: Final = 100_000_000  # March 1973: no log is older, and no run is as long
# An epoch without a unit: from 1973 to the year 5138 the ranges of the four units do not meet.
_BY_SIZE: Final = (
    (10**11, 10**9, "seconds"),
    (10**14, 10**6, "milliseconds"),
    (10**17, 10**3, "microseconds"),
)
_LONGEST_CELL: Final = 80
_MOST_DIGITS: Final = 18
_ZERO, _NINE = ord("0"), ord("9")


class Origin(Enum):
    """Where a column's name says that its numbers are counted from."""

    OPEN = "open"  # it does not say
    EPOCH = "epoch"  # 1970
    START = "start"  # the start of the recording


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeHeader:
    """What the name of a column says of its times.

    Attributes:
        unit_ns: The unit of its numbers [ns]; None where the name has none.
        origin: Where its numbers are counted from.
        is_utc: Whether the name says that calendar text without a zone is in UTC.
    """

    unit_ns: int | None = None
    origin: Origin = Origin.OPEN
    is_utc: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeForm:
    """What the times of a column are.

    Attributes:
        times: Their kind.
        unit_ns: The unit of numbers [ns]; None for calendar text.
        has_zone: Whether each calendar text must name its zone.
        assumed: What neither name nor text says, in words; "" where nothing is assumed.
        is_weak: Whether what is assumed may well be otherwise.
    """

    times: Times
    unit_ns: int | None = None
    has_zone: bool = False
    assumed: str = ""
    is_weak: bool = False


def settle_form(cell: bytes, header: TimeHeader) -> TimeForm:
    """What the times of a column are, by its name and its first readable cell.

    Raises:
        Unreadable: The cell is no time.
    """
    text = cell.strip()
    if _CALENDAR.match(text):
        _, has_zone = CalendarReader().read(text)
        is_utc = has_zone or header.is_utc
        return TimeForm(times=Times.UTC if is_utc else Times.LOCAL, has_zone=has_zone)
    form = settle_number(parse_ticks(text, 1), header)
    parse_ticks(text, form.unit_ns or 1)
    return form


def settle_number(whole: int, header: TimeHeader) -> TimeForm:
    """What the times of a column of numbers are, by its name and its first number, cut to a whole one.

    Numbers that lie where epochs lie, from 1973 on, are epochs unless the name says otherwise.

    Raises:
        Unreadable: The name says epoch, and the number is none: epochs of training are counted from 0.
    """
    if header.origin is Origin.START:
        return _from_start(header.unit_ns)
    if header.unit_ns is not None:
        is_epoch = header.origin is Origin.EPOCH or (
            whole * header.unit_ns >= _FIRST_EPOCH_S * NANOSECOND_PER_SECOND
        )
        return TimeForm(times=Times.UTC if is_epoch else Times.RELATIVE, unit_ns=header.unit_ns)
    if whole < _FIRST_EPOCH_S:
        if header.origin is Origin.EPOCH:
            raise Unreadable("an epoch before 1973")
        return _from_start(None)
    for limit, unit_ns, word in _BY_SIZE:
        if whole < limit:
            return TimeForm(times=Times.UTC, unit_ns=unit_ns, assumed=f"{word} since 1970, by their size")
    return TimeForm(times=Times.UTC, unit_ns=1, assumed="nanoseconds since 1970, by their size")


def _from_start(unit_ns: int | None) -> TimeForm:
    if unit_ns is not None:
        return TimeForm(times=Times.RELATIVE, unit_ns=unit_ns)
    return TimeForm(
        times=Times.RELATIVE,
        unit_ns=NANOSECOND_PER_SECOND,
        assumed="seconds from the start, which nothing says",
        is_weak=True,
    )


def parse_ticks(text: bytes, unit_ns: int) -> int:
    """A decimal number of units as whole nanoseconds, exactly; what is finer than one is cut off.

    Raises:
        Unreadable: The text is no number, or one that no clock shows.
    """
    match = _PLAIN.fullmatch(text)
    if match is None:
        return _parse_scientific(text, unit_ns)
    sign, whole, fraction = match.groups()
    time_ns = int(whole) * unit_ns
    if fraction:
        time_ns += int(fraction) * unit_ns // 10 ** len(fraction)
    return _bounded(-time_ns if sign == b"-" else time_ns)


def _parse_scientific(text: bytes, unit_ns: int) -> int:
    if len(text) > _LONGEST_CELL or not _SCIENTIFIC.fullmatch(text):
        raise Unreadable(text[:_LONGEST_CELL].decode("utf-8", "backslashreplace"))
    value = Decimal(text.decode("ascii"))
    if value and value.adjusted() > 24:  # noqa: PLR2004 (far beyond any clock, before it is written out)
        raise Unreadable("a number that no clock shows")
    return _bounded(int(value * unit_ns))


def _bounded(time_ns: int) -> int:
    if not -_MOST_NS < time_ns < _MOST_NS:
        raise Unreadable("a number that no clock shows")
    return time_ns


class CalendarReader:
    """Reads calendar text; what it has read of a minute it knows again."""

    def __init__(self) -> None:
        self._minutes: dict[bytes, int] = {}

    def read(self, text: bytes) -> tuple[int, bool]:
        """Nanoseconds since 1970 by the text's own calendar, or in UTC where it names its zone.

        Returns:
            The time, and whether the text names its zone.

        Raises:
            Unreadable: The text is no such time, or lies outside the years 1970 to 2116.
        """
        if len(text) == _MINUTE_BYTES - 1:
            text += b":00"
        minute_ns = self.read_minute(text)
        match = _REST.fullmatch(text, _MINUTE_BYTES)
        if match is None or int(match[1]) > 59:  # noqa: PLR2004 (leap seconds are not told apart)
            raise Unreadable(text[:_LONGEST_CELL].decode("utf-8", "backslashreplace"))
        time_ns = minute_ns + int(match[1]) * NANOSECOND_PER_SECOND
        if match[2]:
            time_ns += int(match[2][:_NANOSECOND_DIGITS].ljust(_NANOSECOND_DIGITS, b"0"))
        if match[3] is None:
            return time_ns, False
        return time_ns - _offset_ns(match[3]), True

    def read_minute(self, text: bytes) -> int:
        """The beginning of the minute that a text begins with, by the text's own calendar [ns since 1970].

        Raises:
            Unreadable: As `read`.
        """
        known = self._minutes.get(text[:_MINUTE_BYTES])
        if known is not None:
            return known
        match = _CALENDAR.match(text)
        if match is None:
            raise Unreadable(text[:_LONGEST_CELL].decode("utf-8", "backslashreplace"))
        try:
            year, month, day, hour, minute = map(int, match.groups())
            delta = datetime(year, month, day, hour, minute, tzinfo=UTC) - _EPOCH
        except ValueError as error:
            raise Unreadable(str(error)) from None
        minute_ns = _bounded((delta.days * 86_400 + delta.seconds) * NANOSECOND_PER_SECOND)
        if minute_ns < 0:
            raise Unreadable("a time before 1970")
        if len(self._minutes) >= _MOST_MINUTES:
            self._minutes.clear()
        self._minutes[text[:_MINUTE_BYTES]] = minute_ns
        return minute_ns


class TimeReader:
    """Reads the cells of a column whose form is settled."""

    def __init__(self, form: TimeForm) -> None:
        self._form = form
        self._calendar = CalendarReader()

    def read(self, cell: bytes) -> int:
        """The time of one cell, in the kind that the form says [ns].

        Raises:
            Unreadable: The cell is no such time.
        """
        text = cell.strip()
        if self._form.unit_ns is not None:
            return parse_ticks(text, self._form.unit_ns)
        time_ns, has_zone = self._calendar.read(text)
        if has_zone is not self._form.has_zone:
            raise Unreadable("a time with a zone among times without one, or the reverse")
        return time_ns

    def read_all(self, cells: Sequence[bytes]) -> NDArray[np.int64]:
        """The times of several cells, shape (n,).

        Raises:
            Unreadable: Any of them is no such time.
        """
        times = None
        if cells:
            with suppress(Unreadable):
                times = self._read_alike(cells)
        return np.array([self.read(cell) for cell in cells], dtype=np.int64) if times is None else times

    def _read_alike(self, cells: Sequence[bytes]) -> NDArray[np.int64] | None:
        """The times of cells that are written alike; None where they are not, or any may be no time."""
        table = _tabulate(cells)
        if table is None:
            return None
        first = bytes(table[0])
        if self._form.unit_ns is not None:
            return _read_numbers(table, first, self._form.unit_ns)
        self.read(first)
        rest = _REST.fullmatch(first, _MINUTE_BYTES)
        if rest is None:
            return None
        fraction_end = rest.end(2) if rest[2] else rest.end(1)
        seconds = _join_digits(table[:, rest.start(1) : rest.end(1)])
        if (table[:, fraction_end:] != table[0, fraction_end:]).any() or int(seconds.max()) > 59:  # noqa: PLR2004
            return None
        times = self._read_minutes(table) + seconds * NANOSECOND_PER_SECOND - _offset_ns(rest[3] or b"Z")
        if rest[2]:
            digits = table[:, rest.start(2) : rest.end(2)][:, :_NANOSECOND_DIGITS]
            times += _join_digits(digits) * 10 ** (_NANOSECOND_DIGITS - digits.shape[1])
        return times

    def _read_minutes(self, table: NDArray[np.uint8]) -> NDArray[np.int64]:
        head = table[:, :_MINUTE_BYTES]
        minutes = _join_digits(head[:, (head[0] >= _ZERO) & (head[0] <= _NINE)])
        _, first, places = np.unique(minutes, return_index=True, return_inverse=True)
        starts = [self._calendar.read_minute(bytes(head[row])) for row in first.tolist()]
        return np.array(starts, dtype=np.int64)[places.reshape(-1)]


def _tabulate(cells: Sequence[bytes]) -> NDArray[np.uint8] | None:
    """The cells as rows of bytes, where each has its digits and its other signs in the same places.

    Shorter cells with a point get zeros at their ends, which say nothing there.
    """
    width, first = max(map(len, cells)), cells[0]
    if not 0 < width <= _LONGEST_CELL or first.strip() != first:
        return None
    if min(map(len, cells)) != width:
        if b"." not in first:
            return None
        cells = [cell.ljust(width, b"0") for cell in cells]
    table = np.frombuffer(b"".join(cells), dtype=np.uint8).reshape(len(cells), width)
    is_digit = (table >= _ZERO) & (table <= _NINE)
    if (is_digit != is_digit[0]).any():
        return None
    others = table[:, ~is_digit[0]]
    return None if (others != others[0]).any() else table


def _join_digits(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The numbers that rows of digits write, at most 18 digits each."""
    number = np.zeros(digits.shape[0], dtype=np.int64)
    for place in range(digits.shape[1]):
        number = number * 10 + (digits[:, place].astype(np.int64) - _ZERO)
    return number


def _read_numbers(table: NDArray[np.uint8], first: bytes, unit_ns: int) -> NDArray[np.int64] | None:
    """Numbers of one width without a sign, exactly; None where they may be beyond what fits."""
    match = _PLAIN.fullmatch(first)
    if match is None or match[1]:
        return None
    whole, fraction = match[2], match[3] or b""
    scale, rest = divmod(unit_ns, 10 ** len(fraction))
    if rest or len(whole) + len(fraction) > _MOST_DIGITS:
        return None
    is_digit = (table[0] >= _ZERO) & (table[0] <= _NINE)
    number = _join_digits(table[:, is_digit])
    return number * scale if int(number.max()) * scale < _MOST_NS else None


def _offset_ns(zone: bytes) -> int:
    if zone[:1] not in (b"+", b"-"):
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-1 if zone[:1] == b"-" else 1) * minutes * 60 * NANOSECOND_PER_SECOND
