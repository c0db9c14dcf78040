"""The CSV files of Zeus: the power log of its old monitor, and the energy of its measurement windows.

A window's energy is a difference, not a counter's course, and windows may lie inside each other. Those that
lie in no other make up the device's counter, which begins again at 0 with each; the others are parts that
carry their window's name, so that no joule is counted twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.table_times import CalendarReader, parse_ticks
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number
from flopwitness.measure.wording import agree, plural

__all__ = ["FORMATS", "decode_zeus_csv", "is_zeus_csv"]

_HEAD_BYTES: Final = 64 << 10
_POWER_HEADER: Final = b"Time,Power"
_WINDOW_HEADER: Final = re.compile(
    rb"start_time,window_name,elapsed_time((?:,(?:gpu|cpu|dram)[0-9]{1,4}_energy)+)"
)
_STAMP: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
_SCOPES: Final = {"gpu": Scope.GPU, "cpu": Scope.CPU, "dram": Scope.DRAM}
_MILLI: Final = 1e-3
_SMOOTHED_S: Final = 1.0  # nvmlDeviceGetPowerUsage is a mean over a second from Ampere on, GA100 apart
_MOST_WINDOWS: Final = 1_000_000
_LONGEST_NAME: Final = 100
_EXPECTED: Final = "a header `Time,Power` or `start_time,window_name,elapsed_time,gpu0_energy,...`"
_HUGE_J: Final = 1e15


def is_zeus_csv(head: bytes, name: str) -> bool:
    """Whether the first line is one of the two headers, and a power log's first time one that Zeus writes."""
    del name
    lines = decode_head(head[:_HEAD_BYTES]).split(b"\n", 2)
    first = lines[0].removesuffix(b"\r")
    if first == _POWER_HEADER:
        return len(lines) > 1 and _STAMP.match(lines[1]) is not None
    return _WINDOW_HEADER.fullmatch(first) is not None


def decode_zeus_csv(source: Source) -> Trace:
    """The readings of either file.

    Raises:
        DecodeError: Neither header, or no row that can be read.
    """
    reader: _PowerReader | _WindowReader | None = None
    for batch in source.lines():
        for number, line in batch:
            if reader is None:
                reader = _open(line, number, source)
            elif line.strip() and line != reader.header:
                reader.read(number, line)
        if reader is not None:
            reader.recording.check_size()
    if reader is None:
        raise DecodeError("no Zeus log", where=f"{source.where}:1", expected=_EXPECTED, found="nothing")
    return reader.finish(source)


def _open(line: bytes, number: int, source: Source) -> "_PowerReader | _WindowReader":
    if line == _POWER_HEADER:
        return _PowerReader(source, line)
    match = _WINDOW_HEADER.fullmatch(line)
    if match is None:
        raise DecodeError(
            "no Zeus log", where=f"{source.where}:{number}", expected=_EXPECTED, found=excerpt(line)
        )
    names = [name.removesuffix(b"_energy").decode("ascii") for name in match[1][1:].split(b",")]
    return _WindowReader(source, line, names)


def _refuse(source: Source, expected: str) -> DecodeError:
    return DecodeError("a log without a reading", where=f"{source.where}:2", expected=expected, found="none")


class _PowerReader:
    """The old monitor's log: local time, and milliwatts of one GPU."""

    def __init__(self, source: Source, header: bytes) -> None:
        self.header = header
        self.recording = Recording(source, times=Times.LOCAL)
        self._column = self.recording.column(
            source.device, Channel.POWER_W, Scope.GPU, averaged_s=_SMOOTHED_S
        )
        self._calendar = CalendarReader()

    def read(self, number: int, line: bytes) -> None:
        stamp, comma, power = line.partition(b",")
        try:
            time_ns, has_zone = self._calendar.read(stamp)
            power_w = parse_number(power) * _MILLI
        except Unreadable:
            has_zone = True
        if has_zone or not comma:
            self.recording.skip(number, expected="a local time and milliwatts", found=line)
        else:
            self._column.add(time_ns, power_w)

    def finish(self, source: Source) -> Trace:
        if not self.recording.n_readings:
            raise _refuse(source, "a local time and milliwatts")
        return self.recording.trace()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    start_ns: int
    stop_ns: int
    name: str
    energy_j: tuple[float, ...]


class _WindowReader:
    """Measurement windows: an epoch, a name, a length, and joules of each device."""

    def __init__(self, source: Source, header: bytes, names: Sequence[str]) -> None:
        self.header = header
        self.recording = Recording(source, times=Times.UTC)
        self._names = names
        self._where = source.where
        self._windows: list[_Window] = []

    def read(self, number: int, line: bytes) -> None:
        try:
            self._windows.append(self._parse(line))
        except Unreadable:
            self.recording.skip(
                number,
                expected=f"a time, a name, a length and {plural(len(self._names), 'energy')}",
                found=line,
            )
        if len(self._windows) > _MOST_WINDOWS:
            raise DecodeError(
                "too many windows", where=f"{self._where}:{number}", expected=f"at most {_MOST_WINDOWS}"
            )

    def _parse(self, line: bytes) -> _Window:
        """A row; the name is not quoted and may hold commas."""
        start, comma, rest = line.partition(b",")
        name, *cells = rest.rsplit(b",", len(self._names) + 1)
        if not comma or len(cells) != len(self._names) + 1:
            raise Unreadable("too few cells")
        start_ns = parse_ticks(start.strip(), NANOSECOND_PER_SECOND)
        length_ns = parse_ticks(cells[0].strip(), NANOSECOND_PER_SECOND)
        energies = tuple(map(parse_number, cells[1:]))
        if length_ns < 0 or start_ns < 0 or any(energy > _HUGE_J for energy in energies):
            raise Unreadable("no such window")
        return _Window(
            start_ns=start_ns,
            stop_ns=start_ns + length_ns,
            name=name[:_LONGEST_NAME].decode("utf-8", "backslashreplace") or "window",
            energy_j=energies,
        )

    def finish(self, source: Source) -> Trace:
        if not self._windows:
            raise _refuse(source, "a time, a name, a length and energies")
        order = sorted(self._windows, key=lambda window: (window.start_ns, -window.stop_ns))
        reached_ns, inner = order[0].start_ns, 0
        for window in order:
            is_inner = window.start_ns < reached_ns
            inner += is_inner
            reached_ns = max(reached_ns, window.stop_ns)
            self._add(source, window, part=window.name if is_inner else "")
        if inner:
            self._tell_inner(inner, len(order))
        return self.recording.trace()

    def _add(self, source: Source, window: _Window, *, part: str) -> None:
        for name, energy_j in zip(self._names, window.energy_j, strict=True):
            column = self.recording.column(
                f"{source.device}/{name}",
                Channel.ENERGY_COUNTER_J,
                _SCOPES[name.rstrip("0123456789")],
                part=part,
            )
            column.add(window.start_ns, 0.0)
            column.add(window.stop_ns, energy_j)

    def _tell_inner(self, inner: int, total: int) -> None:
        self.recording.tell(
            Finding(
                code="windows-overlap",
                severity=Severity.NOTE,
                message=(
                    f"{inner:,} of {plural(total, 'measurement window')} "
                    f"{agree(inner, 'lies', 'lie')} over others that began before; they are kept as parts "
                    "and not added to those"
                ),
                where=self._where,
                count=inner,
            )
        )


FORMATS: Final = (Format(name="zeus-csv", is_it=is_zeus_csv, decode=decode_zeus_csv),)
