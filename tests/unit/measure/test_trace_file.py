"""A trace as one Parquet file: what goes in comes back, and nothing else is believed."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure import trace_file
from flopwitness.measure.samples import (
    Channel,
    Declaration,
    Mark,
    Provenance,
    RunWindow,
    Scope,
    Series,
    Skipped,
    Trace,
)
from flopwitness.measure.trace_file import decode_trace, decode_unpacked, encode_trace, is_trace_file

MakeSeries = Callable[..., Series]
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def trace(make_series: MakeSeries) -> Trace:
    return Trace(
        series=(
            make_series([400, float("nan"), 410.25], device="gpü_0", conversion=0.96),
            make_series([], device="gpu_1"),
            make_series([7, 8], scope=Scope.SWITCH, is_estimate=True, monotonic_s=[3, 4]),
            make_series([55], channel=Channel.UTILISATION_PCT),
        ),
        marks=(Mark(name="power_measurement_start", utc_ns=2**62, where="a.txt:1"),),
        windows=(RunWindow(start_utc_ns=1, stop_utc_ns=None), RunWindow(start_utc_ns=9, stop_utc_ns=3)),
        extent=RunWindow(start_utc_ns=1, stop_utc_ns=2**62),
        declaration=Declaration(
            benchmark="gpt3",
            nodes=4,
            chips=None,
            chip_name="H100",
            other_chip_names=("T4", "A100"),
            differing=("4 and 2 nodes",),
        ),
        skipped=(Skipped(where="a.txt:3", expected="JSON", found="\x1b[2J"),),
        n_skipped=7,
        provenance=(
            Provenance(path="a.txt", format="mlperf-power", digest=digest_bytes(b"a"), size_bytes=1),
        ),
    )


def _is_same(left: Trace, right: Trace) -> bool:
    for one, other in zip(left.series, right.series, strict=True):
        assert (one.device, one.channel, one.scope) == (other.device, other.channel, other.scope)
        assert (one.conversion, one.is_estimate) == (other.conversion, other.is_estimate)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)
        assert (one.monotonic_ns is None) == (other.monotonic_ns is None)
        if one.monotonic_ns is not None and other.monotonic_ns is not None:
            np.testing.assert_array_equal(one.monotonic_ns, other.monotonic_ns)
    names = ("marks", "windows", "extent", "declaration", "skipped", "n_skipped", "provenance")
    return all(getattr(left, name) == getattr(right, name) for name in names)


def test_what_goes_in_comes_back(trace: Trace) -> None:
    data = encode_trace(trace)
    assert is_trace_file(data[:64], "x")
    assert _is_same(decode_trace(data, where="x.parquet"), trace)
    assert encode_trace(decode_trace(data, where="x.parquet")) == data


def test_a_declaration_from_before_several_were_kept_comes_back(trace: Trace) -> None:
    def drop(notes: dict[str, Any]) -> object:
        return [notes["declaration"].pop(name) for name in ("other_chip_names", "differing")]

    decoded = decode_unpacked(_unpacked(trace, drop), where="x.parquet")
    assert decoded.declaration == Declaration(benchmark="gpt3", nodes=4, chip_name="H100")


def test_an_empty_trace_comes_back() -> None:
    assert decode_trace(encode_trace(Trace()), where="x") == Trace()


def test_a_file_from_before_extents_were_kept_has_none(trace: Trace) -> None:
    notes = trace_file._describe(trace)
    del notes["extent"]
    frame, buffer = pl.read_parquet(io.BytesIO(encode_trace(trace))), io.BytesIO()
    frame.write_parquet(buffer, metadata={"flopwitness": json.dumps(notes)})
    decoded = decode_trace(buffer.getvalue(), where="x")
    assert decoded.extent is None
    assert decoded.windows == trace.windows


@pytest.mark.parametrize("head", [b"", b"PAR", b"par1", b":::MLLOG {}"])
def test_other_bytes_are_no_trace_file(head: bytes) -> None:
    assert not is_trace_file(head, "trace.parquet")


def _parquet(metadata: dict[str, str], **columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer, metadata=metadata)
    return buffer.getvalue()


def test_bytes_that_are_no_trace_are_refused(trace: Trace) -> None:
    notes = {"flopwitness": json.dumps(trace_file._describe(Trace()))}
    whole = encode_trace(trace)
    broken = [
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


def _unpacked(trace: Trace, change: Change = lambda notes: None) -> bytes:
    notes = json.loads(json.dumps(trace_file._describe(trace)))
    change(notes)
    counts = [len(series) for series in trace.series]
    columns = [
        np.repeat(np.arange(len(counts), dtype="<u4"), counts),
        *(
            np.concatenate(parts) if parts else np.zeros(0)
            for parts in (
                [series.utc_ns for series in trace.series],
                [np.zeros(len(series), dtype="<i8") for series in trace.series],
                [series.value for series in trace.series],
            )
        ),
    ]
    return json.dumps(notes).encode() + b"\n" + b"".join(column.tobytes() for column in columns)


def _set(*path: str | int, value: object) -> Change:
    def change(notes: dict[str, Any]) -> None:
        place: Any = notes
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def test_untouched_notes_are_accepted(trace: Trace) -> None:
    assert decode_unpacked(_unpacked(trace), where="x").marks == trace.marks


@pytest.mark.parametrize(
    "change",
    [
        _set("spec", value="flopwitness/trace/v2"),
        _set("spec", value=None),
        _set("series", 0, "scope", value="galaxy"),
        _set("series", 0, "channel", value="power_kw"),
        _set("series", 0, "conversion", value=0),
        _set("series", 0, "conversion", value=-1),
        _set("series", 0, "conversion", value="much"),
        _set("series", value=[]),
        _set("series", value=None),
        _set("windows", 0, "start_utc_ns", value="-1"),
        _set("windows", 0, "start_utc_ns", value=str(2**64)),
        _set("windows", 0, "stop_utc_ns", value="soon"),
        _set("windows", 0, "stop_utc_ns", value={}),
        _set("extent", value={"start_utc_ns": "9", "stop_utc_ns": "3"}),
        _set("extent", value={"start_utc_ns": "9"}),
        _set("extent", value=[]),
        _set("extent", "stop_utc_ns", value=None),
        _set("extent", "start_utc_ns", value="-1"),
        _set("marks", 0, "utc_ns", value=str(2**63)),
        _set("marks", value=5),
        _set("declaration", "nodes", value="64"),
        _set("declaration", "nodes", value=-4),
        _set("declaration", "chips", value=10**19),
        _set("declaration", "chips", value=True),
        _set("declaration", value={}),
        _set("declaration", "other_chip_names", value="T4"),
        _set("declaration", "differing", value=[4]),
        _set("n_skipped", value=0),
        _set("n_skipped", value=-3),
        _set("skipped", value=[]),
        _set("provenance", 0, "digest", value="sha256:00"),
        _set("provenance", 0, "size_bytes", value=None),
    ],
)
def test_notes_that_make_no_sense_are_refused(trace: Trace, change: Change) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_unpacked(_unpacked(trace, change), where="x.parquet")
    assert caught.value.where == "x.parquet"


@pytest.mark.parametrize("head", [b"", b"[]", b"null", b"{", b'{"spec":1,"spec":2}', b"\xff"])
def test_notes_that_are_no_object_are_refused(head: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_unpacked(head + b"\n", where="x")


def test_rows_that_do_not_fit_are_refused(trace: Trace, make_series: MakeSeries) -> None:
    whole = _unpacked(trace)
    with pytest.raises(DecodeError, match="unlike length"):
        decode_unpacked(whole + b"\0", where="x")
    with pytest.raises(DecodeError, match="belong to no series"):
        decode_unpacked(_unpacked(Trace(series=trace.series), _set("series", value=[])), where="x")
    backwards = np.array([1, 0], dtype="<u4").tobytes() + bytes(2 * 24)
    notes = _unpacked(Trace(series=(make_series([]), make_series([]))))
    with pytest.raises(DecodeError, match="belong to no series"):
        decode_unpacked(notes + backwards, where="x")
    huge = np.array([4_000_000_000], dtype="<u4").tobytes() + bytes(24)
    with pytest.raises(DecodeError, match="belong to no series"):
        decode_unpacked(notes + huge, where="x")


@pytest.mark.parametrize("utc_ns", [-1, -(2**63), 2**63 - 1])
def test_readings_off_the_calendar_are_refused(make_series: MakeSeries, utc_ns: int) -> None:
    series = make_series([1.0, 2.0])
    series.utc_ns[1] = utc_ns
    with pytest.raises(DecodeError):
        decode_unpacked(_unpacked(Trace(series=(series,))), where="x")


class _Pipe:
    """A standard stream of bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)
        self.said = ""

    def write(self, text: str) -> None:
        self.said += text


