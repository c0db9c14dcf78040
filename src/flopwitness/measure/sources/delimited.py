"""Rows of delimited text as arrays, so that millions of cells are read without a step of Python for each.

Only what is regular is read in bulk: every row has the same number of cells, and a number is plain digits
with a fixed count of decimals. Whatever is not, comes back as not read, and the reader takes it cell by cell
or line by line, with the same result. Nothing is quoted: the tools that write such logs do not quote.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES
from flopwitness.measure.sources.stamps import parse_stamps

__all__ = ["Chunk", "Rows", "split_chunks", "split_rows"]

_CHUNK_BYTES: Final = 512 << 10
_SHOWN_BYTES: Final = 100
_PAD: Final = 64  # no window reaches further beyond the text
_MOST_DIGITS: Final = 15  # whole numbers of so many digits are exact in a double, and so is their quotient
_WORD_BYTES: Final = 8
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: spreads words over a hash
_LEADING: Final = np.array([b"\xff" * n + b"\0" * (_WORD_BYTES - n) for n in range(_WORD_BYTES + 1)]).view(
    np.uint64
)
_HALF: Final = np.uint64(32)
_HEAD_PAD, _TAIL_PAD = bytes(_PAD - 1) + b"\n", b"\n" + bytes(_PAD)
_ZERO, _NINE = np.uint8(ord("0")), np.uint8(9)
_POINT: Final = np.uint8((ord(".") - ord("0")) % 256)
_FEW_GROUPS: Final = 32  # up to here, finding one after the other beats sorting them
_COMMA, _NEWLINE, _SPACE = ord(","), ord("\n"), ord(" ")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive whole lines.

    Attributes:
        text: The lines with their ends in between, without the last one's.
        is_ended: Whether the last one has its end; only the last line of a file may lack it.
    """

    text: bytes
    is_ended: bool = True

    @property
    def beginning(self) -> bytes:
        """The first line that is not blank, for errors; b"" where all are."""
        return self.text.lstrip()[:_SHOWN_BYTES].partition(b"\n")[0].rstrip()


def split_chunks(blocks: Iterable[bytes]) -> Iterator[Chunk]:
    """The lines of a stream of blocks, in bounded memory, so few at a time that they stay in the cache.

    What a line has beyond `LONGEST_LINE_BYTES` is dropped.
    """
    kept = b""
    for block in blocks:
        view = memoryview(block)
        for start in range(0, len(block), _CHUNK_BYTES):
            end = start + _CHUNK_BYTES
            stop = block.rfind(b"\n", start, end)
            if stop >= 0:
                yield Chunk(_unify_ends(b"".join((kept, view[start:stop]))))
                kept = bytes(view[stop + 1 : end])
            else:
                kept = b"".join((kept, view[start:end]))[: LONGEST_LINE_BYTES + 1]
    if kept:
        yield Chunk(kept, is_ended=False)


