"""What is odd about a recording: each check fires on what it is for, and stays quiet on what is plain."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.copies import assess_copies
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.marks import assess_marks
from flopwitness.measure.quality import (
    assess_declaration,
    assess_devices,
    assess_gaps,
    assess_limits,
    assess_reading,
    assess_scope,
    assess_switches,
)
from flopwitness.measure.samples import Channel, Declaration, Mark, RunWindow, Scope, Series, Skipped, Trace

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]


def _only(findings: Sequence[Finding]) -> Finding:
    (finding,) = findings
    assert finding.count >= 1
    return finding


def test_a_plain_recording_has_no_findings(make_series: MakeSeries, make_window: MakeWindow) -> None:
    series = make_series([400 + i for i in range(100)])
    energy = integrate_power(series)
    window = make_window(0, 99, "success")
    assert assess_reading(Trace(series=(series,))) == []
    assert assess_gaps([energy]) == []
    assert assess_marks(Trace(series=(series,)), window, [energy]) == []
    assert assess_limits([series], [energy], limit_w=1_050) == []
    assert assess_copies([series]) == []
    assert assess_switches([], window, 99) == []


def test_skipped_lines_are_counted_and_located() -> None:
    skipped = Skipped(where="node_1.txt:4", expected="JSON", found="x")
    finding = _only(assess_reading(Trace(skipped=(skipped,), n_skipped=31)))
    assert (finding.code, finding.count, finding.where) == ("lines-skipped", 31, "node_1.txt:4")
    assert "31 records" in finding.message
    assert "1 record " in _only(assess_reading(Trace(skipped=(skipped,), n_skipped=1))).message


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_readings_without_a_value_are_counted(make_series: MakeSeries, value: float) -> None:
    finding = _only(assess_reading(Trace(series=(make_series([1, value, 3, value]),))))
    assert (finding.code, finding.count, finding.where) == ("reading-missing", 2, "gpu_0")


def test_power_that_is_always_zero_holds_no_value(make_series: MakeSeries) -> None:
    assert _only(assess_reading(Trace(series=(make_series([0.0] * 5),)))).count == 5
    assert assess_reading(Trace(series=(make_series([0.0, 5.0]),))) == []


def test_other_channels_may_be_zero_or_below(make_series: MakeSeries) -> None:
    cold = make_series([-3.0, 0.0], channel=Channel.TEMPERATURE_C)
    idle = make_series([0.0, 0.0], channel=Channel.UTILISATION_PCT)
    assert assess_reading(Trace(series=(cold, idle))) == []


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope is not Scope.SWITCH])
def test_every_scope_is_told_in_words(scope: Scope) -> None:
    finding = assess_scope(scope)
    assert (finding.code, finding.found) == ("scope", str(scope))
    assert finding.severity is (Severity.WARNING if scope is Scope.UNKNOWN else Severity.NOTE)


def test_a_gap_is_told_with_its_place_and_its_energy(make_series: MakeSeries) -> None:
    series = make_series([1_000] * 20, time_s=[*range(10), *range(3_609, 3_619)])
    finding = _only(assess_gaps([integrate_power(series, limit_w=2_000, floor_w=1_000)]))
    assert (finding.code, finding.where, finding.count) == ("gap", "gpu_0", 1)
    assert "no reading for 1 h from 22:13:29 UTC" in finding.message
    assert "between 1 and 2 kWh" in finding.message
    open_ended = _only(assess_gaps([integrate_power(series)]))
    assert "no limit known" in open_ended.message


def test_several_gaps_are_one_finding(make_series: MakeSeries) -> None:
    series = make_series([100] * 6, time_s=[0, 1, 2, 12, 13, 53])
    finding = _only(assess_gaps([integrate_power(series, limit_w=700, longest_step_s=2)]))
    assert finding.count == 2
    assert "2 stretches" in finding.message
    assert "50 s in all" in finding.message
    assert "the longest 40 s" in finding.message


def test_a_short_gap_is_not_worth_a_line(make_series: MakeSeries) -> None:
    series = make_series([100] * 4, time_s=[0, 1, 3.9, 4.9])
    energy = integrate_power(series)
    assert energy.gaps
    assert assess_gaps([energy]) == []


@pytest.mark.parametrize("start_utc_ns", [-1, 2**63, 2**70])
def test_a_gap_off_the_calendar_is_told_all_the_same(make_series: MakeSeries, start_utc_ns: int) -> None:
    energy = integrate_power(make_series([100] * 4, time_s=[0, 1, 2, 60]), longest_step_s=2)
    (gap,) = energy.gaps
    finding = _only(assess_gaps([replace(energy, gaps=(replace(gap, start_utc_ns=start_utc_ns),))]))
    assert "calendar" in finding.message


def test_a_stop_mark_at_the_time_of_its_start_is_told(make_window: MakeWindow) -> None:
    start = Mark(name="power_measurement_start", utc_ns=50, where="a/node_1.txt:1")
    stop = Mark(name="power_measurement_stop", utc_ns=50, where="a/node_1.txt:99")
    finding = _only(assess_marks(Trace(marks=(start, stop)), None, []))
    assert (finding.code, finding.where) == ("mark-time", "a/node_1.txt:99")
    later, elsewhere = replace(stop, utc_ns=51), replace(stop, where="a/node_2.txt:99")
    assert assess_marks(Trace(marks=(start, later, elsewhere)), None, []) == []


def test_an_unfinished_or_failed_run_is_told(make_window: MakeWindow) -> None:
    codes = [item.code for item in assess_marks(Trace(), make_window(0, None, "aborted"), [])]
    assert codes == ["run-unfinished", "run-status"]


@pytest.mark.parametrize("edge", [(-20, 99), (0, 130)])
def test_an_end_of_the_run_without_readings_is_told(
    make_series: MakeSeries, make_window: MakeWindow, edge: tuple[int, int]
) -> None:
    window = make_window(*edge)
    energy = integrate_power(make_series([400 + i for i in range(100)]), window=window)
    assert _only(assess_marks(Trace(), window, [energy])).code == "run-uncovered-edge"


def test_a_gap_in_the_middle_or_a_short_edge_is_no_edge(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    window = make_window(-4, 103)
    times = [*range(40), *range(60, 101)]
    energy = integrate_power(make_series([400] * 81, time_s=times), window=window)
    assert len(energy.gaps) == 3
    assert assess_marks(Trace(), window, [energy]) == []


def test_switches_are_told_apart_from_the_energy(make_series: MakeSeries, make_window: MakeWindow) -> None:
    window = make_window(0, 3_600)
    switch = make_series([900, 1_100], device="sw_1", scope=Scope.SWITCH, is_estimate=True)
    finding = _only(assess_switches([switch], window, 7_200))
    assert (finding.code, finding.severity, finding.where) == ("switch-power", Severity.NOTE, "sw_1")
    assert "estimate" in finding.message
    assert "2.0 kWh" in finding.message
    measured = _only(assess_switches([replace(switch, is_estimate=False)], None, 7_200))
    assert "reading of a network switch" in measured.message


def test_a_switch_from_another_year_is_a_warning(make_series: MakeSeries, make_window: MakeWindow) -> None:
    old = make_series([900], time_s=[-400 * 86_400], device="sw_1", scope=Scope.SWITCH)
    for window in (make_window(0, 3_600), make_window(0, None)):
        finding = _only(assess_switches([old], window, 3_600))
        assert finding.severity is Severity.WARNING
        assert "stamped 2022, the run 2023" in finding.message


def test_a_switch_that_several_logs_tell_is_told_once(make_series: MakeSeries) -> None:
    switch = make_series([900], device="sw_1", scope=Scope.SWITCH)
    other = make_series([901], device="sw_2", scope=Scope.SWITCH)
    assert len(assess_switches([switch, switch, other], None, 10)) == 2


def test_an_absurd_switch_raises_nothing(make_series: MakeSeries) -> None:
    assert assess_switches([make_series([1.7e308] * 3, scope=Scope.SWITCH, conversion=9.0)], None, 10)


def test_power_over_the_limit_is_told(make_series: MakeSeries) -> None:
    series = [make_series([400, 1e9], device="gpu_0"), make_series([400, 2_000], device="gpu_1")]
    energies = [integrate_power(item) for item in series]
    finding = _only(assess_limits(series, energies, limit_w=1_050))
    assert (finding.code, finding.where, finding.count) == ("power-over-limit", "gpu_0", 2)
    assert finding.expected == "at most 1,050 W"
    assert assess_limits(series, energies, limit_w=None) == []
    assert assess_limits(series[1:], energies[1:], limit_w=2_000) == []


def test_a_sensor_that_stands_still_is_told(make_series: MakeSeries) -> None:
    still = make_series([300, *[400.0] * 60, 300])
    short = make_series([300, *[400.0] * 59, 300])
    assert _only(assess_limits([still], [], limit_w=None)).code == "reading-stuck"
    assert assess_limits([short], [], limit_w=None) == []
    assert assess_limits([make_series([])], [], limit_w=None) == []
    assert assess_limits([make_series([math.nan] * 90)], [], limit_w=None) == []


def test_a_declaration_is_compared_with_what_came() -> None:
    declared = Declaration(nodes=64, chips=512)
    codes = [item.code for item in assess_declaration(declared, n_devices=60, scope=Scope.NODE_AC)]
    assert codes == ["nodes-differ"]
    assert assess_declaration(declared, n_devices=64, scope=Scope.NODE_AC) == []
    assert assess_declaration(declared, n_devices=8, scope=Scope.GPU) == []
    assert assess_declaration(Declaration(), n_devices=8, scope=Scope.NODE) == []
    assert assess_declaration(None, n_devices=8, scope=Scope.NODE) == []


def test_devices_are_compared_with_the_stated_chips() -> None:
    missing = _only(assess_devices(None, n_devices=60, n_expected=64, count=512, scope=Scope.NODE))
    assert (missing.code, missing.expected, missing.found) == ("nodes-differ", "64", "60")
    surplus = _only(assess_devices(None, n_devices=8, n_expected=8, count=1, scope=Scope.GPU))
    assert surplus.code == "count-differs"
    declared = Declaration(nodes=64)
    assert assess_devices(declared, n_devices=60, n_expected=64, count=512, scope=Scope.NODE) == []
    assert assess_devices(None, n_devices=7, n_expected=8, count=8, scope=Scope.GPU) == []
    assert assess_devices(None, n_devices=3, n_expected=3, count=1, scope=Scope.RAIL) == []


def test_copies_are_seen_by_their_readings(make_series: MakeSeries) -> None:
    values = [400 + (7 * i) % 30 for i in range(50)]
    first = make_series(values, device="a")
    twins = [first, make_series(values, device="b"), make_series(values, time_s=range(9, 59), device="c")]
    finding = _only(assess_copies([*twins, make_series(values[::-1], device="d")]))
    assert (finding.code, finding.count, finding.where) == ("recording-copied", 2, "b")
    assert finding.found == "2 that differ"


def test_coarse_readings_at_other_times_are_no_copies(make_series: MakeSeries) -> None:
    assert assess_copies([make_series([65, 66, 65]), make_series([65, 66, 65], time_s=[1, 2, 3])]) == []
    assert assess_copies([make_series([65]), make_series([65])]) == []
    assert assess_copies([]) == []


def test_readings_of_several_sensors_in_one_log_are_no_gap(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    """They are told as what they are; that nobody read would be false."""
    times = [moment for moment in range(100) for _ in range(2)]
    window = make_window(0, 99)
    energy = integrate_power(make_series([400.0 + i % 2 for i in range(200)], time_s=times), window=window)
    assert energy.gaps
    assert assess_gaps([energy]) == []
    assert assess_marks(Trace(), window, [energy]) == []


def test_one_is_told_in_the_singular(make_series: MakeSeries, make_window: MakeWindow) -> None:
    window = make_window(-20, 99)
    late = integrate_power(make_series([400 + i for i in range(100)]), window=window)
    assert "1 device has no readings" in _only(assess_marks(Trace(), window, [late])).message
    both = [late, replace(late, device="gpu_1")]
    assert "2 devices have no readings" in _only(assess_marks(Trace(), window, both)).message
    stuck = make_series([400.0] * 80)
    assert "1 device repeats" in _only(assess_limits([stuck], [], limit_w=None)).message
    assert "2 devices repeat " in _only(assess_limits([stuck, stuck], [], limit_w=None)).message
    blank = make_series([1.0] + [math.nan] * 1_702)
    assert "1,702 readings of 1,703" in _only(assess_reading(Trace(series=(blank,)))).message
    start = Mark(name="power_measurement_start", utc_ns=50, where="a/node_1.txt:1")
    stop = Mark(name="power_measurement_stop", utc_ns=50, where="a/node_1.txt:99")
    assert "1 mark for the end of power measurement carries" in (
        _only(assess_marks(Trace(marks=(start, stop)), None, [])).message
    )
    twins = [make_series([400 + i for i in range(100)], device=name) for name in "ab"]
    assert "1 device was recorded" in _only(assess_copies(twins)).message