@pytest.fixture
def unpack(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], bytes]:
    """The child's whole life, lived in this process and without its limit on memory."""

    def unpack_it(data: bytes) -> bytes:
        out, err = _Pipe(), _Pipe()
        monkeypatch.setattr(trace_file, "bound_memory", lambda: None)
        for name, pipe in (("stdin", _Pipe(data)), ("stdout", out), ("stderr", err)):
            monkeypatch.setattr(sys, name, pipe)
        try:
            trace_file.unpack_trace()
        except SystemExit as ended:
            raise ValueError(f"{ended.code}: {err.said.strip()}") from None
        return out.buffer.getvalue()

    return unpack_it


def test_the_child_hands_on_what_is_there(unpack: Callable[[bytes], bytes], trace: Trace) -> None:
    assert _is_same(decode_unpacked(unpack(encode_trace(trace)), where="x"), trace)


def _table(**columns: pl.Series) -> bytes:
    whole = {
        "series": pl.Series([0], dtype=pl.UInt32),
        "utc_ns": pl.Series([1], dtype=pl.Int64),
        "monotonic_ns": pl.Series([None], dtype=pl.Int64),
        "value": pl.Series([None], dtype=pl.Float64),
    }
    buffer = io.BytesIO()
    notes = json.dumps(trace_file._describe(Trace(series=(_ONE,))))
    pl.DataFrame({**whole, **columns}).write_parquet(buffer, metadata={"flopwitness": notes})
    return buffer.getvalue()


