"""What `rocm-smi` prints: CSV tables, JSON, and its console tables, one sweep after the other.

It prints no times. Columns are known by name in every spelling of its versions. Energy is taken from its
column in microjoules where there is one; its bare counter counts ticks.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Scope, Trace
from flopwitness.measure.sources.cells import split_cells
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.json_documents import read_documents
from flopwitness.measure.sources.recording import MOST_SERIES, Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.sweeps import Sweeps
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, is_missing, parse_number
from flopwitness.measure.wording import agree, plural

__all__ = ["FORMATS", "TICK_UJ", "decode_rocm_smi", "is_rocm_smi"]

TICK_UJ: Final = 15.3
"""What one tick of `Energy counter` is [uJ].

Source:
    ROCm/amdsmi issue 38: 65,628 ticks stand beside 1,004,108.41 uJ; the same in `rsmi_dev_energy_count_get`'s
    counter resolution.
"""

_HEAD_BYTES: Final = 64 << 10
_MICRO: Final = 1e-6
_SMOOTHED_S: Final = (
    1.0  # `Average Graphics Package Power` is smoothed by firmware, over how long is not said
)
_LONGEST_TEXT: Final = 100
_EXPECTED: Final = "rocm-smi's output: a table that begins with `device,`, its JSON, or its console tables"
_TICKS: Final = "energy counter"
_MICROJOULES: Final = "accumulated energy (uj)"
_SOCKET: Final = "power, socket"  # ours: the console's column of power, named by the row below its header
_PROOF: Final = (
    b"Graphics Package Power",
    b"GPU use (%)",
    b"Energy counter",
    b"Temperature (Sensor",
    b"VRAM Total",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    channel: Channel
    factor: float = 1.0
    part: str = ""
    averaged_s: float = 0.0


_AVERAGE: Final = _Quantity(channel=Channel.POWER_AVERAGE_W, averaged_s=_SMOOTHED_S)
_CURRENT: Final = _Quantity(channel=Channel.POWER_W)
_BUSY: Final = _Quantity(channel=Channel.UTILISATION_PCT)
_MEMORY_BUSY: Final = _Quantity(channel=Channel.MEMORY_UTILISATION_PCT)
_CLOCK: Final = _Quantity(channel=Channel.CLOCK_HZ, factor=1e6)
_MEMORY_CLOCK: Final = _Quantity(channel=Channel.MEMORY_CLOCK_HZ, factor=1e6)
_LIMIT: Final = _Quantity(channel=Channel.POWER_LIMIT_W)
_QUANTITIES: Final[Mapping[str, _Quantity]] = {
    "average graphics package power (w)": _AVERAGE,
    "average graphics package power(w)": _AVERAGE,
    "avgpwr": _AVERAGE,
    "current socket graphics package power (w)": _CURRENT,
    "current graphics package power (w)": _CURRENT,
    _SOCKET: _CURRENT,
    "max graphics package power (w)": _LIMIT,
    "pwrcap": _LIMIT,
    "gpu use (%)": _BUSY,
    "gpu%": _BUSY,
    "gpu memory use (%)": _MEMORY_BUSY,
    "gpu memory read/write activity (%)": _MEMORY_BUSY,
    _MICROJOULES: _Quantity(channel=Channel.ENERGY_COUNTER_J, factor=_MICRO),
    _TICKS: _Quantity(channel=Channel.ENERGY_COUNTER_J, factor=TICK_UJ * _MICRO),
    "sclk clock speed:": _CLOCK,
    "sclk": _CLOCK,
    "mclk clock speed:": _MEMORY_CLOCK,
    "mclk": _MEMORY_CLOCK,
    "vram total used memory (b)": _Quantity(channel=Channel.MEMORY_USED_BYTE),
    **{
        f"temperature (sensor {sensor}) (c)": _Quantity(channel=Channel.TEMPERATURE_C, part=sensor)
        for sensor in ("edge", "junction", "memory")
    },
}
_CHIP_NAMES: Final = ("card series", "device name")
_CARD: Final = re.compile(r"(?:card|gpu)?([0-9]{1,4})")
_JSON: Final = re.compile(rb'"card[0-9]{1,4}"\s*:\s*\{')
_CONSOLE_LINE: Final = re.compile(rb"GPU\[([0-9]{1,4})\][ \t]*: ([^\n]*)")
_CONCISE: Final = re.compile(rb"(?:GPU|Device) +\S")
_CHATTER: Final = re.compile(
    rb"\s|$|=|#|[-*]{3}|WARNING|ERROR|INFO|DEBUG|ROCm|Exception caught|name, *value|system,|\"[^\"]*\", *\""
)
_DRIVER: Final = re.compile(rb'(?:"Driver version", *"|system,)([^",]{1,60})"?')
_NUMBER: Final = re.compile(rb"\(?([-+]?[0-9][0-9.eE+-]*) ?(?:W|Mhz|MHz|%|c|C|\xc2\xb0C)?\)?")
_GAP: Final = re.compile(rb" {2,}")


def is_rocm_smi(head: bytes, name: str) -> bool:
    """Whether a line of the beginning is one of the tool's headers, or its JSON."""
    del name
    text = decode_head(head[:_HEAD_BYTES])
    if b"ROCm System Management Interface" in text or _is_json(text):
        return True
    tables = (_names(line) for line in text.split(b"\n")[:200] if line[:7].lower() == b"device,")
    return any(bool(_known(names)) and "timestamp" not in names for names in tables)


