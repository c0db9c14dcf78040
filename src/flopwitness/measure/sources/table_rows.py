"""Rows of a plain table on their way into a recording, from text or from Parquet.

Both kinds of table know their columns by the same rules; here their rows become readings of devices, and
what the columns' names left open is checked on the readings themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Scope, Series, Timing, Trace
from flopwitness.measure.sources.recording import MOST_SERIES, Column, Recording
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.table_columns import TablePlan
from flopwitness.measure.sources.table_times import TimeForm
from flopwitness.measure.wording import plural

__all__ = ["DeviceCells", "TableRows"]

_NAMED: Final = 20
_LONGEST_NAME: Final = 100
_SHARES: Final = frozenset({Channel.UTILISATION_PCT, Channel.MEMORY_UTILISATION_PCT})
_FEWEST_STEPS: Final = 10
_FALLING_SHARE: Final = 0.1  # a counter begins again now and then, and does not fall in one step of ten

DeviceCells = tuple[bytes, ...]
"""What a row says of its device: the cells of `DeviceColumns.indexes`, in that order."""


class _Owner(NamedTuple):
    """Whose readings a row holds."""

    device: str
    part: str


class TableRows:
    """The rows of one table, as readings of the devices that they name."""

    def __init__(self, source: Source, plan: TablePlan, recording: Recording) -> None:
        """Begin without a row.

        Args:
            source: The file, for the name of a device that the rows do not name.
            plan: What its columns are.
            recording: Takes the readings.
        """
        self._source = source
        self._plan = plan
        self._recording = recording
        self._holds_gpus = any(reading.scope is Scope.GPU for reading in plan.readings)
        self._owners: dict[DeviceCells, _Owner] = {}
        self._columns: dict[_Owner, list[Column]] = {}

    def add(
        self,
        times: NDArray[np.int64],
        values: Sequence[NDArray[np.float64]],
        cells: Sequence[DeviceCells] | None,
    ) -> None:
        """Readings of one batch, already in the units of their channels.

        Args:
            times: The times, shape (n,).
            values: For each reading of the plan its values, shape (n,).
            cells: What each row says of its device, n of them; None where the table does not say.

        Raises:
            DecodeError: More devices than any table may name.
        """
        distinct = dict.fromkeys(cells or [()])
        owners = {row_cells: self._own(row_cells) for row_cells in distinct}
        if cells is None or len(set(owners.values())) <= 1:
            self._fill(next(iter(owners.values())), times, values)
            return
        places: dict[_Owner, list[int]] = defaultdict(list)
        for place, row_cells in enumerate(cells):
            places[owners[row_cells]].append(place)
        for owner, indexes in places.items():
            self._fill(owner, times[indexes], [value[indexes] for value in values])

    def _fill(self, owner: _Owner, times: NDArray[np.int64], values: Sequence[NDArray[np.float64]]) -> None:
        columns = self._columns.get(owner)
        if columns is None:
            columns = self._columns[owner] = self._open(owner)
        for column, value in zip(columns, values, strict=True):
            column.extend(times, value)

    def _own(self, cells: DeviceCells) -> _Owner:
        """Whose reading a row is by its cells; what they say beside it is kept."""
        owner = self._owners.get(cells)
        if owner is None:
            device, part = self._describe(cells)
            owner = self._owners[cells] = _Owner(device.name, part)
            for inner in dict.fromkeys(reading.device for reading in self._plan.readings):
                self._recording.describe(replace(device, name=_join(device.name, inner)))
            if len(self._owners) > MOST_SERIES:
                raise DecodeError(
                    "too many devices", where=self._source.where, expected=f"at most {MOST_SERIES}"
                )
        return owner

    def _open(self, owner: _Owner) -> list[Column]:
        """The columns of a device that has its first reading."""
        return [
            self._recording.column(
                _join(owner.device, reading.device),
                reading.channel,
                reading.scope,
                part=_join(owner.part, reading.part),
                averaged_s=reading.averaged_s,
            )
            for reading in self._plan.readings
        ]

    def _describe(self, cells: DeviceCells) -> tuple[Device, str]:
        """The device of a row and what of it is read: its UUID is its name, else its number on its host."""
        places = self._plan.device
        told = {index: _text(cell) for index, cell in zip(places.indexes, cells, strict=False)}

        def text(index: int | None) -> str:
            return "" if index is None else told.get(index, "")

        host, number = text(places.host), text(places.number)
        if number.isdigit() and (places.is_gpu or self._holds_gpus):
            number = f"gpu{number}"
        name = text(places.uuid) or _join(host or self._source.device, number)
        device = Device(name=name, chip_name=text(places.chip), host=host, driver=text(places.driver))
        return device, text(places.part)

    def finish(self, form: TimeForm) -> Trace:
        """The trace of the whole table, with what its names left open."""
        if form.assumed:
            self._recording.tell(_tell_assumed(form, self._source.where))
        if self._plan.ignored:
            self._recording.tell(_tell_ignored(self._plan, self._source.where))
        trace = self._recording.trace()
        kept, findings = _check_series(trace.series, self._plan, self._source.where)
        if form.is_weak:  # numbers whose unit nobody names tell an order and no length
            kept = tuple(replace(item, timing=Timing.COUNTED) for item in kept)
        return replace(trace, series=kept, findings=(*trace.findings, *findings))


def _join(base: str, name: str) -> str:
    return f"{base}/{name}" if name and base else base or name


def _text(cell: bytes) -> str:
    return cell.strip()[:_LONGEST_NAME].decode("utf-8", "backslashreplace")


def _tell_assumed(form: TimeForm, where: str) -> Finding:
    return Finding(
        code="time-unit-assumed",
        severity=Severity.WARNING if form.is_weak else Severity.NOTE,
        message=(
            f"the column of times names no unit; its numbers are taken as {form.assumed}"
            + ("; nothing bounds the run" if form.is_weak else "")
        ),
        where=where,
        expected="a name such as time_s or epoch_ms",
    )


def _tell_ignored(plan: TablePlan, where: str) -> Finding:
    names = [name.strip()[:_LONGEST_NAME] for name in plan.ignored[:_NAMED]]
    return Finding(
        code="columns-ignored",
        severity=Severity.NOTE,
        message=(
            f"{plural(len(plan.ignored), 'column')} of {len(plan.names)} not read: of no known quantity, "
            "without its unit, or a second one of the same"
        ),
        where=where,
        expected="a name with its unit, such as gpu_power_w",
        found=", ".join(names),
        count=len(plan.ignored),
    )


def _check_series(
    series: Sequence[Series], plan: TablePlan, where: str
) -> tuple[tuple[Series, ...], list[Finding]]:
    """The series that are what their names promise, and what is said of the others."""
    bare = {reading.channel for reading in plan.readings if not reading.has_unit} & _SHARES
    refused: Counter[str] = Counter()
    kept = []
    for item in series:
        if item.channel in bare and _is_fraction(item.value):
            refused["share-unit-unclear"] += 1
        elif item.channel is Channel.ENERGY_COUNTER_J and _falls_often(item.value):
            refused["energy-not-counted-up"] += 1
        else:
            kept.append(item)
    return tuple(kept), list(_tell_refused(refused, where))


def _is_fraction(value: NDArray[np.float64]) -> bool:
    """Whether the values are shares of 1, not of 100: none above 1, and some between 0 and 1."""
    known = value[np.isfinite(value)]
    return bool(known.size and (known <= 1).all() and ((known > 0) & (known < 1)).any())


def _falls_often(value: NDArray[np.float64]) -> bool:
    steps = np.diff(value[np.isfinite(value)])
    return steps.size >= _FEWEST_STEPS and float((steps < 0).mean()) > _FALLING_SHARE


def _tell_refused(refused: "Counter[str]", where: str) -> list[Finding]:
    findings = []
    if count := refused["share-unit-unclear"]:
        findings.append(
            Finding(
                code="share-unit-unclear",
                severity=Severity.WARNING,
                message=(
                    f"{count} of the utilisations, without a unit in their names, stay below 1, as shares "
                    "of 1 do and percentages do not; left out"
                ),
                where=where,
                expected="a name with its unit, such as gpu_util_pct",
                count=count,
            )
        )
    if count := refused["energy-not-counted-up"]:
        findings.append(
            Finding(
                code="energy-not-counted-up",
                severity=Severity.WARNING,
                message=(
                    f"{count} of the energies fall in more than one step of ten: they are no counters, and "
                    "whether each is one interval's energy is not recorded; left out"
                ),
                where=where,
                expected="energy since a start, never falling",
                count=count,
            )
        )
    return findings
