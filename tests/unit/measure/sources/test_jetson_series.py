"""Time series of one run: each channel at its own times, the run between its marks."""

import json

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, RunWindow, Scope, Timing, Trace
from flopwitness.measure.sources.jetson_series import FORMATS, decode_jetson_series
from flopwitness.measure.sources.source import Source

(FORMAT,) = FORMATS
SECOND_NS = 10**9
POWER = [[0.0, 990.5], [0.502, 8120.0]]


def _decode(**record: object) -> Trace:
    return _decode_bytes(json.dumps(record).encode())


def _decode_bytes(data: bytes) -> Trace:
    return decode_jetson_series(Source(blocks=[data[:9], data[9:]], where="s.json", device="orin"))


def test_each_channel_has_its_own_times() -> None:
    trace = _decode(power_mw=POWER, gpu_pct=[[0.25, 97.5]], dram_bytes_s=[[0.125, 4.2e8], [0.5, 0]])
    found = {
        (item.channel, item.scope, item.part): (item.utc_ns.tolist(), item.value.tolist())
        for item in trace.series
    }
    assert found == {
        (Channel.POWER_W, Scope.RAIL, "VDD_CPU_GPU_CV"): ([0, 502_000_000], [0.9905, 8.12]),
        (Channel.UTILISATION_PCT, Scope.GPU, ""): ([SECOND_NS // 4], [97.5]),
        (Channel.MEMORY_TRAFFIC_BYTE_PER_S, Scope.MODULE, ""): (
            [SECOND_NS // 8, SECOND_NS // 2],
            [4.2e8, 0],
        ),
    }
    assert {(item.device, item.timing) for item in trace.series} == {("orin", Timing.RELATIVE)}


def test_times_count_from_the_earliest_of_all_for_readings_marks_and_the_run_alike() -> None:
    trace = _decode(power_mw=[[7.0, 1], [6.0, 2]], gpu_pct=[[8.0, 3]], t_launch=5.5, t_start=6.5, t_end=7.5)
    power, gpu = trace.series
    assert power.utc_ns.tolist() == [3 * SECOND_NS // 2, SECOND_NS // 2]
    assert gpu.utc_ns.tolist() == [5 * SECOND_NS // 2]
    assert trace.windows == (RunWindow(start_utc_ns=SECOND_NS, stop_utc_ns=2 * SECOND_NS),)
    assert [(mark.name, mark.utc_ns) for mark in trace.marks] == [
        ("t_launch", 0),
        ("t_start", SECOND_NS),
        ("t_end", 2 * SECOND_NS),
    ]


def test_a_run_without_an_end_was_cut_short() -> None:
    trace = _decode(power_mw=POWER, t_start=0.25)
    assert trace.windows == (RunWindow(start_utc_ns=SECOND_NS // 4, stop_utc_ns=None),)


@pytest.mark.parametrize("marks", [{}, {"t_end": 5}, {"t_launch": 5}, {"t_start": None, "t_end": 5}])
def test_without_a_start_no_run_is_marked(marks: dict[str, object]) -> None:
    assert _decode(power_mw=POWER, **marks).windows == ()


@pytest.mark.parametrize("value", ["5", True, [5], {}, 1e300, -2e9, 10**400])
@pytest.mark.parametrize("name", ["t_start", "t_end"])
def test_a_mark_that_is_no_time_is_told_and_marks_no_run(name: str, value: object) -> None:
    trace = _decode(**{"power_mw": POWER, "t_start": 0.25, "t_end": 0.5, name: value})
    assert trace.windows == ()
    assert len(trace.marks) == trace.n_skipped == 1
    assert name in trace.skipped[0].expected


@pytest.mark.parametrize(
    "pair",
    [None, 5, [], [1], [1, 2, 3], ["1", 2], [1, "2"], [None, 2], [True, 2], [1, False], [1, [2]], [1e12, 2]],
)
def test_a_pair_that_is_none_is_told_with_its_place(pair: object) -> None:
    trace = _decode(power_mw=[[0.0, 1_000], pair, [1.0, 2_000]])
    assert trace.series[0].value.tolist() == [1, 2]
    assert [skipped.where for skipped in trace.skipped] == ["s.json:1"]
    assert trace.skipped[0].expected == "a pair of numbers, time and value, at power_mw[1]"


def test_null_is_a_missing_reading_at_its_time() -> None:
    trace = _decode(power_mw=[[0.0, 1_000], [0.5, None]])
    np.testing.assert_array_equal(trace.series[0].value, [1, np.nan])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("value", [-5, 1e300, 10**400])
def test_a_value_that_no_sensor_gives_is_left_out_and_told(value: float) -> None:
    trace = _decode(power_mw=[[0.0, 1_000], [0.5, value]])
    np.testing.assert_array_equal(trace.series[0].value, [1, np.nan])
    assert "values-impossible" in [finding.code for finding in trace.findings]


@pytest.mark.parametrize("value", [5, "x", None, {"a": 1}, True])
def test_a_channel_that_is_no_list_is_told(value: object) -> None:
    trace = _decode(power_mw=POWER, gpu_pct=value)
    assert [item.channel for item in trace.series] == [Channel.POWER_W]
    assert trace.n_skipped == 1


def test_names_that_nobody_knows_are_passed_over() -> None:
    trace = _decode(power_mw=POWER, soc_mw=[[0, 1]], board={"name": "x"}, version=3)
    assert (len(trace.series), trace.n_skipped) == (1, 0)


def test_memory_traffic_is_told_to_be_uncalibrated() -> None:
    trace = _decode(power_mw=POWER, dram_bytes_s=[[0, 1], [1, 2], [2, 3]])
    counts = {finding.code: finding.count for finding in trace.findings}
    assert counts == {"memory-traffic-uncalibrated": 3, "times-undated": 1}
    assert [finding.code for finding in _decode(power_mw=POWER).findings] == ["times-undated"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"5",
        b'{"power_mw": []}',
        b'{"power_mw": [[0]]}',
        b'{"t_start": 5, "t_end": 6}',
        b'{"power_mw": [[0, 1]]',
        b'{"power_mw": [[0, NaN]]}',
        b'{"power_mw": [[0, 1]], "power_mw": [[0, 2]]}',
        b"[" * 100_000,
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_a_file_without_a_reading_is_refused_with_its_place(data: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode_bytes(data)
    assert caught.value.where.startswith("s.json")


@pytest.mark.parametrize("name", ["power_mw", "gpu_pct", "dram_bytes_s"])
def test_a_file_is_known_by_any_of_its_channels(name: str) -> None:
    assert FORMAT.is_it(json.dumps({"x": 1, name: [[0, 1]]}).encode(), "")
    assert FORMAT.is_it(json.dumps({name: [[0, 1]]}, indent=2).encode()[:40], "")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b'{"power_mw": 5}',
        b'{"power_mw": []}',
        b'{"power_mw": [1, 2]}',
        b'[{"power_mw": [[0, 1]]}]',
        b'x{"power_mw": [[0, 1]]}',
        b'{"number_of_nodes": "2"}',
        b'{"power_w": [[0, 1]]}',
    ],
)
def test_other_files_are_not_taken_for_it(head: bytes) -> None:
    assert not FORMAT.is_it(head, "timeseries.json")
