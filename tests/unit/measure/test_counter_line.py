"""A counter's readings laid out: what is a reset, a wrap, an outlier, a jump, and what stood still."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.counter_line import CounterEvents, CounterLine, CounterStep, lay_out_counter
from flopwitness.measure.samples import Channel, Series

MakeSeries = Callable[..., Series]
Lay = Callable[..., CounterLine]

START_NS = 1_700_000_000 * 10**9


@pytest.fixture
def lay(make_series: MakeSeries) -> Lay:
    """How a test lays out a counter, read once a second where no times are given."""

    def make(
        value_j: Sequence[float],
        *,
        time_s: Sequence[float] | None = None,
        range_j: float | None = None,
        limit_w: float | None = None,
    ) -> CounterLine:
        series = make_series(value_j, time_s=time_s, channel=Channel.ENERGY_COUNTER_J)
        return lay_out_counter(replace(series, counter_range_j=range_j), limit_w=limit_w)

    return make


def _places(steps: Sequence[CounterStep]) -> list[tuple[float, float]]:
    return [((step.start_utc_ns - START_NS) / 1e9, (step.stop_utc_ns - START_NS) / 1e9) for step in steps]


def test_a_counter_that_counts_has_no_events(lay: Lay) -> None:
    line = lay([1_000, 1_300, 1_600, 2_500])
    assert line.grown_j.tolist() == [0, 300, 600, 1_500]
    assert line.time_s.tolist() == [0, 1, 2, 3]
    assert not line.is_unsure.any()
    assert line.events == CounterEvents()
    assert not line.is_mixed


def test_a_reset_shows_what_the_new_counter_holds(lay: Lay) -> None:
    line = lay([1e6, 1e6 + 300, 40, 340])
    assert line.grown_j.tolist() == [0, 300, 340, 640]
    assert line.is_unsure.tolist() == [False, True, False]
    (reset,) = line.events.resets
    assert (reset.before_j, reset.after_j) == (1e6 + 300, 40)
    assert _places(line.events.resets) == [(1, 2)]


def test_a_wrap_adds_the_range(lay: Lay) -> None:
    line = lay([262_000, 262_100, 56, 156], range_j=262_144.0)
    assert line.grown_j.tolist() == [0, 100, 200, 300]
    assert not line.is_unsure.any()
    assert _places(line.events.wraps) == [(1, 2)]
    assert line.events.resets == ()


def test_without_a_range_nothing_runs_over(lay: Lay) -> None:
    line = lay([262_000, 262_100, 56, 156])
    assert line.events.wraps == ()
    assert _places(line.events.resets) == [(1, 2)]


@pytest.mark.parametrize("before_j", [1_000, 100_000, 200_000])
def test_a_fall_from_the_middle_of_the_range_is_a_reset(lay: Lay, before_j: float) -> None:
    line = lay([before_j, before_j + 100, 56, 156], range_j=262_144.0)
    assert line.events.wraps == ()
    assert _places(line.events.resets) == [(1, 2)]


def test_a_plausible_power_makes_a_wrap_anywhere_in_the_range(lay: Lay) -> None:
    values_j = [200_000, 230_000, 20_000]
    times_s = [0, 150, 300]
    assert lay(values_j, time_s=times_s, range_j=262_144.0).events.wraps == ()
    line = lay(values_j, time_s=times_s, range_j=262_144.0, limit_w=400.0)
    assert _places(line.events.wraps) == [(150, 300)]
    assert line.grown_j[-1] == 30_000 + 52_144


def test_a_value_above_the_range_is_no_wrap(lay: Lay) -> None:
    assert lay([300_000, 300_100, 56, 156], range_j=262_144.0).events.wraps == ()


def test_a_step_that_may_hold_a_second_wrap_is_unsure(lay: Lay) -> None:
    values_j, times_s = [200_000, 20_000, 100_000], [0, 1_000, 1_200]
    line = lay(values_j, time_s=times_s, range_j=262_144.0, limit_w=400.0)
    assert line.is_unsure.tolist() == [True, False]
    assert not line.is_lost.any()
    assert line.grown_j.tolist() == [0, 82_144, 162_144]


@pytest.mark.parametrize(("limit_w", "hides"), [(400.0, False), (4_000.0, True)])
def test_a_usual_step_may_hold_a_second_wrap_as_well(lay: Lay, limit_w: float, hides: bool) -> None:
    line = lay([250_000, 20_000, 60_000], time_s=[0, 140, 280], range_j=262_144.0, limit_w=limit_w)
    assert line.is_unsure.tolist() == [hides, hides]
    assert line.grown_j.tolist() == [0, 32_144, 72_144]


def test_a_long_step_that_may_hide_a_reset_is_unsure(lay: Lay) -> None:
    """A counter of 900 J may all be from after a reset, within a minute at 300 W; one of a megajoule not."""
    times_s = [*range(10), 69]
    young = [i * 50.0 for i in range(10)] + [900.0]
    assert lay(young, time_s=times_s, limit_w=300.0).is_unsure.tolist() == [False] * 9 + [True]
    assert not lay(young, time_s=times_s).is_unsure.any()
    old = [1e6 + value for value in young]
    assert not lay(old, time_s=times_s, limit_w=300.0).is_unsure.any()


def test_a_high_reading_that_stands_out_is_left_out(lay: Lay) -> None:
    line = lay([100, 400, 9e9, 1_000, 1_300])
    assert line.grown_j.tolist() == [0, 300, 900, 1_200]
    assert not line.is_unsure.any()
    assert _places(line.events.backward) == [(1, 2)]


@pytest.mark.parametrize("low_j", [0, 4.2, 5e6])
def test_a_low_reading_that_stands_out_is_left_out(lay: Lay, low_j: float) -> None:
    line = lay([1e7, 1e7 + 300, low_j, 1e7 + 900, 1e7 + 1_200])
    assert line.grown_j.tolist() == [0, 300, 900, 1_200]
    assert _places(line.events.backward) == [(1, 2)]
    assert line.events.resets == ()


@pytest.mark.parametrize("odd_j", [9e9, 5e6])
def test_neighbours_that_agree_leave_an_outlier_out(lay: Lay, odd_j: float) -> None:
    line = lay([1e7, 1e7 + 300, odd_j, 1e7 + 300, 1e7 + 600])
    assert line.grown_j.tolist() == [0, 300, 300, 600]
    assert _places(line.events.backward) == [(1, 2)]


@pytest.mark.parametrize("limit_w", [None, 100.0])
def test_a_young_counter_that_begins_again_is_no_outlier(lay: Lay, limit_w: float | None) -> None:
    line = lay([0, 300, 50, 350], limit_w=limit_w)
    assert line.grown_j.tolist() == [0, 300, 350, 650]
    assert _places(line.events.resets) == [(1, 2)]


def test_a_fall_to_what_no_device_can_have_counted_shows_no_energy(lay: Lay) -> None:
    line = lay([1e9, 1e9 + 300, 9e8, 9e8 + 300])
    assert line.grown_j.tolist() == [0, 300, 300, 600]
    assert line.is_unsure.tolist() == [False, True, False]
    assert _places(line.events.backward) == [(1, 2)]
    assert line.events.resets == ()


def test_a_limit_tells_a_reset_from_a_fall_back(lay: Lay) -> None:
    values_j = [1e6, 1e6 + 300, 10_000, 10_300]
    assert lay(values_j).events.resets
    assert lay(values_j, limit_w=700.0).events.backward


@pytest.mark.parametrize("limit_w", [None, 700.0])
@pytest.mark.parametrize("step_s", [1, 60])
def test_a_counter_that_slips_back_a_little_has_not_begun_again(
    lay: Lay, step_s: int, limit_w: float | None
) -> None:
    """Taken for a reset, it would show megajoules that nobody drew."""
    values_j = [5e6, 5e6 + 300 * step_s, 5e6 + 200 * step_s, 5e6 + 250 * step_s]
    line = lay(values_j, time_s=[i * step_s for i in range(4)], limit_w=limit_w)
    assert line.events.resets == ()
    assert _places(line.events.backward) == [(step_s, 2 * step_s)]
    assert line.grown_j[-1] == 350 * step_s


def test_a_hall_has_a_counter_too(lay: Lay) -> None:
    line = lay([1e9 + 2e6 * i for i in range(10)])
    assert line.events == CounterEvents()
    assert line.grown_j[-1] == 18e6


def test_a_rise_that_no_device_draws_shows_no_energy(lay: Lay) -> None:
    values_j = [100, 400, 1e12, 1e12 + 300]
    for line in (lay(values_j), lay(values_j, limit_w=700.0)):
        assert line.grown_j.tolist() == [0, 300, 300, 600]
        assert line.is_unsure.tolist() == [False, True, False]
        assert _places(line.events.jumps) == [(1, 2)]


def test_bursts_of_a_counter_are_no_jumps(lay: Lay) -> None:
    """One that moves once a second, read every 100 ms, seems to draw ten times as much."""
    values_j = [1e6 + 700.0 * (i // 10) for i in range(40)]
    line = lay(values_j, time_s=[i / 10 for i in range(40)], limit_w=700.0)
    assert line.events == CounterEvents()
    assert line.grown_j[-1] == 2_100


def test_a_counter_that_stands_still_is_stuck(lay: Lay) -> None:
    values_j = [1e6 + 300.0 * min(i, 10) for i in range(41)]
    line = lay(values_j)
    assert _places(line.events.stuck) == [(10, 40)]
    assert line.time_s.tolist() == [*range(11), 40]
    assert line.is_unsure.tolist() == [False] * 10 + [True]


def test_a_counter_that_moves_again_may_have_caught_up(lay: Lay) -> None:
    values_j = [1e6 + 300.0 * (i if i < 10 or i > 30 else 10) for i in range(41)]
    line = lay(values_j)
    assert _places(line.events.stuck) == [(10, 30)]
    assert line.time_s.tolist() == [*range(11), *range(31, 41)]
    assert line.is_unsure.tolist() == [False] * 10 + [True] + [False] * 9
    assert line.grown_j[-1] == 40 * 300


def test_a_counter_that_never_moves_is_stuck(lay: Lay) -> None:
    line = lay([1e6] * 20)
    assert _places(line.events.stuck) == [(0, 19)]
    assert line.is_unsure.tolist() == [True]
    assert line.time_s.tolist() == [0, 19]


@pytest.mark.parametrize(
    ("values_j", "times_s"),
    [
        ([1e6] * 9, None),  # not for long enough
        ([1e6] * 2, [0, 60]),  # two readings tell nothing
        ([1e6, 1e6 + 300, 1e6 + 600, 1e6 + 600, 1e6 + 900], [0, 1, 2, 62, 63]),  # nor within a recording
        ([300.0 * i for i in range(100)] + [29_700.0] * 3, None),  # not for long, however late
        ([3_600.0 * (i // 36) for i in range(200)], None),  # a coarse counter moves seldom
    ],
)
def test_what_is_not_stuck(lay: Lay, values_j: list[float], times_s: list[float] | None) -> None:
    line = lay(values_j, time_s=times_s)
    assert line.events.stuck == ()
    assert not line.is_unsure.any()


def test_missing_readings_cost_no_energy(lay: Lay) -> None:
    line = lay([100, math.nan, 700, math.inf, -1, 1_300])
    assert line.grown_j.tolist() == [0, 600, 1_200]
    assert line.n_missing == 3


def test_repeated_times_lose_no_energy(lay: Lay) -> None:
    """Stamps of whole seconds and two readings in each: the last of a second stands for it."""
    line = lay([100, 200, 300, 400, 500], time_s=[0, 0, 1, 1, 2])
    assert line.time_s.tolist() == [0, 1, 2]
    assert line.grown_j.tolist() == [0, 200, 300]
    assert line.n_repeated == 2


def test_a_step_back_in_time_counts_as_a_usual_one(lay: Lay) -> None:
    line = lay([100, 200, 300, 400], time_s=[0, 1, 0.5, 1.5])
    assert line.time_s.tolist() == [0, 1, 2, 3]
    assert line.grown_j[-1] == 300
    assert line.n_backwards == 1


def test_the_steady_clock_tells_the_time(make_series: MakeSeries) -> None:
    series = make_series(
        [0, 10, 20], time_s=[0, 5, 6], monotonic_s=[0, 1, 2], channel=Channel.ENERGY_COUNTER_J
    )
    assert lay_out_counter(series).time_s.tolist() == [0, 1, 2]


def test_two_counters_in_one_log_are_told(lay: Lay) -> None:
    values_j = [7e7 + 300 * i if i % 2 else 1e7 + 100 * i for i in range(40)]
    assert lay(values_j).is_mixed


def test_a_counter_that_begins_again_all_the_time_is_no_counter(lay: Lay) -> None:
    line = lay([300.0 * (i % 3) for i in range(40)])
    assert len(line.events.resets) == 13
    assert line.is_mixed


def test_a_few_resets_are_no_mixture(lay: Lay) -> None:
    values_j = [1e6 + 300.0 * i for i in range(20)] + [300.0 * i for i in range(20)] * 2
    line = lay(values_j)
    assert len(line.events.resets) == 2
    assert not line.is_mixed


def test_a_clock_that_stands_still_is_doubted(lay: Lay) -> None:
    assert lay([100.0 * i for i in range(40)], time_s=[0] * 40).is_clock_doubted


def test_conversion_applies_to_the_range_as_well(make_series: MakeSeries) -> None:
    series = make_series([990, 10], conversion=0.5, channel=Channel.ENERGY_COUNTER_J)
    line = lay_out_counter(replace(series, counter_range_j=1_000.0))
    assert line.grown_j.tolist() == [0, 10]


@pytest.mark.parametrize("values_j", [[], [5.0], [math.nan]])
def test_too_few_readings_show_nothing(lay: Lay, values_j: list[float]) -> None:
    line = lay(values_j, range_j=1_000.0, limit_w=10.0)
    assert line.grown_j.tolist() == [0.0] * sum(not math.isnan(value) for value in values_j)
    assert line.is_unsure.size == 0
    assert line.events == CounterEvents()


@pytest.mark.parametrize("channel", [Channel.POWER_W, Channel.UTILISATION_PCT])
def test_only_a_counter_is_one(make_series: MakeSeries, channel: Channel) -> None:
    with pytest.raises(ValueError, match="not a counter"):
        lay_out_counter(make_series([1, 2], channel=channel))


def test_events_carry_plain_numbers(lay: Lay) -> None:
    (reset,) = lay([1e6, 1e6 + 300, 40, 340]).events.resets
    assert type(reset.start_utc_ns) is int
    assert type(reset.before_j) is float
    assert np.isfinite(reset.after_j)
