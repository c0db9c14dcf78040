"""What a reader has read so far: columns of times and values, and everything that must be told.

A reader names a device and a channel, adds readings, and reports what it cannot read. The recording keeps
numbers compactly, leaves out values that no sensor can have, places local times in UTC, and hands out one
trace. So no reader has rules of its own for what is missing, impossible or dated.
"""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import (
    Channel,
    Device,
    Mark,
    RunWindow,
    Scope,
    Series,
    Skipped,
    Timing,
    Trace,
)
from flopwitness.measure.sources.local_time import place_local_times
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.sources.values import leave_out_impossible, tell_impossible
from flopwitness.measure.wording import agree, plural

__all__ = ["MOST_READINGS", "MOST_SERIES", "Column", "Recording", "Times"]

MOST_READINGS: Final = 200_000_000
MOST_SERIES: Final = 100_000
_MOST_MARKS: Final = 10_000
_MOST_FINDINGS: Final = 1_000
_USUAL_PERIOD_S: Final = 1.0  # what tegrastats, dmon and their like do where nobody tells them otherwise
_LONGEST_NAME: Final = 200
_KEPT_OF_NAME: Final = 150
_LEAST_NS, _MOST_NS = -(2**62), 2**62  # room for every zone's offset
_DAY_NS: Final = 86_400 * NANOSECOND_PER_SECOND  # no zone is further from UTC
_SHORTEST_PERIOD_S, _LONGEST_PERIOD_S = 1e-9, 1e9


class Times(Enum):
    """What the times of a recording are, as they come from the reader."""

    UTC = "utc"  # nanoseconds since 1970
    LOCAL = "local"  # nanoseconds since 1970 by a local calendar
    RELATIVE = "relative"  # nanoseconds from any origin
    COUNTED = "counted"  # the number of the reading, from 0


@dataclass(slots=True)
class Column:
    """One channel of one device as it grows; `add` and `extend` take times of the recording's kind."""

    times: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    where: str = ""

    def add(self, time: int, value: float) -> None:
        """One reading; NaN where the tool has none.

        Raises:
            DecodeError: A time beyond 64 bits.
        """
        try:
            self.times.append(time)
        except OverflowError:
            raise _no_such_time(self.where) from None
        try:
            self.values.append(value)
        except OverflowError:  # a whole number beyond a double: left out as impossible, and told
            self.values.append(math.inf)

    def extend(self, times: ArrayLike, values: ArrayLike) -> None:
        """Several readings: int64 and float64 arrays of one shape (n,).

        Raises:
            DecodeError: A time beyond 64 bits.
            ValueError: The shapes differ.
        """
        time_array, value_array = _as_int64(times, self.where), np.asarray(values, dtype=np.float64)
        if time_array.ndim != 1 or time_array.shape != value_array.shape:
            raise ValueError(f"times {time_array.shape} and values {value_array.shape} differ in shape")
        self.times.frombytes(np.ascontiguousarray(time_array).data.cast("B"))
        self.values.frombytes(np.ascontiguousarray(value_array).data.cast("B"))


@dataclass(frozen=True, slots=True)
class _Key:
    device: str
    channel: Channel
    scope: Scope
    part: str


@dataclass(frozen=True, slots=True)
class _Kind:
    averaged_s: float
    counter_range_j: float | None
    is_estimate: bool

    def joined(self, later: "_Kind") -> "_Kind":
        """What two words on one column say together: a doubt that was raised once stays."""
        return _Kind(
            averaged_s=max(self.averaged_s, later.averaged_s),
            counter_range_j=self.counter_range_j or later.counter_range_j,
            is_estimate=self.is_estimate or later.is_estimate,
        )


