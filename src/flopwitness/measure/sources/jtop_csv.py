"""What the logger of jetson-stats writes: the table of `jtop.stats`, one row a sample.

Columns are known by name, for every release and board has others. The power columns need care. Up to
release 3 there is only `power cur`, a total that older releases added up from rails of which one already
held the others. From release 4 on each rail has a column, and the meter of the whole input, where the board
has one, stands as `Power TOT` and nowhere else; where it has none, `Power TOT` is the sum of the rails. Which
of the two it is, the rows themselves show.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.cells import split_cells
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.jetson import (
    CPU_CORES_ON,
    CPU_LOAD,
    GPU_LOAD,
    GPU_TEMPERATURE,
    MEMORY_LOAD,
    NO_TEMPERATURE_C,
    STAMP,
    Quantity,
    SampleTable,
    StampReader,
    rail_power,
    tell_unread_memory,
)
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES, LineBatch
from flopwitness.measure.sources.recording import Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_jtop_csv"]

_HEAD_BYTES: Final = 1 << 16
_MOST_CELLS: Final = 1_024
_MOST_KEPT_NUMBERS: Final = 1 << 12
_LONGEST_KEPT_CELL: Final = 24
_CORE: Final = re.compile(rb"CPU[0-9]{1,4}")
_GPU: Final = re.compile(rb"GPU[0-9]{0,2}")
_RAIL: Final = re.compile(rb"Power ([A-Za-z0-9_.-]{1,40})")
_TOTALS: Final = (b"Power TOT", b"power cur")
_OLD_TOTAL: Final = b"power cur"
_NOT_CONNECTED: Final = b"NC"
_UNREADABLE: Final = -1.0  # no load is negative
_MW_PER_W: Final = 1_000.0
_PART_OF_THOR: Final = "VIN_SYS_5V0"  # AGX Orin has it too, but no meter at its input


def decode_jtop_csv(source: Source) -> Trace:
    """The samples of a table that the logger of jetson-stats wrote.

    Rails [W], the total [W], load and temperature of the GPU, load of the memory controller, and mean load
    and number of the CPU cores that are on. Every series has every sample's time and NaN where the table has
    none. Times are local. The total has `Scope.MODULE` where it is not the sum of the rails beside it, so a
    meter of its own (`Scope.NODE_DC` on Thor, where that sits on the carrier board); else its scope is
    unknown, and its part `TOT` where the meter of a whole input has a column of its own.

    Memory in use is left out: by release it is in kB, in MB or a share. So is `EMC` of releases up to 3,
    which wrote memory in use into it, and `power avg`, a running mean.

    Raises:
        DecodeError: No row is in it, or it names more rails than a board has.

    Source:
        rbonghi/jetson_stats, examples/jtop_logger.py, `jtop.stats` and `total_power` of releases 2 to 4.
    """
    reader = _Reader(source)
    for batch in source.lines():
        reader.read(batch)
    return reader.trace()


def _is_jtop_csv(head: bytes, name: str) -> bool:
    del name
    lines = decode_head(head[:_HEAD_BYTES]).splitlines()
    return any(
        _find_columns(split_cells(line)) is not None for line in lines[:16] if line.startswith(b"time,")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What the columns of a table are.

    Attributes:
        n_cells: How many there are.
        time: The place of the time.
        quantities: What the wanted columns hold, total and cores left out.
        places: Their places.
        cores: The places of the loads of CPU cores.
        total: The place of the total power; None without one.
    """

    n_cells: int
    time: int
    quantities: tuple[Quantity, ...]
    places: tuple[int, ...]
    cores: tuple[int, ...]
    total: int | None


def _find_columns(names: Sequence[bytes]) -> _Columns | None:
    """What the columns of this header are; None where it is no header of such a table."""
    total = next((names.index(name) for name in _TOTALS if name in names), None)
    is_jtop = b"uptime" in names or total is not None
    if b"time" not in names or not is_jtop or len(names) > _MOST_CELLS:
        return None
    wanted: dict[Quantity, int] = {}
    for place, name in enumerate(names):
        quantity = _quantity(name, has_old_total=_OLD_TOTAL in names)
        if quantity is not None and place != total:
            wanted.setdefault(quantity, place)
    cores = tuple(place for place, name in enumerate(names) if _CORE.fullmatch(name))
    if not wanted and total is None:
        return None
    return _Columns(
        n_cells=len(names),
        time=names.index(b"time"),
        quantities=tuple(wanted),
        places=tuple(wanted.values()),
        cores=cores,
        total=total,
    )


