"""`nvidia-smi -q -x`: one XML document a snapshot, or many of them one behind the other.

XML is read as it comes, in bounded memory. A document type may be named, as the tool does; one that defines
anything is refused, because entities that grow when they are read are an attack and nothing else here. A
document that is cut off keeps the GPUs that end before the cut.
"""

import re
from typing import Final
from xml.parsers import expat

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.nvidia_gpus import GpuSnapshots
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_asctime
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS", "decode_nvidia_xml", "is_nvidia_xml"]

_ROOT: Final = "nvidia_smi_log"
_START, _END = f"<{_ROOT}".encode(), f"</{_ROOT}>".encode()
_DECLARATION, _DOCTYPE = b"<?xml", f"<!DOCTYPE {_ROOT}".encode()
_EDGE: Final = re.compile(rb"(?<=</nvidia_smi_log>)|(?=<\?xml)")  # behind each document and in front of it
_TIME_EXPECTED: Final = "a time such as Wed May 14 09:00:00 2025"
_HEAD_BYTES: Final = 64 << 10
_DEEPEST: Final = 32
_LONGEST_TEXT: Final = 200
_LONGEST_TAG_BYTES: Final = 64 << 10  # a tag that never ends must not fill the memory
_POWER: Final = {
    "power_draw": "power.draw",
    "average_power_draw": "power.draw.average",
    "instant_power_draw": "power.draw.instant",
    "current_power_limit": "enforced.power.limit",
    "enforced_power_limit": "enforced.power.limit",
    "requested_power_limit": "power.limit",
    "power_limit": "power.limit",
}
_FIELDS: Final = {
    "product_name": "chip_name",
    "uuid": "uuid",
    "mig_mode/current_mig": "mig_mode",
    "gpu_virtualization_mode/virtualization_mode": "virtualization",
    "performance_state": "pstate",
    "fb_memory_usage/used": "memory.used",
    "utilization/gpu_util": "utilization.gpu",
    "utilization/memory_util": "utilization.memory",
    "temperature/gpu_temp": "temperature.gpu",
    "temperature/memory_temp": "temperature.memory",
    "clocks/sm_clock": "clocks.current.sm",
    "clocks/graphics_clock": "clocks.current.graphics",
    "clocks/mem_clock": "clocks.current.memory",
    **{f"power_readings/{name}": field for name, field in _POWER.items()},
    **{f"gpu_power_readings/{name}": field for name, field in _POWER.items()},
    **{f"module_power_readings/{name}": f"module.{field}" for name, field in _POWER.items()},
    "gpu_memory_power_readings/average_power_draw": "memory.power.draw.average",
    "gpu_memory_power_readings/instant_power_draw": "memory.power.draw.instant",
}


def is_nvidia_xml(head: bytes, name: str) -> bool:
    """Whether a document of the tool begins near the beginning."""
    del name
    text = decode_head(head[:_HEAD_BYTES])
    return _START + b">" in text and (text.lstrip().startswith(b"<") or _DECLARATION in text)


def decode_nvidia_xml(source: Source, /) -> Trace:
    """The readings of every GPU in the documents of a log.

    Raises:
        DecodeError: No reading is in the log, or a document defines a type of its own.
    """
    return _Log(source).read()