def _is_json(text: bytes) -> bool:
    return _JSON.search(text) is not None and any(proof in text for proof in _PROOF)


def decode_rocm_smi(source: Source) -> Trace:
    """The readings of all sweeps.

    Raises:
        DecodeError: No reading in it.
    """
    reader = _Reader(source)
    if _is_json(decode_head(source.peek(_HEAD_BYTES)[:_HEAD_BYTES])):
        for document in read_documents(source, chatter=(b"WARNING", b"ERROR")):
            reader.read_document(document.line, document.text, document.value)
    else:
        for batch in source.lines():
            for number, line in batch:
                reader.read_line(number, line)
            reader.recording.check_size()
    return reader.finish()


def _names(line: bytes) -> list[str]:
    return [cell.strip().decode("utf-8", "backslashreplace").lower() for cell in split_cells(line)]


def _known(names: Iterable[str]) -> list[str]:
    return [name for name in names if name in _QUANTITIES]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    """Where the cells of one card's rows go.

    Attributes:
        device: The card's name.
        chip: The place of the cell with the chip's name; None where there is none.
        readings: For each reading the place of its cell, its unit, and its column.
        keys: What a sweep holds once.
    """

    device: str
    chip: int | None
    readings: tuple[tuple[int, float, Column], ...]
    keys: frozenset[Hashable]