def _quantity(name: bytes, *, has_old_total: bool) -> Quantity | None:
    if _GPU.fullmatch(name):
        return GPU_LOAD
    if name == b"EMC" and not has_old_total:
        return MEMORY_LOAD
    if name.lower().startswith(b"temp gpu"):
        return GPU_TEMPERATURE
    rail = _RAIL.fullmatch(name)
    if rail and rail[1] != _NOT_CONNECTED and name not in _TOTALS:
        return rail_power(rail[1].decode("ascii"))
    return None


class _Numbers(dict[bytes, float]):
    """Numbers by their text: a table repeats the same ones."""

    def __missing__(self, cell: bytes) -> float:
        number = parse_number(cell)
        if len(self) < _MOST_KEPT_NUMBERS and len(cell) <= _LONGEST_KEPT_CELL:
            self[cell] = number
        return number


@dataclass(slots=True)
class _Total:
    """The total power as it grows, and what its rows show of it."""

    column: Column
    rails: set[Quantity] = field(default_factory=set)
    n_compared: int = 0
    n_sums: int = 0

    def compare(self, total_mw: NDArray[np.float64], rails_mw: NDArray[np.float64]) -> None:
        """Count in how many samples the total is the sum of its rails, (n,) and (n, rails)."""
        if not rails_mw.shape[1]:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            apart_mw = np.abs(total_mw - rails_mw.sum(axis=1))
        self.n_compared += int(np.isfinite(apart_mw).sum())
        self.n_sums += int((apart_mw <= rails_mw.shape[1]).sum())  # each is rounded to whole mW

    @property
    def is_sum(self) -> bool:
        """Whether it is the sum of its rails in most samples, or nothing shows that it is not."""
        return 2 * self.n_sums >= self.n_compared

    @property
    def quantity(self) -> Quantity:
        """What it is the power of."""
        scopes = {quantity.scope for quantity in self.rails}
        if self.is_sum or Scope.MODULE in scopes:
            return Quantity(Channel.POWER_W, Scope.UNKNOWN, "TOT" if scopes - {Scope.RAIL} else "")
        is_thor = any(quantity.part == _PART_OF_THOR for quantity in self.rails)
        return Quantity(Channel.POWER_W, Scope.NODE_DC if is_thor else Scope.MODULE)


