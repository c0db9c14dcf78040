r"""Lines out of blocks, in bounded memory, with the numbers that a person would count.

A line that never ends must not fill the memory: what goes beyond the limit is dropped, and the line comes
back one byte longer than is allowed, so that a reader sees that it is too long.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["LONGEST_LINE_BYTES", "LineBatch", "split_blocks"]

LONGEST_LINE_BYTES: Final = 1 << 20
_KEPT_BYTES: Final = LONGEST_LINE_BYTES + 2  # one too many, behind which a carriage return may be left out


@dataclass(frozen=True, slots=True)
class LineBatch:
    r"""Consecutive lines.

    Attributes:
        first: The number of the first, from 1.
        lines: The lines without their ends (`\n` or `\r\n`); at most `LONGEST_LINE_BYTES` + 1 long.
    """

    first: int
    lines: list[bytes]

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its number."""
        return enumerate(self.lines, start=self.first)


def split_blocks(blocks: Iterable[bytes]) -> Iterator[LineBatch]:
    """The lines of a stream of blocks, one batch a block; the last line needs no end."""
    first, kept = 1, b""
    for block in blocks:
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            kept = (kept + tail)[:_KEPT_BYTES]
            continue
        lines = _split(kept + head)
        yield LineBatch(first, lines)
        first += len(lines)
        kept = tail[:_KEPT_BYTES]
    if kept:
        yield LineBatch(first, _split(kept))


def _split(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    if b"\r" in text:
        lines = [line.removesuffix(b"\r") for line in lines]
    if len(text) > LONGEST_LINE_BYTES:
        lines = [_cut(line) for line in lines]
    return lines


def _cut(line: bytes) -> bytes:
    return line[: LONGEST_LINE_BYTES + 1] if len(line) > LONGEST_LINE_BYTES else line
