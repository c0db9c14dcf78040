"""CodeCarbon's `emissions.csv`: what a tracker inside the run counted, one row a flush or a run.

Rows of one run grow: each holds the totals since its start. A run's energy becomes a counter that begins at 0
where the run began. Runs that follow each other on a host are one counter that begins again; runs that ran
beside each other, as the ranks of one training do, are parts of their own, because each may hold the whole
host (`measure.trackers` makes one figure of them). The energy of memory is an estimate: so many watts for
each gigabyte that is there. Stamps are local; a run during which clocks change begins an hour off.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import JOULE_PER_KWH, NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, Device, Scope, Trace
from flopwitness.measure.sources.cells import split_cells
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.table_times import CalendarReader
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number
from flopwitness.measure.trackers import TrackerPart, name_part

__all__ = ["FORMATS", "decode_codecarbon_csv", "is_codecarbon_csv"]

_HEAD_BYTES: Final = 64 << 10
_MOST_ROWS: Final = 1_000_000
_SAME_START_NS: Final = 2 * NANOSECOND_PER_SECOND  # stamps are whole seconds
_LONGEST_S: Final = 3e8  # ten years
_LONGEST_TEXT: Final = 100
_DURATIONS: Final = ("duration", "duration_s", "duration_seconds")
_HOSTS: Final = ("hostname", "host", "node")
_ENERGIES: Final = {
    "gpu_energy": Scope.GPU,
    "gpu_energy_kwh": Scope.GPU,
    "cpu_energy": Scope.CPU,
    "cpu_energy_kwh": Scope.CPU,
    "ram_energy": Scope.DRAM,
    "ram_energy_kwh": Scope.DRAM,
}
_TOTALS: Final = ("energy_consumed", "energy_consumed_kwh")
_OWN: Final = frozenset(
    {"emissions", "emissions_rate", "tracking_mode", "codecarbon_version", "country_iso_code", "on_cloud"}
)
_EXPECTED: Final = "CodeCarbon's columns: duration, an energy in kWh, and emissions or tracking_mode"


def is_codecarbon_csv(head: bytes, name: str) -> bool:
    """Whether the first line holds CodeCarbon's columns: a duration, an energy, and one of its very own."""
    del name
    line = decode_head(head[:_HEAD_BYTES]).partition(b"\n")[0].removesuffix(b"\r")
    return _plan(line) is not None


