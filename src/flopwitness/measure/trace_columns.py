"""A trace's columns on their way out of the process that unpacks them: one file, each column in one piece.

First all values, raw, then all times, then steady clocks where any were recorded; a tail of JSON says which
rows are whose. What reads them can map the file and copy nothing. Series that were read together have the
same times: times that stand there already are not written again, and leave a hole.
"""

import json
from collections.abc import Mapping
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

    def __init__(self, file: IO[bytes], *, n_rows: int, n_series: int) -> None:
        """Begin at the start of the file.

        Args:
            file: Empty; read, written and sought.
            n_rows: How many rows there are in all.
            n_series: How many series.
        """
        self._file = file
        self._n_rows, self._n_series = n_rows, n_series
        self._counts, self._times_at = [0] * n_series, [0] * n_series
        self._known: dict[int, tuple[int, int]] = {}  # by first time: where such times stand, and how many
        self._row = self._series = 0  # the next row, and the series of the last one
        self._same: int | None = None  # where the times of this series seem to stand already
        self._has_clocks = False

    def add(
        self,
        series: NDArray[np.uint32],
        utc_ns: NDArray[np.int64],
        value: NDArray[np.float64],
        monotonic_ns: NDArray[np.int64] | None,
    ) -> None:
        """The next rows.

        Args:
            series: The number of each row's series.
            utc_ns: Their times.
            value: Their values.
            monotonic_ns: Their steady clocks; None where none was recorded.

        Raises:
            ValueError: Rows out of order, of no series, or more than there are.
        """
        ends = np.flatnonzero(series[1:] != series[:-1]) + 1
        numbers = [int(number) for number in series[np.concatenate([[0], ends])]]
        if [self._series, *numbers] != sorted([self._series, *numbers]) or numbers[-1] >= self._n_series:
            raise ValueError(f"rows that belong to no series; there are {self._n_series}, in order")
        if self._row + value.size > self._n_rows:
            raise ValueError("more rows than there are")
        self._write(self._row, value)
        if monotonic_ns is not None:
            self._has_clocks = True
            self._write(2 * self._n_rows + self._row, monotonic_ns)
        edges = [0, *ends.tolist(), value.size]
        for number, start, stop in zip(numbers, edges, edges[1:], strict=False):
            self._add_times(number, utc_ns[start:stop])

    def finish(self, notes: Mapping[str, Any]) -> None:
        """Write the tail.

        Raises:
            ValueError: Rows are missing.
        """
        if self._row < self._n_rows:
            raise ValueError("fewer rows than there are")
        self._end()
        layout = {"n_rows": self._counts, "times_at": self._times_at, "notes": notes}
        tail = json.dumps(layout).encode()
        self._file.seek((3 if self._has_clocks else 2) * self._n_rows * _WIDTH)
        self._file.write(tail + len(tail).to_bytes(_WIDTH, "little"))
        self._file.flush()

    def _add_times(self, number: int, utc_ns: NDArray[np.int64]) -> None:
        """The next times of a series, written unless they stand there already."""
        if number != self._series or not self._counts[number]:
            self._end()
            self._series, self._times_at[number] = number, self._row
            known = self._known.get(int(utc_ns[0]))
            self._same = None if known is None else known[0]
        done, n_rows = self._counts[number], self._n_rows
        if self._same is not None and not self._stands_there(self._same + done, utc_ns):
            for start in range(0, done, _COPIED_ROWS):
                piece = self._read(self._same + start, min(_COPIED_ROWS, done - start))
                self._write(n_rows + self._times_at[number] + start, piece)
            self._same = None
        if self._same is None:
            self._write(n_rows + self._row, utc_ns)
        self._counts[number] += utc_ns.size
        self._row += utc_ns.size

    def _end(self) -> None:
        """Keep where the times of the last series stand."""
        count = self._counts[self._series] if self._counts else 0
        if not count:
            return
        if self._same is not None:
            self._times_at[self._series] = self._same
        first = int(self._read(self._times_at[self._series], 1)[0])
        known = self._known.get(first)
        if known is None or count > known[1]:
            self._known[first] = (self._times_at[self._series], count)

    def _stands_there(self, row: int, utc_ns: NDArray[np.int64]) -> bool:
        """Whether these times are those from a row on, all of which were written before."""
        return row + utc_ns.size <= self._times_at[self._series] and np.array_equal(
            self._read(row, utc_ns.size), utc_ns
        )

    def _write(self, place: int, column: NDArray[Any]) -> None:
        self._file.seek(place * _WIDTH)
        self._file.write(np.ascontiguousarray(column).data)

    def _read(self, row: int, n_rows: int) -> NDArray[np.int64]:
        self._file.seek((self._n_rows + row) * _WIDTH)
        return np.frombuffer(self._file.read(n_rows * _WIDTH), dtype=np.int64)


def split_columns(unpacked: bytes | mmap, *, where: str) -> tuple[dict[str, Any], list[Columns]]:
    """The notes and the columns of each series; the columns lie where `unpacked` lies.

    Args:
        unpacked: What a `ColumnWriter` wrote.
        where: The path to name in an error.

    Raises:
        DecodeError: The tail is no JSON.
        ValueError: (or KeyError, TypeError, AttributeError) A layout that makes no sense, times that no
            calendar shows, or monotonic times that are missing in part.
    """
    tail_bytes = int.from_bytes(unpacked[-_WIDTH:], "little")
    body_bytes = len(unpacked) - _WIDTH - tail_bytes
    if body_bytes < 0:
        raise ValueError("a tail longer than all of it")
    layout = decode_json(unpacked[body_bytes : body_bytes + tail_bytes], where=where)
    notes, counts = layout["notes"], [_whole(count) for count in layout["n_rows"]]
    has_clock = [bool(note["has_monotonic"]) for note in notes["series"]]
    kinds = ["<f8", "<i8", *(["<i8"] if any(has_clock) else [])]
    n_rows = sum(counts)
    if len(kinds) * n_rows * _WIDTH != body_bytes:
        raise ValueError("columns of unlike length")
    value, times, *clocks = (
        np.frombuffer(unpacked, dtype=kind, count=n_rows, offset=place * n_rows * _WIDTH)
        for place, kind in enumerate(kinds)
    )
    columns, row = [], 0
    shared: dict[tuple[int, int], NDArray[np.int64]] = {}
    for count, times_at, has_it in zip(counts, layout["times_at"], has_clock, strict=True):
        key = (_whole(times_at), count)
        if key not in shared:
            shared[key] = _check_times(times[times_at : times_at + count], count)
        rows = slice(row, row + count)
        monotonic_ns = _check_clock(clocks[0][rows]) if has_it else None
        columns.append(Columns(utc_ns=shared[key], value=value[rows], monotonic_ns=monotonic_ns))
        row += count
    return notes, columns


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"no count: {number!r}")
    return number


def _check_times(utc_ns: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The times; too few of them, or one that no calendar shows, are refused."""
    if utc_ns.size != count:
        raise ValueError("times that are not there")
    if count:
        format_utc(int(utc_ns.min()))
        format_utc(int(utc_ns.max()))
    return utc_ns


def _check_clock(monotonic_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The monotonic times; one that is missing is refused, not taken as zero."""
    if monotonic_ns.size and int(monotonic_ns.min()) == ABSENT:
        raise ValueError("monotonic times that are missing in part")
    return monotonic_ns