_ONE = Series(
    device="gpu_0",
    channel=Channel.POWER_W,
    scope=Scope.GPU,
    utc_ns=np.array([1], dtype=np.int64),
    value=np.array([np.nan]),
)


def test_an_empty_value_is_missing(unpack: Callable[[bytes], bytes]) -> None:
    (series,) = decode_unpacked(unpack(_table()), where="x").series
    assert np.isnan(series.value).all()


@pytest.mark.parametrize(
    "columns",
    [
        {"series": pl.Series([None], dtype=pl.UInt32)},
        {"utc_ns": pl.Series([None], dtype=pl.Int64)},
        {"utc_ns": pl.Series([1.5])},
        {"series": pl.Series([0], dtype=pl.Int64)},
        {"value": pl.Series(["1"])},
    ],
)
def test_the_child_refuses_other_columns(
    unpack: Callable[[bytes], bytes], columns: dict[str, pl.Series]
) -> None:
    with pytest.raises(ValueError, match=r"^3: "):
        unpack(_table(**columns))


def test_the_child_refuses_what_is_no_trace(
    unpack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"^3: "):
        unpack(b"PAR1")
    with pytest.raises(ValueError, match=r"^3: another kind"):
        unpack(_parquet({}, series=[0]))
    monkeypatch.setattr(trace_file, "_MOST_ROWS", 0)
    with pytest.raises(ValueError, match=r"^3: 1 rows"):
        unpack(_table())


def test_monotonic_times_that_are_missing_in_part_are_refused(unpack: Callable[[bytes], bytes]) -> None:
    notes = trace_file._describe(Trace(series=(_ONE,)))
    notes["series"][0]["has_monotonic"] = True
    frame = pl.DataFrame(
        {
            "series": pl.Series([0], dtype=pl.UInt32),
            "utc_ns": pl.Series([1], dtype=pl.Int64),
            "monotonic_ns": pl.Series([None], dtype=pl.Int64),
            "value": pl.Series([1.0]),
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"flopwitness": json.dumps(notes)})
    with pytest.raises(DecodeError, match="missing in part"):
        decode_unpacked(unpack(buffer.getvalue()), where="x")
