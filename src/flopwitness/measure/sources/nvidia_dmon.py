"""`nvidia-smi dmon`: one row a GPU and sweep, in columns that its header names, with or without times.

Without times only sweeps are counted: all GPUs of one sweep share a number, and so they are where only dates
are printed. With times of day alone, lengths are known and no date. Header lines come again and again; `-` is
no reading. Nothing names the chip, so its power may be a mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from flopwitness.foundation.units import NANOSECOND_PER_SECOND, SECOND_PER_HOUR
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.delimited import split_chunks
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.nvidia_columns import QUANTITIES, parse_cell
from flopwitness.measure.sources.nvidia_gpus import GpuIdentity, GpuRecording
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp
from flopwitness.measure.sources.text_encoding import decode_blocks, decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS", "decode_nvidia_dmon", "is_nvidia_dmon"]

_HEADER_EXPECTED: Final = "a header such as `# gpu pwr gtemp sm mem`"
_TIME_EXPECTED: Final = "a time such as 20250514 09:00:00"
_HEAD_BYTES: Final = 64 << 10
_LONGEST_LINE: Final = 1 << 10
_LONGEST_INDEX: Final = 4
_MOST_MEMORISED: Final = 10_000
_DATE_DIGITS: Final = 8
_DAY_NS: Final = 24 * SECOND_PER_HOUR * NANOSECOND_PER_SECOND
_COLUMNS: Final = {
    b"pwr": ("power.draw", b"W"),
    b"gtemp": ("temperature.gpu", b"C"),
    b"temp": ("temperature.gpu", b"C"),
    b"mtemp": ("temperature.memory", b"C"),
    b"sm": ("utilization.gpu", b"%"),
    b"mem": ("utilization.memory", b"%"),
    b"mclk": ("clocks.current.memory", b"MHz"),
    b"pclk": ("clocks.current.sm", b"MHz"),
    b"fb": ("memory.used", b"MB"),  # MiB, whatever the header says
}


def is_nvidia_dmon(head: bytes, name: str) -> bool:
    """Whether a header of the device monitor stands near the beginning."""
    del name
    lines = decode_head(head[:_HEAD_BYTES]).split(b"\n")
    return any(_read_header(line) is not None for line in lines if line.startswith(b"#"))


def decode_nvidia_dmon(source: Source, /) -> Trace:
    """The readings of every GPU in a log.

    Raises:
        DecodeError: No reading with a header above it is in the log.
    """
    log = _Log(source)
    n_lines, found = 0, b""
    for chunk in split_chunks(decode_blocks(source.blocks)):
        found = found or chunk.beginning
        for text in chunk.text.split(b"\n"):
            n_lines += 1
            log.take(n_lines, text[:_LONGEST_LINE].strip(), is_cut=not chunk.is_ended)
        log.gpus.recording.check_size()
    return log.gpus.trace(expected=_HEADER_EXPECTED, found=found)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the columns below one header hold.

    Attributes:
        names: Their names as they stand, in small letters.
        quantities: For each column with readings its quantity's name.
    """

    names: tuple[bytes, ...]
    quantities: tuple[tuple[int, str], ...]

    @property
    def times(self) -> Times:
        """What kind of times its rows have."""
        if b"time" not in self.names:
            return Times.COUNTED
        return Times.LOCAL if b"date" in self.names else Times.RELATIVE


def _split(line: bytes) -> list[bytes]:
    return line.replace(b",", b" ").split()


def _read_header(line: bytes) -> _Layout | None:
    """The layout that a header sets; None for a line that is none."""
    names = _split(line.lstrip(b"#").lower())
    if b"gpu" not in names[:3] or b"pid" in names:
        return None
    fields: dict[str, int] = {}
    for column, name in enumerate(names):
        if name in _COLUMNS:
            fields.setdefault(_COLUMNS[name][0], column)
    if not fields:
        return None
    return _Layout(tuple(names), tuple((column, field) for field, column in fields.items()))


