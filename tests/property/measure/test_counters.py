"""What must hold of every counter: cutting changes nothing, and no fall makes energy out of nothing."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.counters import find_counter_events, integrate_counter
from flopwitness.measure.energy import Energy
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series

START_NS = 1_700_000_000 * 10**9
LIMIT_W = 1_050.0
RANGE_J = 262_144.0

POWERS_W = st.floats(1, 1_000, allow_nan=False)
STEPS_MS = st.one_of(st.integers(100, 2_000), st.integers(2_000, 60_000))


def _series(time_ms: list[int], value_j: list[float], range_j: float | None = None) -> Series:
    return Series(
        device="gpu_0",
        channel=Channel.ENERGY_COUNTER_J,
        scope=Scope.GPU,
        utc_ns=START_NS + np.array(time_ms, dtype=np.int64) * 1_000_000,
        value=np.array(value_j, dtype=np.float64),
        counter_range_j=range_j,
    )


@st.composite
def counted(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Times and the true energy since the first of them."""
    steps = draw(st.lists(st.tuples(STEPS_MS, POWERS_W), min_size=1, max_size=30))
    times_ms = np.cumsum([0, *[step for step, _ in steps]]).tolist()
    energy_j = np.cumsum([0.0, *[step / 1_000 * power for step, power in steps]]).tolist()
    return times_ms, energy_j


@st.composite
def anything(draw: st.DrawFn) -> Series:
    """Readings that no counter would give: falls, jumps, missing ones, repeated times and steps back."""
    value_j = st.one_of(
        st.floats(0, 1_000), st.floats(0, 1e9), st.sampled_from([math.nan, math.inf, -1.0, 0.0, 5.0, 1e17])
    )
    readings = draw(st.lists(st.tuples(st.integers(-3_000, 60_000), value_j), max_size=40))
    times_ms = np.cumsum([step for step, _ in readings]).tolist()
    range_j = draw(st.one_of(st.none(), st.just(RANGE_J), st.just(600.0)))
    return _series(times_ms, [value for _, value in readings], range_j)


def _window(start_ms: int, stop_ms: int) -> RunWindow:
    return RunWindow(start_utc_ns=START_NS + start_ms * 1_000_000, stop_utc_ns=START_NS + stop_ms * 1_000_000)


def _high_j(energy: Energy) -> float:
    assert energy.high_j is not None
    return energy.high_j


CUTS_MS = st.lists(st.integers(-5_000, 500_000), min_size=2, max_size=6, unique=True).map(sorted)


@given(counted(), st.floats(0, 1e9))
def test_the_counted_energy_comes_out(made: tuple[list[int], list[float]], start_j: float) -> None:
    """Whatever the steps, a counter that only counts shows all of it and leaves no gap."""
    times_ms, energy_j = made
    energy = integrate_counter(_series(times_ms, [start_j + value for value in energy_j]))
    assert math.isclose(energy.measured_j, energy_j[-1], rel_tol=1e-6, abs_tol=1e-4)
    assert energy.gaps == ()
    assert energy.low_j == energy.high_j == energy.measured_j


@given(counted(), st.floats(0, RANGE_J - 1))
def test_a_counter_that_runs_over_shows_all_of_it(
    made: tuple[list[int], list[float]], start_j: float
) -> None:
    times_ms, energy_j = made
    value_j = [(start_j + value) % RANGE_J for value in energy_j]
    energy = integrate_counter(_series(times_ms, value_j, RANGE_J), limit_w=LIMIT_W)
    assert math.isclose(energy.shown_j, energy_j[-1], rel_tol=1e-6, abs_tol=1e-4)
    assert energy.low_j <= energy_j[-1] + 1e-4
    assert _high_j(energy) >= energy_j[-1] - 1e-4


