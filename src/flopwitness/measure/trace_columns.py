"""A trace's columns on their way out of the process that unpacks them: one file, each column in one piece.

The columns of each series stand one after the other, raw; a tail of JSON says how long they are. What reads
them can map the file and copy nothing. Series that were read together have the same times: times that stand
there already are not written again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.encoding import decode_json

__all__ = ["ABSENT", "ColumnWriter", "Columns", "split_columns"]

ABSENT: Final = -(2**63)  # no clock shows it
_WIDTH: Final = 8  # bytes of a time or a value
_COPIED_ROWS: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The readings of one series, as in `Series`."""

    utc_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    monotonic_ns: NDArray[np.int64] | None


class ColumnWriter:
    """Takes the rows of all series in order, and puts each column where it belongs."""

    def __init__(self, file: IO[bytes], n_rows: Sequence[int], has_monotonic: Sequence[bool]) -> None:
        """Begin at the start of the file.

        Args:
            file: Empty; read, written and sought.
            n_rows: How many rows each series has.
            has_monotonic: Whether it has monotonic times.
        """
        self._file = file
        self._n_rows, self._has_monotonic = tuple(n_rows), tuple(has_monotonic)
        self._times_of: list[int] = []  # for each series, the one whose times are its own
        self._clocks: dict[int, tuple[int, int]] = {}  # by length: a series without more times, and its place
        self._place = self._done = 0
        self._begin()

    def add(
        self,
        utc_ns: NDArray[np.int64],
        value: NDArray[np.float64],
        monotonic_ns: NDArray[np.int64] | None,
    ) -> None:
        """The next rows, which may be of several series.

        Raises:
            IndexError: More rows than all series have.
        """
        start = 0
        while start < value.size:
            stop = start + min(value.size - start, self._n_rows[len(self._times_of)] - self._done)
            piece = slice(start, stop)
            self._put(utc_ns[piece], value[piece], None if monotonic_ns is None else monotonic_ns[piece])
            start = stop

    def finish(self, notes: Mapping[str, Any]) -> None:
        """Write the tail.

        Raises:
            ValueError: Rows are missing.
        """
        if len(self._times_of) < len(self._n_rows):
            raise ValueError("fewer rows than were counted")
        layout = {"n_rows": self._n_rows, "times_of": self._times_of, "notes": notes}
        tail = json.dumps(layout).encode()
        self._file.seek(self._place)
        self._file.write(tail + len(tail).to_bytes(_WIDTH, "little"))
        self._file.flush()

    def _begin(self) -> None:
        """Go on to the next series that has rows."""
        while len(self._times_of) < len(self._n_rows):
            n_rows = self._n_rows[len(self._times_of)]
            is_plain = not self._has_monotonic[len(self._times_of)]
            self._same = self._clocks.get(n_rows) if is_plain else None
            if n_rows:
                return
            self._times_of.append(len(self._times_of))

    def _put(
        self,
        utc_ns: NDArray[np.int64],
        value: NDArray[np.float64],
        monotonic_ns: NDArray[np.int64] | None,
    ) -> None:
        """The next rows of the series that is being written: its values, monotonic times and times."""
        number = len(self._times_of)
        n_rows, at = self._n_rows[number], self._done * _WIDTH
        columns: list[NDArray[Any]] = [value]
        if self._has_monotonic[number]:
            columns.append(np.full(value.size, ABSENT) if monotonic_ns is None else monotonic_ns)
        for place, column in enumerate(columns):
            self._write(self._place + place * n_rows * _WIDTH + at, column)
        clock_place = self._place + len(columns) * n_rows * _WIDTH
        if self._same is not None and not np.array_equal(self._read(self._same[1] + at, utc_ns.size), utc_ns):
            self._copy(self._same[1], clock_place, self._done)
            self._same = None
        if self._same is None:
            self._write(clock_place + at, utc_ns)
        self._done += value.size
        if self._done == n_rows:
            self._end(number, clock_place)

    def _end(self, number: int, clock_place: int) -> None:
        n_rows = self._n_rows[number]
        self._times_of.append(number if self._same is None else self._same[0])
        if self._same is None and not self._has_monotonic[number]:
            self._clocks[n_rows] = (number, clock_place)
        self._place = clock_place if self._same is not None else clock_place + n_rows * _WIDTH
        self._done = 0
        self._begin()

    def _write(self, place: int, column: NDArray[Any]) -> None:
        self._file.seek(place)
        self._file.write(np.ascontiguousarray(column).data)

    def _read(self, place: int, n_rows: int) -> NDArray[np.int64]:
        self._file.seek(place)
        return np.frombuffer(self._file.read(n_rows * _WIDTH), dtype=np.int64)

    def _copy(self, source: int, target: int, n_rows: int) -> None:
        for start in range(0, n_rows, _COPIED_ROWS):
            piece = self._read(source + start * _WIDTH, min(_COPIED_ROWS, n_rows - start))
            self._write(target + start * _WIDTH, piece)


def split_columns(unpacked: bytes | mmap, *, where: str) -> tuple[dict[str, Any], list[Columns]]:
    """The notes and the columns of each series; the columns lie where `unpacked` lies.

    Args:
        unpacked: What a `ColumnWriter` wrote.
        where: The path to name in an error.

    Raises:
        DecodeError: The tail is no JSON.
        ValueError: (or KeyError, TypeError, IndexError, AttributeError) A layout that makes no sense, times
            that no calendar shows, or monotonic times that are missing in part.
    """
    tail_bytes = int.from_bytes(unpacked[-_WIDTH:], "little")
    body_bytes = len(unpacked) - _WIDTH - tail_bytes
    if body_bytes < 0:
        raise ValueError("a tail longer than all of it")
    layout = decode_json(unpacked[body_bytes : body_bytes + tail_bytes], where=where)
    notes = layout["notes"]
    columns: list[Columns] = []
    place = 0
    for number, (n_rows, times_of, note) in enumerate(
        zip(layout["n_rows"], layout["times_of"], notes["series"], strict=True)
    ):
        has_monotonic, is_new = bool(note["has_monotonic"]), times_of == number
        end = place + (1 + has_monotonic + is_new) * _whole(n_rows) * _WIDTH
        if end > body_bytes:
            raise ValueError("columns of unlike length")
        taken = [
            np.frombuffer(unpacked, dtype=kind, count=n_rows, offset=place + i * n_rows * _WIDTH)
            for i, kind in enumerate(("<f8", *["<i8"] * (has_monotonic + is_new)))
        ]
        utc_ns = _check_times(taken[-1]) if is_new else columns[_whole(times_of)].utc_ns
        if utc_ns.size != n_rows:
            raise ValueError("times of another length")
        monotonic_ns = _check_whole(taken[1]) if has_monotonic else None
        columns.append(Columns(utc_ns=utc_ns, value=taken[0], monotonic_ns=monotonic_ns))
        place = end
    if place != body_bytes:
        raise ValueError("columns of unlike length")
    return notes, columns


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"no count: {number!r}")
    return number


def _check_times(utc_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The times; one that no calendar shows is refused."""
    if utc_ns.size:
        format_utc(int(utc_ns.min()))
        format_utc(int(utc_ns.max()))
    return utc_ns


def _check_whole(monotonic_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The monotonic times; one that is missing is refused, not taken as zero."""
    if monotonic_ns.size and int(monotonic_ns.min()) == ABSENT:
        raise ValueError("monotonic times that are missing in part")
    return monotonic_ns
