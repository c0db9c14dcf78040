"""Columns in one file: each comes back whole, wherever the rows were cut, and times stand there once."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.trace_columns import ABSENT, Columns, ColumnWriter, split_columns

NOW_NS = 1_700_000_000 * 10**9
REFUSALS = (DecodeError, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
Change = Callable[[dict[str, Any]], object]


def _columns(times_s: list[int], *, monotonic: bool = False) -> Columns:
    utc_ns = NOW_NS + np.array(times_s, dtype=np.int64) * 10**9
    value = np.sqrt(np.arange(utc_ns.size) + float(len(times_s)))
    return Columns(utc_ns=utc_ns, value=value, monotonic_ns=utc_ns - NOW_NS if monotonic else None)


def _written(series: list[Columns], size: int = 1_000) -> bytes:
    has_clock = [item.monotonic_ns is not None for item in series]
    none = np.zeros(0, dtype=np.int64)
    numbers = np.repeat(np.arange(len(series), dtype=np.uint32), [item.value.size for item in series])
    utc_ns = np.concatenate([none, *(item.utc_ns for item in series)])
    value = np.concatenate([np.zeros(0), *(item.value for item in series)])
    clocks = [
        np.full(item.value.size, ABSENT) if item.monotonic_ns is None else item.monotonic_ns
        for item in series
    ]
    monotonic_ns = np.concatenate([none, *clocks])
    file = io.BytesIO()
    writer = ColumnWriter(file, n_rows=value.size, n_series=len(series))
    for start in range(0, value.size, size):
        rows = slice(start, start + size)
        writer.add(numbers[rows], utc_ns[rows], value[rows], monotonic_ns[rows] if any(has_clock) else None)
    writer.finish({"series": [{"has_monotonic": has_it} for has_it in has_clock]})
    return file.getvalue()


def _assert_same(ours: list[Columns], theirs: list[Columns]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)
        assert (one.monotonic_ns is None) == (other.monotonic_ns is None)
        if one.monotonic_ns is not None:
            np.testing.assert_array_equal(one.monotonic_ns, other.monotonic_ns)


TIMES = st.lists(st.integers(0, 3), max_size=4)


@given(st.lists(st.tuples(TIMES, st.booleans()), max_size=6), st.integers(1, 9))
def test_any_series_come_back_wherever_rows_are_cut(series: list[tuple[list[int], bool]], size: int) -> None:
    columns = [_columns(times, monotonic=monotonic) for times, monotonic in series]
    notes, split = split_columns(_written(columns, size), where="x")
    _assert_same(split, columns)
    assert len(notes["series"]) == len(columns)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
def test_the_same_times_stand_there_once(size: int) -> None:
    columns = [_columns([1, 2, 3, 4]), _columns([1, 2]), _columns([1, 2, 3, 4]), _columns([1, 2, 3, 4])]
    written = _written(columns, size)
    _, split = split_columns(written, where="x")
    _assert_same(split, columns)
    assert split[0].utc_ns is split[2].utc_ns is split[3].utc_ns
    assert written[14 * 8 + 6 * 8 : 2 * 14 * 8] == bytes(8 * 8)  # the times of the last two


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
@pytest.mark.parametrize("place", [0, 2, 3])
def test_times_that_differ_late_are_their_own(size: int, place: int) -> None:
    other = [1, 2, 3, 4]
    other[place] = 9
    columns = [_columns([1, 2, 3, 4]), _columns(other), _columns([7])]
    _, split = split_columns(_written(columns, size), where="x")
    _assert_same(split, columns)


def test_the_start_of_longer_times_is_not_written_again() -> None:
    columns = [_columns([1, 2, 3, 4]), _columns([1, 2]), _columns([1, 2, 3, 4, 5]), _columns([1, 2, 3, 4, 5])]
    _, split = split_columns(_written(columns), where="x")
    _assert_same(split, columns)
    assert np.shares_memory(split[0].utc_ns, split[1].utc_ns)
    assert split[2].utc_ns is split[3].utc_ns


def test_times_of_zero_are_told_from_holes() -> None:
    zeros = Columns(utc_ns=np.zeros(3, dtype=np.int64), value=np.ones(3), monotonic_ns=None)
    columns = [_columns([1, 2, 3]), _columns([1, 2, 3]), zeros, zeros, _columns([1, 2, 3, 4])]
    _assert_same(split_columns(_written(columns, 2), where="x")[1], columns)


def test_steady_clocks_are_their_own_and_times_are_shared() -> None:
    columns = [_columns([1, 2]), _columns([1, 2], monotonic=True), _columns([1, 2], monotonic=True)]
    _, split = split_columns(_written(columns), where="x")
    _assert_same(split, columns)
    assert split[0].utc_ns is split[1].utc_ns is split[2].utc_ns


@pytest.mark.parametrize("numbers", [[1, 0], [0, 2], [2, 2]])
def test_rows_of_no_series_are_refused(numbers: list[int]) -> None:
    one = _columns([1, 2])
    writer = ColumnWriter(io.BytesIO(), n_rows=2, n_series=2)
    with pytest.raises(ValueError, match="belong to no series"):
        writer.add(np.array(numbers, dtype=np.uint32), one.utc_ns, one.value, None)


def test_rows_out_of_order_are_refused_wherever_they_are_cut() -> None:
    one = _columns([1, 2])
    writer = ColumnWriter(io.BytesIO(), n_rows=4, n_series=2)
    writer.add(np.array([0, 1], dtype=np.uint32), one.utc_ns, one.value, None)
    with pytest.raises(ValueError, match="belong to no series"):
        writer.add(np.array([0, 1], dtype=np.uint32), one.utc_ns, one.value, None)


def test_rows_are_as_many_as_were_told() -> None:
    one, numbers = _columns([1, 2]), np.zeros(2, dtype=np.uint32)
    with pytest.raises(ValueError, match="fewer rows"):
        ColumnWriter(io.BytesIO(), n_rows=2, n_series=1).finish({})
    with pytest.raises(ValueError, match="more rows"):
        ColumnWriter(io.BytesIO(), n_rows=1, n_series=1).add(numbers, one.utc_ns, one.value, None)


def test_columns_are_not_copied() -> None:
    written = _written([_columns([1, 2, 3])])
    (split,) = split_columns(written, where="x")[1]
    assert not split.value.flags.owndata
    assert not split.value.flags.writeable
    assert split.value.flags.aligned


def _changed(series: list[Columns], change: Change) -> bytes:
    written = _written(series)
    tail_bytes = int.from_bytes(written[-8:], "little")
    layout = json.loads(written[-8 - tail_bytes : -8])
    change(layout)
    tail = json.dumps(layout).encode()
    return written[: -8 - tail_bytes] + tail + len(tail).to_bytes(8, "little")


def _set(name: str, value: object) -> Change:
    def change(layout: dict[str, Any]) -> None:
        layout[name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("n_rows", [2, 2]),
        _set("n_rows", [2, 2, 3]),
        _set("n_rows", [2, 2, 1, 1]),
        _set("n_rows", [2, 2, -1]),
        _set("n_rows", [2, 2, 2**70]),
        _set("n_rows", [2, 2, True]),
        _set("n_rows", [2, 2, 1.0]),
        _set("n_rows", [2, 2, "1"]),
        _set("n_rows", None),
        _set("n_rows", [1, 3, 2]),
        _set("times_at", [0, 0, 5]),
        _set("times_at", [0, 4, 4]),
        _set("times_at", [0, -1, 4]),
        _set("times_at", [0, None, 4]),
        _set("times_at", [0, 0.0, 4]),
        _set("times_at", [0, 2**70, 4]),
        _set("times_at", [0, 0]),
        _set("times_at", [0, 0, 4, 4]),
        _set("notes", {}),
        _set("notes", []),
        _set("notes", {"series": [{}] * 3}),
        _set("notes", {"series": [{"has_monotonic": True}] * 3}),
        _set("notes", {"series": [{"has_monotonic": False}] * 2}),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(change: Change) -> None:
    series = [_columns([1, 2]), _columns([1, 2]), _columns([7])]
    _assert_same(split_columns(_changed(series, lambda layout: None), where="x")[1], series)
    with pytest.raises(REFUSALS):
        split_columns(_changed(series, change), where="x")


@pytest.mark.parametrize("cut", [1, 8, 9, 40, 10_000])
@pytest.mark.parametrize("is_front", [True, False])
def test_bytes_that_are_torn_are_refused(cut: int, *, is_front: bool) -> None:
    written = _written([_columns([1, 2]), _columns([7, 8, 9])])
    with pytest.raises(REFUSALS):
        split_columns(written[cut:] if is_front else written[:-cut], where="x")


@pytest.mark.parametrize("end", [b"", bytes(8), b"\xff" * 8, b"{" + (1).to_bytes(8, "little")])
def test_other_bytes_are_refused(end: bytes) -> None:
    with pytest.raises(REFUSALS):
        split_columns(end, where="x")


@pytest.mark.parametrize("utc_ns", [-1, -(2**63), 2**63 - 1])
def test_times_off_the_calendar_are_refused(utc_ns: int) -> None:
    columns = _columns([1, 2, 3])
    columns.utc_ns[1] = utc_ns
    with pytest.raises(REFUSALS):
        split_columns(_written([columns]), where="x")


def test_a_steady_clock_that_is_missing_in_part_is_refused() -> None:
    columns = _columns([1, 2, 3], monotonic=True)
    assert columns.monotonic_ns is not None
    columns.monotonic_ns[1] = ABSENT
    with pytest.raises(ValueError, match="missing in part"):
        split_columns(_written([columns]), where="x")
