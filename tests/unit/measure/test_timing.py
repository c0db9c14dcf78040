"""What is odd about times: each check fires on what it is for, and stays quiet on what is plain."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.timing import assess_times, doubt_clocks

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


@pytest.mark.parametrize("code", ["clock-stuck", "clock-backwards"])
def test_a_clock_that_tells_no_length_bounds_nothing(make_series: MakeSeries, code: str) -> None:
    times = {"clock-stuck": [*range(79), *[79] * 21], "clock-backwards": [*range(90), *range(10, 0, -1)]}
    odd = make_series([100] * 100, time_s=times[code], device="gpu_7")
    assert _told([odd]) == {}
    findings: list[Finding] = []
    plain = [make_series([100] * 100, device=f"gpu_{number}") for number in range(7)]
    assert doubt_clocks(Trace(series=(*plain, odd)), [*plain, odd], findings)
    (finding,) = findings
    assert (finding.code, finding.severity, finding.count) == (code, Severity.WARNING, 1)
    assert finding.where == "gpu_7"
    assert finding.message.startswith("1 recording of 8, gpu_7 for example, has ")
    assert finding.message.endswith("neither time nor energy bounds it")


def test_one_clock_of_ten_that_tells_no_length_is_not_measured(make_series: MakeSeries) -> None:
    odd = make_series([100] * 30, time_s=[0] * 30, device="gpu_7")
    plain = [make_series([100] * 100, device=f"gpu_{number}") for number in range(9)]
    findings: list[Finding] = []
    assert not doubt_clocks(Trace(series=(odd, *plain)), [odd, *plain], findings)
    assert findings[0].message.endswith("such a recording counts as not measured")
    assert len(findings) == 1
    assert not doubt_clocks(Trace(series=tuple(plain)), plain, [])
    assert not doubt_clocks(Trace(), [], [])


def test_clocks_beside_the_chosen_ones_are_doubted_too(make_series: MakeSeries) -> None:
    odd = make_series([100] * 30, time_s=[0] * 30, device="node_0", scope=Scope.NODE)
    plain = [make_series([100] * 100, device=f"gpu_{number}") for number in range(8)]
    findings: list[Finding] = []
    assert doubt_clocks(Trace(series=(odd, *plain)), plain, findings)
    assert [finding.where for finding in findings] == ["node_0"]
    switch = replace(odd, scope=Scope.SWITCH)
    assert not doubt_clocks(Trace(series=(switch, make_series([]), *plain)), plain, [])


def test_series_that_share_one_clock_are_doubted_each(make_series: MakeSeries) -> None:
    odd = make_series([100] * 100, time_s=[*range(79), *[79] * 21])
    others = [replace(odd, channel=Channel.UTILISATION_PCT), replace(odd, channel=Channel.CLOCK_HZ)]
    findings: list[Finding] = []
    assert doubt_clocks(Trace(series=(odd, *others)), [odd], findings)
    (finding,) = findings
    assert (finding.code, finding.count) == ("clock-stuck", 3)


@pytest.mark.parametrize("n_sensors", [2, 6])
def test_several_sensors_in_one_log_are_a_warning(make_series: MakeSeries, n_sensors: int) -> None:
    times = [moment for moment in range(50) for _ in range(n_sensors)]
    power_w = [400.0 + number for _ in range(50) for number in range(n_sensors)]
    mixed = make_series(power_w, time_s=times, device="node_3")
    told = _told([make_series([100] * 100), mixed])
    assert set(told) == {"time-repeated", "sensors-mixed"}
    finding = told["sensors-mixed"]
    assert (finding.severity, finding.count, finding.where) == (Severity.WARNING, 1, "node_3")
    assert "1 device of 2, node_3 for example, has" in finding.message


def test_rounded_times_are_a_warning(make_series: MakeSeries) -> None:
    times = [i // 2 for i in range(200)]
    told = _told([make_series([400 + i % 7 for i in range(200)], time_s=times, device="gpu_3")])
    assert set(told) == {"time-repeated", "times-rounded"}
    finding = told["times-rounded"]
    assert (finding.severity, finding.count, finding.where) == (Severity.WARNING, 1, "gpu_3")
    assert "1 device of 1, gpu_3 for example" in finding.message


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
    assert _told([replace(average, averaged_s=float(step_s))]) == {}