class _Reader:
    """Reads the three forms into one recording."""

    def __init__(self, source: Source) -> None:
        self.recording = Recording(source, times=Times.COUNTED)
        self._source = source
        self._sweeps = Sweeps()
        self._table: tuple[str, ...] = ()
        self._concise: tuple[str, ...] = ()
        self._first_line = b""
        self._driver = ""
        self._cards: set[str] = set()
        self._chips: set[tuple[str, bytes]] = set()
        self._lanes: dict[tuple[str, tuple[str, ...]], _Lane] = {}

    def read_line(self, number: int, line: bytes) -> None:
        self._first_line = self._first_line or line.strip()
        if (console := _CONSOLE_LINE.match(line)) is not None:
            self._read_console(number, console)
        elif line[:7].lower() == b"device,":
            self._table = tuple(_names(line))
        elif _CONCISE.match(line) and b"  " in line:
            self._concise = _concise_names(line)
        elif self._concise and (b"(Avg)" in line or b"(Socket)" in line):
            self._name_power(b"(Avg)" in line)
        elif self._concise and line[:1].isdigit():
            self._read_concise(number, line)
        elif _CHATTER.match(line):
            self._read_chatter(line)
        else:
            self._read_row(number, line)

    def _read_chatter(self, line: bytes) -> None:
        if line.startswith(b"="):
            self._concise = self._concise if set(line.strip()) == {ord("=")} else ()
        driver = _DRIVER.match(line)
        if driver is not None and driver[1] != b"Driver version":
            self._driver = driver[1].decode("utf-8", "backslashreplace")

    def _read_row(self, number: int, line: bytes) -> None:
        cells = split_cells(line)
        card = _CARD.fullmatch(cells[0].strip().decode("utf-8", "backslashreplace")) if self._table else None
        if card is None or len(cells) != len(self._table):
            expected = f"a card and {plural(len(self._table) - 1, 'cell')}" if self._table else _EXPECTED
            self.recording.skip(number, expected=expected, found=line)
            return
        self._take(number, card[1], self._table, cells)

    def _read_console(self, number: int, match: "re.Match[bytes]") -> None:
        """A line such as `GPU[0] : GPU use (%): 42`; lines of other facts are passed over."""
        name, colon, cell = match[2].rpartition(b": ")
        told = name.strip().decode("utf-8", "backslashreplace").lower()
        if colon and (told in _QUANTITIES or told in _CHIP_NAMES):
            self._take(number, match[1].decode("ascii"), (told,), (cell,))

    def _name_power(self, is_average: bool) -> None:  # noqa: FBT001 (one of two words)
        name = "avgpwr" if is_average else _SOCKET
        self._concise = tuple(name if known == "power" else known for known in self._concise)

    def _read_concise(self, number: int, line: bytes) -> None:
        cells = _split_concise(line)
        if len(cells) != len(self._concise) or not cells[0].isdigit() or len(cells[0]) > 4:  # noqa: PLR2004
            self.recording.skip(number, expected=plural(len(self._concise), "cell"), found=line)
            return
        self._take(number, cells[0].decode("ascii"), self._concise, cells)

    def read_document(self, number: int, text: bytes, value: object) -> None:
        """One JSON document: a sweep over all cards."""
        self._first_line = self._first_line or text[:_LONGEST_TEXT]
        if not isinstance(value, dict):
            self.recording.skip(number, expected="one JSON object of cards", found=text[:_LONGEST_TEXT])
            return
        for name, facts in value.items():
            card = _CARD.fullmatch(name)
            if card is not None and isinstance(facts, dict):
                told = {str(key).lower(): _as_bytes(fact) for key, fact in facts.items()}
                self._take(number, card[1], tuple(told), tuple(told.values()))
            elif name == "system" and isinstance(facts, dict):
                self._driver = _as_bytes(facts.get("Driver version")).decode()[:_LONGEST_TEXT]
        self.recording.check_size()

    def _take(self, number: int, card: str, names: tuple[str, ...], cells: Sequence[bytes]) -> None:
        """The readings of one card in one sweep."""
        lane = self._lanes.get((card, names))
        if lane is None:
            if len(self._lanes) >= MOST_SERIES:
                self._lanes.clear()
            lane = self._lanes[card, names] = self._open(card, names)
        if lane.chip is not None and (lane.device, cells[lane.chip]) not in self._chips:
            self._describe(lane.device, cells[lane.chip])
        if not lane.readings:
            return
        sweep = self._sweeps.place(lane.keys)
        for place, factor, column in lane.readings:
            column.add(sweep, self._parse(number, cells[place]) * factor)

    def _open(self, card: str, names: tuple[str, ...]) -> _Lane:
        """Where the readings of a card go from a table with these columns."""
        device = f"{self._source.device}/card{int(card)}"
        known = {name: place for place, name in enumerate(names) if name in _QUANTITIES}
        if _MICROJOULES in known:
            known.pop(_TICKS, None)
        self._describe(device, b"")
        readings = []
        for name, place in known.items():
            quantity = _QUANTITIES[name]
            column = self.recording.column(
                device, quantity.channel, Scope.GPU, part=quantity.part, averaged_s=quantity.averaged_s
            )
            readings.append((place, quantity.factor, column))
        return _Lane(
            device=device,
            chip=next((names.index(name) for name in _CHIP_NAMES if name in names), None),
            readings=tuple(readings),
            keys=frozenset((device, _QUANTITIES[name]) for name in known),
        )

    def _describe(self, device: str, chip: bytes) -> None:
        if len(self._chips) >= MOST_SERIES:
            self._chips.clear()
        self._chips.add((device, chip))
        self._cards.add(device)
        text = b"" if is_missing(chip) else chip.strip()[:_LONGEST_TEXT]
        self.recording.describe(Device(name=device, chip_name=text.decode("utf-8", "backslashreplace")))

    def _parse(self, number: int, cell: bytes) -> float:
        text = cell.strip()
        match = _NUMBER.fullmatch(text)
        try:
            if match is None and text.lower().startswith(b"n/a"):  # `N/A (Secondary die)`
                return parse_number(b"n/a")
            return parse_number(text if match is None else match[1])
        except Unreadable:
            self.recording.skip(number, expected="a number, or N/A", found=cell)
            return parse_number(b"n/a")

    def finish(self) -> Trace:
        if not self.recording.n_readings:
            raise DecodeError(
                "no rocm-smi reading",
                where=f"{self._source.where}:1",
                expected=_EXPECTED,
                found=excerpt(self._first_line) or "nothing",
            )
        for device in sorted(self._cards):
            self.recording.describe(Device(name=device, driver=self._driver))
        return _count_once(self.recording.trace(), self._source.where)


