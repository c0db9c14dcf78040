"""What is odd about times: each check fires on what it is for, and stays quiet on what is plain."""

from collections.abc import Callable, Sequence

import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Series
from flopwitness.measure.timing import assess_times

MakeSeries = Callable[..., Series]


def _told(series: Sequence[Series]) -> dict[str, Finding]:
    findings = assess_times([integrate_power(item) for item in series])
    assert len({finding.code for finding in findings}) == len(findings)
    return {finding.code: finding for finding in findings}


def test_plain_times_have_no_findings(make_series: MakeSeries) -> None:
    assert assess_times([]) == []
    assert _told([make_series([400 + i for i in range(100)]), make_series([])]) == {}


def test_a_few_repeats_and_steps_back_are_counted(make_series: MakeSeries) -> None:
    told = _told([make_series([100] * 81, time_s=[*range(40), 39, *range(20, 60)])])
    assert [(item.code, item.count) for item in told.values()] == [
        ("time-repeated", 1),
        ("clock-backwards", 1),
    ]
    assert [item.severity for item in told.values()] == [Severity.NOTE, Severity.WARNING]
    assert "1 reading at" in told["time-repeated"].message
    assert "steps back 1 time;" in told["clock-backwards"].message


def test_a_clock_that_stands_still_is_a_warning(make_series: MakeSeries) -> None:
    stuck = make_series([100] * 100, time_s=[*range(90), *[89] * 10], device="gpu_7")
    told = _told([make_series([100] * 100), stuck])
    assert set(told) == {"clock-stuck"}
    finding = told["clock-stuck"]
    assert (finding.severity, finding.count, finding.where) == (Severity.WARNING, 10, "gpu_7")
    assert "10 readings on 1 device " in finding.message


@pytest.mark.parametrize("n_sensors", [2, 6])
def test_several_sensors_in_one_log_are_a_warning(make_series: MakeSeries, n_sensors: int) -> None:
    times = [moment for moment in range(50) for _ in range(n_sensors)]
    power_w = [400.0 + number for _ in range(50) for number in range(n_sensors)]
    mixed = make_series(power_w, time_s=times, device="node_3")
    told = _told([make_series([100] * 100), mixed])
    assert set(told) == {"clock-stuck", "sensors-mixed"}
    finding = told["sensors-mixed"]
    assert (finding.severity, finding.count, finding.where) == (Severity.WARNING, 1, "node_3")
    assert "1 device of 2, node_3 for example, has" in finding.message


@pytest.mark.parametrize(("step_s", "is_told"), [(1, False), (10, False), (15, True), (149, True)])
def test_a_slow_cadence_is_a_note(make_series: MakeSeries, step_s: int, *, is_told: bool) -> None:
    times = range(0, 20 * step_s, step_s)
    told = _told([make_series([100] * 20, time_s=times), make_series([100] * 20)])
    assert set(told) == ({"cadence-slow"} if is_told else set())
    if is_told:
        assert told["cadence-slow"].severity is Severity.NOTE
        assert told["cadence-slow"].message == (
            f"readings every {step_s} s: what lies between them is bounded by the limit, not by the readings"
        )
    average = make_series([100] * 20, time_s=times, channel=Channel.POWER_AVERAGE_W)
    assert _told([average]) == {}
