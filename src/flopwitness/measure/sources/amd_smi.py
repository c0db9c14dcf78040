"""What `amd-smi monitor` and `amd-smi metric` print as CSV and as JSON, once or again and again.

With `--watch` each row has an epoch in seconds; without it rows have no time and are counted. Fields are
known by name in every spelling of the tool's versions.
"""

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.encoding import JsonValue
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Device, Scope, Trace
from flopwitness.measure.sources.cells import split_cells
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.json_documents import read_documents
from flopwitness.measure.sources.recording import MOST_SERIES, Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.sweeps import Sweeps
from flopwitness.measure.sources.table_times import TimeHeader, TimeReader, settle_form
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_amd_smi", "is_amd_smi"]

_HEAD_BYTES: Final = 64 << 10
_CTRL: Final = b"'CTRL' + 'C'"
_SMOOTHED_S: Final = (
    1.0  # `socket_power` is the current figure where the GPU has one, else firmware's average
)
_TICK_UJ: Final = 15.3  # as in `rocm_smi`, where `counter_resolution` does not say
_MICRO: Final = 1e-6
_DEEPEST: Final = 6
_LONGEST_TEXT: Final = 200
_EXPECTED: Final = "amd-smi's output: rows of `gpu,...` or `timestamp,gpu,...`, or its JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """A quantity and the units that it may stand in; without one it is in the first."""

    channel: Channel
    units: Mapping[str, float]
    part: str = ""
    averaged_s: float = 0.0


_W: Final = {"w": 1.0, "mw": 1e-3}
_J: Final = {"j": 1.0, "uj": _MICRO, "kj": 1e3}
_HZ: Final = {"mhz": 1e6, "ghz": 1e9}
_PCT: Final = {"%": 1.0}
_CELSIUS: Final = {"c": 1.0, "\u00b0c": 1.0}
_MB: Final = {"mb": 2.0**20, "gb": 2.0**30, "b": 1.0}  # the tool divides bytes by 1024 twice and calls it MB
_POWER: Final = _Quantity(channel=Channel.POWER_W, units=_W, averaged_s=_SMOOTHED_S)
_CURRENT: Final = _Quantity(channel=Channel.POWER_W, units=_W)
_AVERAGE: Final = _Quantity(channel=Channel.POWER_AVERAGE_W, units=_W, averaged_s=_SMOOTHED_S)
_LIMIT: Final = _Quantity(channel=Channel.POWER_LIMIT_W, units=_W)
_BUSY: Final = _Quantity(channel=Channel.UTILISATION_PCT, units=_PCT)
_MEMORY_BUSY: Final = _Quantity(channel=Channel.MEMORY_UTILISATION_PCT, units=_PCT)
_CLOCK: Final = _Quantity(channel=Channel.CLOCK_HZ, units=_HZ)
_MEMORY_CLOCK: Final = _Quantity(channel=Channel.MEMORY_CLOCK_HZ, units=_HZ)
_USED: Final = _Quantity(channel=Channel.MEMORY_USED_BYTE, units=_MB)
_HOTTEST: Final = _Quantity(channel=Channel.TEMPERATURE_C, units=_CELSIUS, part="hotspot")
_MEMORY_HOT: Final = _Quantity(channel=Channel.TEMPERATURE_C, units=_CELSIUS, part="memory")
_EDGE: Final = _Quantity(channel=Channel.TEMPERATURE_C, units=_CELSIUS, part="edge")
_ENERGY: Final = _Quantity(channel=Channel.ENERGY_COUNTER_J, units=_J)
_FIELDS: Final[Mapping[str, _Quantity]] = {
    "socket_power": _POWER,
    "power_usage": _POWER,
    "current_socket_power": _CURRENT,
    "current_power": _CURRENT,
    "average_socket_power": _AVERAGE,
    "average_power": _AVERAGE,
    "max_power": _LIMIT,
    "power_limit": _LIMIT,
    "total_energy_consumption": _ENERGY,
    "gfx_activity": _BUSY,
    "gfx_usage": _BUSY,
    "gfx_util": _BUSY,
    "gfx": _BUSY,
    "umc_activity": _MEMORY_BUSY,
    "mem_util": _MEMORY_BUSY,
    "mem_usage": _MEMORY_BUSY,
    "mem": _MEMORY_BUSY,
    "gfx_0_clk": _CLOCK,
    "gfx_clk": _CLOCK,
    "gfx_clock": _CLOCK,
    "mem_0_clk": _MEMORY_CLOCK,
    "mem_clk": _MEMORY_CLOCK,
    "mem_clock": _MEMORY_CLOCK,
    "used_vram": _USED,
    "vram_used": _USED,
    "hotspot": _HOTTEST,
    "hotspot_temperature": _HOTTEST,
    "edge": _EDGE,
    "memory_temperature": _MEMORY_HOT,
    "temperature/mem": _MEMORY_HOT,
}
_PROOF: Final = frozenset(_FIELDS) - {
    "gfx",
    "mem",
    "edge",
    "hotspot",
    "max_power",
    "power_limit",
    "average_power",
}
_BOARDS: Final = frozenset(
    {Channel.POWER_W, Channel.POWER_AVERAGE_W, Channel.POWER_LIMIT_W, Channel.ENERGY_COUNTER_J}
)
_TICKS: Final = "energy_accumulator"
_RESOLUTION: Final = "counter_resolution"
_GPU: Final = re.compile(rb"[0-9]{1,4}")
_MEASURE: Final = re.compile(r"([-+]?[0-9][0-9.eE+-]*) ?([A-Za-z%\u00b0]{0,5})")


def is_amd_smi(head: bytes, name: str) -> bool:
    """Whether a line of the beginning is one of the tool's headers, or its JSON."""
    del name
    text = decode_head(head[:_HEAD_BYTES])
    return _is_json(text) or any(_is_header(line) for line in text.split(b"\n")[:200])


