"""Two clocks: monotonic for length, UTC for place.

A wall clock is set, drifts and jumps; a monotonic clock has no date. A reading carries both where its
source gives both. Logs mostly carry one wall clock: their lengths then come from it, and the jumps that
can be seen become findings, not silent corrections.
"""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND

__all__ = ["Clock", "FrozenClock", "Moment", "SystemClock", "format_utc", "parse_utc", "utc_year"]

_LAST_NS: Final = 9_223_372_036 * NANOSECOND_PER_SECOND
_RFC_3339: Final = re.compile(
    r"(?P<second>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,18}))?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One instant on both clocks.

    Attributes:
        utc_ns: Nanoseconds since 1970-01-01T00:00:00Z.
        monotonic_ns: Nanoseconds on a clock that never steps; only differences mean anything.
    """

    utc_ns: int
    monotonic_ns: int


class Clock(Protocol):
    """Where the present comes from; handed in, so that a decision never reads it by itself."""

    def now(self) -> Moment:
        """The present on both clocks."""
        ...


class SystemClock:
    """The computer's own clocks."""

    def now(self) -> Moment:
        """The present on both clocks."""
        return Moment(utc_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())


class FrozenClock:
    """A clock for tests and replays that moves only when it is told to."""

    def __init__(self, *, utc_ns: int, monotonic_ns: int = 0) -> None:
        self._moment = Moment(utc_ns=utc_ns, monotonic_ns=monotonic_ns)

    def now(self) -> Moment:
        """The instant at which the clock stands."""
        return self._moment

    def advance(self, *, elapsed_ns: int) -> None:
        """Move both clocks forward by `elapsed_ns`, which must not be negative."""
        if elapsed_ns < 0:
            raise ValueError("a clock does not run backwards")
        self._moment = Moment(
            utc_ns=self._moment.utc_ns + elapsed_ns, monotonic_ns=self._moment.monotonic_ns + elapsed_ns
        )


def format_utc(utc_ns: int) -> str:
    """The instant as RFC 3339 in UTC, to the second.

    Raises:
        ValueError: The instant lies outside the years 1970 to 2262.
    """
    if not 0 <= utc_ns <= _LAST_NS:
        raise ValueError(f"not an instant between 1970 and 2262: {utc_ns} ns")
    return datetime.fromtimestamp(utc_ns // NANOSECOND_PER_SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_year(utc_ns: int) -> int:
    """The year of the instant in UTC."""
    return int(format_utc(utc_ns)[:4])


def parse_utc(text: str, *, where: str = "") -> int:
    """Nanoseconds since 1970 of an RFC 3339 instant that names its zone; digits beyond the ninth are dropped.

    Raises:
        DecodeError: Not such an instant, one without a zone, or one outside the years 1970 to 2262.
    """
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise _no_instant("not an instant with its zone", text, where)
    try:
        moment = datetime.fromisoformat(match["second"] + match["zone"])
    except ValueError:
        raise _no_instant("not an instant", text, where) from None
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = delta.days * 86_400 + delta.seconds
    utc_ns = seconds * NANOSECOND_PER_SECOND + int((match["fraction"] or "")[:9].ljust(9, "0"))
    if not 0 <= utc_ns <= _LAST_NS:
        raise _no_instant("an instant outside 1970 to 2262", text, where)
    return utc_ns


def _no_instant(message: str, text: str, where: str) -> DecodeError:
    expected = "an instant such as 2026-01-31T12:00:00Z"
    return DecodeError(message, where=where, expected=expected, found=repr(text[:80]))