class _Log:
    """What has been read of one log so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._snapshots = GpuSnapshots(source)
        self._skip = self._snapshots.recording.skip
        self._document: _Document | None = None
        self._is_given_up = False

    def read(self) -> Trace:
        found = b""
        for batch in self._source.lines():
            line = batch.first
            for piece in _EDGE.split(b"\n".join(batch.lines) + b"\n"):
                found = found or piece.lstrip()[:_LONGEST_TEXT].partition(b"\n")[0].rstrip()
                self._take(line, piece)
                line += piece.count(b"\n")
            self._snapshots.recording.check_size()
        if self._document is not None:
            self._give_up(self._document)
        return self._snapshots.trace(found)

    def _take(self, line: int, piece: bytes) -> None:
        """A piece that begins where a document does, or ends where one does, or neither."""
        if piece.startswith(_DECLARATION):
            if self._document is not None:  # cut off: another one begins
                self._give_up(self._document)
            self._is_given_up = False
        if self._is_given_up:
            self._is_given_up = not piece.endswith(_END)
            return
        if self._document is None:
            before, piece = _cut_at_start(piece)
            for number, text in enumerate(before.split(b"\n"), line):
                if text.strip():
                    self._skip(number, expected="an XML document", found=text.strip())
            if not piece:
                return
            self._document = _Document(line + before.count(b"\n"), self._source.where, self._snapshots)
        self._feed(self._document, piece)

    def _feed(self, document: "_Document", piece: bytes) -> None:
        try:
            is_done = document.feed(piece)
        except (expat.ExpatError, ValueError):
            self._give_up(document)
            self._is_given_up = not piece.endswith(_END)
        else:
            if is_done:
                self._document = None

    def _give_up(self, document: "_Document") -> None:
        """Count a document that cannot be read to its end."""
        self._skip(document.first_line, expected=f"a document that ends, {_END.decode()}", found=_DECLARATION)
        self._document = None


def _cut_at_start(piece: bytes) -> tuple[bytes, bytes]:
    """What a shell wrote in front of a document, and the document."""
    starts = [start for start in map(piece.find, (_DECLARATION, _DOCTYPE, _START)) if start >= 0]
    start = min(starts, default=len(piece))
    return piece[:start], piece[start:]


class _Document:
    """One document as it is read."""

    def __init__(self, first_line: int, where: str, snapshots: GpuSnapshots) -> None:
        self.first_line = first_line
        self._where = where
        self._snapshots = snapshots
        self._path: list[str] = []
        self._text = b""
        self._n_fed = 0
        self._time: int | None = None
        self._driver = b""
        self._bus_id = b""
        self._fields: dict[str, bytes] = {}
        self._is_done = False
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._take_text
        self._parser.StartDoctypeDeclHandler = self._check_doctype
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, piece: bytes) -> bool:
        """Read on; whether the document ends here.

        Raises:
            DecodeError: It defines a type of its own.
            ExpatError: It is no XML.
        """
        is_last = piece.endswith(_END)
        self._n_fed += len(piece)
        self._parser.Parse(piece, is_last)
        if self._n_fed - self._parser.CurrentByteIndex > _LONGEST_TAG_BYTES and not is_last:
            raise expat.ExpatError("a tag without an end")
        return is_last or self._is_done

    @property
    def _line(self) -> int:
        return self.first_line + self._parser.CurrentLineNumber - 1

    def _check_doctype(self, _name: str, _system: str | None, _public: str | None, has_internal: int) -> None:
        if has_internal:
            self._refuse()

    def _refuse(self, *_: object) -> None:
        raise DecodeError(
            "a document type that defines something",
            where=f"{self._where}:{self._line}",
            expected="one that is only named",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = b""
        if len(self._path) > _DEEPEST or self._path[0] != _ROOT:
            raise expat.ExpatError("not a document of nvidia-smi")
        if self._path[1:] == ["gpu"]:
            self._bus_id, self._fields = attributes.get("id", "").encode()[:_LONGEST_TEXT], {}

    def _take_text(self, text: str) -> None:
        if len(self._text) < _LONGEST_TEXT:
            self._text += text[:_LONGEST_TEXT].encode("utf-8", "replace")

    def _end(self, _name: str) -> None:
        text, self._text = self._text.strip(), b""
        match self._path[1:]:
            case ["timestamp"]:
                self._take_time(text)
            case ["driver_version"]:
                self._driver = text
            case ["gpu"]:
                self._finish_gpu()
            case ["gpu", *inner]:
                field = _FIELDS.get("/".join(inner))
                if field is not None:
                    self._fields.setdefault(field, text)
            case []:
                self._is_done = True
        self._path.pop()

    def _take_time(self, text: bytes) -> None:
        try:
            self._time = parse_asctime(text)
        except Unreadable:
            self._snapshots.recording.skip(self._line, expected=_TIME_EXPECTED, found=text)

    def _finish_gpu(self) -> None:
        if self._time is None:
            found = b"gpu " + self._bus_id
            self._snapshots.recording.skip(self._line, expected=_TIME_EXPECTED, found=found)
            return
        self._snapshots.add(self._line, self._time, self._fields, bus_id=self._bus_id, driver=self._driver)


FORMATS: Final = (Format(name="nvidia-smi-xml", is_it=is_nvidia_xml, decode=decode_nvidia_xml),)
