"""Redfish documents: one, a list, or many in a row; totals and parts are kept apart and never added."""

import json
import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources import redfish
from flopwitness.measure.sources.redfish import FORMATS
from flopwitness.measure.sources.source import Source

NINE = 1_747_213_200 * 10**9


def _power(*members: dict[str, object], chassis: str = "1U") -> dict[str, object]:
    return {"@odata.id": f"/redfish/v1/Chassis/{chassis}/Power", "PowerControl": list(members)}


def _member(watts: object = 412, **further: object) -> dict[str, object]:
    return {"MemberId": "0", "PowerConsumedWatts": watts, **further}


def _environment(watts: object = 412.5, chassis: str = "1U", **further: object) -> dict[str, object]:
    return {
        "@odata.id": f"/redfish/v1/Chassis/{chassis}/EnvironmentMetrics",
        "PowerWatts": {"Reading": watts},
        **further,
    }


def _report(*values: dict[str, object]) -> dict[str, object]:
    return {"@odata.type": "#MetricReport.v1_3_0.MetricReport", "MetricValues": list(values)}


def _value(
    watts: object, *, at: str = "2025-05-14T09:00:00Z", name: str = "PowerConsumedWatts"
) -> dict[str, object]:
    path = f"/redfish/v1/Chassis/1U/Power#/PowerControl/0/{name}"
    return {"MetricId": "x", "MetricValue": watts, "Timestamp": at, "MetricProperty": path}


def _decode(*documents: object, joined: str = "\n") -> Trace:
    text = joined.join(one if isinstance(one, str) else json.dumps(one) for one in documents)
    return FORMATS[0].decode(Source(blocks=[text.encode()], where="r.json", device="bmc"))


def _figures(trace: Trace) -> list[tuple[str, Channel, Scope, str, list[float]]]:
    return [(s.device, s.channel, s.scope, s.part, s.value.tolist()) for s in trace.series]


def _one(trace: Trace) -> Series:
    (series,) = trace.series
    return series


def test_a_power_document_tells_power_average_and_limit() -> None:
    metrics = {
        "IntervalInMin": 5,
        "AverageConsumedWatts": 408,
        "MinConsumedWatts": 1,
        "MaxConsumedWatts": 999,
    }
    trace = _decode(
        _power(_member(PowerMetrics=metrics, PowerLimit={"LimitInWatts": 900}, PowerCapacityWatts=2_000))
    )
    assert _figures(trace) == [
        ("bmc/1U", Channel.POWER_W, Scope.NODE, "", [412.0]),
        ("bmc/1U", Channel.POWER_AVERAGE_W, Scope.NODE, "", [408.0]),
        ("bmc/1U", Channel.POWER_LIMIT_W, Scope.NODE, "", [900.0]),
    ]
    assert trace.series[1].averaged_s == 300.0
    assert trace.series[0].timing is Timing.COUNTED


@pytest.mark.parametrize("joined", ["\n", "", "\r\n\r\n", ",\n", " "])
def test_documents_in_a_row_are_numbered(joined: str) -> None:
    trace = _decode(*(json.dumps(_power(_member(400 + n)), indent=2) for n in range(3)), joined=joined)
    series = _one(trace)
    assert series.value.tolist() == [400.0, 401.0, 402.0]
    assert series.utc_ns.tolist() == [0, 10**9, 2 * 10**9]
    assert trace.n_skipped == 0


def test_a_list_is_read_like_a_row() -> None:
    assert _one(_decode([_power(_member(n)) for n in (1, 2)])).value.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("time", "time_ns"),
    [
        (1_747_213_200, NINE),
        (1_747_213_200.5, NINE + 500_000_000),
        (1_747_213_200_500, NINE + 500_000_000),
        ("2025-05-14T09:00:00Z", NINE),
        ("2025-05-14T11:00:00+02:00", NINE),
        ("1747213200", NINE),
    ],
)
def test_a_wrapper_adds_a_time_and_a_host(time: object, time_ns: int) -> None:
    trace = _decode({"Timestamp": time, "Host": "node-7", "body": {"data": [_power(_member())]}})
    series = _one(trace)
    assert (series.device, series.utc_ns.tolist(), series.timing) == ("node-7/1U", [time_ns], Timing.DATED)


@pytest.mark.parametrize("time", [None, True, "soon", -5, 12.5, 1e300, [1_747_213_200]])
def test_what_is_no_time_dates_nothing(time: object) -> None:
    assert _one(_decode({"time": time, "body": _power(_member())})).timing is Timing.COUNTED


def test_documents_without_the_time_that_others_have_are_skipped() -> None:
    trace = _decode({"time": 1_747_213_200, "body": _power(_member(5))}, _power(_member(6)))
    assert _one(trace).value.tolist() == [5.0]
    assert [skipped.where for skipped in trace.skipped] == ["r.json:2"]


def test_several_members_are_parts_and_nothing_is_added() -> None:
    trace = _decode(_power(_member(400), _member(100, MemberId="1")))
    assert [(one.part, one.value.tolist()) for one in trace.series] == [("0", [400.0]), ("1", [100.0])]


