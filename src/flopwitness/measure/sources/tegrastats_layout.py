"""Lines that differ in their numbers only, read all at once.

A log of tegrastats repeats one line with other numbers in it. Where the words of a line are those of a line
whose fields are known, its numbers stand in the same order, so they need not be searched for: the numbers
of all such lines are cut out of their joined text and turned into values together. Nothing is taken on
trust: words, the distances between numbers, digits that belong to names, and the form of each number are
checked, and lines that fail are read one by one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.sources.tegrastats_fields import Fields, Shape

__all__ = ["Layout", "words_of"]

_DIGITS: Final = b"0123456789"
_RUN: Final = re.compile(rb"[0-9.]+")
_LONGEST_NUMBER: Final = 15  # a double holds every whole number of so many digits
_IS_RUN: Final = bytes(byte in b"0123456789." for byte in range(256))
_DOT, _ZERO, _MINUS = b".0-"
_TENS: Final = np.array([float(10**power) for power in range(_LONGEST_NUMBER + 1)])


def words_of(lines: Sequence[bytes]) -> list[bytes]:
    """The lines without their numbers; a temperature may have a point or none."""
    text = b"\n".join(lines).translate(None, _DIGITS)
    return text.replace(b"@.C", b"@C").replace(b"/.C", b"/C").split(b"\n")


@dataclass(frozen=True, slots=True)
class _Runs:
    """Where the runs of digits and points of n like lines stand in their joined text.

    Attributes:
        text: The joined text, with a line's end in front.
        start: The first byte of each run, shape (n, runs).
        stop: The byte after its last one.
    """

    text: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What every line of some words holds.

    Attributes:
        shape: What its wanted numbers are.
        stamp_bytes: How long the date in front is.
        gaps: The bytes in front of each run of digits, and behind the last.
        fixed: The runs that are the same in every line, for they belong to names.
        sizes: The lengths of the date's runs.
        wanted: Which runs are wanted numbers.
        signs: The sign in front of each.
    """

    shape: Shape
    stamp_bytes: int
    gaps: tuple[int, ...]
    fixed: tuple[tuple[int, bytes], ...]
    sizes: tuple[int, ...]
    wanted: tuple[int, ...]
    signs: tuple[int, ...]

    @classmethod
    def learn(cls, line: bytes, fields: Fields) -> "Layout | None":
        """The layout of a line whose fields are known; None where a number of it stands inside another."""
        runs = [found.span() for found in _RUN.finditer(line)]
        places = {run: index for index, run in enumerate(runs)}
        is_negative = [line[start] == _MINUS for start, _ in fields.spans]
        spans = [
            (start + minus, stop) for minus, (start, stop) in zip(is_negative, fields.spans, strict=True)
        ]
        if not runs or any(span not in places for span in spans):
            return None
        edges = [0, *(edge for run in runs for edge in run), len(line)]
        return cls(
            shape=fields.shape,
            stamp_bytes=fields.stamp_bytes,
            gaps=tuple(edges[index + 1] - edges[index] for index in range(0, len(edges), 2)),
            fixed=tuple((i, line[start:stop]) for i, (start, stop) in enumerate(runs) if _names(line, start)),
            sizes=tuple(stop - start for start, stop in runs if stop <= fields.stamp_bytes),
            wanted=tuple(places[span] for span in spans),
            signs=tuple(-1 if minus else 1 for minus in is_negative),
        )

    def numbers(self, lines: Sequence[bytes]) -> NDArray[np.float64] | None:
        """The wanted numbers of n lines with these words, (n, wanted); None where one of them is unlike."""
        runs = self._find_runs(lines)
        if runs is None or not self._has_sizes(runs) or not self._has_names(runs):
            return None
        wanted = np.array(self.wanted, dtype=np.intp)
        start, stop = runs.start[:, wanted], runs.stop[:, wanted]
        values = _values(runs.text, start.ravel(), (stop - start).ravel())
        return (
            None if values is None else values.reshape(start.shape) * np.array(self.signs, dtype=np.float64)
        )

    def _find_runs(self, lines: Sequence[bytes]) -> _Runs | None:
        joined = b"\n".join((b"", *lines, b""))
        text = np.frombuffer(joined, dtype=np.uint8)
        is_run = np.frombuffer(joined.translate(_IS_RUN), dtype=np.bool_)
        edges = np.flatnonzero(is_run[1:] != is_run[:-1]) + 1
        n_runs = len(self.gaps) - 1
        if not edges.size or edges.size != 2 * n_runs * len(lines):
            return None
        start, stop = edges[::2], edges[1::2]
        behind = self.gaps[-1]
        gap = start - np.concatenate(([-behind], stop[:-1]))
        expected = np.array([self.gaps[0] + 1 + behind, *self.gaps[1:-1]])
        if text.size - stop[-1] != behind + 1 or (gap.reshape(-1, n_runs) != expected).any():
            return None
        return _Runs(text, start.reshape(-1, n_runs), stop.reshape(-1, n_runs))

    def _has_sizes(self, runs: _Runs) -> bool:
        dated = slice(len(self.sizes))
        return bool((runs.stop[:, dated] - runs.start[:, dated] == np.array(self.sizes)).all())

    def _has_names(self, runs: _Runs) -> bool:
        for index, name in self.fixed:
            start = runs.start[:, index]
            if (runs.stop[:, index] - start != len(name)).any():
                return False
            if any((runs.text[start + offset] != byte).any() for offset, byte in enumerate(name)):
                return False
        return True


def _values(
    text: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """The numbers that stand in a text; None where one is too long, or begins or ends with its point.

    As the digits without the point are a whole number that a double holds, and so is the power of ten, one
    division gives the double next to the written number.
    """
    longest = int(length.max(initial=0))
    if longest > _LONGEST_NUMBER or (text[start] == _DOT).any() or (text[start + length - 1] == _DOT).any():
        return None
    whole = np.zeros(start.size, dtype=np.int64)
    decimals = np.zeros(start.size, dtype=np.int64)
    for offset in range(longest):
        byte = text[np.minimum(start + offset, text.size - 1)]
        is_inside, is_dot = offset < length, byte == _DOT
        whole = np.where(is_inside & ~is_dot, whole * 10 + byte - _ZERO, whole)
        decimals = np.where(is_inside & is_dot, length - offset - 1, decimals)
    return np.asarray(whole / _TENS[decimals])


def _names(line: bytes, start: int) -> bool:
    """Whether digits that begin there belong to a name, as in `soc2`, and not to a count, as in `9x4MB`."""
    before, last = line[max(0, start - 2) : max(0, start - 1)], line[max(0, start - 1) : start]
    return (last.isalpha() or last == b"_") and not (last == b"x" and before.isdigit())