class Recording:
    """One file's readings as they come."""

    def __init__(self, source: Source, *, times: Times) -> None:
        """Begin with nothing read.

        Args:
            source: The file, for its place and what the user says beside it.
            times: What kind of times the reader gives; may be set later, before `trace`.
        """
        self.times = times
        self.counted_period_s = _USUAL_PERIOD_S
        self._where = source.where
        self._options = source.options
        self._columns: dict[_Key, tuple[Column, _Kind]] = {}
        self._devices: dict[str, Device] = {}
        self._marks: list[Mark] = []
        self._windows: list[RunWindow] = []
        self._skips = SkipTally()
        self._findings: list[Finding] = []

    def column(
        self,
        device: str,
        channel: Channel,
        scope: Scope,
        *,
        part: str = "",
        averaged_s: float = 0.0,
        counter_range_j: float | None = None,
        is_estimate: bool = False,
    ) -> Column:
        """The column of one channel of one device, new or as it stands.

        Power that the reader knows no scope for takes the user's word, where there is one.

        Raises:
            DecodeError: The file names more series than any machine has.
        """
        if scope is Scope.UNKNOWN and self._options.scope is not None:
            scope = self._options.scope
        key = _Key(_shortened(device), channel, scope, _shortened(part))
        kind = _Kind(averaged_s, counter_range_j, is_estimate)
        known = self._columns.get(key)
        if known is None:
            self._check_number(self._columns, "series")
            known = self._columns[key] = Column(where=self._where), kind
        elif known[1] != kind:
            known = self._columns[key] = known[0], known[1].joined(kind)
        return known[0]

    def describe(self, device: Device) -> None:
        """Keep what the file says of a device; later words add to earlier ones, and never overwrite them.

        Raises:
            DecodeError: The file names more devices than any machine has.
        """
        name = _shortened(device.name)
        known = self._devices.get(name)
        if known is None:
            self._check_number(self._devices, "devices")
        told = replace(
            device,
            name=name,
            chip_name=_shortened(device.chip_name),
            host=_shortened(device.host),
            driver=_shortened(device.driver),
        )
        self._devices[name] = told if known is None else known.joined(told)

    def mark(self, name: str, time: int, *, line: int) -> None:
        """An event that the file names, in the times of the recording; in the order of the file."""
        where = f"{self._where}:{line}"
        if len(self._marks) < _MOST_MARKS:
            self._marks.append(Mark(name=_shortened(name), utc_ns=time, where=where))
        else:
            expected = f"at most {_MOST_MARKS} marks in one log"
            self._skips.add(where, expected=expected, found=excerpt(_as_bytes(name)))

    def window(self, start: int, stop: int | None, *, status: str = "") -> None:
        """A run that the file marks, in the times of the recording; in the order of the file.

        Args:
            start: When it started.
            stop: When it stopped; None for a run cut short.
            status: What the file calls its outcome.
        """
        if len(self._windows) < _MOST_MARKS:
            self._windows.append(RunWindow(start_utc_ns=start, stop_utc_ns=stop, status=_shortened(status)))
        else:
            expected = f"at most {_MOST_MARKS} runs in one log"
            self._skips.add(self._where, expected=expected, found="one more")

    def skip(self, line: int, *, expected: str, found: bytes) -> None:
        """Count and locate a line that cannot be read."""
        if self._skips.is_full:
            self._skips.add_all((), count=1)
        else:
            self._skips.add(f"{self._where}:{line}", expected=expected, found=excerpt(found))

    def tell(self, finding: Finding) -> None:
        """Keep what only the reader can see; its code stands in docs/findings.md like any other.

        After the first thousand, a finding adds its count to the first of its code.
        """
        if len(self._findings) >= _MOST_FINDINGS:
            for place, known in enumerate(self._findings):
                if known.code == finding.code:
                    self._findings[place] = replace(known, count=known.count + finding.count)
                    return
        self._findings.append(finding)

    @property
    def n_readings(self) -> int:
        """How many readings so far, missing ones included."""
        return sum(len(column.times) for column, _ in self._columns.values())

    def check_size(self) -> None:
        """Refuse what would fill the memory; readers call it once a batch.

        Raises:
            DecodeError: More readings than one call may hold.
        """
        if self.n_readings > MOST_READINGS:
            raise DecodeError("too many readings", where=self._where, expected=f"at most {MOST_READINGS}")

    def trace(self) -> Trace:
        """Everything as one trace.

        Impossible values are missing in it, and told; readings at times that are on no calendar are skipped,
        and counted. A recording without a reading is a trace without one:
        whether that is an error is the reader's to say.

        Raises:
            DecodeError: A mark or run at a time that no clock shows.
        """
        placement = _Placement(
            self.times,
            self._options,
            where=self._where,
            usual_s=self.counted_period_s,
            origin=self._earliest() if self.times is Times.RELATIVE else 0,
        )
        rejected: Counter[Channel] = Counter()
        series = tuple(
            _finish(key, column, kind, placement, rejected) for key, (column, kind) in self._columns.items()
        )
        n_off, off = placement.skipped()
        if n_off:
            self._skips.add_all((off,), count=n_off)
        marks, windows = placement.place_marks(self._marks), placement.place_windows(self._windows)
        findings = [*self._findings, *tell_impossible(rejected, self._where), *placement.findings()]
        return Trace(
            series=series,
            marks=marks,
            windows=windows,
            skipped=self._skips.first,
            n_skipped=self._skips.count,
            devices=tuple(self._devices.values()),
            findings=tuple(findings),
        )

    def _check_number(self, held: dict[_Key, tuple[Column, _Kind]] | dict[str, Device], what: str) -> None:
        if len(held) >= MOST_SERIES:
            raise DecodeError(f"too many {what}", where=self._where, expected=f"at most {MOST_SERIES}")

    def _earliest(self) -> int:
        """The earliest time of everything; 0 where there is none."""
        columns = [column.times for column, _ in self._columns.values() if column.times]
        instants = [int(np.frombuffer(times, dtype=np.int64).min()) for times in columns]
        instants += [mark.utc_ns for mark in self._marks]
        instants += [window.start_utc_ns for window in self._windows]
        instants += [window.stop_utc_ns for window in self._windows if window.stop_utc_ns is not None]
        return int(_as_int64(instants, self._where).min()) if instants else 0


