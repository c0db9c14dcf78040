"""A trace as one Parquet file: what goes in comes back, and nothing else is believed."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure import trace_file
from flopwitness.measure.child import spool
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.trace_file import (
    decode_trace,
    decode_trace_file,
    decode_unpacked,
    encode_trace,
    holds_trace,
    is_trace_file,
)
from flopwitness.measure.trace_notes import describe_trace

MakeSeries = Callable[..., Series]


def _is_same(left: Trace, right: Trace) -> bool:
    for one, other in zip(left.series, right.series, strict=True):
        assert (one.device, one.channel, one.scope) == (other.device, other.channel, other.scope)
        assert (one.conversion, one.is_estimate) == (other.conversion, other.is_estimate)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)
        assert (one.monotonic_ns is None) == (other.monotonic_ns is None)
        if one.monotonic_ns is not None and other.monotonic_ns is not None:
            np.testing.assert_array_equal(one.monotonic_ns, other.monotonic_ns)
    return replace(left, series=()) == replace(right, series=())


def test_what_goes_in_comes_back(full_trace: Trace) -> None:
    data = encode_trace(full_trace)
    assert is_trace_file(data[:64], "x")
    assert holds_trace(io.BytesIO(data))
    assert _is_same(decode_trace(data, where="x.parquet"), full_trace)
    assert encode_trace(decode_trace(data, where="x.parquet")) == data


def test_an_empty_trace_comes_back() -> None:
    assert decode_trace(encode_trace(Trace()), where="x") == Trace()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_it_does_not_matter_where_groups_of_rows_end(
    full_trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rows: int
) -> None:
    path, out = tmp_path / "trace", io.BytesIO()
    path.write_bytes(encode_trace(full_trace))
    monkeypatch.setattr(trace_file, "_GROUP_ROWS", n_rows)
    trace_file._unpack(str(path), out)
    assert _is_same(decode_unpacked(out.getvalue(), where="x"), full_trace)
    path.write_bytes(encode_trace(full_trace))
    assert pl.read_parquet(path).height == 6
    trace_file._unpack(str(path), out := io.BytesIO())
    assert _is_same(decode_unpacked(out.getvalue(), where="x"), full_trace)


def test_times_of_one_device_are_held_once(make_series: MakeSeries) -> None:
    power = make_series([400.0, 410.0, 420.0])
    others = [make_series([90, 91, 92], channel=Channel.UTILISATION_PCT), make_series([1, 2])]
    first, second, third = decode_trace(encode_trace(Trace(series=(power, *others))), where="x").series
    assert first.utc_ns is second.utc_ns
    np.testing.assert_array_equal(third.utc_ns, others[1].utc_ns)


def _older(trace: Trace, notes: dict[str, Any]) -> bytes:
    """As files were written before: absent monotonic times as a number, groups as the library made them."""
    counts = [len(series) for series in trace.series]
    absent = [np.full(count, -(2**63)) for count in counts]
    clocks = [
        clock if item.monotonic_ns is None else item.monotonic_ns
        for item, clock in zip(trace.series, absent, strict=True)
    ]
    frame = pl.DataFrame(
        {
            "series": np.repeat(np.arange(len(counts), dtype=np.uint32), counts),
            "utc_ns": np.concatenate([item.utc_ns for item in trace.series]),
            "monotonic_ns": np.concatenate(clocks),
            "value": np.concatenate([item.value for item in trace.series]),
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={"flopwitness": json.dumps(notes)})
    return buffer.getvalue()


def test_older_files_are_read(full_trace: Trace) -> None:
    notes = describe_trace(full_trace)
    assert _is_same(decode_trace(_older(full_trace, notes), where="x"), full_trace)
    del notes["extent"], notes["devices"], notes["findings"]
    before = replace(full_trace, extent=None, devices=(), findings=())
    assert _is_same(decode_trace(_older(full_trace, notes), where="x"), before)


@pytest.mark.parametrize("head", [b"", b"PAR", b"par1", b":::MLLOG {}"])
def test_other_bytes_are_no_trace_file(head: bytes) -> None:
    assert not is_trace_file(head, "trace.parquet")


def _parquet(metadata: dict[str, str], **columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer, metadata=metadata)
    return buffer.getvalue()


def test_a_trace_is_told_from_other_parquet_by_its_key() -> None:
    ours = encode_trace(Trace())
    others = [
        _parquet({}, value=[1.0]),
        _parquet({"flopwitness2": "{}"}, flopwitness=["flopwitness"]),
        _parquet({"other": "flopwitness"}, value=[1.0]),
        ours[:-1],
        ours[:-8],
        ours + b"\0",
        ours[:-8] + b"\xff\xff\xff\xff" + b"PAR1",
        b"PAR1",
        b"PAR1\0\0\0\0PAR1",
        b"",
    ]
    assert [holds_trace(io.BytesIO(data)) for data in others] == [False] * len(others)
    file = io.BytesIO(ours)
    assert holds_trace(file)
    assert file.tell() == 0


@pytest.mark.parametrize("size", [1, 2, 13, 14, 15, 1_000])
def test_the_key_is_found_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(trace_file, "_SEARCHED_BYTES", size)
    assert holds_trace(io.BytesIO(encode_trace(Trace())))
    assert not holds_trace(io.BytesIO(_parquet({"flopwitnes": "s"}, value=[1.0])))


def test_bytes_that_are_no_trace_are_refused(full_trace: Trace) -> None:
    notes = {"flopwitness": json.dumps(describe_trace(Trace()))}
    whole = encode_trace(full_trace)
    broken = [
        b"",
        b"PAR1",
        whole[:-10],
        whole[: len(whole) // 2],
        _parquet({}, series=[0], utc_ns=[1], monotonic_ns=[1], value=[1.0]),
        _parquet(notes, value=[1.0]),
        _parquet({"flopwitness": "{"}, series=[0], utc_ns=[1], monotonic_ns=[1], value=[1.0]),
        _parquet(notes, series=["a"], utc_ns=[1], monotonic_ns=[1], value=[1.0]),
        _parquet(notes, series=[0], utc_ns=[1.5], monotonic_ns=[1], value=[1.0]),
    ]
    for data in broken:
        with pytest.raises(DecodeError) as caught:
            decode_trace(data, where="x.parquet")
        assert caught.value.where == "x.parquet"


def test_a_file_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "LARGEST_TRACE_BYTES", 10)
    with pytest.raises(DecodeError, match="too large"):
        decode_trace(b"PAR1" + bytes(10), where="x")


def test_a_kept_file_is_read_from_its_start(full_trace: Trace) -> None:
    with spool([encode_trace(full_trace)], limit_bytes=1 << 20, where="x") as file:
        assert holds_trace(file)
        assert _is_same(decode_trace_file(file, where="x"), full_trace)


@pytest.mark.parametrize("end", [b"", b"{}", b"[]", b"null", b"{", b'{"notes":1,"notes":2}', b"\xff"])
def test_an_answer_that_is_none_is_refused(end: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_unpacked(end + len(end).to_bytes(8, "little"), where="x.parquet")
    assert caught.value.where == "x.parquet"


_ONE = Series(
    device="gpu_0",
    channel=Channel.POWER_W,
    scope=Scope.GPU,
    utc_ns=np.array([1], dtype=np.int64),
    value=np.array([np.nan]),
)
_NOTES = describe_trace(Trace(series=(_ONE,)))


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[..., bytes]:
    """What the child does with a table, in this process."""

    def unpack_it(notes: dict[str, Any] | None = None, **columns: pl.Series) -> bytes:
        whole = {
            "series": pl.Series([0], dtype=pl.UInt32),
            "utc_ns": pl.Series([1], dtype=pl.Int64),
            "monotonic_ns": pl.Series([None], dtype=pl.Int64),
            "value": pl.Series([None], dtype=pl.Float64),
        }
        path, out = tmp_path / "x.parquet", io.BytesIO()
        told = {"flopwitness": json.dumps(_NOTES if notes is None else notes)}
        pl.DataFrame({**whole, **columns}).write_parquet(path, metadata=told)
        trace_file._unpack(str(path), out)
        return out.getvalue()

    return unpack_it


def test_an_empty_value_is_missing(unpack: Callable[..., bytes]) -> None:
    (series,) = decode_unpacked(unpack(), where="x").series
    assert np.isnan(series.value).all()
    assert series.monotonic_ns is None


@pytest.mark.parametrize(
    "columns",
    [
        {"series": pl.Series([None], dtype=pl.UInt32)},
        {"series": pl.Series([1], dtype=pl.UInt32)},
        {"series": pl.Series([4_000_000_000], dtype=pl.UInt32)},
        {"series": pl.Series([0], dtype=pl.Int64)},
        {"utc_ns": pl.Series([None], dtype=pl.Int64)},
        {"utc_ns": pl.Series([1.5])},
        {"value": pl.Series(["1"])},
        {"monotonic_ns": pl.Series(["1"])},
    ],
)
def test_the_child_refuses_other_columns(unpack: Callable[..., bytes], columns: dict[str, pl.Series]) -> None:
    with pytest.raises(ValueError, match=r"columns|without a time or a series|belong to no series"):
        unpack(**columns)


@pytest.mark.parametrize("numbers", [[1, 0, 0], [0, 1, 0], [0, 0, 2], [None, 0, 1], [1, None, 0]])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_child_refuses_rows_out_of_order(
    unpack: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch, numbers: list[int | None], size: int
) -> None:
    monkeypatch.setattr(trace_file, "_GROUP_ROWS", size)
    rows = {
        "utc_ns": pl.Series([1, 2, 3], dtype=pl.Int64),
        "monotonic_ns": pl.Series([None] * 3, dtype=pl.Int64),
        "value": pl.Series([1.0, 2.0, 3.0]),
    }
    notes = describe_trace(Trace(series=(_ONE, _ONE)))
    assert unpack(notes, series=pl.Series([0, 1, 1], dtype=pl.UInt32), **rows)
    with pytest.raises(ValueError, match=r"belong to no series|without a time or a series"):
        unpack(notes, series=pl.Series(numbers, dtype=pl.UInt32), **rows)


@pytest.mark.parametrize("notes", [[], {}, {"series": 3}, {"series": [3]}, {"series": [{}]}, {"series": []}])
def test_the_child_refuses_notes_without_series(unpack: Callable[..., bytes], notes: Any) -> None:  # noqa: ANN401
    with pytest.raises((KeyError, TypeError, ValueError)):
        unpack(notes)


def test_the_child_refuses_too_many(unpack: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "_MOST_SERIES", 0)
    with pytest.raises(ValueError, match="1 series"):
        unpack()
    monkeypatch.setattr(trace_file, "_MOST_ROWS", 0)
    with pytest.raises(ValueError, match="1 rows"):
        unpack()


def test_monotonic_times_that_are_missing_in_part_are_refused(unpack: Callable[..., bytes]) -> None:
    notes = json.loads(json.dumps(_NOTES))
    notes["series"][0]["has_monotonic"] = True
    with pytest.raises(DecodeError, match="missing in part"):
        decode_unpacked(unpack(notes), where="x")


def test_the_child_itself_says_why_it_refuses() -> None:
    with pytest.raises(DecodeError, match="found another kind of Parquet file"):
        decode_trace(_parquet({}, series=[0], utc_ns=[1], monotonic_ns=[1], value=[1.0]), where="x")
