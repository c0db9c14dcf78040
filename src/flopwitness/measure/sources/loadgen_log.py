"""MLPerf inference's own log: when the load generator says that power was to be measured.

Its events count milliseconds from the start of the program, so they have no place in a calendar; only
`power_begin` and `power_end` carry a date, by the wall clock of the system under test. With them the run lies
over the samples of the wall meter, which stamps by the wall clock too.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration, Skipped, Trace
from flopwitness.measure.sources.clock_text import parse_us_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.mllog import MARKER, MllogEvent, decode_mllog
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head

__all__ = ["FORMATS", "decode_loadgen_log"]

_OWN_KEY: Final = re.compile(rb'"key"\s*:\s*"(?:loadgen_version|power_begin)"')
_STAMP: Final = "a local date such as `03-17-2021 12:56:42.537`"
_LONGEST_TEXT: Final = 1_000


def decode_loadgen_log(source: Source) -> Trace:
    """The measured run of one log, and what it declares.

    A run without `power_end` has no stop. A log that marks no power measurement has no run, and is none the
    less read: it was made without a meter.

    Raises:
        DecodeError: It holds no event of the load generator.

    Source:
        MLCommons, inference, loadgen/logging.cc: names of the events, and the local form of the dates.
    """
    reader = _LoadgenLog(source)
    for event in decode_mllog(_lines(source), where=source.where):
        reader.take(event)
    return reader.trace()


def _lines(source: Source) -> Iterator[bytes]:
    for batch in source.lines():
        yield from batch.lines


class _LoadgenLog:
    """What one log has told so far."""

    def __init__(self, source: Source) -> None:
        self._where = source.where
        self._recording = Recording(source, times=Times.LOCAL)
        self._skips = SkipTally()
        self._n_events = 0
        self._begin: tuple[int, int] | None = None  # local time and line
        self._runs: list[tuple[int, int | None]] = []
        self._declared: dict[str, str] = {}
        self._validity = ""

    def take(self, event: MllogEvent | Skipped) -> None:
        if isinstance(event, Skipped):
            self._skips.add_all((event,), count=1)
            return
        self._n_events += 1
        if event.key == "power_begin":
            self._take_begin(event)
        elif event.key == "power_end":
            self._take_end(event)
        elif event.key in ("sut_name", "result_validity") and isinstance(event.value, str):
            self._declared.setdefault(event.key, event.value[:_LONGEST_TEXT])

    def _take_begin(self, event: MllogEvent) -> None:
        begin_ns = self._date_ns(event)
        if begin_ns is None:
            return
        self._close_run()
        self._begin = (begin_ns, event.line)

    def _take_end(self, event: MllogEvent) -> None:
        end_ns = self._date_ns(event)
        if end_ns is None:
            return
        if self._begin is None:
            self._skip(event, expected="`power_begin` before `power_end`")
            return
        self._runs.append((self._begin[0], end_ns))
        self._begin = None

    def _close_run(self) -> None:
        """Keep a run that was begun and never ended."""
        if self._begin is not None:
            self._runs.append((self._begin[0], None))
            self._begin = None

    def _date_ns(self, event: MllogEvent) -> int | None:
        text = event.value.encode("utf-8", "replace") if isinstance(event.value, str) else b""
        time_ns = parse_us_stamp(text)
        if time_ns is None:
            self._skip(event, expected=f"{_STAMP} as `{event.key}`")
        return time_ns

    def _skip(self, event: MllogEvent, *, expected: str) -> None:
        found = excerpt(f"{event.key} {event.value!r}".encode("utf-8", "backslashreplace"))
        self._skips.add(f"{self._where}:{event.line}", expected=expected, found=found)

    def trace(self) -> Trace:
        if not self._n_events:
            raise DecodeError(
                "a load generator's log without an event",
                where=f"{self._where}:1",
                expected="`:::MLLOG` with a JSON object",
                found=f"{self._skips.count} unreadable lines",
            )
        self._close_run()
        status = self._declared.get("result_validity", "")
        for start_ns, stop_ns in self._runs:
            self._recording.window(start_ns, start_ns if stop_ns is None else stop_ns, status=status)
        trace = self._recording.trace()
        windows = tuple(
            window if stop_ns is not None else replace(window, stop_utc_ns=None)
            for window, (_, stop_ns) in zip(trace.windows, self._runs, strict=False)
        )
        platform = self._declared.get("sut_name", "")
        return replace(
            trace,
            windows=windows,
            declaration=Declaration(platform=platform) if platform else None,
            skipped=self._skips.first,
            n_skipped=self._skips.count,
        )


def _is_loadgen_log(head: bytes, name: str) -> bool:
    del name
    begin = decode_head(head)
    return MARKER in begin and _OWN_KEY.search(begin) is not None


FORMATS: Final = (Format(name="loadgen-log", is_it=_is_loadgen_log, decode=decode_loadgen_log),)
