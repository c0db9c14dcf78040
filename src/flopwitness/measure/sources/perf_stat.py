"""Energies that `perf stat` counted: a processor's packages, its memory, the platform.

perf prints how much was used over a command or over each interval. That becomes a counter: 0 at the start,
the sum so far at each end. Where perf did not count, the energy is not known: the reading is missing, and the
counter begins again at 0, so that nothing is bridged. Outside interval mode CSV tells no length of time (its
running time is that of all sockets together), so its summaries are numbered.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.clock_text import parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.perf_lines import EnergyLine, parse_elapsed_ns, parse_energy_line
from flopwitness.measure.sources.recording import Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable
from flopwitness.measure.wording import plural

__all__ = ["FORMATS", "decode_perf_stat"]

_Domain: TypeAlias = tuple[Scope, str]

_EXPECTED: Final = "`<number> Joules power/energy-.../` and `<number> seconds time elapsed`"
_STARTED: Final = re.compile(rb"# started on (.{10,60})")
_HEADER: Final = re.compile(rb"Performance counter stats for .*?(?:\(([0-9]{1,9}) runs\))?:?")
_MOST_NS: Final = 2**61
_SIGN: Final = re.compile(rb"Joules[\s,;|:@!/]{1,100}\S{0,100}energy-(?:pkg|ram|psys|cores?|gpu)\b")


def decode_perf_stat(source: Source) -> Trace:
    """A counter of energy for each domain and socket, from 0 at the start.

    Summaries that follow each other stand end to end, unless perf dated them; of several runs (`-r`) perf
    prints the mean, and the counter is that of one run. A summary after intervals is what they add up to,
    and is passed over, as is what the measured command printed.

    Raises:
        DecodeError: No energy with a length of time is in it.

    Source:
        Linux, tools/perf/util/stat-display.c; perf-stat(1).
    """
    reader = _PerfStat(source)
    for batch in source.lines():
        for number, line in batch:
            reader.take(line, number)
        reader.recording.check_size()
    return reader.trace()


@dataclass(slots=True)
class _Counter:
    """The running sum of one domain; no sum where perf did not count last."""

    column: Column
    total_j: float | None = None
    end: int = 0

    def add(self, start: int, end: int, energy_j: float) -> None:
        is_known = energy_j == energy_j  # noqa: PLR0124 (not NaN)
        if is_known and (self.total_j is None or self.end != start):
            self.column.add(start, 0.0)
            self.total_j = 0.0
        self.total_j = self.total_j + energy_j if is_known and self.total_j is not None else None
        self.column.add(end, energy_j if self.total_j is None else self.total_j)
        self.end = end


class _Kind(Enum):
    """How the first energy of a file stands there; others are not mixed with it."""

    INTERVAL = "interval"  # with its time in front
    SUMMARY = "summary"  # above the time elapsed
    CSV_SUMMARY = "csv summary"  # without any length of time


def _kind_of(energy: EnergyLine) -> _Kind:
    if energy.time_ns is not None:
        return _Kind.INTERVAL
    return _Kind.CSV_SUMMARY if energy.is_csv else _Kind.SUMMARY


class _PerfStat:
    """What one file has told so far; energies wait until the end of their interval or run is known."""

    def __init__(self, source: Source) -> None:
        self.recording = Recording(source, times=Times.RELATIVE)
        self._source = source
        self._counters: dict[_Domain, _Counter] = {}
        self._kind: _Kind | None = None
        self._waiting: dict[_Domain, tuple[EnergyLine, int]] = {}
        self._time_ns = 0  # of the interval that waits, from the start of its run
        self._origin = self._end = 0  # where the run stands, and what was counted so far ends
        self._start_ns: int | None = None  # of a run that perf dated
        self._is_dated = False
        self._most_runs = 1
        self._n_summaries = 0
        self._first_unread = b""

    def take(self, line: bytes, number: int) -> None:
        if not line:
            return
        try:
            energy = parse_energy_line(line)
        except Unreadable:
            self._skip(number, "an energy as `perf stat` prints it", line)
            return
        if energy is not None:
            self._take_energy(energy, line, number)
        elif b"seconds time elapsed" in line:
            self._take_elapsed(line, number)
        elif found := _STARTED.fullmatch(line.strip()):
            stamp = parse_stamp(found[1])
            self._close()
            self._start_ns = None if stamp is None else stamp.time_ns
            self._begin_run()
        elif found := _HEADER.fullmatch(line.strip()):
            self._begin_run()
            self._most_runs = max(self._most_runs, int(found[1] or 1))

    def _take_energy(self, energy: EnergyLine, line: bytes, number: int) -> None:
        kind = _kind_of(energy)
        if self._kind is None:
            self._settle(kind)
        if kind is not self._kind:
            if self._kind is not _Kind.INTERVAL:
                self._skip(number, f"an energy like the first, in the form of a {self._kind}", line)
            return  # what intervals add up to
        if energy.time_ns is not None and energy.time_ns != self._time_ns:
            self._close()
            if energy.time_ns < self._time_ns:
                self._begin_run()
            self._time_ns = energy.time_ns
        domain = self._domain_of(energy)
        if domain is None:
            self._skip(number, "one energy of each domain above a time elapsed", line)
        elif domain not in self._waiting or not energy.is_elsewhere:
            self._waiting[domain] = (energy, number)

    def _settle(self, kind: _Kind) -> None:
        """Take the form of the first energy as that of the file."""
        self._kind = kind
        self._is_dated = kind is not _Kind.CSV_SUMMARY and self._start_ns is not None
        if kind is _Kind.CSV_SUMMARY:
            self.recording.times = Times.COUNTED
        elif self._is_dated:
            self.recording.times = Times.LOCAL
        self._begin_run()

    def _domain_of(self, energy: EnergyLine) -> _Domain | None:
        """What the energy is of; a second place that counts the same is a part of its own.

        None where the same stands twice; between summaries in CSV that is how the next one begins.
        """
        domain = (energy.scope, energy.part)
        known = self._waiting.get(domain)
        if known is None or known[0].is_elsewhere or energy.is_elsewhere:
            return domain
        if known[0].place != energy.place:
            return energy.scope, f"{energy.part}/{energy.place}"
        if self._kind is not _Kind.CSV_SUMMARY:
            return None
        self._count(self._end + 1)
        return domain

    def _take_elapsed(self, line: bytes, number: int) -> None:
        if self._kind is _Kind.INTERVAL or not self._waiting:
            return
        elapsed_ns = parse_elapsed_ns(line)
        if elapsed_ns is None or self._kind is _Kind.CSV_SUMMARY:
            self._skip(number, "`<number> seconds time elapsed`", line)
            return
        self._n_summaries += 1
        self._count(self._end + elapsed_ns)

    def _begin_run(self) -> None:
        """Close what came before; the run stands at its date, or where the one before ended."""
        self._close()
        if self._is_dated and self._start_ns is not None:
            self._end = self._start_ns
            self._start_ns = None
        self._origin = self._end
        self._time_ns = 0

    def _close(self) -> None:
        """End what waits: an interval has its end, a summary without a time elapsed has none."""
        if self._kind is _Kind.SUMMARY:
            for energy, number in self._waiting.values():
                self._skip(number, "`seconds time elapsed` below the energies", str(energy.energy_j).encode())
            self._waiting.clear()
        elif self._waiting:
            is_interval = self._kind is _Kind.INTERVAL
            self._count(self._origin + self._time_ns if is_interval else self._end + 1)

    def _count(self, end: int) -> None:
        """Add what waits to its counters: it was counted since the end of what came before."""
        if not abs(end) < _MOST_NS:
            raise DecodeError("a time that no clock shows", where=self._source.where, expected=_EXPECTED)
        for (scope, part), (energy, _) in self._waiting.items():
            counter = self._counters.get((scope, part))
            if counter is None:
                device, channel = self._source.device, Channel.ENERGY_COUNTER_J
                counter = _Counter(self.recording.column(device, channel, scope, part=part))
                self._counters[scope, part] = counter
            counter.add(self._end, end, energy.energy_j)
        self._waiting.clear()
        self._end = end

    def _skip(self, number: int, expected: str, found: bytes) -> None:
        self._first_unread = self._first_unread or found
        self.recording.skip(number, expected=expected, found=found)

    def trace(self) -> Trace:
        self._close()
        if not self._counters:
            raise DecodeError(
                "no energy of `perf stat`",
                where=f"{self._source.where}:1",
                expected=_EXPECTED,
                found=excerpt(self._first_unread) or "no such line",
            )
        self._tell_runs()
        return self.recording.trace()

    def _tell_runs(self) -> None:
        if self._most_runs > 1:
            self.recording.tell(
                Finding(
                    code="mean-of-runs",
                    severity=Severity.WARNING,
                    message=(
                        f"the figures are means of {plural(self._most_runs, 'run')}: the energy is that of "
                        "one run, not of all"
                    ),
                    where=self._source.where,
                    count=self._most_runs,
                )
            )
        if self._n_summaries > 1 and not self._is_dated:
            self.recording.tell(
                Finding(
                    code="summaries-end-to-end",
                    severity=Severity.NOTE,
                    message=(
                        f"{self._n_summaries:,} summaries follow each other without a date; they are set end "
                        "to end, and how much time lay between them is not known"
                    ),
                    where=self._source.where,
                    count=self._n_summaries,
                )
            )


def _is_perf_stat(head: bytes, name: str) -> bool:
    del name
    return _SIGN.search(decode_head(head[: 1 << 16])) is not None


FORMATS: Final = (Format(name="perf-energy", is_it=_is_perf_stat, decode=decode_perf_stat),)
