"""Power logs: readings as they stand, missing ones missing."""

import json
import math

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, RunWindow, Scope, Trace
from flopwitness.measure.sources import power_log
from flopwitness.measure.sources.power_log import decode_power_log, scope_from_name
from flopwitness.measure.sources.source import ReadOptions, Source

STRICT = "one strict JSON object after :::MLLOG"


def _line(key: str, value: object, *, time_ms: int = 1_000, metadata: object = "") -> str:
    return ":::MLLOG " + json.dumps({"time_ms": time_ms, "key": key, "value": value, "metadata": metadata})


def _decode(*lines: str, scope: Scope = Scope.NODE) -> Trace:
    data = "\n".join(lines).encode()
    options = ReadOptions(scope=scope)
    return decode_power_log(Source(blocks=[data], where="n.txt", device="node_1", options=options))


def test_readings_come_back_in_the_order_of_the_log() -> None:
    trace = _decode(
        _line("power_measurement_start", "null", time_ms=5),
        _line("power_reading", 30, time_ms=20),
        _line("power_reading", 10.5, time_ms=10),
        _line("power_reading", 11, time_ms=10),
        _line("power_measurement_stop", None, time_ms=5),
        scope=Scope.NODE_AC,
    )
    (series,) = trace.series
    assert (series.device, series.channel, series.scope) == ("node_1", Channel.POWER_W, Scope.NODE_AC)
    assert series.utc_ns.tolist() == [20_000_000, 10_000_000, 10_000_000]
    assert series.value.tolist() == [30.0, 10.5, 11.0]
    assert (series.conversion, series.is_estimate, series.monotonic_ns) == (1.0, False, None)
    assert [(mark.name, mark.utc_ns, mark.where) for mark in trace.marks] == [
        ("power_measurement_start", 5_000_000, "n.txt:1"),
        ("power_measurement_stop", 5_000_000, "n.txt:5"),
    ]
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "value",
    [None, "null", "2090", True, -1, -0.001, [5], {"w": 5}, 10**400],
    ids=lambda value: str(value)[:9],
)
def test_what_is_no_power_is_missing_and_counted_never_zero(value: object) -> None:
    trace = _decode(_line("power_reading", 5), _line("power_reading", value, time_ms=2_000))
    (series,) = trace.series
    assert series.value[0] == 5
    assert math.isnan(series.value[1])
    assert series.utc_ns.tolist() == [10**9, 2 * 10**9]
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "n.txt:2"
    assert "power" in trace.skipped[0].expected


def test_events_of_other_logs_give_an_extent_and_readings_none() -> None:
    own = [
        _line("power_measurement_start", None, time_ms=1),
        _line("power_reading", 5, time_ms=2),
        _line("interconnect_power_est", 5, time_ms=3),
        _line("conversion_eff", 0.9, time_ms=4),
    ]
    assert _decode(*own).extent is None
    others = [_line("run_stop", None, time_ms=7_000), _line("eval_stop", None, time_ms=5_000)]
    assert _decode(*own, *others).extent == RunWindow(start_utc_ns=5 * 10**9, stop_utc_ns=7 * 10**9)


def test_a_power_of_zero_is_a_reading() -> None:
    trace = _decode(_line("power_reading", 0))
    assert trace.series[0].value.tolist() == [0.0]
    assert trace.n_skipped == 0


def test_unreadable_lines_are_counted_beside_the_readings() -> None:
    trace = _decode(_line("power_reading", 5), ":::MLLOG {", ':::MLLOG {"key":"power_reading","value":9}')
    assert trace.n_skipped == 2
    assert [skipped.where for skipped in trace.skipped] == ["n.txt:2", "n.txt:3"]
    assert len(trace.series[0]) == 1


def test_the_conversion_factor_travels_beside_unconverted_readings() -> None:
    (series,) = _decode(_line("power_reading", 100), _line("conversion_eff", 0.94)).series
    assert series.conversion == 0.94
    assert series.value.tolist() == [100.0]


@pytest.mark.parametrize("factor", [0, -0.5, None, "0.9", True])
def test_a_factor_that_is_none_is_skipped(factor: object) -> None:
    trace = _decode(_line("conversion_eff", factor), _line("power_reading", 100))
    assert trace.series[0].conversion == 1.0
    assert trace.n_skipped == 1


