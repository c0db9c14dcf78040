"""MLPerf's log lines: `:::MLLOG {json}` anywhere in a line, one event each.

Result logs are the standard output of many processes, so rank prefixes, shell traces and progress lines
stand between the events and are no errors. A line that carries the marker and cannot be read is never
dropped: it comes back as `Skipped`, with its place. Two processes that write at once may put two events
into one line; both are read.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_MILLISECOND
from flopwitness.measure.samples import RunWindow, Skipped
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES
from flopwitness.measure.sources.skips import excerpt

__all__ = [
    "MARKER",
    "MOST_PER_LOG",
    "TIMED_BY_SERIES",
    "ExtentTally",
    "MllogEvent",
    "decode_mllog",
]

MARKER: Final = b":::MLLOG"
MOST_PER_LOG: Final = 10_000  # marks, devices or runs that one log may name
TIMED_BY_SERIES: Final = ("power_reading", "interconnect_power_est")  # events whose times a series keeps
_VALUE: Final = re.compile(
    rb'"value"\s*:\s*([-+]?(?:[0-9][0-9.eE+-]{0,400}|nan|inf(?:inity)?))', re.IGNORECASE
)
_LAST_MS: Final = 9_223_372_036_000  # nanoseconds must fit in int64: the year 2262


@dataclass(frozen=True, slots=True, kw_only=True)
class MllogEvent:
    """One event of a log.

    Attributes:
        time_ns: Wall-clock nanoseconds since 1970, between 1970 and 2262.
        key: The event's name, such as `power_reading`.
        value: What JSON held; None where it was null or missing, and "null" where it was that text.
        event_type: Such as `POINT_IN_TIME`; "" where it does not say.
        metadata: Further fields; empty where the log holds "", null or nothing.
        line: The line's number, from 1.
    """

    time_ns: int
    key: str
    value: JsonValue
    event_type: str
    metadata: Mapping[str, JsonValue]
    line: int


class ExtentTally:
    """The first and the last instant of what was read, in bounded memory."""

    def __init__(self) -> None:
        self._extent: RunWindow | None = None

    def add(self, event: MllogEvent) -> None:
        """Stretch the time to one more event, unless it is a reading, whose time its series keeps."""
        if event.key in TIMED_BY_SERIES:
            return
        known = self._extent
        first_ns = event.time_ns if known is None else min(known.start_utc_ns, event.time_ns)
        last_ns = event.time_ns if known is None else max(known.stop_utc_ns or 0, event.time_ns)
        self._extent = RunWindow(start_utc_ns=first_ns, stop_utc_ns=last_ns)

    @property
    def extent(self) -> RunWindow | None:
        """From the first to the last; None where nothing was read."""
        return self._extent


class _Record(msgspec.Struct):
    time_ms: int | float
    key: str
    value: Any = None
    event_type: Any = None
    metadata: Any = None


_RECORDS: Final = msgspec.json.Decoder(_Record)


def decode_mllog(lines: Iterable[bytes], *, where: str) -> Iterator[MllogEvent | Skipped]:
    """The events of a log in its order, streaming; lines without the marker are passed over.

    Args:
        lines: Lines with or without their ends; `Source.each_line` gives them in bounded memory.
        where: The log's name, for `Skipped`.

    Yields:
        An event, or where a marked line cannot be read, or any line is too long, what was skipped.

    Source:
        MLCommons, mlperf_logging/mllog: the line format and its names.
    """
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE_BYTES:
            expected = f"a line of at most {LONGEST_LINE_BYTES} bytes"
            yield Skipped(where=f"{where}:{number}", expected=expected, found=excerpt(line))
        elif MARKER in line:
            for text in _texts(line):
                event = _event(text, line=number)
                if isinstance(event, MllogEvent):
                    yield event
                else:
                    yield Skipped(where=f"{where}:{number}", expected=event, found=excerpt(line))


def _texts(line: bytes) -> list[bytes]:
    """What follows each marker; before a second marker, only up to the end of the first object."""
    texts = line.split(MARKER)[1:]
    for i, text in enumerate(texts[:-1]):
        texts[i] = text[: text.rfind(b"}") + 1]
    return texts


def _event(text: bytes, *, line: int) -> MllogEvent | str:
    """The event, or what should have stood there."""
    try:
        record = _RECORDS.decode(text)
        if _may_repeat_names(text):
            decode_json(text.strip())
    except msgspec.ValidationError:
        return _not_finite(text) or "`key` as text, `time_ms` as a number, and no number beyond a double"
    except (msgspec.MsgspecError, DecodeError, UnicodeDecodeError, RecursionError):
        return _not_finite(text) or "one strict JSON object after :::MLLOG"
    if not 0 <= record.time_ms <= _LAST_MS:
        return "`time_ms` between 1970 and 2262"
    return MllogEvent(
        time_ns=_nanoseconds(record.time_ms),
        key=record.key,
        value=record.value,
        event_type=record.event_type if isinstance(record.event_type, str) else "",
        metadata=record.metadata if isinstance(record.metadata, dict) else {},
        line=line,
    )


def _not_finite(text: bytes) -> str:
    """What should have stood in place of a value that is NaN, infinite or beyond a double; "" otherwise."""
    found = _VALUE.search(text)
    try:
        is_finite = found is None or math.isfinite(float(found[1]))
    except ValueError:
        return ""
    return "" if found is None or is_finite else f"a finite value, not {excerpt(found[1])}"


def _may_repeat_names(text: bytes) -> bool:
    """Whether a name may stand twice, so that two readers could see two values: then look strictly."""
    return (
        b"\\" in text
        or text.count(b'"value"') > 1
        or text.count(b'"time_ms"') > 1
        or text.count(b'"key"') > 1
    )


def _nanoseconds(time_ms: float) -> int:
    if isinstance(time_ms, int):
        return time_ms * NANOSECOND_PER_MILLISECOND
    return round(time_ms * 1_000) * 1_000  # a double holds no more than microseconds of today