@given(counted(), st.integers(1, 30), st.floats(0, 1), st.floats(1e7, 1e9))
def test_a_reset_leaves_the_truth_within_bounds(
    made: tuple[list[int], list[float]], place: int, share: float, start_j: float
) -> None:
    """The counter begins again somewhere within one step; what it counted before that in the step is lost."""
    times_ms, energy_j = made
    place = min(place, len(energy_j) - 1)
    lost_j = energy_j[place - 1] + share * (energy_j[place] - energy_j[place - 1])
    value_j = [start_j + value if i < place else value - lost_j for i, value in enumerate(energy_j)]
    series = _series(times_ms, value_j)
    energy = integrate_counter(series, limit_w=LIMIT_W)
    assert energy.low_j <= energy_j[-1] + 1e-3
    assert _high_j(energy) >= energy_j[-1] - 1e-3
    assert len(find_counter_events(series, limit_w=LIMIT_W).resets) == 1
    assert energy.gaps


@given(anything(), CUTS_MS)
def test_the_figures_are_ordered(series: Series, cuts_ms: list[int]) -> None:
    for window in (None, _window(cuts_ms[0], cuts_ms[-1])):
        energy = integrate_counter(series, window=window, limit_w=LIMIT_W)
        assert 0 <= energy.measured_j <= energy.low_j + 1e-6
        assert energy.low_j <= energy.shown_j <= _high_j(energy)
        assert 0 <= energy.coverage <= 1
        total_s = energy.covered_s + sum(gap.duration_s for gap in energy.gaps)
        assert math.isclose(total_s, energy.claimed_s, rel_tol=1e-9, abs_tol=1e-5)
        assert all(gap.low_j >= 0 for gap in energy.gaps)
        assert math.isfinite(energy.square_w2s)


@given(anything(), CUTS_MS)
def test_pieces_of_a_run_sum_to_the_whole(series: Series, cuts_ms: list[int]) -> None:
    """Where pieces cut a long step, what it shows is divided; nothing of it is lost or counted twice."""
    whole = integrate_counter(series, window=_window(cuts_ms[0], cuts_ms[-1]))
    pieces = [integrate_counter(series, window=_window(start, stop)) for start, stop in pairwise(cuts_ms)]
    for name in ("claimed_s",):
        assert math.isclose(sum(getattr(piece, name) for piece in pieces), getattr(whole, name), abs_tol=1e-5)
    shown_s = sum(piece.covered_s + piece.bridged_s for piece in pieces)
    assert math.isclose(shown_s, whole.covered_s + whole.bridged_s, rel_tol=1e-9, abs_tol=1e-5)


@given(counted(), CUTS_MS)
def test_cutting_a_run_changes_no_energy(made: tuple[list[int], list[float]], cuts_ms: list[int]) -> None:
    times_ms, energy_j = made
    series = _series(times_ms, [1e7 + value for value in energy_j])
    whole = integrate_counter(series, window=_window(cuts_ms[0], cuts_ms[-1]), limit_w=LIMIT_W)
    pieces = [
        integrate_counter(series, window=_window(start, stop), limit_w=LIMIT_W)
        for start, stop in pairwise(cuts_ms)
    ]
    assert math.isclose(sum(piece.shown_j for piece in pieces), whole.shown_j, rel_tol=1e-6, abs_tol=1e-3)
    assert sum(piece.low_j for piece in pieces) <= whole.low_j + 1e-3
    assert sum(map(_high_j, pieces)) >= _high_j(whole) - 1e-3


@given(counted(), st.sets(st.integers(1, 29)))
def test_readings_left_out_change_no_energy(made: tuple[list[int], list[float]], dropped: set[int]) -> None:
    """The counter goes on while nobody reads it: that is what it is for."""
    times_ms, energy_j = made
    series = _series(times_ms, [1e9 + value for value in energy_j])
    kept = [i for i in range(len(energy_j)) if i not in dropped or i in (0, len(energy_j) - 1)]
    thin = replace(series, utc_ns=series.utc_ns[kept], value=series.value[kept])
    full, rare = (integrate_counter(item, limit_w=LIMIT_W) for item in (series, thin))
    assert math.isclose(full.measured_j, rare.measured_j, rel_tol=1e-6, abs_tol=1e-3)
    assert rare.square_w2s <= full.square_w2s * (1 + 1e-6) + 1e-3
