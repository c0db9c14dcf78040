"""Parquet tables: unpacked by a child, read by the rules of plain tables."""

import datetime as dt
import io
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Device, Scope, Timing, Trace
from flopwitness.measure.sources import parquet_table
from flopwitness.measure.sources.parquet_table import (
    FORMATS,
    decode_parquet_table,
    decode_unpacked_table,
    is_parquet_table,
    read_parquet_table,
)
from flopwitness.measure.sources.source import ColumnMap, ReadOptions, Source

SECOND = 10**9


class _Pipe:
    """A standard stream of bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)
        self.said = ""

    def write(self, text: str) -> None:
        self.said += text


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's whole life, lived in this process and without its limit on memory."""

    def unpack(life: Callable[[], None], data: bytes, *, where: str, expected: str) -> bytes:
        out, err = _Pipe(), _Pipe()
        for name, pipe in (("stdin", _Pipe(data)), ("stdout", out), ("stderr", err)):
            monkeypatch.setattr(sys, name, pipe)
        try:
            life()
        except SystemExit:
            raise DecodeError("refused", where=where, expected=expected, found=err.said.strip()) from None
        return out.buffer.getvalue()

    monkeypatch.setattr(parquet_table, "bound_memory", lambda: None)
    monkeypatch.setattr(parquet_table, "unpack_in_child", unpack)


def pack(columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def source(data: bytes = b"", *, options: ReadOptions | None = None) -> Source:
    return Source(blocks=[data], where="t.parquet", device="log", options=options or ReadOptions())


def decode(columns: dict[str, Any], *, options: ReadOptions | None = None) -> Trace:
    return decode_parquet_table(pack(columns), source(options=options))


@pytest.mark.usefixtures("here")
def test_a_table_of_two_gpus() -> None:
    trace = decode(
        {
            "timestamp_epoch": [1.7e9, 1.7e9 + 0.5, 1.7e9 + 1.0],
            "timestamp_utc": ["2023-11-14T22:13:20+00:00", "2023-11-14T22:13:20.500001+00:00", None],
            "power_draw_w": [55.5, None, 300.25],
            "gpu_utilization_pct": [0, 50, None],
            "gpu_uuid": ["GPU-1", "GPU-2", "GPU-1"],
            "gpu_name": ["Example"] * 3,
            "dcgm_power_usage": [55.5, 60.0, 300.25],
        }
    )
    told = [(item.device, item.channel, item.value.tolist()) for item in trace.series]
    assert told[0] == ("GPU-1", Channel.POWER_W, [55.5])  # the third row has no UTC
    assert told[1] == ("GPU-1", Channel.UTILISATION_PCT, [0.0])
    assert (told[2][0], math.isnan(told[2][2][0])) == ("GPU-2", True)
    assert trace.series[2].utc_ns.tolist() == [1_700_000_000_500_001_000]
    assert trace.devices == (
        Device(name="GPU-1", chip_name="Example"),
        Device(name="GPU-2", chip_name="Example"),
    )
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "t.parquet:3")
    assert {item.scope for item in trace.series} == {Scope.GPU}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("times", "name", "first_ns", "timing"),
    [
        ([1_700_000_000_123], "timestamp", 1_700_000_000_123_000_000, Timing.DATED),
        ([1_700_000_000.25], "timestamp", 1_700_000_000_250_000_000, Timing.DATED),
        ([0.5], "time_s", 0, Timing.RELATIVE),
        (["2024-01-01T00:00:00Z"], "timestamp", 1_704_067_200 * SECOND, Timing.DATED),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], "timestamp", 1_704_067_200 * SECOND, Timing.DATED),
        ([dt.datetime(2024, 1, 1)], "timestamp", 1_704_067_200 * SECOND, Timing.DATED),  # noqa: DTZ001 (naive)
        ([b"1700000000".decode()], "epoch_s", 1_700_000_000 * SECOND, Timing.DATED),
    ],
)
def test_times_of_every_type(times: list[Any], name: str, first_ns: int, timing: Timing) -> None:
    (series,) = decode({name: times, "power_w": [1.5]}).series
    assert (series.utc_ns.tolist(), series.timing, series.value.tolist()) == ([first_ns], timing, [1.5])


@pytest.mark.usefixtures("here")
def test_naive_datetimes_stand_in_no_zone_and_that_is_told() -> None:
    trace = decode({"timestamp": [dt.datetime(2024, 1, 1)], "power_w": [1.5]})  # noqa: DTZ001 (naive)
    assert "zone-assumed" in {finding.code for finding in trace.findings}


