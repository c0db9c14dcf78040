"""How a plain table of telemetry is read: which of its columns hold times, readings and devices.

The columns are known by their names (`table_words`); the user's own column map goes before that. A quantity
of a device is read once, and a total beside its parts is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.source import ColumnMap
from flopwitness.measure.sources.table_times import TimeHeader
from flopwitness.measure.sources.table_words import (
    ENERGY_CHANNELS,
    NamedQuantity,
    fold_name,
    read_quantity,
    read_subject,
    read_time_name,
)

__all__ = ["DeviceColumns", "ReadingColumn", "TablePlan", "TimeColumn", "UnknownColumnError", "plan_table"]

_LONGEST_NAME: Final = 128
_SMOOTHED_S: Final = 1.0  # NVML's power.draw from Ampere on, GA100 apart; AMD's average power
_STATES: Final = frozenset(
    {Channel.TEMPERATURE_C, Channel.MEMORY_USED_BYTE, Channel.CLOCK_HZ, Channel.MEMORY_CLOCK_HZ}
)
_UUIDS: Final = frozenset({"gpu_uuid", "uuid", "device_uuid"})
_GPU_NUMBERS: Final = frozenset({"gpu", "gpu_id", "gpu_index", "gpu_idx", "gpu_number"})
_DEVICES: Final = frozenset({"device", "device_id", "device_index", "device_name", "index", "card"})
_HOSTS: Final = frozenset({"host", "hostname", "node", "node_name", "server"})
_CHIPS: Final = frozenset({"gpu_name", "gpu_model", "accelerator_name"})
_PARTS: Final = frozenset({"zone", "rail", "sensor", "domain", "component"})
_DRIVERS: Final = frozenset({"driver", "driver_version"})


class UnknownColumnError(ValueError):
    """The user's column map names a column or a quantity that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumn:
    """The column with the times: its place, and what its name says of them."""

    index: int
    header: TimeHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingColumn:
    """A column with readings.

    Attributes:
        index: Its place.
        name: Its name as it stands.
        channel: What it holds.
        scope: What its figures cover.
        factor: What one of its units is in the channel's.
        part: What of the device is read; "" for all of it.
        device: Which of several devices in one row, such as `gpu0`; "" where the row is of one.
        has_unit: Whether the name says its unit; shares are percent where it does not.
        is_total: Whether the name says that it is a total of several, which has no device of its own.
        averaged_s: Over how long before its time a reading may be a mean [s].
    """

    index: int
    name: str
    channel: Channel
    scope: Scope
    factor: float
    part: str = ""
    device: str = ""
    has_unit: bool = True
    is_total: bool = False
    averaged_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceColumns:
    """The places of the columns that name the device of a row; None for those that are not there.

    Attributes:
        uuid: A GPU's UUID.
        number: A device's number or name.
        host: The machine.
        chip: The accelerator's name.
        driver: The driver's version.
        part: What of the device is read, such as a rail.
        is_gpu: Whether `number` is a GPU's by its name.
    """

    uuid: int | None = None
    number: int | None = None
    host: int | None = None
    chip: int | None = None
    driver: int | None = None
    part: int | None = None
    is_gpu: bool = False

    @property
    def indexes(self) -> tuple[int, ...]:
        """The places of all that are there."""
        all_indexes = (self.uuid, self.number, self.host, self.chip, self.driver, self.part)
        return tuple(index for index in all_indexes if index is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How a table is read.

    Attributes:
        names: All its columns.
        time: The times.
        readings: The readings, at least one.
        device: Where the device of a row is named.
        ignored: The names of the columns that are not read.
    """

    names: tuple[str, ...]
    time: TimeColumn
    readings: tuple[ReadingColumn, ...]
    device: DeviceColumns
    ignored: tuple[str, ...]

    @property
    def indexes(self) -> tuple[int, ...]:
        """The places of all columns that are read, in order."""
        return tuple(sorted({self.time.index, *(c.index for c in self.readings), *self.device.indexes}))


def plan_table(names: Sequence[str], columns: ColumnMap | None = None) -> TablePlan | None:
    """How a table with these columns is read; None where its names do not say.

    Without a map, a table must have a time and, with its unit, a power, an energy or a utilisation.

    Args:
        names: The columns' names as they stand.
        columns: What the user says that they hold.

    Raises:
        UnknownColumnError: The map names a column that is not there, or a quantity that is none.
    """
    if columns is not None and (columns.time or columns.channels or columns.device):
        return _plan_by_map(names, columns)
    time, device = _find_time(names), _find_device(names)
    if time is None:
        return None
    taken = {time.index, *device.indexes}
    found = (_match_reading(i, name) for i, name in enumerate(names) if i not in taken)
    readings = _settle(tuple(reading for reading in found if reading is not None), device)
    if not any(reading.has_unit and _tells_work(reading.channel) for reading in readings):
        return None
    return _plan(names, time, readings, device)


def _tells_work(channel: Channel) -> bool:
    return channel in ENERGY_CHANNELS or channel in (Channel.UTILISATION_PCT, Channel.CPU_UTILISATION_PCT)


def _plan(
    names: Sequence[str], time: TimeColumn, readings: tuple[ReadingColumn, ...], device: DeviceColumns
) -> TablePlan:
    used = {time.index, *(reading.index for reading in readings), *device.indexes}
    return TablePlan(
        names=tuple(names),
        time=time,
        readings=readings,
        device=device,
        ignored=tuple(name for i, name in enumerate(names) if i not in used and name.strip()),
    )


def _plan_by_map(names: Sequence[str], columns: ColumnMap) -> TablePlan | None:
    stripped = [name.strip() for name in names]

    def place(name: str) -> int:
        if name.strip() not in stripped:
            raise UnknownColumnError(f"a column {name[:_LONGEST_NAME]!r}")
        return stripped.index(name.strip())

    time = _find_time(names)
    if columns.time:
        index = place(columns.time)
        time = TimeColumn(index=index, header=read_time_name(names[index])[0])
    device = _find_device(names)
    if columns.device:
        device = replace(device, uuid=None, number=place(columns.device), is_gpu=False)
    if time is None:
        return None
    readings = tuple(_map_reading(place(name), name, quantity) for name, quantity in columns.channels)
    if not readings:
        taken = {time.index, *device.indexes}
        found = (_match_reading(i, name) for i, name in enumerate(names) if i not in taken)
        readings = tuple(reading for reading in found if reading is not None)
    readings = _settle(readings, device)
    return _plan(names, time, readings, device) if readings else None


def _map_reading(index: int, name: str, quantity: str) -> ReadingColumn:
    """A column that the user says holds a quantity, such as `power_mw`; its own name may say the device."""
    meant = _match_reading(index, quantity)
    if meant is None:
        raise UnknownColumnError(f"a quantity with its unit, such as power_w, for {name[:_LONGEST_NAME]!r}")
    subject = read_subject(name)
    scope = subject.scope if meant.scope is Scope.UNKNOWN else meant.scope
    return replace(meant, name=name, device=meant.device or subject.device, scope=scope)


def _settle(readings: Sequence[ReadingColumn], device: DeviceColumns) -> tuple[ReadingColumn, ...]:
    """The readings, each quantity of a device once, and those of a row that is a GPU's as a GPU's."""
    is_gpu = device.uuid is not None or device.is_gpu or device.chip is not None
    several = any(reading.scope is Scope.GPU and reading.device for reading in readings)
    seen: set[tuple[str, Channel, Scope, str]] = set()
    kept = []
    for reading in readings:
        scope = reading.scope
        if is_gpu and scope is Scope.UNKNOWN and not reading.is_total:
            scope = Scope.GPU
        key = (reading.device, reading.channel, scope, reading.part)
        is_sum = several and not reading.device and (scope is Scope.GPU or reading.is_total)
        is_sum = is_sum and reading.channel in ENERGY_CHANNELS
        is_vague = reading.channel in _STATES and scope is Scope.UNKNOWN
        if key not in seen and not is_sum and not is_vague:
            seen.add(key)
            kept.append(replace(reading, scope=scope, averaged_s=_averaged_s(reading, scope)))
    return tuple(kept)


def _averaged_s(reading: ReadingColumn, scope: Scope) -> float:
    """Over how long a reading may be a mean: drivers smooth the power of their GPUs over up to a second."""
    is_instant = "instant" in reading.name.lower()
    may_be_mean = reading.channel is Channel.POWER_AVERAGE_W or (
        reading.channel is Channel.POWER_W and scope is Scope.GPU and not is_instant
    )
    return _SMOOTHED_S if may_be_mean else 0.0


def _match_reading(index: int, name: str) -> ReadingColumn | None:
    quantity = read_quantity(name)
    return None if quantity is None else _reading(index, name, quantity)


def _reading(index: int, name: str, quantity: NamedQuantity) -> ReadingColumn:
    return ReadingColumn(
        index=index,
        name=name,
        channel=quantity.channel,
        scope=quantity.subject.scope,
        factor=quantity.factor,
        part=quantity.part,
        device=quantity.subject.device,
        has_unit=quantity.has_unit,
        is_total=quantity.subject.is_total,
    )


def _find_time(names: Sequence[str]) -> TimeColumn | None:
    """The best column with times: UTC and epochs first, then calendar text, then what counts from a start."""
    best: tuple[int, int, TimeHeader] | None = None
    for index, name in enumerate(names):
        header, rank = read_time_name(name)
        if rank and (best is None or rank < best[0]):
            best = (rank, index, header)
    return None if best is None else TimeColumn(index=best[1], header=best[2])


def _find_device(names: Sequence[str]) -> DeviceColumns:
    """The columns that name the device of a row, the first of each kind."""
    folded = [fold_name(name) for name in names]

    def first(known: frozenset[str]) -> int | None:
        return next((i for i, name in enumerate(folded) if name in known), None)

    uuid, gpu, other, name = first(_UUIDS), first(_GPU_NUMBERS), first(_DEVICES), first(frozenset({"name"}))
    number, chip, part = other if gpu is None else gpu, first(_CHIPS), first(_PARTS)
    if name is not None and (uuid is not None or gpu is not None):
        chip, name = name if chip is None else chip, None
    return DeviceColumns(
        uuid=uuid,
        number=number,
        host=first(_HOSTS),
        chip=chip,
        driver=first(_DRIVERS),
        part=name if part is None else part,
        is_gpu=gpu is not None,
    )
