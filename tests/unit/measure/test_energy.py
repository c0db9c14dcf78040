"""Energy from readings: what was measured, what nobody measured, and what can be made of either."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.energy import (
    doubt_clock,
    integrate_for_bound,
    integrate_power,
    recorded_stretch,
    usual_period_s,
)
from flopwitness.measure.samples import Channel, RunWindow, Series

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]

HUGE_W = 1.7e308


def test_a_steady_device_draws_power_times_time(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([300.0] * 11))
    assert energy.measured_j == 3_000
    assert energy.shown_j == energy.low_j == energy.high_j == 3_000
    assert energy.covered_s == energy.claimed_s == 10
    assert energy.coverage == 1
    assert energy.gaps == ()
    assert (energy.n_readings, energy.n_missing, energy.n_repeated, energy.n_backwards) == (11, 0, 0, 0)
    assert energy.peak_w == 300


def test_the_trapezoid_follows_uneven_steps(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([0, 10, 10, 40], time_s=[0, 1, 3, 4]))
    assert energy.measured_j == pytest.approx(5 + 20 + 25)


def test_the_run_cuts_steps_at_its_edges(make_series: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_power(make_series([0, 10, 20, 30]), window=make_window(0.5, 2.5))
    assert energy.measured_j == pytest.approx(7.5 / 2 + 15 + 22.5 / 2)
    assert energy.claimed_s == 2
    assert energy.covered_s == 2
    assert energy.n_readings == 2
    assert energy.peak_w == 20


def test_a_gap_is_bridged_for_show_and_bounded_for_proof(make_series: MakeSeries) -> None:
    series = make_series([100, 100, 100, 300, 300], time_s=[0, 1, 2, 12, 13])
    energy = integrate_power(series, limit_w=700, floor_w=70)
    assert energy.measured_j == 500
    assert energy.bridged_j == 2_000
    assert energy.shown_j == 2_500
    assert energy.low_j == 500 + 10 * 70
    assert energy.high_j == 500 + 10 * 700
    assert energy.bridged_s == 10
    assert energy.coverage == pytest.approx(3 / 13)
    (gap,) = energy.gaps
    assert gap.duration_s == 10
    assert gap.start_utc_ns == int(series.utc_ns[2])
    assert gap.device == "gpu_0"


def test_a_gap_without_a_limit_has_no_upper_end(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([100, 100, 100], time_s=[0, 1, 60]), longest_step_s=2.0)
    assert energy.high_j is None
    assert energy.low_j == 100


def test_a_device_never_drew_less_than_its_lowest_reading_shows(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([50, 50, 50], time_s=[0, 1, 60]), floor_w=70, longest_step_s=2.0)
    assert energy.low_j == 50 + 59 * 50


@pytest.mark.parametrize(("averaged_s", "energy_j"), [(0.0, 385.0), (1.0, 770.0), (3.0, 840.0)])
def test_energy_from_averaged_readings_is_late(
    make_series: MakeSeries, make_window: MakeWindow, averaged_s: float, energy_j: float
) -> None:
    """A burst of 700 W for 1 s over an idle of 70 W, as its mean over the second before shows it."""
    rise = [70 + 63 * tenth for tenth in range(11)]
    power_w = [70.0] * 10 + rise + rise[-2::-1] + [70.0] * 10
    series = make_series(power_w, time_s=[number / 10 for number in range(len(power_w))])
    series = replace(series, averaged_s=averaged_s)
    energy = integrate_power(series, window=make_window(1, 2))
    assert energy.shown_j == pytest.approx(energy_j)
    assert energy.coverage == 1


def test_a_gap_holds_at_least_the_highest_reading_as_its_upper_end(make_series: MakeSeries) -> None:
    energy = integrate_power(
        make_series([900, 900, 900, 100], time_s=[0, 1, 2, 60]), limit_w=700, longest_step_s=2.0
    )
    assert energy.high_j == 1_800 + 58 * 900


def test_the_callers_longest_step_decides(make_series: MakeSeries) -> None:
    series = make_series([100] * 5, time_s=[0, 1, 2, 3, 5])
    assert integrate_power(series).gaps == ()
    assert len(integrate_power(series, longest_step_s=1.5).gaps) == 1


def test_slow_readings_leave_gaps_even_where_they_are_usual(make_series: MakeSeries) -> None:
    """A prover who reads once an hour, whenever the chips rest, must not bound what they did between."""
    energy = integrate_power(make_series([90] * 24, time_s=range(0, 86_400, 3_600)), limit_w=700)
    assert energy.high_j == pytest.approx(23 * 3_600 * 700)
    assert energy.coverage == 0


def test_readings_that_start_late_and_end_early_leave_gaps(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    energy = integrate_power(make_series([100] * 11), window=make_window(-5, 20), limit_w=700)
    assert [gap.duration_s for gap in energy.gaps] == [5, 10]
    assert energy.claimed_s == 25
    assert energy.coverage == pytest.approx(10 / 25)
    assert energy.high_j == 1_000 + 15 * 700
    assert energy.bridged_j == 0
    assert [gap.low_j for gap in energy.gaps] == [0, 0]
    assert energy.low_j == energy.shown_j == 1_000


def test_a_run_without_a_stop_ends_with_the_readings(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    energy = integrate_power(make_series([100] * 11), window=make_window(4, None))
    assert energy.claimed_s == 6
    assert energy.measured_j == 600


def test_a_run_after_all_readings_is_one_gap(make_series: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_power(make_series([100] * 11), window=make_window(20, 30), limit_w=700)
    assert energy.measured_j == energy.shown_j == 0
    assert energy.coverage == 0
    assert energy.high_j == 7_000
    assert math.isnan(energy.peak_w)
    unfinished = integrate_power(make_series([100] * 11), window=make_window(20, None), limit_w=700)
    assert unfinished.claimed_s == 0


def test_a_run_that_stops_before_it_starts_holds_nothing(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    energy = integrate_power(make_series([100] * 11), window=make_window(8, 2), limit_w=700)
    assert energy.claimed_s == 0
    assert energy.shown_j == 0
    assert energy.coverage == 0


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf, -400.0, HUGE_W])
def test_what_is_no_power_is_missing_and_never_counted(make_series: MakeSeries, missing: float) -> None:
    energy = integrate_power(make_series([400, 400, missing, 400, 400]), limit_w=700)
    assert energy.n_missing == 1
    assert energy.n_readings == 4
    assert energy.shown_j == pytest.approx(1_600)
    assert energy.high_j is not None
    assert math.isfinite(energy.high_j)
    assert energy.high_j >= 1_600


def test_a_prover_who_blanks_the_busy_half_gets_the_limit_instead(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([100.0] * 20 + [math.nan] * 60 + [100.0] * 20), limit_w=700)
    assert energy.high_j is not None
    assert energy.high_j >= 60 * 700


@pytest.mark.parametrize("values", [[], [math.nan] * 5, [-1.0] * 5])
def test_without_a_reading_the_whole_run_is_a_gap(
    make_series: MakeSeries, make_window: MakeWindow, values: list[float]
) -> None:
    # Series without any usable reading have no clock of their own, so the run's marks give the time.
    energy = integrate_power(make_series(values), window=make_window(0, 10), limit_w=700)
    assert energy.n_readings == 0
    assert energy.n_missing == len(values)
    assert energy.high_j == pytest.approx(7_000)
    assert energy.low_j == energy.shown_j == 0
    assert energy.coverage == 0
    assert integrate_power(make_series(values)).claimed_s == 0


def test_one_reading_measures_nothing(make_series: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_power(make_series([400]), limit_w=700)
    assert (energy.shown_j, energy.claimed_s, energy.coverage) == (0, 0, 0)
    marked = integrate_power(make_series([400], time_s=[5]), window=make_window(0, 10), limit_w=700)
    assert marked.high_j == 7_000
    assert marked.low_j == 0
    assert marked.coverage == 0


def test_repeated_times_count_no_energy_twice(make_series: MakeSeries) -> None:
    times = [*range(51), *range(50, 101)]
    energy = integrate_power(make_series([100] * 51 + [500] + [100] * 50, time_s=times))
    assert energy.n_repeated == 1
    assert energy.measured_j == pytest.approx(50 * 100 + 300 + 49 * 100)
    assert not energy.is_mixed
    assert not energy.is_clock_doubted
    still = integrate_power(make_series([100, 200, 300], time_s=[0, 0, 0]))
    assert (still.shown_j, still.n_repeated, still.claimed_s) == (0, 2, 0)


def test_a_step_back_counts_as_one_usual_period(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([100] * 6, time_s=[0, 1, 2, 0, 1, 2]))
    assert energy.n_backwards == 1
    assert energy.claimed_s == 5
    assert energy.measured_j == pytest.approx(500)


def test_a_clock_that_only_runs_backwards_measures_nothing(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    energy = integrate_power(
        make_series([100] * 4, time_s=[3, 2, 1, 0]), window=make_window(0, 3), limit_w=700
    )
    assert energy.n_backwards == 3
    assert energy.n_repeated == 0
    assert energy.covered_s == 0
    assert energy.high_j == 2_100


def test_the_monotonic_clock_gives_the_length(make_series: MakeSeries) -> None:
    series = make_series([100] * 4, time_s=[0, 1, 2, 2], monotonic_s=[7, 8, 9, 10])
    energy = integrate_power(series)
    assert energy.claimed_s == 3
    assert energy.measured_j == pytest.approx(300)
    assert energy.n_repeated == 0


@pytest.mark.parametrize("factor", [0.01, 0.5, 1.0, 1.1])
def test_the_conversion_factor_is_applied(make_series: MakeSeries, factor: float) -> None:
    series = replace(make_series([100] * 11), conversion=factor)
    assert integrate_power(series).measured_j == pytest.approx(1_000 * factor)


@pytest.mark.parametrize("factor", [1e300, 1e308])
def test_an_absurd_factor_leaves_finite_numbers(
    make_series: MakeSeries, make_window: MakeWindow, factor: float
) -> None:
    energy = integrate_power(
        make_series([700] * 100, conversion=factor), window=make_window(0, 99), limit_w=1_050
    )
    assert math.isfinite(energy.shown_j)
    assert energy.high_j is not None
    assert math.isfinite(energy.high_j)


@pytest.mark.parametrize("late_s", [0, 0.000_123, 1_234_567.891_234, 88_888_888.123_456, 300_000_000.7])
def test_a_run_that_claims_to_start_in_1970_has_its_gap_on_the_calendar(
    make_series: MakeSeries, late_s: float
) -> None:
    series = make_series([100] * 11, time_s=[late_s + moment for moment in range(11)])
    window = RunWindow(start_utc_ns=0, stop_utc_ns=int(series.utc_ns[-1]))
    energy = integrate_power(series, window=window, limit_w=700)
    assert 0 <= energy.gaps[0].start_utc_ns < 1_000_000


def test_the_usual_period_is_the_median_of_the_steps_forward() -> None:
    assert usual_period_s(np.array([0.0, 1.0, 2.0, 2.0, 10.0])) == 1
    assert math.isnan(usual_period_s(np.array([4.0])))
    assert math.isnan(usual_period_s(np.array([4.0, 4.0])))


def _length_s(stretch: RunWindow) -> float:
    assert stretch.stop_utc_ns is not None
    return (stretch.stop_utc_ns - stretch.start_utc_ns) / 1e9


@pytest.mark.parametrize(
    ("time_s", "doubt"),
    [
        (range(100), ""),
        ([*range(100), *[99] * 19], ""),  # 20 readings at one time
        ([*range(100), *[99] * 20], "clock-stuck"),
        ([*[0] * 21, *range(1, 10_000)], "clock-stuck"),
        ([*range(50), *[50] * 21, *range(51, 100)], "clock-stuck"),
        ([i - i % 10 for i in range(1_000)], ""),  # rounded: the span is right
        ([*range(20), *range(10), *range(10), *range(10)], ""),  # three steps back
        ([*range(20), *range(10), *range(10), *range(10), *range(10)], "clock-backwards"),
        ([*range(9_000), *[5, 4, 3, 2, 1]], ""),
        ([*range(4_000), *[5, 4, 3, 2, 1]], "clock-backwards"),
        (range(100, 0, -1), "clock-backwards"),
        ([7], ""),
    ],
)
@pytest.mark.parametrize("value", [100.0, math.nan])
def test_a_clock_that_stands_still_or_steps_back_often_is_doubted(
    make_series: MakeSeries, time_s: Sequence[float], value: float, doubt: str
) -> None:
    series = make_series([value] * len(time_s), time_s=time_s)
    assert doubt_clock(series) == doubt
    steady = make_series([value] * len(time_s), time_s=time_s, monotonic_s=range(len(time_s)))
    assert doubt_clock(steady) == ""
    energy = integrate_power(series, limit_w=700)
    assert energy.is_clock_doubted is bool(doubt)
    if doubt:
        assert (energy.shown_j, energy.coverage) == (0, 0)
        assert energy.high_j == pytest.approx(700 * energy.claimed_s)


def test_a_monotonic_clock_that_stands_still_is_doubted(make_series: MakeSeries) -> None:
    times = [*range(10), *[9] * 90]
    series = make_series([100.0] * 100, time_s=range(100), monotonic_s=times)
    assert doubt_clock(series) == "clock-stuck"


def test_repeated_times_leave_the_length_as_it_stands(make_series: MakeSeries) -> None:
    series = make_series([100.0] * 102, time_s=[*range(96), *[95] * 6])
    assert _length_s(recorded_stretch(series)) == 95
    assert not integrate_power(series).is_clock_doubted


def test_readings_at_one_instant_have_no_length(make_series: MakeSeries) -> None:
    assert _length_s(recorded_stretch(make_series([1, 2, 3], time_s=[4, 4, 4]))) == 0
    assert _length_s(recorded_stretch(make_series([1]))) == 0


def test_six_power_supplies_in_one_log_are_no_measurement(make_series: MakeSeries) -> None:
    """Each supply carries a sixth of the node; averaged they would show a sixth of its energy."""
    times = [moment for moment in range(100) for _ in range(6)]
    power_w = [1_000.0 + number for _ in range(100) for number in range(6)]
    series = make_series(power_w, time_s=times)
    energy = integrate_power(series, limit_w=10_000)
    assert energy.is_mixed
    assert (energy.shown_j, energy.low_j, energy.coverage) == (0, 0, 0)
    assert energy.high_j == 99 * 10_000
    assert energy.n_readings == 600
    assert energy.peak_w == 1_005
    assert integrate_power(series).high_j is None


@pytest.mark.parametrize(("n_differing", "is_mixed"), [(4, False), (5, False), (6, True), (50, True)])
def test_many_unlike_readings_at_one_time_are_several_sensors(
    make_series: MakeSeries, n_differing: int, *, is_mixed: bool
) -> None:
    n_times = 100 - n_differing
    times = [*range(n_times), *range(n_differing)]
    series = make_series([400.0] * n_times + [410.0] * n_differing, time_s=[i + 0.5 for i in times])
    in_order = np.argsort(series.utc_ns, kind="stable")
    ordered = replace(series, utc_ns=series.utc_ns[in_order], value=series.value[in_order])
    assert integrate_power(ordered).is_mixed is is_mixed
    assert integrate_power(replace(ordered, value=ordered.value * 0 + 400)).is_mixed is False


@pytest.mark.parametrize("n_each", [2, 3, 4])
def test_whole_seconds_that_readings_share_are_rounding(make_series: MakeSeries, n_each: int) -> None:
    times = [i // n_each for i in range(100 * n_each)]
    power_w = [400 + 10 * math.sin(1.3 * i) for i in range(100 * n_each)]
    energy = integrate_power(make_series(power_w, time_s=times), window=None, limit_w=700)
    assert (energy.is_rounded, energy.is_mixed, energy.gaps) == (True, False, ())
    assert energy.claimed_s == energy.covered_s == pytest.approx(100 - 1 / n_each)
    assert energy.shown_j == pytest.approx(400 * energy.claimed_s, rel=0.001)
    assert energy.n_repeated == 100 * (n_each - 1)
    fine = integrate_power(make_series(power_w, time_s=[moment + 0.25 for moment in times]))
    assert (fine.is_rounded, fine.is_mixed) == (False, True)
    slow = integrate_power(make_series(power_w, time_s=[10 * moment for moment in times]))
    assert (slow.is_rounded, slow.is_mixed) == (False, True)


def test_a_jitter_beside_the_whole_second_is_rounding(make_series: MakeSeries) -> None:
    times = [math.floor(i + 0.45 * math.sin(1.7 * i)) for i in range(200)]
    energy = integrate_power(make_series([400 + i % 7 for i in range(200)], time_s=times))
    assert (energy.is_rounded, energy.gaps, energy.coverage) == (True, (), 1)
    assert energy.shown_j == pytest.approx(403 * energy.claimed_s, rel=0.001)


def test_rounded_times_with_like_readings_stay_as_they_are(make_series: MakeSeries) -> None:
    energy = integrate_power(make_series([400.0] * 200, time_s=[i // 2 for i in range(200)]))
    assert (energy.is_rounded, energy.is_mixed) == (False, False)
    assert energy.shown_j == 99 * 400


def test_readings_at_the_dips_do_not_bound_the_peaks(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    """A prover who reads every 149 s, whenever the chips rest, must not bound what they did between."""
    series = make_series([90] * 200, time_s=range(0, 200 * 149, 149))
    shown, bound = integrate_power(series, limit_w=700), integrate_for_bound(series, limit_w=700)
    assert shown.high_j == pytest.approx(199 * 149 * 90)
    assert shown.coverage == 1
    assert bound.high_j == pytest.approx(199 * 149 * 700)
    assert integrate_for_bound(series).high_j is None
    assert shown.is_slow
    assert shown.period_s == 149
    late = integrate_for_bound(series, window=make_window(298, 596), limit_w=700)
    assert late.high_j == pytest.approx(298 * 700)


@pytest.mark.parametrize(
    ("averaged_s", "step_s", "limit_counts"),
    [
        (0, 1, False),
        (0, 10, False),
        (0, 11, True),
        (0, 60, True),
        (1, 11, False),
        (1, 60, True),
        (60, 60, False),
        (200, 150, False),
        (200, 151, True),
    ],
)
def test_an_average_bounds_what_lies_before_it_and_an_instant_does_not(
    make_series: MakeSeries, averaged_s: float, step_s: int, *, limit_counts: bool
) -> None:
    series = make_series([90] * 50, time_s=range(0, 50 * step_s, step_s), channel=Channel.POWER_AVERAGE_W)
    series = replace(series, averaged_s=averaged_s)
    bound = integrate_for_bound(series, limit_w=700)
    assert bound.high_j == pytest.approx(49 * step_s * (700 if limit_counts else 90))
    assert bound.is_slow is limit_counts


def test_one_long_step_among_short_ones_is_bounded_by_the_limit(make_series: MakeSeries) -> None:
    series = make_series([90] * 11, time_s=[*range(0, 50, 5), 55])
    assert integrate_for_bound(series, limit_w=700).high_j == pytest.approx(55 * 90)
    longer = make_series([90] * 11, time_s=[*range(0, 50, 5), 57.2])
    assert integrate_power(longer, limit_w=700).high_j == pytest.approx(57.2 * 90)
    assert integrate_for_bound(longer, limit_w=700).high_j == pytest.approx(45 * 90 + 12.2 * 700)
