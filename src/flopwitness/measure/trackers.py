"""Energy trackers that count a whole machine once in every process of a run.

CodeCarbon and its like run in each rank and read all accelerators of the rank's host, so that a run's files
hold every joule as many times as its host has ranks. Files of one host over one time are therefore one
figure, their mean, and never a sum. A reader names each tracker's counter by `name_part`; here the names are
read back from the merged trace and the hosts are added.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from flopwitness.foundation.units import NANOSECOND_PER_SECOND, format_energy
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Declaration, Scope, Series, Timing, Trace
from flopwitness.measure.wording import plural

__all__ = [
    "HostEnergy",
    "TrackedEnergy",
    "TrackerPart",
    "TrackerRecord",
    "add_tracked_hosts",
    "name_part",
    "parse_part",
    "records_of",
    "settle_trackers",
]

_PART: Final = re.compile(r"(machine|process|tracked)(?: of ([0-9]{1,6}) GPUs)?, (.{1,120})", re.DOTALL)
_MODES: Final = frozenset({"machine", "process"})
_SHARED_TIME: Final = 0.5  # of the shorter of two records: from there on they are of one time
_LONGEST_LABEL: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerPart:
    """What one tracker watches of its host.

    Attributes:
        mode: `machine` where the tracker says that it reads the whole machine, `process` where it says its
            own process, "" where it does not say.
        gpu_count: How many GPUs it reads; None where it does not say.
        label: Which tracker of the host it is, such as `rank0`; not "".
    """

    mode: str
    gpu_count: int | None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerRecord:
    """What one tracker counted over one time.

    Attributes:
        host: The machine.
        part: What of it was watched.
        energy_j: Counted from the record's start to its end [J], >= 0.
        duration_s: How long that took [s], >= 0.
        start_utc_ns: When it began [ns since 1970]; None where the record has no date.
    """

    host: str
    part: TrackerPart
    energy_j: float
    duration_s: float
    start_utc_ns: int | None = None

    @property
    def stop_utc_ns(self) -> int | None:
        """When it ended [ns since 1970]; None where the record has no date."""
        if self.start_utc_ns is None:
            return None
        return self.start_utc_ns + round(self.duration_s * NANOSECOND_PER_SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnergy:
    """One figure for one host over one time.

    Attributes:
        host: The machine.
        energy_j: The mean of its records [J].
        least_j: The least of them [J].
        most_j: The most of them [J]; of processes that may each have GPUs of their own, all of them together.
        start_utc_ns: When the first of its records began [ns since 1970]; None where they have no date.
        gpu_count: How many GPUs it is for; None where no record says.
        duration_s: The longest of the records [s].
        n_records: How many records it is made of.
        may_differ: Whether they are of processes that may each have GPUs of their own.
    """

    host: str
    energy_j: float
    least_j: float
    most_j: float
    start_utc_ns: int | None
    gpu_count: int | None
    duration_s: float
    n_records: int
    may_differ: bool

    @property
    def counted_j(self) -> float:
        """What is counted for the host [J]: of processes that may have GPUs of their own, all together."""
        return self.most_j if self.may_differ else self.energy_j


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedEnergy:
    """The energy of all hosts.

    Attributes:
        hosts: One figure a host and time.
        findings: That records overlap, and by how much they differ.
    """

    hosts: tuple[HostEnergy, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def energy_j(self) -> float:
        """All hosts together [J]."""
        return sum(host.energy_j for host in self.hosts)

    @property
    def n_hosts(self) -> int:
        """How many machines."""
        return len({host.host for host in self.hosts})

    @property
    def gpu_count(self) -> int | None:
        """How many GPUs all machines have; None where one does not say."""
        counts: dict[str, int] = {}
        for host in self.hosts:
            if host.gpu_count is None:
                return None
            counts[host.host] = max(host.gpu_count, counts.get(host.host, 0))
        return sum(counts.values()) if counts else None


def name_part(part: TrackerPart) -> str:
    """The name by which a series carries what its tracker watches; `parse_part` reads it."""
    count = "" if part.gpu_count is None else f" of {part.gpu_count} GPUs"
    return f"{part.mode or 'tracked'}{count}, {part.label[:_LONGEST_LABEL]}"


def parse_part(name: str) -> TrackerPart | None:
    """What a series' part says of its tracker; None where the series is no tracker's."""
    match = _PART.fullmatch(name)
    if match is None:
        return None
    return TrackerPart(
        mode=match[1] if match[1] in _MODES else "",
        gpu_count=None if match[2] is None else int(match[2]),
        label=match[3],
    )


def records_of(trace: Trace, *, scope: Scope = Scope.GPU) -> tuple[TrackerRecord, ...]:
    """What the trackers in a trace counted of one scope: one record a run of each tracker's counter.

    A counter that falls has begun again: what follows is another record.
    """
    records: list[TrackerRecord] = []
    for series in trace.series:
        part = parse_part(series.part)
        if part is not None and series.channel is Channel.ENERGY_COUNTER_J and series.scope is scope:
            records += _split_counter(series, part)
    return tuple(records)


def add_tracked_hosts(records: Iterable[TrackerRecord]) -> TrackedEnergy:
    """One figure for each host and time, from records that may each hold the whole host.

    Records of one host that share most of their time are of the same joules: their mean counts once.
    Records without a date count as of one time. Processes that say that they track themselves alone, and
    that name a GPU each, are added at most in `most_j`: whether their GPUs differ is not recorded.
    """
    by_host: dict[str, list[TrackerRecord]] = defaultdict(list)
    for record in records:
        by_host[record.host].append(record)
    groups = [group for host in by_host.values() for group in _group_by_time(host)]
    return TrackedEnergy(
        hosts=tuple(map(_settle, groups)),
        findings=tuple(_tell_overlap(group) for group in groups if len(group) > 1),
    )


def settle_trackers(trace: Trace) -> Trace:
    """The trace with one figure for the accelerators of each host, in place of its trackers' records.

    The figures have `Scope.NODE_GPUS`. What the records say of hosts and GPUs joins what is declared, and
    that they overlap joins the findings. Records of other scopes stay as they are.
    """
    tracked = add_tracked_hosts(records_of(trace))
    if not tracked.hosts:
        return trace
    others = (item for item in trace.series if not _is_tracked(item))
    by_host: dict[str, list[HostEnergy]] = defaultdict(list)
    for host in tracked.hosts:
        by_host[host.host].append(host)
    declared = trace.declaration or Declaration()
    return replace(
        trace,
        series=(*others, *(_count_up(name, windows) for name, windows in by_host.items())),
        findings=(*trace.findings, *tracked.findings),
        declaration=replace(
            declared,
            nodes=max(declared.nodes or 0, tracked.n_hosts),
            chips=max(declared.chips or 0, tracked.gpu_count or 0) or None,
        ),
    )


def _is_tracked(series: Series) -> bool:
    is_energy = series.channel is Channel.ENERGY_COUNTER_J and series.scope is Scope.GPU
    return is_energy and parse_part(series.part) is not None


def _count_up(name: str, windows: Sequence[HostEnergy]) -> Series:
    """One counter for the windows of a host, which goes on from each to the next."""
    times, values, reached_j, end_ns = [], [], 0.0, 0
    for window in sorted(windows, key=lambda item: item.start_utc_ns or 0):
        start_ns = max(end_ns, window.start_utc_ns or 0)
        end_ns = start_ns + round(window.duration_s * NANOSECOND_PER_SECOND)
        times += [start_ns, end_ns]
        values += [reached_j, reached_j + window.counted_j]
        reached_j += window.counted_j
    is_dated = all(window.start_utc_ns is not None for window in windows)
    return Series(
        device=name,
        channel=Channel.ENERGY_COUNTER_J,
        scope=Scope.NODE_GPUS,
        utc_ns=np.array(times, dtype=np.int64),
        value=np.array(values, dtype=np.float64),
        timing=Timing.DATED if is_dated else Timing.RELATIVE,
    )


def _split_counter(series: Series, part: TrackerPart) -> list[TrackerRecord]:
    known = np.isfinite(series.value)
    value, time_ns = series.value[known], series.utc_ns[known]
    if value.size < 2:  # noqa: PLR2004 (a difference takes two)
        return []
    starts = [0, *(np.flatnonzero(np.diff(value) < 0) + 1).tolist(), value.size]
    records = []
    for start, stop in pairwise(starts):
        if stop - start > 1:
            length_ns = max(0, int(time_ns[stop - 1]) - int(time_ns[start]))
            records.append(
                TrackerRecord(
                    host=series.device,
                    part=part,
                    energy_j=float(value[stop - 1] - value[start]),
                    duration_s=length_ns / NANOSECOND_PER_SECOND,
                    start_utc_ns=int(time_ns[start]) if series.timing is Timing.DATED else None,
                )
            )
    return records


def _group_by_time(records: Sequence[TrackerRecord]) -> list[list[TrackerRecord]]:
    """Records of one host by the time that they share; those without a date are one group."""
    undated = [record for record in records if record.start_utc_ns is None]
    groups = [undated] if undated else []
    dated = sorted(
        (record for record in records if record.start_utc_ns is not None),
        key=lambda record: (record.start_utc_ns or 0, -record.duration_s),
    )
    last: list[TrackerRecord] = []
    for record in dated:
        if last and any(_share_time(record, other) for other in last):
            last.append(record)
        else:
            last = [record]
            groups.append(last)
    return groups


def _share_time(one: TrackerRecord, other: TrackerRecord) -> bool:
    if None in (one.start_utc_ns, other.start_utc_ns):
        return True
    start = max(one.start_utc_ns or 0, other.start_utc_ns or 0)
    stop = min(one.stop_utc_ns or 0, other.stop_utc_ns or 0)
    shorter_ns = min(one.duration_s, other.duration_s) * NANOSECOND_PER_SECOND
    return stop > start and stop - start >= _SHARED_TIME * shorter_ns


def _settle(group: Sequence[TrackerRecord]) -> HostEnergy:
    energies = [record.energy_j for record in group]
    counts = [record.part.gpu_count for record in group if record.part.gpu_count is not None]
    may_differ = all(record.part.mode == "process" for record in group)
    return HostEnergy(
        host=group[0].host,
        energy_j=sum(energies) / len(energies),
        least_j=min(energies),
        most_j=sum(energies) if may_differ else max(energies),
        start_utc_ns=min((r.start_utc_ns for r in group if r.start_utc_ns is not None), default=None),
        gpu_count=max(counts, default=None),
        duration_s=max(record.duration_s for record in group),
        n_records=len(group),
        may_differ=may_differ,
    )


def _tell_overlap(group: Sequence[TrackerRecord]) -> Finding:
    host = _settle(group)
    is_machine = any(record.part.mode != "process" for record in group)
    kind = "whole-machine records" if is_machine else "records of processes"
    return Finding(
        code="trackers-overlap",
        severity=Severity.WARNING,
        message=(
            f"{host.host}: {plural(len(group), 'tracker')} gave overlapping {kind} of one time, "
            f"{format_energy(host.least_j)} to {format_energy(max(r.energy_j for r in group))} each; "
            + (
                f"whether their GPUs differ is not recorded, so all count, {format_energy(host.counted_j)}"
                if host.may_differ
                else "they hold the same joules and are not added: their mean, "
                f"{format_energy(host.counted_j)}, counts once"
            )
        ),
        where=host.host,
        expected="one record a machine",
        found=", ".join(record.part.label for record in group[:8]),
        count=len(group),
    )
