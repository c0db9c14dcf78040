"""Notes of a trace file: what goes in comes back, older notes are understood, and nonsense is refused."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration, Series, Timing, Trace
from flopwitness.measure.trace_columns import Columns
from flopwitness.measure.trace_notes import SPEC, describe_trace, rebuild_trace

Change = Callable[[dict[str, Any]], object]
REFUSALS = (DecodeError, KeyError, TypeError, ValueError, AttributeError, OverflowError)


def _columns(series: Series) -> Columns:
    return Columns(utc_ns=series.utc_ns, value=series.value, monotonic_ns=series.monotonic_ns)


def _rebuild(trace: Trace, change: Change = lambda notes: None) -> Trace:
    notes = json.loads(json.dumps(describe_trace(trace)))
    change(notes)
    return rebuild_trace(notes, list(map(_columns, trace.series)), where="x.parquet")


def test_everything_comes_back(full_trace: Trace) -> None:
    series = tuple(
        replace(item, part="VDD_GPU", timing=Timing.RELATIVE, averaged_s=1.5, counter_range_j=9e6)
        for item in full_trace.series
    )
    trace = replace(full_trace, series=series)
    rebuilt = _rebuild(trace)
    for one, other in zip(rebuilt.series, trace.series, strict=True):
        for field in fields(Series):
            ours, theirs = getattr(one, field.name), getattr(other, field.name)
            assert ours is theirs or ours == theirs, field.name
    assert replace(rebuilt, series=()) == replace(trace, series=())


def test_notes_are_json_that_holds_no_long_number(full_trace: Trace) -> None:
    notes = describe_trace(full_trace)
    assert notes["spec"] == SPEC
    assert notes["marks"][0]["utc_ns"] == str(2**62)
    assert json.loads(json.dumps(notes)) == notes


def test_older_notes_lack_what_was_not_kept_then(full_trace: Trace) -> None:
    def drop(notes: dict[str, Any]) -> None:
        for name in ("extent", "devices", "findings"):
            del notes[name]
        for name in ("other_chip_names", "differing"):
            del notes["declaration"][name]
        for item in notes["series"]:
            for name in ("part", "timing", "averaged_s", "counter_range_j"):
                del item[name]

    rebuilt = _rebuild(full_trace, drop)
    assert (rebuilt.extent, rebuilt.devices, rebuilt.findings) == (None, (), ())
    assert rebuilt.declaration == Declaration(benchmark="gpt3", nodes=4, chip_name="H100")
    assert rebuilt.windows == full_trace.windows
    assert {item.timing for item in rebuilt.series} == {Timing.DATED}
    assert {(item.part, item.averaged_s, item.counter_range_j) for item in rebuilt.series} == {("", 0, None)}


def _set(*path: str | int, value: object) -> Change:
    def change(notes: dict[str, Any]) -> None:
        place: Any = notes
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


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
        _set("series", 0, "has_monotonic", value=True),
        _set("series", 2, "has_monotonic", value=False),
        _set("series", 0, "timing", value="soon"),
        _set("series", 0, "averaged_s", value=-1),
        _set("series", 0, "counter_range_j", value=0),
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
        _set("devices", 0, value={"name": "x"}),
        _set("devices", value=3),
        _set("findings", 0, "code", value="Not A Code"),
        _set("findings", 0, "count", value=0),
        _set("findings", 0, "count", value="2"),
        _set("findings", 0, "severity", value="loud"),
    ],
)
def test_notes_that_make_no_sense_are_refused(full_trace: Trace, change: Change) -> None:
    assert _rebuild(full_trace).n_skipped == 7
    with pytest.raises(REFUSALS):
        _rebuild(full_trace, change)


@pytest.mark.parametrize("n_columns", [0, 3, 5])
def test_each_series_has_columns(full_trace: Trace, n_columns: int) -> None:
    one = Columns(utc_ns=np.zeros(0, dtype=np.int64), value=np.zeros(0), monotonic_ns=None)
    with pytest.raises(ValueError, match=r"argument 2|monotonic"):
        rebuild_trace(describe_trace(replace(full_trace)), [one] * n_columns, where="x")