def _is_json(text: bytes) -> bool:
    start = text[text.find(b"\n") + 1 :] if text.startswith(_CTRL) else text
    if start.lstrip()[:1] not in (b"[", b"{") or not re.search(rb'"gpu"\s*:\s*[0-9]', text):
        return False
    return any(f'"{name}"'.encode() in text for name in _PROOF)


def _is_header(line: bytes) -> bool:
    names = _names(line) if line[:14].lower().startswith((b"gpu,", b"timestamp,gpu,")) else []
    return any(name in _PROOF or name == _TICKS for name in names)


def _names(line: bytes) -> list[str]:
    return [cell.strip().decode("utf-8", "backslashreplace").lower() for cell in split_cells(line)]


def decode_amd_smi(source: Source) -> Trace:
    """The readings of all sweeps.

    Raises:
        DecodeError: No reading in it.
    """
    reader = _Reader(source)
    if _is_json(decode_head(source.peek(_HEAD_BYTES)[:_HEAD_BYTES])):
        for document in read_documents(source, chatter=(_CTRL,)):
            reader.read_document(document.line, document.text, document.value)
    else:
        for batch in source.lines():
            for number, line in batch:
                reader.read_line(number, line)
            reader.recording.check_size()
    return reader.finish()


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One field that is read: its place and name, what it is, and its column once it has a reading.

    Attributes:
        place: Its place among the fields.
        name: Its name.
        quantity: What it is.
        resolution: The place of what one tick is; None where the record does not say.
        column: Takes its readings.
    """

    place: int
    name: str
    quantity: _Quantity
    resolution: int | None
    column: Column | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    """Where the fields of one GPU's records go, or of one partition of it.

    Attributes:
        device: The GPU's name.
        slice_name: The partition; "" for the whole board.
        readings: The fields that are read.
        keys: What a sweep holds once.
    """

    device: str
    slice_name: str
    readings: list[_Reading]
    keys: frozenset[Hashable]


class _Reader:
    """Reads both forms into one recording."""

    def __init__(self, source: Source) -> None:
        self.recording = Recording(source, times=Times.COUNTED)
        self._source = source
        self._sweeps = Sweeps()
        self._names: tuple[str, ...] = ()
        self._times: TimeReader | None = None
        self._is_counted: bool | None = None
        self._first_line = b""
        self._shared: set[str] = set()
        self._lanes: dict[tuple[tuple[str, ...], bytes, bytes], _Lane] = {}

    def read_line(self, number: int, line: bytes) -> None:
        """A line of CSV: a header, a row, or what the tool says to the person at the terminal."""
        self._first_line = self._first_line or line.strip()
        if not line.strip() or line.startswith((_CTRL, b"#")):
            return
        if line[:14].lower().startswith((b"gpu,", b"timestamp,gpu,")) and not line[:1].isdigit():
            self._names = tuple(_names(line))
            return
        cells = split_cells(line)
        if not self._names or len(cells) != len(self._names):
            expected = f"{len(self._names)} cells" if self._names else _EXPECTED
            self.recording.skip(number, expected=expected, found=line)
            return
        self._take(number, line, self._names, cells)

    def read_document(self, number: int, text: bytes, value: JsonValue) -> None:
        """A JSON document: a list of GPUs, or an object that holds one."""
        self._first_line = self._first_line or text[:_LONGEST_TEXT]
        items = value.get("gpu_data") if isinstance(value, dict) and "gpu_data" in value else value
        items = [items] if isinstance(items, dict) else items
        if not isinstance(items, list):
            self.recording.skip(number, expected="a JSON list of GPUs", found=text[:_LONGEST_TEXT])
            return
        for item in items:
            if isinstance(item, list):  # a watch writes its sweeps as lists in a list
                items.extend(inner for inner in item if isinstance(inner, dict))
            elif isinstance(item, dict) and "gpu" in item:
                fields = dict(_flatten(item, (), 0))
                self._take(number, text[:_LONGEST_TEXT], tuple(fields), tuple(fields.values()))
            elif not (isinstance(item, dict) and ("cpu" in item or "core" in item)):
                self.recording.skip(
                    number, expected="an object of one GPU", found=str(item).encode()[:_LONGEST_TEXT]
                )
        self.recording.check_size()

    def _take(self, number: int, found: bytes, names: tuple[str, ...], cells: Sequence[bytes]) -> None:
        """The readings of one GPU, or of one partition of it, at one time."""
        gpu, part = _cell(names, cells, "gpu"), _cell(names, cells, "xcp")
        if not _GPU.fullmatch(gpu):
            self.recording.skip(number, expected="a GPU's number", found=found)
            return
        lane = self._lanes.get((names, gpu, part))
        if lane is None:
            if len(self._lanes) >= MOST_SERIES:
                self._lanes.clear()
            lane = self._lanes[names, gpu, part] = self._open(names, gpu, part)
        if not lane.readings:
            return
        try:
            time = self._place(lane, names, cells)
        except Unreadable:
            self.recording.skip(number, expected="a time like those before", found=found)
            return
        for reading in lane.readings:
            if reading.column is None:
                reading.column = self._column(lane, reading.quantity)
            reading.column.add(time, self._parse(number, reading, cells))

    def _open(self, names: tuple[str, ...], gpu: bytes, part: bytes) -> _Lane:
        """Where the fields of a GPU's records go."""
        device, slice_name = f"{self._source.device}/gpu{int(gpu)}", _slice_of(part)
        if slice_name:
            self._shared.add(device)
        resolution = names.index(_RESOLUTION) if _RESOLUTION in names else None
        readings = [
            _Reading(place=names.index(name), name=name, quantity=quantity, resolution=resolution)
            for name, quantity in _known(names).items()
            if not slice_name or quantity.channel not in _BOARDS
        ]
        keys = frozenset((device, slice_name, _key(reading.quantity)) for reading in readings)
        return _Lane(device=device, slice_name=slice_name, readings=readings, keys=keys)

    def _column(self, lane: _Lane, quantity: _Quantity) -> Column:
        return self.recording.column(
            lane.device,
            quantity.channel,
            Scope.INSTANCE if lane.slice_name else Scope.GPU,
            part="/".join(part for part in (lane.slice_name, quantity.part) if part),
            averaged_s=quantity.averaged_s,
        )

    def _place(self, lane: _Lane, names: tuple[str, ...], cells: Sequence[bytes]) -> int:
        """The time of a row, or the number of its sweep.

        Raises:
            Unreadable: No time among rows with times, or the reverse.
        """
        is_counted = "timestamp" not in names
        if self._is_counted is None:
            self._is_counted = is_counted
        if is_counted is not self._is_counted:
            raise Unreadable("a time that is missing")
        if is_counted:
            return self._sweeps.place(lane.keys)
        cell = _cell(names, cells, "timestamp")
        if self._times is None:
            form = settle_form(cell, TimeHeader())
            self._times, self.recording.times = TimeReader(form), form.times
        return self._times.read(cell)

    def _parse(self, number: int, reading: _Reading, cells: Sequence[bytes]) -> float:
        text = cells[reading.place].strip()
        try:
            if reading.name == _TICKS:
                tick_uj = _TICK_UJ if reading.resolution is None else parse_number(cells[reading.resolution])
                return parse_number(text) * tick_uj * _MICRO
            return _read_measure(text, reading.quantity.units)
        except Unreadable:
            expected = f"a {reading.quantity.channel} or N/A in {reading.name}"
            self.recording.skip(number, expected=expected, found=text)
            return math.nan

    def finish(self) -> Trace:
        """The trace.

        Raises:
            DecodeError: No reading.
        """
        if not self.recording.n_readings:
            raise DecodeError(
                "no amd-smi reading",
                where=f"{self._source.where}:1",
                expected=_EXPECTED,
                found=excerpt(self._first_line) or "nothing",
            )
        for device in sorted(self._shared):
            self.recording.describe(Device(name=device, is_shared=True))
        return self.recording.trace()