class _Placement:
    """Turns the times of a recording into those of its trace, and counts what had to be assumed."""

    def __init__(
        self, times: Times, options: ReadOptions, *, where: str, usual_s: float, origin: int
    ) -> None:
        self._times = times
        self._zone = options.zone
        self._period_s = options.period_s
        self._usual_s = usual_s
        self._origin = origin
        self._where = where
        self._n_twice = self._n_never = self._n_placed = self._n_off = 0

    def place(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The times, in the order of the recording, as the trace has them.

        Raises:
            DecodeError: One that no clock shows.
        """
        self._n_placed += times.size
        if times.size and not _LEAST_NS < int(times.min()) <= int(times.max()) < _MOST_NS:
            raise _no_such_time(self._where)
        if self._times is Times.LOCAL and self._zone is not None:
            placed = place_local_times(times, self._zone)
            self._n_twice += placed.n_twice
            self._n_never += placed.n_never
            return placed.utc_ns
        if self._times is Times.RELATIVE:
            return times - self._origin
        return self._place_numbers(times) if self._times is Times.COUNTED else times

    def on_calendar(self, times: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Which dated times lie between 1970 and 2116; None where all do. Others are counted as skipped."""
        if self._times not in (Times.UTC, Times.LOCAL) or not times.size:
            return None
        first_ns = _DAY_NS if self._times is Times.LOCAL and self._zone is not None else 0
        if first_ns <= int(times.min()) <= int(times.max()) < _MOST_NS:
            return None
        chosen = (times >= first_ns) & (times < _MOST_NS)
        self._n_off += int((~chosen).sum())
        return chosen

    def skipped(self) -> tuple[int, Skipped]:
        """How many readings had a time that is on no calendar, and what is told of them."""
        return self._n_off, Skipped(
            where=self._where, expected="times between 1970 and 2116", found="a time that no clock shows"
        )

    @property
    def timing(self) -> Timing:
        """What the placed times are worth."""
        if self._times is Times.COUNTED:
            return Timing.COUNTED if self._period_s is None else Timing.RELATIVE
        return Timing.RELATIVE if self._times is Times.RELATIVE else Timing.DATED

    def place_marks(self, marks: Sequence[Mark]) -> tuple[Mark, ...]:
        """The marks at the times of the trace."""
        placed = self.place(_as_int64([mark.utc_ns for mark in marks], self._where)).tolist()
        return tuple(replace(mark, utc_ns=time) for mark, time in zip(marks, placed, strict=True))

    def place_windows(self, windows: Sequence[RunWindow]) -> tuple[RunWindow, ...]:
        """The runs likewise."""
        ends = [end for window in windows for end in (window.start_utc_ns, window.stop_utc_ns)]
        known = [end for end in ends if end is not None]
        placed = iter(self.place(_as_int64(known, self._where)).tolist())
        return tuple(
            replace(
                window,
                start_utc_ns=next(placed),
                stop_utc_ns=None if window.stop_utc_ns is None else next(placed),
            )
            for window in windows
        )

    def _place_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        period_s = self._usual_s if self._period_s is None else self._period_s
        if not _SHORTEST_PERIOD_S <= period_s <= _LONGEST_PERIOD_S:
            raise DecodeError(
                "no period between readings", where=self._where, expected="seconds", found=f"{period_s:g}"
            )
        period_ns = round(period_s * NANOSECOND_PER_SECOND)
        most = _MOST_NS // period_ns
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) <= most:
            raise DecodeError(
                "more readings than time has room for",
                where=self._where,
                expected=f"numbers from 0 to {most} with {period_s:g} s between them",
            )
        return numbers * period_ns

    def findings(self) -> list[Finding]:
        """What had to be assumed for the times placed so far."""
        if not self._n_placed:
            return []
        if self._times is Times.COUNTED and self._period_s is None:
            message = (
                f"the log holds no times; readings are taken as {self._usual_s:g} s apart, which nothing "
                "here shows. Nothing bounds the run (name the period with --period)"
            )
            return [self._finding(message, code="period-assumed", severity=Severity.WARNING)]
        if self._times in (Times.RELATIVE, Times.COUNTED):
            message = "the log holds lengths of time and no date: when it was made is not known"
            return [self._finding(message, code="times-undated")]
        if self._times is Times.LOCAL and self._zone is None:
            message = "the log's times carry no time zone and are taken as UTC (name it with --timezone)"
            return [self._finding(message, code="zone-assumed")]
        return self._tell_local()

    def _tell_local(self) -> list[Finding]:
        findings = []
        if count := self._n_twice:
            message = (
                f"ambiguous local times: {plural(count, 'time')} {agree(count, 'lies', 'lie')} in a stretch "
                "that comes twice, because clocks go back; resolved by the order of the readings and the "
                "time zone"
            )
            findings.append(self._finding(message, code="times-ambiguous", count=count))
        if count := self._n_never:
            message = (
                f"{plural(count, 'local time')} {agree(count, 'does', 'do')} not exist in the time zone "
                "named: is it the log's own?"
            )
            findings.append(
                self._finding(message, code="times-nonexistent", severity=Severity.WARNING, count=count)
            )
        return findings

    def _finding(
        self, message: str, *, code: str, severity: Severity = Severity.NOTE, count: int = 1
    ) -> Finding:
        return Finding(code=code, severity=severity, message=message, where=self._where, count=count)