def decode_codecarbon_csv(source: Source) -> Trace:
    """The energy of all runs in the file.

    Raises:
        DecodeError: Not CodeCarbon's columns, no row that can be read, or more than a million.
    """
    reader: _Reader | None = None
    for batch in source.lines():
        for number, line in batch:
            if reader is None:
                plan = _plan(line)
                if plan is None:
                    raise DecodeError(
                        "no CodeCarbon file",
                        where=f"{source.where}:{number}",
                        expected=_EXPECTED,
                        found=excerpt(line),
                    )
                reader = _Reader(source, plan, line)
            elif line.strip() and line != reader.header:
                reader.read(number, line)
    if reader is None:
        raise DecodeError(
            "no CodeCarbon file", where=f"{source.where}:1", expected=_EXPECTED, found="nothing"
        )
    return reader.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Where the columns stand; energies by their scope."""

    places: dict[str, int]
    duration: int
    energies: tuple[tuple[int, Scope], ...]
    host: int | None
    n_columns: int


def _plan(line: bytes) -> _Plan | None:
    if len(line) > _HEAD_BYTES:
        return None
    names = [cell.strip().decode("utf-8", "backslashreplace") for cell in split_cells(line)]
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        places.setdefault(name, place)
    duration = _first(places, _DURATIONS)
    energies = tuple((places[name], scope) for name, scope in _ENERGIES.items() if name in places)
    total = _first(places, _TOTALS)
    if not any(scope is Scope.GPU for _, scope in energies) and total is not None:
        energies = ((total, Scope.UNKNOWN),)  # the sum of what was tracked: never beside its parts
    if duration is None or not energies or not _OWN & places.keys():
        return None
    return _Plan(
        places=places,
        duration=duration,
        energies=energies,
        host=_first(places, _HOSTS),
        n_columns=len(names),
    )


def _first(places: dict[str, int], names: Sequence[str]) -> int | None:
    return next((places[name] for name in names if name in places), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    """One row: totals since the start of its run."""

    start_ns: int
    stop_ns: int
    energy_j: tuple[float, ...]


@dataclass(slots=True, kw_only=True)
class _Run:
    """The rows of one run of one tracker, or of one task in it."""

    host: str
    rank: str
    mode: str
    gpu_count: int | None
    flushes: list[_Flush] = field(default_factory=list)

    @property
    def start_ns(self) -> int:
        return self.flushes[0].start_ns

    @property
    def stop_ns(self) -> int:
        return max(flush.stop_ns for flush in self.flushes)


class _Reader:
    """Collects rows by run, and lays the runs out at the end."""

    def __init__(self, source: Source, plan: _Plan, header: bytes) -> None:
        self.header = header
        self._source = source
        self._plan = plan
        self._calendar = CalendarReader()
        self._is_dated = "timestamp" in plan.places
        self._has_zone: bool | None = None
        self._recording = Recording(source, times=Times.LOCAL if self._is_dated else Times.RELATIVE)
        self._runs: dict[tuple[str, str, str, str], list[_Run]] = {}
        self._n_rows = 0

    def read(self, number: int, line: bytes) -> None:
        cells = split_cells(line)
        if len(cells) != self._plan.n_columns:
            self._recording.skip(number, expected=f"{self._plan.n_columns} cells", found=line)
            return
        try:
            flush = self._parse(cells)
        except Unreadable:
            self._recording.skip(number, expected="a time, a duration and energies in kWh", found=line)
            return
        self._n_rows += 1
        if self._n_rows > _MOST_ROWS:
            raise DecodeError(
                "too many rows", where=f"{self._source.where}:{number}", expected=f"at most {_MOST_ROWS}"
            )
        self._keep(flush, cells)

    def _parse(self, cells: Sequence[bytes]) -> _Flush:
        duration_s = parse_number(cells[self._plan.duration])
        if not 0 <= duration_s <= _LONGEST_S:
            raise Unreadable("no such duration")
        energies = tuple(parse_number(cells[place]) * JOULE_PER_KWH for place, _ in self._plan.energies)
        length_ns = round(duration_s * NANOSECOND_PER_SECOND)
        stop_ns = self._read_time(cells) if self._is_dated else length_ns
        return _Flush(start_ns=stop_ns - length_ns, stop_ns=stop_ns, energy_j=energies)

    def _read_time(self, cells: Sequence[bytes]) -> int:
        time_ns, has_zone = self._calendar.read(cells[self._plan.places["timestamp"]].strip())
        if self._has_zone is None:
            self._has_zone = has_zone
            self._recording.times = Times.UTC if has_zone else Times.LOCAL
        if has_zone is not self._has_zone:
            raise Unreadable("a time with a zone among times without one, or the reverse")
        return time_ns

    def _keep(self, flush: _Flush, cells: Sequence[bytes]) -> None:
        """Put a row to its run: one that goes on from the same start, or a new one."""
        host = self._text(cells, self._plan.host) or self._source.device
        key = (host, *(self._text(cells, self._plan.places.get(n)) for n in ("rank", "run_id", "task_name")))
        runs = self._runs.setdefault((key[0], key[1], key[2], key[3]), [])
        if runs and abs(runs[-1].start_ns - flush.start_ns) <= _SAME_START_NS:
            last = runs[-1].flushes[-1]
            if flush.stop_ns >= last.stop_ns:
                runs[-1].flushes.append(flush)
                return
        mode, count = self._text(cells, self._plan.places.get("tracking_mode")), self._count(cells)
        runs.append(_Run(host=host, rank=key[1], mode=mode, gpu_count=count, flushes=[flush]))
        self._describe(host, cells)

    def _text(self, cells: Sequence[bytes], place: int | None) -> str:
        return (
            "" if place is None else cells[place].strip()[:_LONGEST_TEXT].decode("utf-8", "backslashreplace")
        )

    def _count(self, cells: Sequence[bytes]) -> int | None:
        place = self._plan.places.get("gpu_count")
        try:
            count = math.nan if place is None else parse_number(cells[place])
        except Unreadable:
            return None
        return int(count) if 0 <= count < 1_000_000 else None  # noqa: PLR2004 (six digits, as a part's name)

    def _describe(self, host: str, cells: Sequence[bytes]) -> None:
        """Keep the GPUs' name without their number, as in `4 x NVIDIA A100`."""
        model = self._text(cells, self._plan.places.get("gpu_model"))
        _, times, name = model.partition(" x ")
        said = self._text(cells, self._plan.host)
        self._recording.describe(Device(name=host, chip_name=name if times else model, host=said))

    def finish(self) -> Trace:
        """The trace.

        Raises:
            DecodeError: No row could be read.
        """
        if not self._runs:
            raise DecodeError(
                "a file without a run",
                where=f"{self._source.where}:2",
                expected="a time, a duration and energies in kWh",
                found="none",
            )
        by_lane: dict[tuple[str, str], list[_Run]] = defaultdict(list)
        for run, label in self._lanes():
            part = TrackerPart(mode=_mode(run), gpu_count=run.gpu_count, label=label)
            by_lane[run.host, name_part(part)].append(run)
        for (host, name), runs in by_lane.items():
            self._lay_out(host, name, runs)
        self._recording.check_size()
        return self._recording.trace()

    def _lanes(self) -> Iterator[tuple[_Run, str]]:
        """Each run with the name of its lane: its rank, or a number that runs beside it do not have."""
        ends: dict[str, list[int]] = defaultdict(list)
        runs = sorted((run for runs in self._runs.values() for run in runs), key=lambda run: run.start_ns)
        for run in runs:
            if run.rank:
                yield run, f"rank{run.rank}"
                continue
            lanes = ends[run.host]
            lane = next((i for i, end in enumerate(lanes) if self._follows(run, end)), len(lanes))
            lanes[lane : lane + 1] = [run.stop_ns]
            yield run, f"tracker {lane + 1}"

    def _follows(self, run: _Run, end_ns: int) -> bool:
        """Whether a run began after another's end; without dates nobody knows."""
        return self._is_dated and run.start_ns >= end_ns - _SAME_START_NS

    def _lay_out(self, host: str, part: str, runs: Sequence[_Run]) -> None:
        """The counters of one lane: from 0 at the start of each run; stamps are whole, so starts may wait."""
        columns = [
            self._recording.column(
                host, Channel.ENERGY_COUNTER_J, scope, part=part, is_estimate=scope is Scope.DRAM
            )
            for _, scope in self._plan.energies
        ]
        reached_ns: int | None = None
        for run in runs:
            start_ns = run.start_ns
            if reached_ns is not None and 0 < reached_ns - start_ns <= _SAME_START_NS:
                start_ns = min(reached_ns, run.flushes[0].stop_ns)
            for place, column in enumerate(columns):
                column.add(start_ns, 0.0)
                for flush in run.flushes:
                    column.add(flush.stop_ns, flush.energy_j[place])
            reached_ns = run.stop_ns


def _mode(run: _Run) -> str:
    return run.mode if run.mode in ("machine", "process") else ""


FORMATS: Final = (Format(name="codecarbon-csv", is_it=is_codecarbon_csv, decode=decode_codecarbon_csv),)
