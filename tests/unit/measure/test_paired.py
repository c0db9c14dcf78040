"""Power beside the utilisation of its time: which readings count, for how long, and what was current."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.energy import integrate_power
from flopwitness.measure.paired import (
    check_power,
    hold_values,
    is_later,
    longest_step_s,
    pair_readings,
    usable_w,
)
from flopwitness.measure.samples import Channel, Series

MakeSeries = Callable[..., Series]


def _times(*seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([round(second * 1e9) for second in seconds], dtype=np.int64)


def test_each_reading_stands_for_half_of_the_steps_beside_it(make_series: MakeSeries) -> None:
    paired = pair_readings(make_series([10, 20, 30], time_s=[0, 1, 3]), None, longest_gap_s=10)
    assert paired.weight_s.tolist() == [0.5, 1.5, 1.0]
    assert np.isnan(paired.utilisation_pct).all()


def test_the_weights_give_the_trapezoid(make_series: MakeSeries) -> None:
    series = make_series([10, 70, 30, 5, 90], time_s=[0, 1, 2.5, 3, 4.25])
    paired = pair_readings(series, None)
    assert float((paired.weight_s * paired.power_w).sum()) == pytest.approx(integrate_power(series).shown_j)


def test_a_gap_gives_no_weight(make_series: MakeSeries) -> None:
    paired = pair_readings(make_series([10, 20, 30, 40], time_s=[0, 1, 2, 60]), None)
    assert paired.is_gap.tolist() == [False, False, True]
    assert paired.weight_s.tolist() == [0.5, 1.0, 0.5, 0.0]


def test_a_missing_reading_leaves_a_gap(make_series: MakeSeries) -> None:
    paired = pair_readings(make_series([10, math.nan, 30, 40]), None)
    assert paired.power_w.tolist() == [10, 30, 40]
    assert paired.is_gap.tolist() == [True, False]


def test_readings_that_are_not_later_are_left_out(make_series: MakeSeries) -> None:
    paired = pair_readings(make_series([1, 2, 3, 4, 5], time_s=[0, 1, 1, 0.5, 2]), None)
    assert paired.power_w.tolist() == [1, 2, 5]
    assert (np.diff(paired.utc_ns) > 0).all()


def test_utilisation_is_the_one_that_was_current(make_series: MakeSeries) -> None:
    power = make_series([1, 1, 1, 1], time_s=[0, 1, 2, 3])
    utilisation = make_series([50, 60], time_s=[0.5, 2], channel=Channel.UTILISATION_PCT)
    paired = pair_readings(power, utilisation)
    assert math.isnan(paired.utilisation_pct[0])
    assert paired.utilisation_pct[1:].tolist() == [50, 60, 60]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_utilisation_that_is_none_is_unknown(make_series: MakeSeries, value: float) -> None:
    utilisation = make_series([value, 40], channel=Channel.UTILISATION_PCT)
    paired = pair_readings(make_series([1, 1]), utilisation)
    assert math.isnan(paired.utilisation_pct[0])
    assert paired.utilisation_pct[1] == 40


def test_no_utilisation_is_known_to_be_none(make_series: MakeSeries) -> None:
    utilisation = make_series([0, 0], channel=Channel.UTILISATION_PCT)
    assert pair_readings(make_series([1, 1]), utilisation).utilisation_pct.tolist() == [0, 0]


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_readings_have_no_time(make_series: MakeSeries, n: int) -> None:
    paired = pair_readings(make_series([5.0] * n), make_series([1.0] * n, channel=Channel.UTILISATION_PCT))
    assert paired.weight_s.tolist() == [0.0] * n
    assert paired.step_s.size == paired.is_gap.size == 0


@pytest.mark.parametrize("channel", [Channel.UTILISATION_PCT, Channel.ENERGY_COUNTER_J, Channel.CLOCK_HZ])
def test_only_power_is_power(make_series: MakeSeries, channel: Channel) -> None:
    with pytest.raises(ValueError, match="not a channel of power"):
        check_power(make_series([1], channel=channel))
    with pytest.raises(ValueError, match="not a channel of power"):
        pair_readings(make_series([1], channel=channel), None)


def test_averaged_power_is_power(make_series: MakeSeries) -> None:
    check_power(make_series([1], channel=Channel.POWER_AVERAGE_W))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1e12, 1.7e308])
def test_what_holds_no_power_is_missing(make_series: MakeSeries, value: float) -> None:
    assert np.isnan(usable_w(make_series([value]))).all()


def test_zero_watts_are_a_reading_and_factors_apply(make_series: MakeSeries) -> None:
    assert usable_w(make_series([0, 100], conversion=0.9)).tolist() == [0, 90]


def test_a_clock_set_back_gives_no_time_until_it_has_caught_up() -> None:
    assert is_later(_times(0, 1, 2, 0.5, 1.5, 2, 2.5)).tolist() == [True, True, True, *[False] * 3, True]
    assert is_later(_times(0, 1, 2), after_ns=1_000_000_000).tolist() == [False, False, True]
    assert is_later(_times()).size == 0


def test_a_reading_grows_old() -> None:
    held = hold_values(_times(0, 10), np.array([1.0, 2.0]), _times(-1, 0, 5, 5.1, 10, 16), longest_s=5)
    assert np.isnan(held).tolist() == [True, False, False, True, False, True]
    assert held[[1, 2, 4]].tolist() == [1, 1, 2]


def test_the_last_of_two_readings_at_one_time_holds() -> None:
    assert hold_values(_times(0, 0), np.array([1.0, 2.0]), _times(1), longest_s=5).tolist() == [2]


def test_readings_out_of_order_are_sorted_and_none_hold_nothing() -> None:
    held = hold_values(_times(5, 0), np.array([2.0, 1.0]), _times(1, 6), longest_s=5)
    assert held.tolist() == [1, 2]
    assert np.isnan(hold_values(_times(), np.zeros(0), _times(1), longest_s=5)).all()


@pytest.mark.parametrize(
    ("times_s", "longest_s"),
    [([], 0.5), ([0], 0.5), ([0, 0.1, 0.2], 0.5), ([0, 1, 2], 2.5), ([0, 100, 200], 150)],
)
def test_the_longest_step_follows_the_usual_one(times_s: list[float], longest_s: float) -> None:
    assert longest_step_s(np.array(times_s, dtype=np.float64)) == longest_s


def test_the_scope_of_time_is_the_power_series(make_series: MakeSeries) -> None:
    power = make_series([1, 2, 3])
    late = replace(power, utc_ns=power.utc_ns + 3_600 * 10**9, channel=Channel.UTILISATION_PCT)
    assert np.isnan(pair_readings(power, late).utilisation_pct).all()


@pytest.mark.parametrize("late_s", [0.0, 1e-9])
def test_times_of_their_own_change_nothing(make_series: MakeSeries, late_s: float) -> None:
    """Utilisation read with the power, or a moment before it: the same is current."""
    power_w = [10, 20, math.nan, 40, 50, 60]
    shares = [90, -1, 80, math.nan, math.inf, 0]
    power = make_series(power_w, time_s=[0, 1, 2, 3, 4, 60])
    power = replace(power, utc_ns=power.utc_ns + round(late_s * 1e9))
    utilisation = make_series(shares, time_s=[0, 1, 2, 3, 4, 60], channel=Channel.UTILISATION_PCT)
    paired = pair_readings(power, utilisation)
    assert paired.power_w.tolist() == [10, 20, 40, 50, 60]
    np.testing.assert_array_equal(paired.utilisation_pct, [90, np.nan, np.nan, np.nan, 0])
    assert paired.is_gap.tolist() == [False, True, False, True]
