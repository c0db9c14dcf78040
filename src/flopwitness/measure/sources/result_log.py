"""MLPerf's result logs: when the run says that it started and stopped, and what it says it ran on.

All of it is the Prover's claim. Hyperparameters, step counts and quality stand in the same logs and are
not decoded, so that no prediction can come to rest on them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Declaration, Mark, RunWindow, Skipped, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.mllog import MARKER, MOST_PER_LOG, ExtentTally, MllogEvent, decode_mllog
from flopwitness.measure.sources.skips import SkipTally
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.system_json import SYSTEM_FIELDS, declare_system

__all__ = ["FORMATS", "SAME_RUN_NS", "ResultLogReader", "decode_result_log", "join_extents", "merge_windows"]

SAME_RUN_NS: Final = 60 * NANOSECOND_PER_SECOND  # ranks of one run report within this span
_SYSTEM_MARKER: Final = b":::SYSJSON"
_LONGEST_TEXT: Final = 1_000
_NODES_IN_PLATFORM: Final = re.compile(r"([0-9]{1,7})x(?=\S)")


def decode_result_log(source: Source) -> Trace:
    """The runs and the declaration of one result log.

    Args:
        source: The log: standard output of a training job, other lines included.

    Returns:
        A trace without series. A run without `run_stop` has no stop; a stop before its start is kept. Of
        several stops the latest counts, and one more than a minute from those before it is a mark too.
        The extent holds the times of all events, of whatever name.

    Raises:
        DecodeError: It marks no run and declares nothing.

    Source:
        MLCommons, mlperf_logging/mllog/constants.py: the names of the events.
    """
    reader = ResultLogReader(source.where)
    for event in decode_mllog(reader.watch(source.each_line()), where=source.where):
        reader.take(event)
    return reader.trace()


def merge_windows(windows: Iterable[RunWindow]) -> tuple[RunWindow, ...]:
    """The runs in order of their starts, one for each that several logs report.

    Two windows are one run where they start within a minute of each other and overlap: then the earliest
    start and the latest stop count.
    """
    merged: list[RunWindow] = []
    for window in sorted(windows, key=lambda window: window.start_utc_ns):
        if merged and _is_same_run(merged[-1], window):
            merged[-1] = _joined(merged[-1], window)
        else:
            merged.append(window)
    return tuple(merged)


def join_extents(extents: Iterable[RunWindow | None]) -> RunWindow | None:
    """From the first to the last instant of all; None where there is none."""
    known = [extent for extent in extents if extent is not None]
    if not known:
        return None
    return RunWindow(
        start_utc_ns=min(extent.start_utc_ns for extent in known),
        stop_utc_ns=max(extent.stop_utc_ns or extent.start_utc_ns for extent in known),
    )


def _is_same_run(first: RunWindow, second: RunWindow) -> bool:
    if abs(second.start_utc_ns - first.start_utc_ns) > SAME_RUN_NS:
        return False
    return first.stop_utc_ns is None or second.start_utc_ns <= first.stop_utc_ns


def _joined(first: RunWindow, second: RunWindow) -> RunWindow:
    start_utc_ns = min(first.start_utc_ns, second.start_utc_ns)
    if second.stop_utc_ns is None:
        return replace(first, start_utc_ns=start_utc_ns)
    if first.stop_utc_ns is None or second.stop_utc_ns > first.stop_utc_ns:
        return RunWindow(
            start_utc_ns=start_utc_ns,
            stop_utc_ns=second.stop_utc_ns,
            status=second.status or first.status,
        )
    return replace(first, start_utc_ns=start_utc_ns, status=first.status or second.status)


class ResultLogReader:
    """What has been read of one log so far.

    Attributes:
        has_run: Whether an event said that a run started.
    """

    def __init__(self, where: str) -> None:
        """Begin with nothing read."""
        self.has_run = False
        self._where = where
        self._windows: list[RunWindow] = []
        self._stops: list[Mark] = []
        self._times = ExtentTally()
        self._benchmark = ""
        self._platform = ""
        self._system: dict[str, JsonValue] = {}
        self._system_lines: dict[str, JsonValue] = {}
        self._skips = SkipTally()
        self._n_events = 0

    def watch(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, on their way to whoever finds the events in them; `:::SYSJSON` is read here.

        A shell trace shows each such line a second time, in quotes.
        """
        for number, line in enumerate(lines, start=1):
            if _SYSTEM_MARKER in line:
                self._take_system_line(line, number)
            yield line

    def take(self, event: MllogEvent | Skipped) -> None:
        """Read one event."""
        if isinstance(event, Skipped):
            self._skips.add_all((event,), count=1)
            return
        self._n_events += 1
        self._times.add(event)
        if event.key == "run_start":
            self.has_run = True
            self._take_start(event)
        elif event.key == "run_stop":
            self._take_stop(event)
        elif event.key == "submission_benchmark":
            self._benchmark = self._benchmark or _text(event.value)
        elif event.key == "submission_platform":
            self._platform = self._platform or _text(event.value)
        elif event.key in SYSTEM_FIELDS:
            self._take_system({event.key: event.value}, self._system, line=event.line)

    def _take_system_line(self, line: bytes, number: int) -> None:
        _, _, rest = line.partition(_SYSTEM_MARKER)
        if b"{" not in rest:
            return
        text = rest[rest.find(b"{") : rest.rfind(b"}") + 1]
        try:
            record = decode_json(text, where=f"{self._where}:{number}")
        except DecodeError as error:
            self._skips.add(error.where, expected="one strict JSON object", found=error.found)
            return
        if isinstance(record, dict):
            fields = {name: record[name] for name in SYSTEM_FIELDS if name in record}
            self._take_system(fields, self._system_lines, line=number)

    def trace(self) -> Trace:
        """The run and what is declared.

        Raises:
            DecodeError: No run and no declaration was read.
        """
        declaration = self._declaration()
        if not self._windows and declaration == Declaration():
            raise DecodeError(
                "a result log that marks no run",
                where=f"{self._where}:1",
                expected="`run_start` or `submission_benchmark` after :::MLLOG",
                found=f"{self._n_events} other events and {self._skips.count} unreadable lines",
            )
        return Trace(
            marks=tuple(self._stops),
            windows=tuple(self._windows),
            extent=self._times.extent,
            declaration=None if declaration == Declaration() else declaration,
            skipped=self._skips.first,
            n_skipped=self._skips.count,
        )

    def _take_start(self, event: MllogEvent) -> None:
        window = RunWindow(start_utc_ns=event.time_ns, stop_utc_ns=None)
        if self._windows and _is_same_run(self._windows[-1], window):
            self._windows[-1] = _joined(self._windows[-1], window)
        elif len(self._windows) < MOST_PER_LOG:
            self._windows.append(window)
        else:
            self._skip(event, expected=f"at most {MOST_PER_LOG} runs in one log")

    def _take_stop(self, event: MllogEvent) -> None:
        last = self._windows[-1] if self._windows else None
        if last is None:
            self._skip(event, expected="a `run_start` before it")
            return
        if last.stop_utc_ns is not None and abs(event.time_ns - last.stop_utc_ns) > SAME_RUN_NS:
            self._mark_stop(event)
        stop = RunWindow(
            start_utc_ns=last.start_utc_ns,
            stop_utc_ns=event.time_ns,
            status=_text(event.metadata.get("status")),
        )
        self._windows[-1] = _joined(last, stop)

    def _mark_stop(self, event: MllogEvent) -> None:
        """Keep a further stop of a run that has one, so that it can be told."""
        if len(self._stops) >= MOST_PER_LOG:
            self._skip(event, expected=f"at most {MOST_PER_LOG} stops in one log")
            return
        place = f"{self._where}:{event.line}"
        self._stops.append(Mark(name=event.key, utc_ns=event.time_ns, where=place))

    def _take_system(self, fields: dict[str, JsonValue], kept: dict[str, JsonValue], *, line: int) -> None:
        """Keep what is declared first, where it can be read at all."""
        try:
            declare_system(fields, where=f"{self._where}:{line}")
        except DecodeError as error:
            self._skips.add(f"{self._where}:{line}", expected=error.expected, found=error.found)
            return
        kept.update({name: value for name, value in fields.items() if name not in kept})

    def _declaration(self) -> Declaration:
        system = {**self._system_lines, **self._system}  # an event's word goes before a line's
        declared = declare_system(system, where=self._where)
        in_platform = _NODES_IN_PLATFORM.match(self._platform)
        nodes = int(in_platform[1]) if declared.nodes is None and in_platform else declared.nodes
        if nodes != declared.nodes:
            declared = declare_system({**system, SYSTEM_FIELDS[0]: nodes}, where=self._where)
        return replace(declared, benchmark=self._benchmark, platform=self._platform)

    def _skip(self, event: MllogEvent, *, expected: str) -> None:
        self._skips.add(f"{self._where}:{event.line}", expected=expected, found=f"`{event.key}`")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) and len(value) <= _LONGEST_TEXT else ""


def _is_result(head: bytes, name: str) -> bool:
    del name
    return MARKER in head


FORMATS: Final = (Format(name="mlperf-result", is_it=_is_result, decode=decode_result_log),)