def test_a_second_factor_counts_as_the_format_says_and_is_reported() -> None:
    trace = _decode(_line("conversion_eff", 0.9), _line("conversion_eff", 0.5), _line("power_reading", 100))
    assert trace.series[0].conversion == 0.5
    assert trace.n_skipped == 1
    assert "0.9" in trace.skipped[0].expected


def test_the_same_factor_twice_is_nothing_to_report() -> None:
    trace = _decode(_line("conversion_eff", 0.9), _line("conversion_eff", 0.9), _line("power_reading", 100))
    assert (trace.series[0].conversion, trace.n_skipped) == (0.9, 0)


def test_a_switch_estimate_is_a_series_of_its_own() -> None:
    estimate = _line("interconnect_power_est", 59_570, metadata={"switch_id": "sw_01"})
    node, switch = _decode(estimate, _line("power_reading", 7), scope=Scope.NODE_DC).series
    assert (node.scope, node.is_estimate) == (Scope.NODE_DC, False)
    assert (switch.device, switch.scope, switch.is_estimate) == ("sw_01", Scope.SWITCH, True)
    assert switch.value.tolist() == [59_570.0]


@pytest.mark.parametrize("metadata", ["", None, {}, {"switch_id": 3}, {"switch_id": "s" * 500}])
def test_a_switch_without_a_usable_name_takes_the_name_of_its_file(metadata: object) -> None:
    (switch,) = _decode(_line("interconnect_power_est", 1, metadata=metadata)).series
    assert switch.device == "node_1"


def test_one_host_in_a_log_is_the_node_of_the_file() -> None:
    (series,) = _decode(_line("power_reading", 1, metadata={"host": "a"})).series
    assert series.device == "node_1"


def test_several_hosts_in_one_log_are_several_nodes() -> None:
    series = _decode(
        _line("power_reading", 1, metadata={"host": "b"}),
        _line("power_reading", 2, metadata={"host": "a"}),
        _line("power_reading", 3, metadata={"host": "b"}),
        _line("power_reading", 4),
    ).series
    assert [(one.device, one.value.tolist()) for one in series] == [
        ("node_1/b", [1.0, 3.0]),
        ("node_1/a", [2.0]),
        ("node_1", [4.0]),
    ]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["nothing"], "no :::MLLOG line"),
        ([], "no :::MLLOG line"),
        ([_line("run_start", None)], "1 other events and 0 unreadable lines"),
        (
            [_line("power_measurement_start", None), ":::MLLOG {"],
            f"1 other events and 1 unreadable lines; the first, at n.txt:2, should hold {STRICT}",
        ),
        ([_line("conversion_eff", 0.9)], "0 other events"),
    ],
)
def test_a_log_without_a_reading_is_refused_with_its_place(lines: list[str], found: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "n.txt:1"
    assert "power_reading" in caught.value.expected
    if "conversion" not in "".join(lines):
        assert caught.value.found == found


def test_more_devices_or_marks_than_a_log_may_name_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_log, "MOST_PER_LOG", 2)
    hosts = [_line("power_reading", 1, metadata={"host": name}) for name in "abcd"]
    marks = [_line("power_measurement_start", None)] * 3
    trace = _decode(*hosts, *marks)
    assert (len(trace.series), len(trace.marks), trace.n_skipped) == (2, 2, 3)


def test_times_and_values_have_the_types_that_a_series_promises() -> None:
    (series,) = _decode(_line("power_reading", 1)).series
    assert series.utc_ns.dtype == np.int64
    assert series.value.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("gpt3/power_ac/node_1.txt", Scope.NODE_AC),
        ("gpt3/power_dc/nodes.tar.gz!node_1.txt", Scope.NODE_DC),
        ("POWER-AC.zip!n.txt", Scope.NODE_AC),
        ("power_ac/power_dc/n.txt", Scope.NODE_DC),
        ("power_dc_1.txt", Scope.NODE_DC),
        ("power/node_1.txt", None),
        ("power_account/n.txt", None),
        ("node_ac.txt", None),
        ("", None),
    ],
)
def test_the_side_of_the_supply_is_read_off_the_innermost_name(name: str, scope: Scope | None) -> None:
    assert scope_from_name(name) == scope
