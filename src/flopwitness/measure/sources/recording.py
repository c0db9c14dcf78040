"""What a reader has read so far: columns of times and values, and everything that must be told.

A reader names a device and a channel, adds readings, and reports what it cannot read. The recording keeps
numbers compactly, leaves out values that no sensor can have, places local times in UTC, and hands out one
trace. So no reader has rules of its own for what is missing, impossible or dated.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Mark, RunWindow, Scope, Series, Timing, Trace
from flopwitness.measure.sources.local_time import place_local_times
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.values import possible_range
from flopwitness.measure.wording import plural

__all__ = ["MOST_READINGS", "MOST_SERIES", "Column", "Recording", "Times"]

MOST_READINGS: Final = 200_000_000
MOST_SERIES: Final = 100_000
_MOST_MARKS: Final = 10_000
_USUAL_PERIOD_S: Final = 1.0  # what tegrastats, dmon and their like do where nobody tells them otherwise
_LONGEST_NAME: Final = 200
_LEAST_NS, _MOST_NS = -(2**62), 2**62  # room for every zone's offset


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

    def add(self, time: int, value: float) -> None:
        """One reading; NaN where the tool has none."""
        self.times.append(time)
        self.values.append(value)

    def extend(self, times: ArrayLike, values: ArrayLike) -> None:
        """Several readings: int64 and float64 arrays of one shape (n,)."""
        self.times.frombytes(np.ascontiguousarray(times, dtype=np.int64).tobytes())
        self.values.frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())


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
    ) -> Column:
        """The column of one channel of one device, new or as it stands.

        Power that the reader knows no scope for takes the user's word, where there is one.

        Raises:
            DecodeError: The file names more series than any machine has.
        """
        if scope is Scope.UNKNOWN and self._options.scope is not None:
            scope = self._options.scope
        key = _Key(device[:_LONGEST_NAME], channel, scope, part[:_LONGEST_NAME])
        known = self._columns.get(key)
        if known is None:
            if len(self._columns) >= MOST_SERIES:
                raise DecodeError("too many series", where=self._where, expected=f"at most {MOST_SERIES}")
            known = self._columns[key] = (Column(), _Kind(averaged_s, counter_range_j))
        return known[0]

    def describe(self, device: Device) -> None:
        """Keep what the file says of a device; later words add to earlier ones, and never overwrite them."""
        self._devices[device.name] = self._devices.get(device.name, device).joined(device)

    def mark(self, name: str, time: int, *, line: int) -> None:
        """An event that the file names; UTC recordings only."""
        if len(self._marks) < _MOST_MARKS:
            self._marks.append(Mark(name=name, utc_ns=time, where=f"{self._where}:{line}"))

    def window(self, start: int, stop: int, *, status: str = "") -> None:
        """A run that the file marks, in the times of the recording."""
        if len(self._windows) < _MOST_MARKS:
            self._windows.append(RunWindow(start_utc_ns=start, stop_utc_ns=stop, status=status))

    def skip(self, line: int, *, expected: str, found: bytes) -> None:
        """Count and locate a line that cannot be read."""
        self._skips.add(f"{self._where}:{line}", expected=expected, found=excerpt(found))

    def tell(self, finding: Finding) -> None:
        """Keep what only the reader can see; its code stands in docs/findings.md like any other."""
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

        Impossible values are missing in it, and told. A recording without a reading is a trace without one:
        whether that is an error is the reader's to say.

        Raises:
            DecodeError: A time that no clock shows.
        """
        placed = _Placement(self)
        rejected: Counter[Channel] = Counter()
        series = []
        for key, (column, kind) in self._columns.items():
            value = np.array(column.values, dtype=np.float64)
            rejected[key.channel] += _leave_out(value, key.channel)
            utc_ns, timing = placed.place(np.array(column.times, dtype=np.int64))
            series.append(
                Series(
                    device=key.device,
                    channel=key.channel,
                    scope=key.scope,
                    part=key.part,
                    utc_ns=utc_ns,
                    value=value,
                    timing=timing,
                    averaged_s=kind.averaged_s,
                    counter_range_j=kind.counter_range_j,
                )
            )
        windows = tuple(map(placed.window, self._windows))
        findings = [*self._findings, *_tell_rejected(rejected, self._where), *placed.findings()]
        return Trace(
            series=tuple(series),
            marks=tuple(self._marks),
            windows=windows,
            skipped=self._skips.first,
            n_skipped=self._skips.count,
            devices=tuple(self._devices.values()),
            findings=tuple(findings),
        )