def _key(quantity: _Quantity) -> tuple[Channel, str]:
    return quantity.channel, quantity.part


def _cell(names: tuple[str, ...], cells: Sequence[bytes], name: str) -> bytes:
    """The cell of a field; b"" where there is no such field."""
    return cells[names.index(name)].strip() if name in names else b""


def _slice_of(text: bytes) -> str:
    """The name of the partition that a row is of; "" for the first, which stands for the whole board."""
    return f"xcp-{int(text)}" if _GPU.fullmatch(text) and int(text) else ""


def _known(names: Sequence[str]) -> dict[str, _Quantity]:
    """The fields that are read, each quantity once."""
    is_hot = "hotspot" in names or "edge" in names  # beside them `mem` is a temperature
    known: dict[str, _Quantity] = {}
    seen: set[tuple[Channel, str]] = set()
    for name in names:
        quantity = _MEMORY_HOT if name == "mem" and is_hot else _FIELDS.get(name)
        if name == _TICKS and "total_energy_consumption" not in names:
            quantity = _ENERGY
        if quantity is not None and _key(quantity) not in seen:
            seen.add(_key(quantity))
            known[name] = quantity
    return known


def _read_measure(text: bytes, units: Mapping[str, float]) -> float:
    """A number with its unit, in the channel's; without one it is in the tool's usual unit.

    Raises:
        Unreadable: No number, or one in a unit of something else.
    """
    if text[-1:].isdigit():
        return parse_number(text) * next(iter(units.values()))
    match = _MEASURE.fullmatch(text.decode("utf-8", "backslashreplace"))
    if match is None:
        return parse_number(text)
    unit = match[2].lower() or next(iter(units))
    if unit not in units:
        raise Unreadable(f"in {match[2]}")
    return parse_number(match[1].encode("ascii")) * units[unit]


def _flatten(record: Mapping[str, JsonValue], path: Sequence[str], depth: int) -> Iterator[tuple[str, bytes]]:
    """The fields of a GPU's record by their last name; clocks carry the name of their domain in front."""
    for key, value in record.items():
        name = key.lower()
        if isinstance(value, dict) and "value" in value:
            yield (
                _field_name(name, path),
                f"{value['value']} {value.get('unit', '')}".strip().encode("utf-8", "backslashreplace"),
            )
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _flatten(value, (*path, name), depth + 1)
        elif isinstance(value, (str, int, float)):
            yield _field_name(name, path), str(value).encode("utf-8", "backslashreplace")


def _field_name(name: str, path: Sequence[str]) -> str:
    if name == "clk" and path:
        return f"{path[-1]}_clk"
    return f"temperature/{name}" if name == "mem" and path and path[-1] == "temperature" else name


FORMATS: Final = (Format(name="amd-smi", is_it=is_amd_smi, decode=decode_amd_smi),)
