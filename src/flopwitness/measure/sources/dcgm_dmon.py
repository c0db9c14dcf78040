"""The table of `dcgmi dmon`: one row an entity and sweep, one column a field, and no times.

Entities are whole GPUs, and the instances (`GPU-I`) and compute instances (`GPU-CI`) of partitioned ones,
which follow the GPU that they are cut from. The header comes again every few rows. An entity that stands
again begins the next sweep; sweeps are taken a second apart, the tool's own period, unless somebody says.

Source:
    NVIDIA DCGM, dcgmi/DeviceMonitor.cpp, both layouts; DCGM User Guide, "Profiling Metrics".
"""

import re
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.lines import LineBatch
from flopwitness.measure.sources.metric_names import DMON_NAMES
from flopwitness.measure.sources.metric_readings import MetricReadings, Samples
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS"]

_LOOKED_AT_BYTES: Final = 64 << 10
_MOST_ENTITIES: Final = 10_000
_MOST_FIELDS: Final = 2_000
_HEADER: Final = re.compile(rb"[ \t]*#[ \t]?Entity[ \t]+([^ \t].*)")
_ROW: Final = re.compile(rb"[ \t]*((?:GPU|GPU-I|GPU-CI|vGPU|Switch|CPU|CPU Core|Link) [0-9]{1,9})(?:[ \t]|$)")
_UNITS: Final = re.compile(rb"[ \t]*I[dD](?:[ \t].*)?")
# A shell's prompt with the command, and what the tool says when it stops.
_CHATTER: Final = re.compile(rb"(?:.*[$#%>])?[ \t]*dcgmi[ \t]+dmon\b.*|[ \t]*(?:dmon was stopped|Error)\b.*")
_OTHERS: Final = (b"vGPU", b"Switch", b"CPU", b"CPU Core", b"Link")


class _Table:
    """What has been read so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recording = Recording(source, times=Times.COUNTED)
        self._readings = MetricReadings(source, self._recording)
        self._fields: tuple[str, ...] = ()
        self._columns: dict[bytes, list[Samples | None]] = {}  # of the present header, by entity
        self._seen: set[bytes] = set()
        self._sweep = 0
        self._gpu = ""

    def take(self, batch: LineBatch) -> None:
        for number, line in batch:
            row = _ROW.match(line)
            if row is not None and self._fields:
                self._take_row(number, line, row[1])
            elif not self._take_other(line):
                self._recording.skip(
                    number, expected="a row such as `GPU 0  71.2` below its header", found=line
                )
        self._readings.check_size()

    def trace(self) -> Trace:
        self._readings.settle()
        return self._recording.trace()

    def _take_other(self, line: bytes) -> bool:
        """Whether a line is a header, its units, blank, or what the tool says besides."""
        header = _HEADER.fullmatch(line)
        if header is not None:
            fields = tuple(name.decode("utf-8", "replace") for name in header[1].split()[:_MOST_FIELDS])
            if fields != self._fields:
                self._fields, self._columns = fields, {}
            return True
        return not line.strip() or bool(_UNITS.fullmatch(line) or _CHATTER.fullmatch(line))

    def _take_row(self, number: int, line: bytes, entity: bytes) -> None:
        kind, _, index = entity.rpartition(b" ")
        if kind in _OTHERS:
            return
        if kind == b"GPU":
            self._gpu = index.decode()
        if entity in self._seen:
            self._seen.clear()
            self._sweep += 1
        self._seen.add(entity)
        cells = line.split()[len(entity.split()) :]
        if len(cells) != len(self._fields):
            self._recording.skip(number, expected=f"{len(self._fields)} values after the entity", found=line)
            return
        columns = self._columns.get(entity) or self._begin_entity(entity, kind, index.decode())
        for samples, cell in zip(columns, cells, strict=True):
            if samples is None:
                continue
            try:
                value = parse_number(cell)
            except Unreadable:
                self._recording.skip(number, expected="a number or N/A", found=cell)
                continue
            samples.times.append(self._sweep)
            samples.values.append(value)

    def _begin_entity(self, entity: bytes, kind: bytes, index: str) -> list[Samples | None]:
        if len(self._columns) >= _MOST_ENTITIES:
            raise DecodeError(
                "too many entities", where=self._source.where, expected=f"at most {_MOST_ENTITIES:,}"
            )
        labels = {"gpu": self._gpu}
        if kind != b"GPU":
            labels["GPU_I_ID"] = index if kind == b"GPU-I" else f"ci-{index}"
        names = [DMON_NAMES.get(field, field) for field in self._fields]
        columns = self._columns[entity] = [self._readings.find(name, labels) for name in names]
        return columns


def _is_dmon(head: bytes, name: str) -> bool:
    """Whether a file begins with the header of the table and has a row."""
    del name
    lines = decode_head(head[:_LOOKED_AT_BYTES]).replace(b"\r", b"").split(b"\n")
    return any(map(_HEADER.fullmatch, lines)) and any(map(_ROW.match, lines))


def _decode_dmon(source: Source, /) -> Trace:
    """The readings of every entity, numbered by sweep.

    Raises:
        DecodeError: No field that tells of power, energy or activity has a row.
    """
    table = _Table(source)
    for batch in source.lines():
        table.take(batch)
    return table.trace()


FORMATS: Final = (Format(name="dcgmi-dmon", is_it=_is_dmon, decode=_decode_dmon),)