def _as_bytes(fact: object) -> bytes:
    return b"" if fact is None else str(fact).encode("utf-8", "backslashreplace")


def _concise_names(line: bytes) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "backslashreplace").strip().lower() for name in _split_concise(line))


def _split_concise(line: bytes) -> list[bytes]:
    """The cells of a console row: two spaces part them, unless a comma says that the cell goes on."""
    cells: list[bytes] = []
    for cell in _GAP.split(line.strip()):
        if cells and cells[-1].endswith(b","):
            cells[-1] += b" " + cell
        else:
            cells.append(cell)
    return cells


def _count_once(trace: Trace, where: str) -> Trace:
    """The trace with a counter of energy that several devices repeat kept for the first of them alone.

    Where a board is partitioned, each partition shows the counter of the board.
    """
    first: dict[bytes, str] = {}
    repeats: dict[str, str] = {}
    for item in trace.series:
        if item.channel is Channel.ENERGY_COUNTER_J and (item.value > 0).any():
            owner = first.setdefault(item.utc_ns.tobytes() + item.value.tobytes(), item.device)
            if owner != item.device:
                repeats[item.device] = owner
    if not repeats:
        return trace
    shared = {*repeats, *repeats.values()}
    return replace(
        trace,
        series=tuple(
            item
            for item in trace.series
            if item.channel is not Channel.ENERGY_COUNTER_J or item.device not in repeats
        ),
        devices=tuple(
            replace(device, is_shared=device.is_shared or device.name in shared) for device in trace.devices
        ),
        findings=(*trace.findings, _tell_repeated(repeats, where)),
    )


def _tell_repeated(repeats: Mapping[str, str], where: str) -> Finding:
    device, owner = next(iter(repeats.items()))
    return Finding(
        code="counter-repeated",
        severity=Severity.WARNING,
        message=(
            f"{plural(len(repeats), 'device')}, {device} for example, "
            f"{agree(len(repeats), 'shows', 'show')} the same counter of energy as {owner}: a board's, "
            "repeated for each of its partitions; it is kept once"
        ),
        where=where,
        found=", ".join(list(repeats)[:8]),
        count=len(repeats),
    )


FORMATS: Final = (Format(name="rocm-smi", is_it=is_rocm_smi, decode=decode_rocm_smi),)