def test_environment_metrics_tell_power_energy_and_limit() -> None:
    trace = _decode(
        _environment(412.5, EnergykWh={"Reading": 2.5}, PowerLimitWatts={"SetPoint": 900}),
        _environment(700, chassis="HGX_GPU_SXM_1"),
    )
    assert _figures(trace) == [
        ("bmc/1U", Channel.POWER_W, Scope.NODE, "", [412.5]),
        ("bmc/1U", Channel.ENERGY_COUNTER_J, Scope.NODE, "", [9e6]),
        ("bmc/1U", Channel.POWER_LIMIT_W, Scope.NODE, "", [900.0]),
        ("bmc/HGX_GPU_SXM_1", Channel.POWER_W, Scope.GPU, "", [700.0]),
    ]


def test_the_finer_of_two_spellings_of_one_counter_is_taken() -> None:
    trace = _decode(_environment(5, EnergykWh={"Reading": 2}, EnergyJoules={"Reading": 7_200_001}))
    assert trace.series[1].value.tolist() == [7_200_001.0]
    assert len(trace.series) == 2


def test_sensors_are_read_and_other_sensors_passed_over() -> None:
    total = {"@odata.id": "/redfish/v1/Chassis/1U/Sensors/TotalPower", "Id": "TotalPower", "Reading": 374}
    fan = {"Id": "Fan1", "Reading": 4_000, "ReadingUnits": "RPM"}
    trace = _decode([{**total, "ReadingUnits": "W", "PhysicalContext": "Chassis"}, fan])
    assert _figures(trace) == [("bmc/1U", Channel.POWER_W, Scope.NODE, "", [374.0])]
    assert trace.n_skipped == 0


def test_a_report_is_read_by_its_metrics() -> None:
    trace = _decode(
        _report(
            _value("100.5"),
            _value("101.5", at="2025-05-14T09:01:00Z"),
            _value("99", name="PowerMetrics/AverageConsumedWatts"),
            _value("98", at="2025-05-14T09:30:00Z", name="PowerMetrics/AverageConsumedWatts"),
            _value("55", name="Temperature"),
        )
    )
    power, average = trace.series
    assert power.utc_ns.tolist() == [NINE, NINE + 60 * 10**9]
    assert power.value.tolist() == [100.5, 101.5]
    assert (average.value.tolist(), average.averaged_s) == ([99.0, 98.0], 1_800.0)
    assert trace.n_skipped == 0


@pytest.mark.parametrize("value", [None, "null", "N/A", ""])
def test_a_missing_reading_is_missing(value: object) -> None:
    trace = _decode(_power(_member(value)), _power(_member(5)))
    assert math.isnan(_one(trace).value[0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("value", [True, [412], {"w": 5}, "high", "1e999"])
def test_what_is_no_number_is_skipped_with_its_place(value: object) -> None:
    trace = _decode(_power(_member(5)), _power(_member(value)))
    assert _one(trace).value.tolist() == [5.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "r.json:2")


def test_a_negative_power_is_left_out_and_told() -> None:
    trace = _decode(_power(_member(5)), _power(_member(-5)))
    assert math.isnan(_one(trace).value[1])
    assert "values-impossible" in {finding.code for finding in trace.findings}


@pytest.mark.parametrize(
    "torn",
    [
        '{"PowerControl": [',
        "<html>502 Bad Gateway</html>",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "12",
        '"x"',
        "{'a': 1}",
    ],
)
def test_what_is_no_strict_json_is_skipped_with_its_line(torn: str) -> None:
    trace = _decode(json.dumps(_power(_member(5)), indent=1), torn, _power(_member(6)))
    assert _one(trace).value.tolist() == [5.0, 6.0]
    assert trace.n_skipped == 1
    assert trace.skipped[0].found.startswith(torn[:8])
    assert trace.skipped[0].where == f"r.json:{json.dumps(_power(_member(5)), indent=1).count(chr(10)) + 2}"


@pytest.mark.parametrize(
    "documents",
    [
        [],
        ["[]"],
        ["{}"],
        ["not json"],
        [_power()],
        [{"PowerControl": [5, None]}],
        [_report()],
        [_report({"MetricId": "x"})],
    ],
)
def test_json_without_a_power_is_refused(documents: list[object]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*documents)
    assert caught.value.where == "r.json:1"
    assert "Redfish" in caught.value.expected


def test_nesting_without_end_is_no_document() -> None:
    with pytest.raises(DecodeError):
        _decode("[" * 100_000)
    deep: object = _power(_member(5))
    for _ in range(redfish._DEEPEST + 1):
        deep = {"a": deep}
    with pytest.raises(DecodeError):
        _decode(deep)


def test_too_much_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish, "_MOST_BROKEN", 3)
    assert _decode(_power(_member(5)), *["{"] * 3).n_skipped == 3
    with pytest.raises(DecodeError, match="no JSON"):
        _decode(_power(_member(5)), *["{"] * 4)


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (json.dumps(_power(_member())), True),
        (json.dumps([_environment()], indent=4), True),
        (json.dumps(_report()), True),
        ('{"Reading": 5, "ReadingUnits": "W"}', True),
        ('{"number_of_nodes": 1}', False),
        ('{"power_w": 5}', False),
        (' "PowerConsumedWatts"', False),
        ("", False),
    ],
)
def test_it_is_known_by_names_of_redfish(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
