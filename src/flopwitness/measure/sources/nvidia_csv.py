"""`nvidia-smi --query-gpu=... --format=csv`: any order of columns, with or without units, appended or torn.

A log may hold several GPUs, several runs one behind the other, a header with other columns in its middle, and
lines that its shell wrote. Rows are read in bulk where they are regular and one by one where not; both ways
read a cell alike. A header there must be: two numbers without one could be anything.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.delimited import Rows, split_chunks, split_rows
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.nvidia_columns import (
    QUANTITIES,
    Quantity,
    canonical_name,
    choose_fields,
    parse_cell,
    parse_whole_cell,
)
from flopwitness.measure.sources.nvidia_gpus import GpuIdentity, GpuRecording
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp
from flopwitness.measure.sources.text_encoding import decode_blocks, decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS", "decode_nvidia_csv", "is_nvidia_csv"]

_HEADER_EXPECTED: Final = "a header row such as `timestamp, index, power.draw [W]`"
_TIME_EXPECTED: Final = "a time such as 2025/05/14 09:00:00.000"
_TIME: Final = b"timestamp"
_IDENTITY: Final = {
    "uuid": "uuid",
    "pci.bus_id": "bus_id",
    "index": "index",
    "name": "chip_name",
    "hostname": "host",
    "driver_version": "driver",
    "mig.mode.current": "mig_mode",
}
# The tool's names as a known logger writes them, beside values in the tool's own form.
_LOGGER_NAMES: Final = {
    "gpu_usage": "utilization.gpu",
    "gpu_memory_usage": "utilization.memory",
    "gpu_memory_used": "memory.used",
    "gpu_power_draw": "power.draw",
    "gpu_temperature": "temperature.gpu",
}
_CELL_NAME: Final = re.compile(rb"([A-Za-z_][A-Za-z0-9_.]*)(?: \[([A-Za-z%]+)\])?")
_ROW: Final = re.compile(rb"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}\.[0-9]{3}, .*[0-9] (?:W|%|MHz|MiB)")
_HEAD_BYTES: Final = 64 << 10
_HEAD_LINES: Final = 100
_FEW_BYTES: Final = 4 << 10  # less than this is not worth another try in bulk
_MOST_HELD: Final = 1 << 16
_BLANK_LINES: Final = re.compile(rb"\n{2,}")


def is_nvidia_csv(head: bytes, name: str) -> bool:
    """Whether a header with names of nvidia-smi's stands near the beginning, or a row that lacks one."""
    del name
    lines = decode_head(head[:_HEAD_BYTES]).split(b"\n")[:_HEAD_LINES]
    for number, line in enumerate(lines):
        layout = _read_header(line)
        if layout is None:
            continue
        if any(b"." in cell for cell in layout.names):
            return True
        if any(row.count(b",") + 1 == layout.n_cells and b" W," in row + b"," for row in lines[number + 1 :]):
            return True
    return bool(_ROW.match(lines[0]))


