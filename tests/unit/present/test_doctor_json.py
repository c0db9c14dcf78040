"""What a recording holds, as a program reads it."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.host_energy import measure_hosts
from flopwitness.measure.inventory import list_readings
from flopwitness.measure.samples import Channel, Device, Provenance, RunWindow, Scope, Series, Timing, Trace
from flopwitness.present.doctor_json import render_doctor
from flopwitness.present.safe_text import encode_answer

MakeSeries = Callable[..., Series]


def _record(trace: Trace, findings: Sequence[Finding] = ()) -> Any:  # noqa: ANN401 (JSON)
    return json.loads(
        encode_answer(render_doctor(trace, list_readings(trace), measure_hosts(trace), findings))
    )


def test_the_whole_record(make_series: MakeSeries) -> None:
    digest = digest_bytes(b"x")
    series = replace(make_series([400.0, 410.0, 405.0], device="gpu0"), part="rail", averaged_s=1.0)
    trace = Trace(
        series=(series,),
        provenance=(Provenance(path="a.csv", format="nvidia-smi-csv", digest=digest, size_bytes=5),),
        devices=(Device(name="gpu0", chip_name="H100", host="h", driver="550", is_shared=True),),
        windows=(RunWindow(start_utc_ns=0, stop_utc_ns=None),) * 2,
        n_skipped=3,
    )
    told = Finding(code="gap", severity=Severity.WARNING, message="m", where="gpu0", count=2)
    assert _record(trace, [told]) == {
        "spec": "flopwitness/doctor/v1",
        "inputs": [{"path": "a.csv", "format": "nvidia-smi-csv", "digest": str(digest), "size_bytes": 5}],
        "devices": [{"name": "gpu0", "chip_name": "H100", "host": "h", "driver": "550", "is_shared": True}],
        "readings": [
            {
                "device": "gpu0",
                "channel": "power_w",
                "scope": "gpu",
                "part": "rail",
                "n_readings": 3,
                "n_missing": 0,
                "start_utc": "2023-11-14T22:13:20Z",
                "duration_s": 2.0,
                "period_s": 1.0,
                "coverage": 1.0,
                "low": 400.0,
                "high": 410.0,
                "grade": "fair",
                "doubts": ["may be a mean over 1 s"],
            }
        ],
        "hosts": [],
        "n_runs": 2,
        "n_skipped": 3,
        "findings": [
            {
                "code": "gap",
                "severity": "warning",
                "count": 2,
                "message": "m",
                "where": "gpu0",
                "expected": "",
                "found": "",
                "reproduce": "",
            }
        ],
    }


def test_an_empty_recording_is_an_empty_record() -> None:
    record = _record(Trace())
    assert record.pop("spec") == "flopwitness/doctor/v1"
    assert record == {
        "inputs": [],
        "devices": [],
        "readings": [],
        "hosts": [],
        "n_runs": 0,
        "n_skipped": 0,
        "findings": [],
    }


@pytest.mark.parametrize("values", [[], [math.nan], [math.nan] * 5, [math.inf, -math.inf]])
def test_a_number_that_nobody_knows_is_null(make_series: MakeSeries, values: list[float]) -> None:
    (reading,) = _record(Trace(series=(make_series(values),)))["readings"]
    assert (reading["low"], reading["high"]) == (None, None)
    assert (reading["period_s"] is None) is (len(values) < 2)
    assert (reading["n_readings"], reading["n_missing"]) == (len(values), len(values))


@pytest.mark.parametrize("timing", [Timing.RELATIVE, Timing.COUNTED])
def test_times_without_a_date_have_no_start(make_series: MakeSeries, timing: Timing) -> None:
    trace = Trace(series=(replace(make_series([400.0] * 5), timing=timing),))
    assert _record(trace)["readings"][0]["start_utc"] is None


@pytest.mark.parametrize("shift_ns", [-2 * 10**18, 2**62])
def test_a_date_on_no_calendar_is_null(make_series: MakeSeries, shift_ns: int) -> None:
    series = make_series([400.0] * 5)
    reading = _record(Trace(series=(replace(series, utc_ns=series.utc_ns + shift_ns),)))["readings"][0]
    assert (reading["start_utc"] is None) is (shift_ns < 0)
    assert reading["duration_s"] == 4.0


def test_readings_stand_in_the_order_of_the_recording(make_series: MakeSeries) -> None:
    series = [
        make_series([4.0] * 3, device="b", channel=Channel.CLOCK_HZ),
        make_series([4.0] * 3, device="a", scope=Scope.NODE_AC),
    ]
    readings = _record(Trace(series=tuple(series)))["readings"]
    assert [(each["device"], each["channel"], each["scope"]) for each in readings] == [
        ("b", "clock_hz", "gpu"),
        ("a", "power_w", "node-ac"),
    ]


def test_names_of_every_kind_are_written(make_series: MakeSeries) -> None:
    evil = "x\x1b[2J\n\u202e\ud800\x00"
    trace = Trace(series=(make_series([4.0], device=evil),), devices=(Device(name=evil, chip_name=evil),))
    text = encode_answer(render_doctor(trace, list_readings(trace), measure_hosts(trace), []))
    assert not {"\x1b", "\u202e", "\ud800"} & set(text)
    assert json.loads(text)["devices"][0]["name"] == evil


def test_a_host_has_its_energy_and_null_for_what_is_not_known(make_series: MakeSeries) -> None:
    counter = make_series([100.0 + 5.0 * i for i in range(61)], channel=Channel.ENERGY_COUNTER_J, device="n1")
    stuck = replace(make_series([7.0] * 61, channel=Channel.ENERGY_COUNTER_J), device="n1", scope=Scope.DRAM)
    assert _record(Trace(series=(replace(counter, scope=Scope.CPU), stuck)))["hosts"] == [
        {
            "device": "n1",
            "cpu_j": 300.0,
            "dram_j": None,
            "cpu_plus_dram_j": None,
            "platform_j": None,
            "coverage": 1.0,
        }
    ]
