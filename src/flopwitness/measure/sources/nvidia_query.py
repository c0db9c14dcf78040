"""`nvidia-smi -q`: one snapshot of every GPU as indented text, or many of them one behind the other.

A line belongs to the headings that stand above it with less indentation; what a heading is called changed
from driver to driver. A snapshot's readings carry its one time, to the second.
"""

import re
from typing import Final

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.nvidia_gpus import GpuSnapshots
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_asctime
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS", "decode_nvidia_query", "is_nvidia_query"]

_TITLE: Final = b"=NVSMI LOG="
_TIME_EXPECTED: Final = "a time such as Wed May 14 09:00:00 2025"
_HEAD_BYTES: Final = 64 << 10
_LONGEST_LINE: Final = 1 << 10
_OTHER_KEYS: Final = frozenset({b"CUDA Version", b"Attached GPUs"})
_INDENT: Final = 4
_GPU: Final = re.compile(rb"GPU ([0-9A-Fa-f:.]{7,32})")
_POWER: Final = {
    "power draw": "power.draw",
    "average power draw": "power.draw.average",
    "instantaneous power draw": "power.draw.instant",
    "current power limit": "enforced.power.limit",
    "enforced power limit": "enforced.power.limit",
    "requested power limit": "power.limit",
    "power limit": "power.limit",
}
_FIELDS: Final[dict[tuple[str, ...], str]] = {
    ("product name",): "chip_name",
    ("gpu uuid",): "uuid",
    ("mig mode", "current"): "mig_mode",
    ("gpu virtualization mode", "virtualization mode"): "virtualization",
    ("performance state",): "pstate",
    ("fb memory usage", "used"): "memory.used",
    ("utilization", "gpu"): "utilization.gpu",
    ("utilization", "memory"): "utilization.memory",
    ("temperature", "gpu current temp"): "temperature.gpu",
    ("temperature", "gpu"): "temperature.gpu",
    ("temperature", "memory current temp"): "temperature.memory",
    ("clocks", "sm"): "clocks.current.sm",
    ("clocks", "graphics"): "clocks.current.graphics",
    ("clocks", "memory"): "clocks.current.memory",
    **{("power readings", name): field for name, field in _POWER.items()},
    **{("gpu power readings", name): field for name, field in _POWER.items()},
    **{("module power readings", name): f"module.{field}" for name, field in _POWER.items()},
    ("gpu memory power readings", "average power draw"): "memory.power.draw.average",
    ("gpu memory power readings", "instantaneous power draw"): "memory.power.draw.instant",
}


def is_nvidia_query(head: bytes, name: str) -> bool:
    """Whether the title of a snapshot stands near the beginning."""
    del name
    return any(
        line.strip().strip(b"=") == b"NVSMI LOG" and line.strip().startswith(b"====")
        for line in decode_head(head[:_HEAD_BYTES]).split(b"\n")
    )


def decode_nvidia_query(source: Source, /) -> Trace:
    """The readings of every GPU in the snapshots of a log.

    Raises:
        DecodeError: No reading is in the log.
    """
    return _Log(source).read()


class _Log:
    """What has been read of one log so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._snapshots = GpuSnapshots(source)
        self._time: int | None = None
        self._driver = b""
        self._bus_id: bytes | None = None
        self._fields: dict[str, bytes] = {}
        self._headings: list[str] = []

    def read(self) -> Trace:
        line, found = 0, b""
        for batch in self._source.lines():
            for line, text in batch:
                found = found or text.strip()[:100]
                self._take(line, text[:_LONGEST_LINE])
            self._snapshots.recording.check_size()
        self._finish_gpu(line)
        return self._snapshots.trace(found)

    def _take(self, line: int, text: bytes) -> None:
        stripped = text.strip()
        if not stripped:
            return
        level = (len(text) - len(text.lstrip(b" "))) // _INDENT
        key, colon, value = stripped.partition(b":")
        if level == 0:
            self._take_outermost(line, stripped, key.strip(), value.strip())
        elif self._bus_id is not None and level - 1 <= len(self._headings):
            self._headings = [*self._headings[: level - 1], key.strip().decode("utf-8", "replace").lower()]
            field = _FIELDS.get(tuple(self._headings)) if colon else None
            if field is not None:
                self._fields.setdefault(field, value.strip())

    def _take_outermost(self, line: int, text: bytes, key: bytes, value: bytes) -> None:
        gpu = _GPU.fullmatch(text)
        if gpu or _TITLE in text or key == b"Timestamp":
            self._finish_gpu(line)
        if gpu:
            self._bus_id = gpu[1]
        elif key == b"Timestamp":
            self._take_time(line, value)
        elif key == b"Driver Version":
            self._driver = value
        elif _TITLE not in text and key not in _OTHER_KEYS:
            self._snapshots.recording.skip(line, expected="a line of `nvidia-smi -q`", found=text)

    def _take_time(self, line: int, text: bytes) -> None:
        self._time = None
        try:
            self._time = parse_asctime(text)
        except Unreadable:
            self._snapshots.recording.skip(line, expected=_TIME_EXPECTED, found=text)

    def _finish_gpu(self, line: int) -> None:
        """Keep what was said of the GPU above this line."""
        if self._bus_id is not None:
            if self._time is not None:
                self._snapshots.add(line, self._time, self._fields, bus_id=self._bus_id, driver=self._driver)
            else:
                self._snapshots.recording.skip(line, expected=_TIME_EXPECTED, found=b"GPU " + self._bus_id)
        self._bus_id, self._fields, self._headings = None, {}, []


FORMATS: Final = (Format(name="nvidia-smi-query", is_it=is_nvidia_query, decode=decode_nvidia_query),)