def _unify_ends(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in text else text


def split_rows(text: bytes, n_cells: int) -> "Rows | None":
    """The lines of a text as rows of `n_cells` cells each; None where a single one has another number."""
    padded = np.frombuffer(b"".join((_HEAD_PAD, text, _TAIL_PAD)), dtype=np.uint8)
    edges = np.flatnonzero((padded == _COMMA) | (padded == _NEWLINE))
    if (edges.size - 1) % n_cells:
        return None
    is_newline = (padded[edges[1:]] == _NEWLINE).reshape(-1, n_cells)
    if not is_newline[:, -1].all() or is_newline[:, :-1].any():
        return None
    return Rows(padded, edges, n_cells)


class Rows:
    """Rows with the same number of cells; a cell is known by its row and its column, both from 0."""

    def __init__(self, padded: NDArray[np.uint8], edges: NDArray[np.int64], n_cells: int) -> None:
        """Keep the text.

        Args:
            padded: The text between bytes that belong to no cell, shape (n_bytes,).
            edges: What parts the cells, from the byte in front of the first one to the last one's end, shape
                (n_rows * n_cells + 1,).
            n_cells: How many cells each row has.
        """
        self._text = padded
        self._before = edges[:-1].reshape(-1, n_cells)
        self._ends = edges[1:].reshape(-1, n_cells)

    def __len__(self) -> int:
        """How many rows."""
        return len(self._ends)

    @property
    def n_cells(self) -> int:
        """How many cells each has."""
        return int(self._ends.shape[1])

    def cell(self, row: int, column: int) -> bytes:
        """One cell as it stands, but for one space in front of it."""
        start, stop = self._before[row, column] + 1, self._ends[row, column]
        return self._text[start:stop].tobytes().removeprefix(b" ")

    def numbers(
        self, column: int, *, prefix: bytes = b"", suffix: bytes = b""
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The numbers of a column, correctly rounded, and which of them were read, both of shape (n_rows,).

        Args:
            column: Which.
            prefix: What may stand in front of each number.
            suffix: What may stand behind it, such as a unit.
        """
        start, stop = self._bounds(column)
        if prefix:
            start = start + len(prefix) * self._holds(prefix, start)
        if suffix:
            stop = stop - len(suffix) * self._holds(suffix, stop - len(suffix))
        width = stop - start
        is_read = (width >= 1) & (width <= _MOST_DIGITS) & (self._text[start] - _ZERO <= _NINE)
        sample = int(np.argmax(is_read))
        if not is_read[sample]:
            return np.zeros(len(self)), is_read
        _, point, decimals = self._text[start[sample] : stop[sample]].tobytes().partition(b".")
        widest = int(width[is_read].max())
        digit = self._windows(stop - widest, widest) - _ZERO
        digit *= np.arange(widest, 0, -1)[:, np.newaxis] <= width
        if point:
            place = widest - len(decimals) - 1
            is_read &= (digit[place] == _POINT) & (width > len(decimals) + 1)
            digit = np.delete(digit, place, axis=0)
        is_read &= digit.max(axis=0, initial=0) <= _NINE
        weight = 10.0 ** np.arange(len(digit) - 1, -1, -1)
        return (weight @ digit) / 10.0 ** len(decimals), is_read

    def stamps(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The time stamps of a column [ns] and which of them were read, both of shape (n_rows,)."""
        start, stop = self._bounds(column)
        width = stop - start
        time_ns, is_read = parse_stamps(self._windows(start, int(np.clip(width[0], 1, _PAD))))
        return time_ns, is_read & (width == width[0])

    def groups(self, columns: Sequence[int]) -> tuple[NDArray[np.int64], list[int]] | None:
        """For each row the number of its group, shape (n_rows,), and the first row of each group.

        Rows of one group have the same cells in these columns; so may two groups, where rows come in turn.
        None where a cell is longer than any name.
        """
        words: list[NDArray[np.uint64]] = []
        for column in columns:
            found = self._words(column)
            if found is None:
                return None
            words += found
        period = _find_period(words, len(self))
        if period:
            return np.arange(len(self)) % period, list(range(period))
        mixed = np.zeros(len(self), dtype=np.uint64)
        for word in words:
            mixed = (mixed ^ word) * _MIXER
            mixed ^= mixed >> _HALF
        number, first = _number_groups(mixed)
        if not all((word == word[first][number]).all() for word in words):  # unlike cells of one hash
            return None
        return number, first

    def _words(self, column: int) -> list[NDArray[np.uint64]] | None:
        """The cells of a column as words of eight bytes, and their lengths; None where one is too long."""
        start, stop = self._bounds(column)
        width = stop - start
        n_words = -(-int(width.max()) // _WORD_BYTES)
        if n_words * _WORD_BYTES > _PAD:
            return None
        text = self._cut_out(start, max(1, n_words) * _WORD_BYTES).view(np.uint64).reshape(len(self), -1)
        if width[0] == width.max() == width.min():
            width = width[:1]
        words = [
            word & _LEADING[np.clip(width - i * _WORD_BYTES, 0, _WORD_BYTES)] for i, word in enumerate(text.T)
        ]
        if width.size == 1:
            return words
        return [*words, width.astype(np.uint64)]

    def _bounds(self, column: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the cells of a column begin, behind one space, and where they end."""
        start = self._before[:, column] + 1
        return start + (self._text[start] == _SPACE), self._ends[:, column].copy()

    def _holds(self, word: bytes, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each place whether the word stands there."""
        is_there = np.ones(start.size, dtype=np.bool_)
        for i, byte in enumerate(word):
            is_there &= self._text[start + i] == byte
        return is_there

    def _windows(self, start: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """`width` bytes from each start on, shape (width, n_rows), a copy."""
        return np.ascontiguousarray(self._cut_out(start, width).view(np.uint8).reshape(-1, width).T)

    def _cut_out(self, start: NDArray[np.int64], width: int) -> NDArray[np.void]:
        """`width` bytes from each start on as one item each, shape (n_rows,)."""
        n_windows = self._text.size - width + 1
        return np.ndarray(n_windows, dtype=f"V{width}", buffer=self._text, strides=(1,))[start]


def _find_period(words: Sequence[NDArray[np.uint64]], n_rows: int) -> int:
    """After how many rows all rows come again in the same order, as those of several devices do; else 0."""
    is_first = np.ones(n_rows, dtype=np.bool_)
    for word in words:
        is_first &= word == word[0]
    period = int(np.argmax(is_first[1:])) + 1 if is_first[1:].any() else 0
    return period if period and all((word[period:] == word[:-period]).all() for word in words) else 0


def _number_groups(key: NDArray[np.uint64]) -> tuple[NDArray[np.int64], list[int]]:
    """For each key the number of its group of like ones, and where each group is met first."""
    number, first = np.full(key.size, -1), list[int]()
    while number[start := int(np.argmin(number))] < 0:
        number[key == key[start]] = len(first)
        first.append(start)
        if len(first) > _FEW_GROUPS:
            return _sort_groups(key)
    return number, first


def _sort_groups(key: NDArray[np.uint64]) -> tuple[NDArray[np.int64], list[int]]:
    """The same for many groups."""
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[number], first[order].tolist()