@pytest.mark.usefixtures("here")
def test_numbers_as_text_are_read_and_others_counted() -> None:
    trace = decode({"time_s": [0, 1, 2, 3], "power_w": ["1.5", "N/A", "much", None]})
    assert np.isnan(trace.series[0].value).tolist() == [False, True, True, True]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "t.parquet:3")


@pytest.mark.usefixtures("here")
def test_the_user_s_columns_reach_the_child() -> None:
    columns = ColumnMap(time="a", channels=(("b", "power_mw"),), device="c")
    trace = decode({"a": [1.0], "b": [2_500], "c": [7]}, options=ReadOptions(columns=columns))
    assert [(item.device, item.value.tolist()) for item in trace.series] == [("log/7", [2.5])]


def test_a_whole_file_is_read_from_its_source_by_a_process_of_its_own() -> None:
    data = pack({"time_s": [0.0], "power_w": [1.0]})
    with pytest.raises(DecodeError):
        read_parquet_table(source(data[:-20]))
    assert read_parquet_table(source(data)).series[0].value.tolist() == [1.0]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "columns",
    [
        {"time_s": [0.0]},
        {"power_w": [1.0]},
        {"chip": ["x"], "duration_s": [1.0], "energy_j": [2.0]},
        {"time_s": [[0.0]], "power_w": [1.0]},
        {"time_s": [2**64 - 1], "power_w": [1.0]},
        {"time_s": [None], "power_w": [1.0]},
        {"time_s": pl.Series([], dtype=pl.Float64), "power_w": pl.Series([], dtype=pl.Float64)},
        {"timestamp": ["never"], "power_w": [1.0]},
        {"timestamp": [dt.date(2024, 1, 1)], "power_w": [1.0]},
    ],
)
def test_other_tables_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(columns)
    assert caught.value.where.startswith("t.parquet")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"time_s,power_w\n0,1\n"])
def test_bytes_that_are_no_parquet_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_parquet_table(data, source())


@pytest.mark.usefixtures("here")
def test_a_map_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        decode({"time_s": [0.0], "power_w": [1.0]}, options=ReadOptions(columns=ColumnMap(time="z")))
    assert "z" in caught.value.found


@pytest.mark.usefixtures("here")
def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_table, "_MOST_ROWS", 1)
    with pytest.raises(DecodeError) as caught:
        decode({"time_s": [0.0, 1.0], "power_w": [1.0, 2.0]})
    assert "2 rows" in caught.value.found


def test_the_format_is_known_by_its_magic_alone() -> None:
    assert is_parquet_table(b"PAR1...", "x")
    assert not is_parquet_table(b"time_s,power_w", "x.parquet")
    assert [known.name for known in FORMATS] == ["parquet-table"]


# What the child sends back


def unpacked(*, body: bytes | None = None, **changed: object) -> bytes:
    notes = {
        "names": ["time_s", "power_w"],
        "n_rows": 2,
        "columns": [{"kind": "number", "texts": []}, {"kind": "whole", "texts": []}],
        **changed,
    }
    columns = np.array([0.0, 1.0]).tobytes() + np.array([3, 4], dtype="<i8").tobytes()
    return json.dumps(notes).encode() + b"\n" + (columns if body is None else body)


def test_what_the_child_sends_is_read() -> None:
    (series,) = decode_unpacked_table(unpacked(), source()).series
    assert (series.value.tolist(), series.utc_ns.tolist()) == ([3.0, 4.0], [0, SECOND])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\n",
        b"[1]\n",
        unpacked(n_rows=-1),
        unpacked(n_rows=3),
        unpacked(n_rows=10**12),
        unpacked(n_rows="2"),
        unpacked(names=["time_s"]),
        unpacked(names=[1, 2]),
        unpacked(names="time_s"),
        unpacked(columns=[]),
        unpacked(columns=[{"kind": "number", "texts": []}, {"kind": "float", "texts": []}]),
        unpacked(columns=[{"kind": "text", "texts": []}, {"kind": "whole", "texts": []}]),
        unpacked(body=b""),
        unpacked(body=b"x" * 33),
    ],
)
def test_anything_else_from_the_child_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_unpacked_table(data, source())


def test_a_map_that_does_not_fit_is_refused_here_too() -> None:
    with pytest.raises(DecodeError):
        decode_unpacked_table(unpacked(), source(options=ReadOptions(columns=ColumnMap(time="z"))))