class _Placement:
    """Turns the times of a recording into those of its trace, and counts what had to be assumed."""

    def __init__(self, recording: Recording) -> None:
        self._times = recording.times
        self._zone = recording._options.zone  # noqa: SLF001 (one module, two halves)
        self._period_s = recording._options.period_s  # noqa: SLF001
        self._usual_s = recording.counted_period_s
        self._where = recording._where  # noqa: SLF001
        self._n_twice = self._n_never = self._n_placed = 0
        firsts = [column.times[0] for column, _ in recording._columns.values() if column.times]  # noqa: SLF001
        self._origin = min(firsts, default=0)

    def place(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], Timing]:
        self._n_placed += times.size
        if times.size and not _LEAST_NS < int(times.min()) <= int(times.max()) < _MOST_NS:
            raise DecodeError("a time that no clock shows", where=self._where, expected="years 1970 to 2262")
        if self._times is Times.LOCAL and self._zone is not None:
            placed = place_local_times(times, self._zone)
            self._n_twice += placed.n_twice
            self._n_never += placed.n_never
            return placed.utc_ns, Timing.DATED
        if self._times is Times.RELATIVE:
            return times - self._origin, Timing.RELATIVE
        if self._times is Times.COUNTED:
            period_ns = round((self._period_s or self._usual_s) * NANOSECOND_PER_SECOND)
            timing = Timing.COUNTED if self._period_s is None else Timing.RELATIVE
            return np.clip(times, 0, _MOST_NS // max(1, period_ns)) * period_ns, timing
        return times, Timing.DATED

    def window(self, window: RunWindow) -> RunWindow:
        ends = np.array([window.start_utc_ns, window.stop_utc_ns], dtype=np.int64)
        placed, _ = self.place(ends)
        return RunWindow(start_utc_ns=int(placed[0]), stop_utc_ns=int(placed[1]), status=window.status)

    def findings(self) -> list[Finding]:
        if not self._n_placed:
            return []
        if self._times is Times.COUNTED and self._period_s is None:
            return [
                Finding(
                    code="period-assumed",
                    severity=Severity.WARNING,
                    message=(
                        f"the log holds no times; readings are taken as {self._usual_s:g} s apart, which "
                        "nothing here shows. Nothing bounds the run (name the period with --period)"
                    ),
                    where=self._where,
                )
            ]
        if self._times in (Times.RELATIVE, Times.COUNTED):
            return [
                Finding(
                    code="times-undated",
                    severity=Severity.NOTE,
                    message="the log holds lengths of time and no date: when it was made is not known",
                    where=self._where,
                )
            ]
        if self._times is Times.LOCAL and self._zone is None:
            return [
                Finding(
                    code="zone-assumed",
                    severity=Severity.NOTE,
                    message=(
                        "the log's times carry no time zone and are taken as UTC (name it with --timezone)"
                    ),
                    where=self._where,
                )
            ]
        return self._tell_local()

    def _tell_local(self) -> list[Finding]:
        findings = []
        if self._n_twice:
            findings.append(
                Finding(
                    code="times-ambiguous",
                    severity=Severity.NOTE,
                    message=(
                        f"{plural(self._n_twice, 'local time')} come twice on a day on which clocks go back; "
                        "told apart by the order of the readings and the time zone"
                    ),
                    where=self._where,
                    count=self._n_twice,
                )
            )
        if self._n_never:
            findings.append(
                Finding(
                    code="times-nonexistent",
                    severity=Severity.WARNING,
                    message=(
                        f"{plural(self._n_never, 'local time')} do not exist in the time zone named: is it "
                        "the log's own?"
                    ),
                    where=self._where,
                    count=self._n_never,
                )
            )
        return findings


def _leave_out(value: NDArray[np.float64], channel: Channel) -> int:
    """Make impossible values missing, in place; how many there were."""
    low, high = possible_range(channel)
    with np.errstate(invalid="ignore"):
        is_impossible = (value < low) | (value > high)
    value[is_impossible] = np.nan
    return int(is_impossible.sum())


def _tell_rejected(rejected: "Counter[Channel]", where: str) -> list[Finding]:
    counts = {channel: count for channel, count in rejected.items() if count}
    if not counts:
        return []
    words = ", ".join(f"{count:,} of {channel}" for channel, count in counts.items())
    return [
        Finding(
            code="values-impossible",
            severity=Severity.WARNING,
            message=(
                f"{plural(sum(counts.values()), 'reading')} that no such sensor can give, or that mark a "
                f"missing one: {words}; left out, not taken as zero"
            ),
            where=where,
            count=sum(counts.values()),
        )
    ]