class _Log:
    """What has been read of one log so far."""

    def __init__(self, source: Source) -> None:
        self.gpus = GpuRecording(source, times=Times.COUNTED)
        self._skip = self.gpus.recording.skip
        self._layout: _Layout | None = None
        self._times: Times | None = None
        self._adders: dict[bytes, list[tuple[int, str, Callable[[int, float], None]]]] = {}
        self._values: dict[tuple[str, bytes], float] = {}
        self._sweep = 0
        self._in_sweep: set[bytes] = set()
        self._last_stamp, self._last_ns = b"", 0

    def take(self, line: int, text: bytes, *, is_cut: bool) -> None:
        """One line; `is_cut` where it is the last one and lacks its end."""
        if text.startswith(b"#"):
            self._take_header(line, text)
            return
        if not text:
            return
        if self._layout is None or self._layout.times is not self._times:
            self._skip(line, expected=_HEADER_EXPECTED, found=text)
            return
        cells = _split(text)
        if len(cells) != len(self._layout.names):
            self._skip(line, expected=f"{len(self._layout.names)} cells", found=text)
            return
        index = cells[self._layout.names.index(b"gpu")]
        if not index.isdigit() or len(index) > _LONGEST_INDEX:
            self._skip(line, expected="a GPU's number", found=text)
            return
        try:
            time = self._time(self._layout, cells, index)
        except Unreadable:
            self._skip(line, expected=_TIME_EXPECTED, found=text)
            return
        self._add(line, cells, index, time, is_cut=is_cut)

    def _take_header(self, line: int, text: bytes) -> None:
        layout = _read_header(text)
        if layout is not None and layout != self._layout:
            self._layout, self._adders = layout, {}
            if self._times is None:
                self._times = self.gpus.recording.times = layout.times
            elif self._times is not layout.times:
                self._skip(line, expected=f"{self._times.value} times, as above", found=text)
        elif layout is None and self._layout is not None:
            self._check_units(line, self._layout, _split(text.lstrip(b"#")))

    def _check_units(self, line: int, layout: _Layout, units: list[bytes]) -> None:
        """Leave out columns whose units are not the tool's."""
        if b"Idx" not in units or len(units) != len(layout.names):
            return
        foreign = {
            column for column, _ in layout.quantities if units[column] != _COLUMNS[layout.names[column]][1]
        }
        if foreign:
            self._skip(line, expected="the tool's own units", found=b" ".join(units))
            kept = tuple((column, name) for column, name in layout.quantities if column not in foreign)
            self._layout, self._adders = _Layout(layout.names, kept), {}

    def _time(self, layout: _Layout, cells: list[bytes], index: bytes) -> int:
        """The row's time, of the kind that its layout has."""
        if layout.times is Times.COUNTED:
            if index in self._in_sweep:
                self._sweep += 1
                self._in_sweep.clear()
            self._in_sweep.add(index)
            return self._sweep
        is_dated = layout.times is Times.LOCAL
        date = cells[layout.names.index(b"date")] if is_dated else b"19700101"
        stamp = date + b" " + cells[layout.names.index(b"time")]
        if stamp != self._last_stamp:
            time_ns = parse_stamp(_with_dashes(stamp))
            if not is_dated:
                time_ns = _nearest_day(time_ns, self._last_ns)
            self._last_stamp, self._last_ns = stamp, time_ns
        return self._last_ns

    def _add(self, line: int, cells: list[bytes], index: bytes, time: int, *, is_cut: bool) -> None:
        adders = self._adders.get(index)
        if adders is None:
            adders = self._adders[index] = self._find_adders(index)
        for column, name, add in adders:
            cell = cells[column]
            value = self._values.get((name, cell))
            if value is None or (is_cut and column == len(cells) - 1):
                value = self._read(line, name, cell, is_cut=is_cut and column == len(cells) - 1)
            add(time, value)

    def _find_adders(self, index: bytes) -> list[tuple[int, str, Callable[[int, float], None]]]:
        device = self.gpus.device(GpuIdentity(index=index))
        quantities = self._layout.quantities if self._layout else ()
        return [(column, name, self.gpus.column(device, name).add) for column, name in quantities]

    def _read(self, line: int, name: str, cell: bytes, *, is_cut: bool) -> float:
        try:
            value = parse_cell(cell, QUANTITIES[name])
        except Unreadable:
            self._skip(line, expected=f"a reading of {name}", found=cell)
            return np.nan
        if is_cut and cell != b"-":
            self._skip(line, expected=f"a reading of {name} and the end of its line", found=cell)
            return np.nan
        if len(self._values) >= _MOST_MEMORISED:
            self._values.clear()
        self._values[name, cell] = value
        return value


def _with_dashes(stamp: bytes) -> bytes:
    """A stamp that begins with a date such as 20250514, as others write it."""
    date, _, time = stamp.partition(b" ")
    return b"%s-%s-%s %s" % (date[:4], date[4:6], date[6:], time) if len(date) == _DATE_DIGITS else stamp


def _nearest_day(time_ns: int, last_ns: int) -> int:
    """A time of day on the day on which it lies nearest to the one before."""
    return time_ns + round((last_ns - time_ns) / _DAY_NS) * _DAY_NS


FORMATS: Final = (Format(name="nvidia-smi-dmon", is_it=is_nvidia_dmon, decode=decode_nvidia_dmon),)
