"""JSON documents that a tool printed one after the other, as a loop around it leaves them.

Nothing parts such documents but the place where a line begins with a bracket, so that is where each is taken
to begin. A document that was cut off then costs itself and not the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.sources.source import Source

__all__ = ["Document", "read_documents"]

_LARGEST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document.

    Attributes:
        line: The number of its first line.
        text: Its text as it stands.
        value: What it says; None where it is not strict JSON, or too large.
    """

    line: int
    text: bytes
    value: JsonValue


def read_documents(source: Source, *, chatter: tuple[bytes, ...] = ()) -> Iterator[Document]:
    """The documents of a file in order, each held by itself; lines before the first are left out.

    Args:
        source: The file.
        chatter: How lines begin that the tool prints between its documents.
    """
    lines: list[tuple[int, bytes]] = []
    size = 0
    for batch in source.lines():
        for number, line in batch:
            if _begins(line, lines):
                yield from _decode(lines, size)
                lines, size = [(number, line)], len(line)
            elif lines and line.strip() and not (chatter and line.startswith(chatter)):
                size += len(line)
                if size <= _LARGEST_BYTES:
                    lines.append((number, line))
    yield from _decode(lines, size)


def _begins(line: bytes, lines: Sequence[tuple[int, bytes]]) -> bool:
    """Whether a document begins here: a bracket at the start of a line that goes on no open list."""
    if not line.startswith((b"{", b"[")):
        return False
    goes_on = line.startswith(b"{") and bool(lines) and lines[-1][1].rstrip().endswith((b",", b"["))
    return not goes_on


def _decode(lines: Sequence[tuple[int, bytes]], size: int) -> Iterator[Document]:
    """The document that lines hold, and by itself what was printed behind its end."""
    if not lines:
        return
    whole = _document(lines, size)
    ends = [place for place, (_, line) in enumerate(lines, start=1) if line.rstrip().endswith((b"}", b"]"))]
    if whole.value is None and ends and ends[-1] < len(lines):
        head = _document(lines[: ends[-1]], size)
        if head.value is not None:
            yield head
            whole = Document(line=lines[ends[-1]][0], text=_join(lines[ends[-1] :]), value=None)
    yield whole


def _document(lines: Sequence[tuple[int, bytes]], size: int) -> Document:
    text = _join(lines)
    try:
        value = None if size > _LARGEST_BYTES else decode_json(text)
    except DecodeError:
        value = None
    return Document(line=lines[0][0], text=text, value=value)


def _join(lines: Sequence[tuple[int, bytes]]) -> bytes:
    return b"\n".join(line for _, line in lines)
