"""What holds for every set of runs: their order, their units and their length."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.made_runs import make_cells, read_table

from flopwitness.measure.calibration.fitted import Fitted, Method, fit_methods
from flopwitness.measure.intervals import left_out_quantile
from flopwitness.measure.observed import NetEnergy, ObservedRuns, observe

Vector = NDArray[np.float64]
EXTENSIVE = ("duration_s", "busy_s", "energy_j", "net_energy_j", "memory_tb", "link_tb", "host_tb")

seeds = st.integers(0, 10**6)
sizes = st.integers(8, 20)
factors = st.floats(1e-3, 1e3)


def make(seed: int, n_runs: int) -> tuple[ObservedRuns, Vector]:
    rows = read_table(make_cells(n_runs, seed=seed, noise=0.1)).rows
    return observe(rows), np.array([float(row.true_flop or 0) for row in rows])


def scaled(runs: ObservedRuns, factor: float) -> ObservedRuns:
    return replace(runs, **{name: factor * getattr(runs, name) for name in EXTENSIVE})


def same(one: Fitted, other: Fitted, runs: ObservedRuns, factor: float = 1.0) -> None:
    assert set(one.models) == set(other.models)
    for method in one.models:
        own, theirs = one.predict(method, runs), other.predict(method, runs)
        np.testing.assert_allclose(theirs.flop, factor * own.flop, rtol=1e-6)
        np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-4)


@given(seeds, sizes, st.data())
@settings(max_examples=40)
def test_order_of_teachers_moves_nothing(seed: int, n_runs: int, data: st.DataObject) -> None:
    runs, flop = make(seed, n_runs)
    order = np.array(data.draw(st.permutations(range(n_runs))))
    same(fit_methods(runs, flop), fit_methods(runs.take(order), flop[order]), runs)


@given(seeds, sizes, factors)
@settings(max_examples=40)
def test_longer_teachers_teach_the_same(seed: int, n_runs: int, factor: float) -> None:
    runs, flop = make(seed, n_runs)
    same(fit_methods(runs, flop), fit_methods(scaled(runs, factor), factor * flop), runs)


@given(seeds, sizes, factors)
@settings(max_examples=40)
def test_another_unit_of_work_scales_every_estimate(seed: int, n_runs: int, factor: float) -> None:
    runs, flop = make(seed, n_runs)
    same(fit_methods(runs, flop), fit_methods(runs, factor * flop), runs, factor)


@given(seeds, sizes, factors, st.sampled_from(["memory_tb", "link_tb", "host_tb"]))
@settings(max_examples=40)
def test_another_unit_of_a_counter_moves_nothing(seed: int, n_runs: int, factor: float, name: str) -> None:
    runs, flop = make(seed, n_runs)
    other = replace(runs, **{name: factor * getattr(runs, name)})
    one, two = fit_methods(runs, flop), fit_methods(other, flop)
    for method in Method:
        if method not in one.models or method not in two.models:
            continue
        own, theirs = one.predict(method, runs), two.predict(method, other)
        np.testing.assert_allclose(theirs.flop, own.flop, rtol=1e-6)
        np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-4)
    np.testing.assert_array_equal(one.is_outside(runs), two.is_outside(other))


@given(seeds, sizes)
@settings(max_examples=40)
def test_a_run_that_goes_on_for_ever_has_a_point_in_proportion(seed: int, n_runs: int) -> None:
    runs, flop = make(seed, n_runs)
    fitted = fit_methods(runs, flop)
    for method in fitted.models:
        own, longer = fitted.predict(method, runs), fitted.predict(method, scaled(runs, 1e6))
        np.testing.assert_allclose(longer.flop, 1e6 * own.flop, rtol=1e-9)


@given(seeds, sizes)
@settings(max_examples=40)
def test_intervals_are_wider_at_a_higher_level_and_hold_their_point(seed: int, n_runs: int) -> None:
    runs, flop = make(seed, n_runs)
    fitted = fit_methods(runs, flop)
    for method in fitted.models:
        narrow, wide = (fitted.predict(method, runs, level) for level in (0.5, 0.9))
        assert (narrow.log_half > 0).all()
        assert (wide.log_half >= narrow.log_half).all()
        known = (wide.flop > 0) & np.isfinite(wide.log_half)
        assert (wide.low_flop[known] < wide.flop[known]).all()
        assert (wide.flop[known] < wide.high_flop[known]).all()


@given(seeds, st.floats(0, 500), st.floats(0, 1e4))
def test_pauses_take_their_idle_energy_with_them(seed: int, idle_w: float, pause_s: float) -> None:
    runs, _ = make(seed, 8)
    paused = replace(runs, duration_s=runs.duration_s + pause_s, energy_j=runs.energy_j + pause_s * idle_w)
    net = NetEnergy.of
    kind = fit_methods(runs, np.ones(8)).net.kind
    settled = NetEnergy(kind=kind, idle_w=idle_w)
    np.testing.assert_allclose(net(settled, paused), net(settled, runs), rtol=1e-6, atol=1e-3)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.floats(0.05, 0.99))
def test_the_quantile_of_errors_is_one_of_them_with_enough_below(errors: list[float], level: float) -> None:
    values = np.array(errors)
    found = left_out_quantile(values, level)
    assert found in errors
    share = (values <= found).sum() / (values.size + 1)
    assert share >= level - 1e-6 or found == values.max()
    assume(found < values.max())
    smaller = values[values < found]
    assert smaller.size / (values.size + 1) < level
