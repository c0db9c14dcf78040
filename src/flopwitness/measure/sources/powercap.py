"""Energy counters of the kernel's power capping framework (RAPL), as scripts write them down.

Three layouts: a table with the counter of each zone at the start and at the end; a table with a zone in each
row or in each column; and the files of `/sys/class/powercap` themselves, printed by `grep` or by
`powercap-info`, once or again and again. Counters begin again at 0 at a range that the kernel tells.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.clock_text import ClockStamp, parse_clock_number, parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.held_readings import HeldReadings
from flopwitness.measure.sources.powercap_zones import ZONE_ID, ZoneReadings
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_powercap"]

_EXPECTED: Final = "a table with `energy_uj`, or the files of /sys/class/powercap"
_DELIMITERS: Final = (b",", b";", b"\t")
_LOOKED_AT: Final = 50  # lines in front of the header
_MOST_COLUMNS: Final = 1_000
_LONGEST_HEADER: Final = 1 << 16
_FILE: Final = re.compile(
    rb"(?:\S*/)?((?:intel|amd)-rapl(?:-mmio)?(?::[0-9]{1,4}){1,3})/(name|energy_uj|max_energy_range_uj)[:=\s]\s*(\S+)"
)
_ZONE: Final = re.compile(rb"Zone ([0-9]{1,4}(?::[0-9]{1,4}){0,2})")
_CONTROL: Final = re.compile(rb"((?:intel|amd)-rapl(?:-mmio)?)")
_SETTING: Final = re.compile(rb"([a-z_]{1,30}): *(\S*)")
_OTHER_SETTINGS: Final = re.compile(
    rb"(?:enabled|power_limit_uw|time_window_us|max_power_uw|min_power_uw|max_power_range_uw|power_uw): *\S*"
)
_TIME_NAMES: Final = re.compile(
    r"(?:(?:unix|epoch|elapsed|wall|monotonic)[_ ])?(?:timestamp|time|datetime|date|ts|t|epoch|elapsed)"
    r"(?:[_ \[(]+(s|sec|seconds|ms|us|ns)[)\]]?)?"
)
_UNITS: Final = {"sec": "s", "seconds": "s"}
_ENERGY: Final = re.compile(r"(?:.*[^a-z])?uj[)\]]?")
_END: Final = re.compile(
    r"^(?:start|begin|before|end|after|final)[_ ]|[_ ](?:start|begin|before|end|after|final)$"
)
_AT_END: Final = re.compile(r"^(?:end|after|final)[_ ]|[_ ](?:end|after|final)$")
_RANGE: Final = re.compile(r"max(?:imum)?_(?:energy_)?range(?:_uj)?")
_KNOWN_NAME: Final = re.compile(r"package[-_][0-9]{1,4}(?:-die-[0-9]{1,4})?|uncore|core|dram|psys")


def decode_powercap(source: Source) -> Trace:
    """The counter of each zone, with its scope.

    Raises:
        DecodeError: No counter of a zone is in it.

    Source:
        Linux, Documentation/ABI/testing/sysfs-class-powercap; powercap-info(1).
    """
    recording = Recording(source, times=Times.COUNTED)
    zones = ZoneReadings(source, HeldReadings(source.where))
    layout: _Table | _Files | None = None
    first_line, date = b"", None
    for batch in source.lines():
        for number, line in batch:
            line = line.strip()  # noqa: PLW2901
            if not line:
                continue
            first_line = first_line or line
            if layout is None:
                date = parse_stamp(line) or date
                layout = _find_layout(line, zones, recording, date=date)
            if layout is not None:
                layout.take(line, number)
    if not zones.held.count:
        raise DecodeError(
            "no energy counter of the power capping framework",
            where=f"{source.where}:1",
            expected=_EXPECTED,
            found=excerpt(first_line) or "nothing",
        )
    return zones.trace(recording)


def _find_layout(
    line: bytes, zones: ZoneReadings, recording: Recording, *, date: ClockStamp | None
) -> "_Table | _Files | None":
    """How the file goes on, by a line that shows it; a date may stand above that."""
    if _FILE.fullmatch(line) or _ZONE.fullmatch(line) or _CONTROL.fullmatch(line):
        return _Files(zones, recording, date)
    header = _find_header(line)
    return None if header is None else _Table(header, zones, recording)


class _Files:
    """The files of zones, each on a line with its path, or under the heading of its zone."""

    def __init__(self, zones: ZoneReadings, recording: Recording, date: ClockStamp | None) -> None:
        self._zones = zones
        self._recording = recording
        self._control = "intel-rapl"
        self._zone = ""
        self._is_constraint = False
        self._date = date

    def take(self, line: bytes, number: int) -> None:
        if found := _FILE.fullmatch(line):
            self._take_file(found[1].decode("ascii"), found[2], found[3], number)
        elif found := _CONTROL.fullmatch(line):
            self._control, self._zone = found[1].decode("ascii"), ""
        elif found := _ZONE.fullmatch(line):
            self._zone, self._is_constraint = f"{self._control}:{found[1].decode('ascii')}", False
        elif line.startswith(b"Constraint "):
            self._is_constraint = True
        elif _OTHER_SETTINGS.fullmatch(line) or (self._is_constraint and line.startswith(b"name:")):
            return
        elif self._zone and (found := _SETTING.fullmatch(line)):
            self._take_file(self._zone, found[1], found[2], number)
        elif stamp := parse_stamp(line):
            self._date = stamp
        else:
            self._recording.skip(number, expected="a file of a zone", found=line)

    def _take_file(self, zone: str, name: bytes, value: bytes, number: int) -> None:
        if name == b"name":
            self._zones.name(zone, value.decode("utf-8", "replace"))
            return
        try:
            figure = parse_number(value)
        except Unreadable:
            self._recording.skip(number, expected="a number of microjoules", found=name + b" " + value)
            return
        if name == b"energy_uj":
            self._zones.add(zone, figure, stamp=self._date, line=number)
        elif name == b"max_energy_range_uj":
            self._zones.limit(zone, figure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """What the columns of a table hold, by their places in a row; None where there is no such column.

    Attributes:
        delimiter: What separates fields.
        names: The header's fields, by which one that comes again is known.
        time: The column of times.
        time_unit: `s`, `ms`, `us` or `ns` where the header says so.
        zone: The column of zones' identifiers.
        name: The column of zones' names.
        range: The column of counters' ranges.
        energies: The columns of counters: one for each zone, or one, or a start and an end.
        zones: The zone of each counter; "" where the row names it.
        is_pair: Whether the counters are a start and an end.
        known: The names of the zones that the header names.
    """

    delimiter: bytes
    names: tuple[str, ...]
    time: int | None
    time_unit: str
    zone: int | None
    name: int | None
    range: int | None
    energies: tuple[int, ...]
    zones: tuple[str, ...]
    is_pair: bool
    known: dict[str, str]


class _Table:
    """A table of counters."""

    def __init__(self, header: _Header, zones: ZoneReadings, recording: Recording) -> None:
        self._header = header
        self._zones = zones
        self._recording = recording
        for zone, name in header.known.items():
            zones.name(zone, name)

    def take(self, line: bytes, number: int) -> None:
        header = self._header
        fields = _split(line, header.delimiter)
        if tuple(fields) == header.names:
            return
        if len(fields) != len(header.names):
            self._recording.skip(number, expected=f"{len(header.names)} fields, as in the header", found=line)
            return
        stamp = None if header.time is None else _read_time(fields[header.time], header.time_unit)
        zone = self._name_zone(fields)
        if (header.time is not None and stamp is None) or (zone is None and "" in header.zones):
            self._recording.skip(number, expected="a time and a zone, as the header says", found=line)
            return
        for place, (index, own) in enumerate(zip(header.energies, header.zones, strict=True)):
            energy_uj = _microjoules(fields[index])
            if energy_uj is None:
                found = fields[index].encode("utf-8", "replace")
                self._recording.skip(number, expected="a number of microjoules", found=found)
            else:
                order = place if header.is_pair else None
                self._zones.add(own or zone or "", energy_uj, stamp=stamp, line=number, number=order)

    def _name_zone(self, fields: Sequence[str]) -> str | None:
        """The zone of a row, its name and its range kept; None where the row names none."""
        header = self._header
        name = fields[header.name] if header.name is not None else ""
        zone = (fields[header.zone] if header.zone is not None else "") or name
        if not zone:
            return None
        zone = zone.rpartition("/")[2]
        self._zones.name(zone, name or zone)
        if header.range is not None:
            range_uj = _microjoules(fields[header.range])
            self._zones.limit(zone, range_uj if range_uj is not None else 0.0)
        return zone


def _find_header(line: bytes) -> _Header | None:
    """The header that a line is; None where it is none of a table of zones' counters."""
    delimiter = next((mark for mark in _DELIMITERS if mark in line), None)
    if delimiter is None or len(line) > _LONGEST_HEADER:
        return None
    names = _split(line, delimiter)
    lowered = [name.lower() for name in names]
    energies = _find_energies(lowered)
    time = next((i for i, name in enumerate(lowered) if _TIME_NAMES.fullmatch(name)), None)
    unit = _TIME_NAMES.fullmatch(lowered[time]) if time is not None else None
    zone = next(
        (i for i, name in enumerate(lowered) if name in ("zone", "zone_id", "path", "domain_id")), None
    )
    name = next((i for i, name in enumerate(lowered) if name in ("name", "zone_name", "domain")), None)
    own = [_zone_of(lowered[i]) for i in energies]
    is_named = zone is not None or name is not None
    zones = tuple(":".join(words) for words in own)
    is_pair = zones == ("", "") and not any(zones)
    if not energies or (is_named == any(zones)) or (len(energies) > 1 + is_pair and is_named):
        return None
    return _Header(
        delimiter=delimiter,
        names=tuple(names),
        time=None if is_pair else time,
        time_unit=_UNITS.get(unit[1] or "", unit[1] or "") if unit is not None else "",
        zone=zone,
        name=name,
        range=next((i for i, name in enumerate(lowered) if _RANGE.fullmatch(name)), None),
        energies=tuple(energies),
        zones=zones,
        is_pair=is_pair,
        known={":".join(words[: i + 1]): word for words in own for i, word in enumerate(words)},
    )