def decode_nvidia_csv(source: Source, /) -> Trace:
    """The readings of every GPU in a log.

    Raises:
        DecodeError: No reading with a header above it is in the log.
    """
    log = _Log(source)
    log.read(decode_blocks(source.blocks))
    return log.trace()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What the columns below one header hold.

    Attributes:
        text: The header as it stands.
        names: The names in it that are quantities, as they stand.
        foreign: Those that have another unit than the tool's.
        n_cells: How many cells a row has.
        time: The column with the time; None where there is none.
        identity: For each field of a GPU's identity its column.
        quantities: For each column with readings the quantity's name, and the quantity.
    """

    text: bytes
    names: tuple[bytes, ...]
    foreign: tuple[bytes, ...]
    n_cells: int
    time: int | None
    identity: dict[str, int]
    quantities: tuple[tuple[int, str, Quantity], ...]


def _read_header(line: bytes) -> _Layout | None:
    """The layout that a header sets; None for a line that is none."""
    if len(line) > _HEAD_BYTES:
        return None
    found: dict[str, int] = {}
    foreign: list[bytes] = []
    cells = [cell.strip() for cell in line.split(b",")]
    for column, cell in enumerate(cells):
        match = _CELL_NAME.fullmatch(cell)
        if match is None:
            continue
        name = canonical_name(match[1].decode())
        name = _LOGGER_NAMES.get(name, name)
        if match[2] and name in QUANTITIES and match[2] != QUANTITIES[name].unit:
            foreign.append(cell)
        else:
            found.setdefault(name, column)
    fields = choose_fields(found)
    names = tuple(cells[found[field]] for field in fields)
    if not any(b"." in name or b"_" in name for name in names):
        return None
    return _Layout(
        text=line,
        names=names,
        foreign=tuple(foreign),
        n_cells=len(cells),
        time=found.get(_TIME.decode()),
        identity={name: found[column] for column, name in _IDENTITY.items() if column in found},
        quantities=tuple((found[field], field, QUANTITIES[field]) for field in fields),
    )


class _Log:
    """What has been read of one log so far."""

    def __init__(self, source: Source) -> None:
        self._gpus = GpuRecording(source, times=Times.COUNTED)
        self._recording = self._gpus.recording
        self._layout: _Layout | None = None
        self._is_dated: bool | None = None
        self._counts: dict[str, int] = {}
        self._beginning = b""
        self._held: dict[tuple[str, str], list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        self._n_held = 0

    def read(self, blocks: Iterable[bytes]) -> None:
        """Read all lines, in bulk where that can be done."""
        line = 1
        for chunk in split_chunks(blocks):
            self._beginning = self._beginning or chunk.beginning
            if chunk.is_ended:
                line += self._take_text(line, chunk.text)
            else:
                self._take_line(line, chunk.text, is_torn=True)
            self._recording.check_size()

    def trace(self) -> Trace:
        self._release()
        return self._gpus.trace(expected=_HEADER_EXPECTED, found=self._beginning)

    def _take_text(self, line: int, text: bytes) -> int:
        """Lines, in bulk if they are regular, else each half, down to single lines; how many they are."""
        if self._layout is not None:
            n_rows = self._take_rows(text, self._layout)
            if n_rows:
                return n_rows
            tidy = _without_repeats(text, self._layout.text)
            if len(tidy) < len(text) and (not tidy or self._take_rows(tidy, self._layout)):
                return text.count(b"\n") + 1
        cut = text.find(b"\n", len(text) // 2) if len(text) > _FEW_BYTES else -1
        if cut >= 0:
            n_lines = self._take_text(line, text[:cut])
            return n_lines + self._take_text(line + n_lines, text[cut + 1 :])
        lines = text.split(b"\n")
        for number, each in enumerate(lines, line):
            self._take_line(number, each)
        return len(lines)

    def _take_rows(self, text: bytes, layout: _Layout) -> int:
        """Take rows in bulk; how many, and 0 with nothing taken where one of them is not regular."""
        rows = split_rows(text, layout.n_cells)
        if rows is None or self._is_dated is (layout.time is None):
            return 0
        time_ns = None if layout.time is None else _read_times(rows, layout.time)
        found = rows.groups(list(layout.identity.values()))
        if (layout.time is not None and time_ns is None) or found is None:
            return 0
        values = [_read_values(rows, column, quantity) for column, _, quantity in layout.quantities]
        if any(value is None for value in values):
            return 0
        self._add_rows(rows, layout, time_ns, [value for value in values if value is not None], *found)
        return len(rows)

    def _add_rows(
        self,
        rows: Rows,
        layout: _Layout,
        time_ns: NDArray[np.int64] | None,
        values: list[NDArray[np.float64]],
        number: NDArray[np.int64],
        first: list[int],
    ) -> None:
        columns = layout.identity.values()
        devices = [self._device(layout, [rows.cell(row, column) for column in columns]) for row in first]
        places = {device: place for place, device in enumerate(dict.fromkeys(devices))}
        number = np.array([places[device] for device in devices])[number]
        is_in_turn = bool((number == np.arange(len(rows)) % len(places)).all())
        for device, place in places.items():
            where = slice(place, None, len(places)) if is_in_turn else np.flatnonzero(number == place)
            if time_ns is None:
                n_before = self._counts.get(device, 0)
                n_rows = number[where].size
                times = np.arange(n_before, n_before + n_rows)
                self._counts[device] = n_before + n_rows
            else:
                times = time_ns[where]
            for (_, name, _), value in zip(layout.quantities, values, strict=True):
                self._held.setdefault((device, name), []).append((times, value[where]))
        self._n_held += len(rows)
        if self._n_held >= _MOST_HELD:
            self._release()

    def _release(self) -> None:
        """Hand on what was read in bulk; many rows at once, because each time costs as much as a hundred."""
        for (device, name), pieces in self._held.items():
            times, values = zip(*pieces, strict=True)
            self._gpus.column(device, name).extend(np.concatenate(times), np.concatenate(values))
        self._held.clear()
        self._n_held = 0

    def _take_line(self, line: int, text: bytes, *, is_torn: bool = False) -> None:
        text = text.strip()
        if not text:
            return
        layout = None if text[:4].isdigit() else _read_header(text)
        if layout is not None:
            self._start(line, layout)
            return
        if self._layout is None or self._is_dated is (self._layout.time is None):
            self._recording.skip(line, expected=_HEADER_EXPECTED, found=text)
            return
        cells = [cell.strip() for cell in text.split(b",")]
        if len(cells) != self._layout.n_cells:
            self._recording.skip(line, expected=f"{self._layout.n_cells} cells", found=text)
            self._find_glued_header(line, text)
            return
        try:
            time = None if self._layout.time is None else parse_stamp(cells[self._layout.time])
        except Unreadable:
            self._recording.skip(line, expected=_TIME_EXPECTED, found=text)
            return
        self._add_row(line, cells, self._layout, time, is_torn=is_torn)

    def _add_row(
        self, line: int, cells: list[bytes], layout: _Layout, time: int | None, *, is_torn: bool
    ) -> None:
        self._release()
        device = self._device(layout, [cells[column] for column in layout.identity.values()])
        if time is None:
            time = self._counts.get(device, 0)
            self._counts[device] = time + 1
        unread = b""
        for column, name, quantity in layout.quantities:
            cell = cells[column]
            is_cut = is_torn and column == layout.n_cells - 1
            value = np.nan
            try:
                value = _parse_cut_cell(cell, quantity) if is_cut else parse_cell(cell, quantity)
            except Unreadable:
                unread = unread or cell or b"nothing"
            self._gpus.column(device, name).add(time, value)
        if unread:
            self._recording.skip(line, expected="readings", found=unread)

    def _start(self, line: int, layout: _Layout) -> None:
        """Go on below another header."""
        self._layout = layout
        for name in layout.foreign:
            self._recording.skip(line, expected="a quantity in the tool's own unit", found=name)
        if self._is_dated is None:
            self._is_dated = layout.time is not None
            self._recording.times = Times.LOCAL if self._is_dated else Times.COUNTED
        elif self._is_dated is (layout.time is None):
            expected = "a header with a timestamp" if self._is_dated else "a header without a timestamp"
            self._recording.skip(line, expected=f"{expected}, as above", found=layout.text)

    def _find_glued_header(self, line: int, text: bytes) -> None:
        """Take the header of another run that began where a torn row ended."""
        start = text.find(_TIME, 1)
        layout = _read_header(text[start:]) if start > 0 else None
        if layout is not None:
            self._start(line, layout)

    def _device(self, layout: _Layout, cells: list[bytes]) -> str:
        return self._gpus.device(GpuIdentity(**dict(zip(layout.identity, cells, strict=True))))


def _without_repeats(text: bytes, header: bytes) -> bytes:
    """The text without blank lines and without the header where it is repeated."""
    if header in text:
        lines = b"\n" + text + b"\n"
        while b"\n" + header + b"\n" in lines:
            lines = lines.replace(b"\n" + header + b"\n", b"\n")
        text = lines[1:-1]
    if b"\n\n" in text or text[:1] == b"\n" or text[-1:] == b"\n":
        text = _BLANK_LINES.sub(b"\n", text).strip(b"\n")
    return text


def _read_times(rows: Rows, column: int) -> NDArray[np.int64] | None:
    """The times of rows [ns]; None where one is none."""
    time_ns, is_read = rows.stamps(column)
    for row in _unread(is_read):
        try:
            time_ns[row] = parse_stamp(rows.cell(row, column).strip())
        except Unreadable:
            return None
    return time_ns


def _read_values(rows: Rows, column: int, quantity: Quantity) -> NDArray[np.float64] | None:
    """The readings of a column in its channel's unit; None where one cannot be read."""
    suffix = b" " + quantity.unit if quantity.unit else b""
    value, is_read = rows.numbers(column, prefix=quantity.prefix, suffix=suffix)
    if quantity.factor != 1:
        value *= quantity.factor
    known: dict[bytes, float] = {}
    for row in _unread(is_read):
        cell = rows.cell(row, column)
        if not cell.strip() and rows.n_cells == 1:  # a blank line
            return None
        try:
            value[row] = known[cell] if cell in known else known.setdefault(cell, parse_cell(cell, quantity))
        except Unreadable:
            return None
    return value


def _unread(is_read: NDArray[np.bool_]) -> Iterator[int]:
    return map(int, np.flatnonzero(~is_read))


def _parse_cut_cell(cell: bytes, quantity: Quantity) -> float:
    """A reading that nothing follows, not even the end of its line: only a unit shows that it is whole."""
    if not cell or not (quantity.unit or cell.endswith(b"]")):
        raise Unreadable
    return parse_whole_cell(cell, quantity)


FORMATS: Final = (Format(name="nvidia-smi-csv", is_it=is_nvidia_csv, decode=decode_nvidia_csv),)
