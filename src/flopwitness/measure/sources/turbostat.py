"""Power of a machine's processors as `turbostat` prints it, one row for all of them at each interval.

Each figure is a mean over the interval before it. The row of the whole machine is taken, or with a machine
of one CPU, which has no such row, that of each package. Cores and the processor's own graphics lie inside the
package's figure, so they are rails. With `--Joules` the columns are energies of each interval, which add up
to a counter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.clock_text import ClockStamp, parse_clock_number
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_turbostat"]

_COLUMNS: Final = {
    b"Pkg": (Scope.CPU, ""),
    b"Cor": (Scope.CPU_PART, "cores"),
    b"GFX": (Scope.CPU_PART, "igpu"),
    b"RAM": (Scope.DRAM, ""),
    b"Sys": (Scope.PLATFORM, ""),
}
_COLUMN: Final = re.compile(rb"(Pkg|Cor|GFX|RAM|Sys)(?:Watt|_W|_J)")
_NAME: Final = re.compile(rb"[A-Z][A-Za-z0-9_%.+-]{0,30}|(?:pk|cor|usec)")
_TOPOLOGY: Final = (b"Package", b"Node", b"Die", b"Core", b"CPU", b"pk", b"cor")
_TIME: Final = b"Time_Of_Day_Seconds"
_ELAPSED: Final = re.compile(rb"[0-9.]{1,30} sec")
_USUAL_STEP_S: Final = 5.0
_MOST_FIELDS: Final = 1_000


def decode_turbostat(source: Source) -> Trace:
    """The power, or with `--Joules` the energy, of all packages, memory and the platform.

    What stands above the first header is passed over: the tool tells about the processor there.

    Raises:
        DecodeError: No row with a power or an energy is in it.

    Source:
        Linux, tools/power/x86/turbostat/turbostat.8: the columns, and intervals of 5 s where nobody says.
    """
    reader = _Rows(source)
    for batch in source.lines():
        for number, line in batch:
            reader.take(line, number)
    return reader.trace()


@dataclass(slots=True)
class _Sum:
    """The energies of intervals so far; no sum where the last one was missing."""

    total_j: float | None
    stamp: ClockStamp | None
    number: int


class _Header:
    """The places of the columns."""

    def __init__(self, names: Sequence[bytes]) -> None:
        self.width = len(names)
        self.figures = [
            (i, found[1], name.endswith(b"_J"))
            for i, name in enumerate(names)
            if (found := _COLUMN.fullmatch(name))
        ]
        self.topology = next((i for i, name in enumerate(names) if name in _TOPOLOGY), None)
        self.least = 1 if self.topology is None else self.topology + 1
        self.package = names.index(b"Package") if b"Package" in names else None
        self.time = names.index(_TIME) if _TIME in names else None

    def package_of(self, fields: Sequence[bytes]) -> bytes:
        """The package that a row is of; one that has no other names none."""
        return fields[self.package] if self.package is not None and self.package < len(fields) else b"0"


class _Rows:
    """What the rows of one file have told so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recording = Recording(source, times=Times.COUNTED)
        self._recording.counted_period_s = _USUAL_STEP_S
        self._held = HeldReadings(source.where)
        self._header: _Header | None = None
        self._has_summary: bool | None = None  # of the interval; None until its first row
        self._number = -1  # of the interval
        self._sums: dict[Figure, _Sum] = {}

    def take(self, line: bytes, number: int) -> None:
        fields = line.replace(b",", b" ").split(None, _MOST_FIELDS)
        if any(map(_COLUMN.fullmatch, fields)):
            self._header = _Header(fields)
            self._has_summary = None
            return
        header = self._header
        if header is None or not fields or _ELAPSED.fullmatch(line.strip()):
            return
        if not header.least <= len(fields) <= header.width or not _is_row(fields):
            self._recording.skip(number, expected=f"a row of up to {header.width} figures", found=line)
            return
        self._take_row(fields, header, number)

    def _take_row(self, fields: Sequence[bytes], header: _Header, number: int) -> None:
        is_summary = header.topology is None or fields[header.topology] == b"-"
        if is_summary or self._has_summary is None:
            self._number += 1
            self._has_summary = is_summary
        if not is_summary and self._has_summary:
            return  # a CPU's row; its package's figures are in the sum of all
        package = b"" if is_summary else header.package_of(fields)
        stamp = None
        if header.time is not None and header.time < len(fields):
            stamp = parse_clock_number(fields[header.time], unit="s")
        for index, name, is_energy in header.figures:
            if index < len(fields):
                self._take_figure(fields[index], name, package, stamp, number, is_energy=is_energy)

    def _take_figure(
        self,
        text: bytes,
        name: bytes,
        package: bytes,
        stamp: ClockStamp | None,
        line: int,
        *,
        is_energy: bool,
    ) -> None:
        try:
            value = parse_number(text)
        except Unreadable:
            expected = f"a number as {name.decode('ascii')}"
            self._recording.skip(line, expected=expected, found=text)
            return
        scope, rail = _COLUMNS[name]
        socket = f"package-{package.decode('ascii', 'replace')[:20]}" if package else ""
        part = "/".join(word for word in (socket, rail) if word)
        channel = Channel.ENERGY_COUNTER_J if is_energy else Channel.POWER_W
        figure = Figure(self._source.device, channel, scope, part)
        if is_energy:
            self._add_energy(figure, value, stamp, line)
        else:
            self._held.add(figure, value, stamp=stamp, line=line, number=self._number, averaged_s=None)

    def _add_energy(self, figure: Figure, energy_j: float, stamp: ClockStamp | None, line: int) -> None:
        """One interval more; after a missing one the counter begins again where that ended."""
        known = self._sums.get(figure) or _Sum(None, None, self._number)
        is_known = energy_j == energy_j  # noqa: PLR0124 (not NaN)
        if is_known and known.total_j is None and (figure in self._sums or stamp is None):
            self._held.add(figure, 0.0, stamp=known.stamp, line=line, number=known.number)
        total_j = (known.total_j or 0.0) + energy_j if is_known else None
        end = self._number + 1
        value = energy_j if total_j is None else total_j
        self._held.add(figure, value, stamp=stamp, line=line, number=end)
        self._sums[figure] = _Sum(total_j, stamp, end)

    def trace(self) -> Trace:
        if not self._held.count:
            raise DecodeError(
                "no power of `turbostat`",
                where=f"{self._source.where}:1",
                expected="a row below a header with `PkgWatt` or its like",
                found="no header" if self._header is None else "a header without a row",
            )
        self._held.fill(self._recording)
        return self._recording.trace()


def _is_row(fields: Sequence[bytes]) -> bool:
    """Whether the line begins as a row does, and not as the tool's talk."""
    return fields[0] == b"-" or fields[0].replace(b".", b"").isdigit()


def _is_turbostat(head: bytes, name: str) -> bool:
    """By a line of names of columns, one of which is a package's or the platform's."""
    del name
    begin = decode_head(head[: 1 << 18])
    if b"Pkg" not in begin and b"Sys" not in begin:
        return False
    return any(_is_header(line) for line in begin.split(b"\n") if b"Pkg" in line or b"Sys" in line)


def _is_header(line: bytes) -> bool:
    names = line.replace(b",", b" ").split()
    return any(map(_COLUMN.fullmatch, names)) and all(map(_NAME.fullmatch, names))


FORMATS: Final = (Format(name="turbostat", is_it=_is_turbostat, decode=decode_turbostat),)