class _Reader:
    """One table as it is read."""

    def __init__(self, source: Source) -> None:
        self._where = source.where
        self._device = source.device
        self._recording = Recording(source, times=Times.LOCAL)
        self._table = SampleTable(source, self._recording)
        self._total = _Total(Column(where=source.where))
        self._clock = StampReader()
        self._numbers = _Numbers()
        self._columns: _Columns | None = None
        self._times: list[int] = []
        self._rows: list[list[float]] = []
        self._first_line = b""

    def read(self, batch: LineBatch) -> None:
        for number, line in batch:
            cells = split_cells(line) if len(line) <= LONGEST_LINE_BYTES else []
            if self._columns is not None and len(cells) == self._columns.n_cells:
                if cells[self._columns.time] != b"time":
                    self._take(number, line, cells, self._columns)
                    continue
            elif not line.strip():
                continue
            columns = _find_columns(cells)
            if columns is None:
                self._skip(number, line)
            elif columns != self._columns:
                self._add()
                self._columns = columns
        self._add()
        self._recording.check_size()

    def trace(self) -> Trace:
        if not len(self._table):
            raise DecodeError(
                "a table of jtop without a sample",
                where=f"{self._where}:1",
                expected="a header with `time` and `uptime`, `Power TOT` or `power cur`, and rows",
                found=excerpt(self._first_line),
            )
        self._finish_total()
        tell_unread_memory(self._table, self._recording, where=self._where)
        return self._recording.trace()

    def _skip(self, number: int, line: bytes) -> None:
        self._first_line = self._first_line or line
        expected = "a header of jtop" if self._columns is None else f"{self._columns.n_cells} cells"
        self._recording.skip(number, expected=expected, found=line)

    def _take(self, number: int, line: bytes, cells: Sequence[bytes], columns: _Columns) -> None:
        """One row; a cell that is neither a number nor a marker is missing, and the row is told."""
        stamp = cells[columns.time]
        time = self._clock.read(stamp) if STAMP.fullmatch(stamp) else None
        if time is None:
            self._recording.skip(number, expected="a local time such as 2025-05-14 09:00:00.5", found=stamp)
            return
        total = () if columns.total is None else (columns.total,)
        wanted = [cells[place] for place in (*columns.cores, *total, *columns.places)]
        try:
            row = [self._numbers[cell] for cell in wanted]
        except Unreadable:
            self._recording.skip(number, expected="numbers in all wanted columns", found=line)
            blanks = [_UNREADABLE] * len(columns.cores) + [np.nan] * (len(wanted) - len(columns.cores))
            row = [_number_or(cell, blank) for cell, blank in zip(wanted, blanks, strict=True)]
        self._times.append(time)
        self._rows.append(row)

    def _add(self) -> None:
        """Put the rows read since the last header or batch into the table."""
        if self._columns is None or not self._rows:
            return
        columns, times = self._columns, np.array(self._times, dtype=np.int64)
        numbers = np.array(self._rows, dtype=np.float64)
        self._times, self._rows = [], []
        cores, total, readings = np.split(
            numbers, [len(columns.cores), len(columns.cores) + (columns.total is not None)], axis=1
        )
        is_power = np.array(
            [quantity.channel is Channel.POWER_W for quantity in columns.quantities], dtype=bool
        )
        if columns.total is not None:
            self._total.compare(total[:, 0], readings[:, is_power])
            self._total.column.extend(times, total[:, 0] / _MW_PER_W)
            self._total.rails.update(
                quantity for quantity in columns.quantities if quantity.channel is Channel.POWER_W
            )
        readings = readings / np.where(is_power, _MW_PER_W, 1.0)
        values = dict(zip(columns.quantities, readings.T, strict=True))
        if GPU_TEMPERATURE in values:
            temperature_c = values[GPU_TEMPERATURE]
            temperature_c[temperature_c == NO_TEMPERATURE_C] = np.nan
        if columns.cores:
            values |= _mean_load(cores)
        self._table.add(times, values)

    def _finish_total(self) -> None:
        """Give the total its scope, now that all rows are known."""
        total = self._total
        if not total.column.times:
            return
        quantity = total.quantity
        column = self._recording.column(self._device, quantity.channel, quantity.scope, part=quantity.part)
        column.extend(total.column.times, total.column.values)
        if quantity.scope is not Scope.UNKNOWN or not total.is_sum:
            return
        why = "is the sum of rails, of which some may hold others" if total.n_compared else "stands alone"
        self._recording.tell(
            Finding(
                code="power-total-unclear",
                severity=Severity.NOTE,
                message=(
                    f"the total power of jtop {why}: what it covers is not recorded, and it bounds nothing "
                    "(where it is known to be the whole module's, name it with --scope)"
                ),
                where=self._where,
                count=len(total.column.times),
            )
        )


def _number_or(cell: bytes, blank: float) -> float:
    try:
        return parse_number(cell)
    except Unreadable:
        return blank


def _mean_load(cores: NDArray[np.float64]) -> dict[Quantity, NDArray[np.float64]]:
    """The mean load of the cores that are on, and their number, from the loads (n, cores)."""
    is_on = np.isfinite(cores)
    n_on = is_on.sum(axis=1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean_pct = np.where(is_on, cores, 0.0).sum(axis=1) / n_on
    is_unread = (cores == _UNREADABLE).any(axis=1)
    mean_pct[is_unread] = n_on[is_unread] = np.nan
    return {CPU_LOAD: mean_pct, CPU_CORES_ON: n_on}


FORMATS: Final = (Format(name="jtop-csv", is_it=_is_jtop_csv, decode=decode_jtop_csv),)