def _finish(
    key: _Key, column: Column, kind: _Kind, placement: _Placement, rejected: "Counter[Channel]"
) -> Series:
    """One column as a series; what is left out of it is counted in `rejected`, or skipped."""
    value = np.array(column.values, dtype=np.float64)
    rejected[key.channel] += leave_out_impossible(value, key.channel)
    times = np.array(column.times, dtype=np.int64)
    on_calendar = placement.on_calendar(times)
    if on_calendar is not None:
        times, value = times[on_calendar], value[on_calendar]
    return Series(
        device=key.device,
        channel=key.channel,
        scope=key.scope,
        part=key.part,
        utc_ns=placement.place(times),
        value=value,
        timing=placement.timing,
        averaged_s=kind.averaged_s,
        counter_range_j=kind.counter_range_j,
        is_estimate=kind.is_estimate,
    )


def _as_int64(times: ArrayLike, where: str) -> NDArray[np.int64]:
    """Times as an array of 64-bit numbers.

    Raises:
        DecodeError: One does not fit, or is no number.
    """
    given = np.asarray(times)
    if given.dtype == np.int64:
        return given
    if not bool(np.all((given > _LEAST_NS) & (given < _MOST_NS))):
        raise _no_such_time(where)
    return given.astype(np.int64)


def _no_such_time(where: str) -> DecodeError:
    return DecodeError("a time that no clock shows", where=where, expected="years 1824 to 2116")


def _shortened(name: str) -> str:
    """The name; of one that is too long the beginning, and a digest that keeps it apart from others."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_KEPT_OF_NAME]}...{digest_bytes(_as_bytes(name)).value.hex()[:16]}"


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