def _find_energies(names: Sequence[str]) -> list[int]:
    """The places of counters; of a start and an end the start first."""
    bare = [_END.sub("", name) for name in names]
    places = [i for i, name in enumerate(bare) if _ENERGY.fullmatch(name) and not _RANGE.fullmatch(name)]
    return sorted(places, key=lambda place: _AT_END.search(names[place]) is not None)


def _zone_of(name: str) -> tuple[str, ...]:
    """The zone in a column's name, its identifier or its names from the outermost in; empty without any."""
    identifier = ZONE_ID.search(name)
    names = [word.replace("_", "-") for word in _KNOWN_NAME.findall(name)]
    if identifier is not None:
        return (identifier[0],)
    return tuple(names[:2])


def _split(line: bytes, delimiter: bytes) -> list[str]:
    text = line.decode("utf-8", "replace")
    return [
        field.strip().strip('"').strip() for field in text.split(delimiter.decode("ascii"), _MOST_COLUMNS)
    ]


def _read_time(text: str, unit: str) -> ClockStamp | None:
    data = text.encode("utf-8", "replace")
    return parse_clock_number(data, unit=unit) or parse_stamp(data)


def _microjoules(text: str) -> float | None:
    try:
        return parse_number(text.encode("utf-8", "replace"))
    except Unreadable:
        return None


def _is_powercap(head: bytes, name: str) -> bool:
    del name
    lines = decode_head(head[: 1 << 16]).split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    return any(_is_sign(line.strip()) for line in lines)


def _is_sign(line: bytes) -> bool:
    found = _FILE.fullmatch(line)
    is_file = found is not None and found[2] == b"energy_uj"
    return (
        is_file
        or line.startswith((b"max_energy_range_uj: ", b"energy_uj: "))
        or _find_header(line) is not None
    )


FORMATS: Final = (Format(name="powercap", is_it=_is_powercap, decode=decode_powercap),)
