"""The published equations: constants come back from data that they made, and refits confirm the errors."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import nnls

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.paper import OVERHEAD_GRID_W, PaperModel, fit_paper

Vector = NDArray[np.float64]

RNG = np.random.default_rng(11)
N_RUNS = 9
TFLOP = RNG.uniform(50, 300, N_RUNS)
TB = RNG.uniform(0.02, 0.2, N_RUNS)
TIME_S = RNG.uniform(60, 240, N_RUNS)
NOISE = np.exp(0.03 * RNG.normal(size=N_RUNS))


def energy_j(e_tflop: float, e_tb: float, overhead_w: float) -> Vector:
    made: Vector = e_tflop * TFLOP + e_tb * TB + overhead_w * TIME_S
    return made


def fit_eq1(net_j: Vector, tb: Vector = TB) -> PaperModel:
    return fit_paper(net_j, TIME_S, tb, TFLOP * 1e12)


def fit_eq2(net_j: Vector) -> PaperModel:
    return fit_paper(net_j, TIME_S, None, TFLOP * 1e12)


NOISY_J = energy_j(5.6, 4_600, 1.4) * NOISE


def refit(net_j: Vector, tb: Vector | None, overhead_w: float, keep: Vector) -> Vector:
    """e_TFLOP and e_TB (0 for Eq. 2) by least squares in energy over FLOP, none of them below 0."""
    columns = [TFLOP] if tb is None else [TFLOP, tb]
    design = np.column_stack(columns) / TFLOP[:, None]
    target = (net_j - overhead_w * TIME_S) / TFLOP
    solution, _ = nnls(design[keep], target[keep])
    return np.append(solution, 0.0)[:2]


def left_out_ratios(net_j: Vector, tb: Vector | None, overhead_w: float) -> Vector:
    """Estimate over truth of each run, from constants that were fitted without it."""
    ratios = []
    for place in range(N_RUNS):
        keep = np.arange(N_RUNS) != place
        e_tflop, e_tb = refit(net_j, tb, overhead_w, keep)
        moved_j = 0.0 if tb is None else e_tb * tb[place]
        ratios.append((net_j[place] - moved_j - overhead_w * TIME_S[place]) / e_tflop / TFLOP[place])
    return np.array(ratios)


@pytest.mark.parametrize(
    ("e_tflop", "e_tb", "overhead_w"), [(5.61, 4_621.7, 1.4625), (0.8, 90.0, 2.0), (30.0, 1.0, 0.0125)]
)
def test_equation_1_recovers_the_constants_that_made_the_data(
    e_tflop: float, e_tb: float, overhead_w: float
) -> None:
    model = fit_eq1(energy_j(e_tflop, e_tb, overhead_w))
    assert model.energy_per_tflop_j == pytest.approx(e_tflop, rel=1e-6)
    assert model.energy_per_tb_j == pytest.approx(e_tb, rel=1e-6)
    assert model.overhead_w == pytest.approx(overhead_w)
    assert model.errors == pytest.approx(0, abs=1e-6)
    assert model.has_traffic
    assert not model.is_overhead_at_edge


@pytest.mark.parametrize(("e_tflop", "overhead_w"), [(5.71, 3.75), (0.8, 0.5), (30.0, 2.0)])
def test_equation_2_recovers_the_constants_that_made_the_data(e_tflop: float, overhead_w: float) -> None:
    model = fit_eq2(energy_j(e_tflop, 0, overhead_w))
    assert model.energy_per_tflop_j == pytest.approx(e_tflop, rel=1e-9)
    assert model.energy_per_tb_j is None
    assert model.overhead_w == pytest.approx(overhead_w)
    assert not model.has_traffic
    assert not model.is_overhead_at_edge


@pytest.mark.parametrize("overhead_w", [0.0, 4.0])
def test_an_overhead_on_the_edge_is_told(overhead_w: float) -> None:
    for model in (fit_eq1(energy_j(5.6, 4_600, overhead_w)), fit_eq2(energy_j(5.6, 0, overhead_w))):
        assert model.overhead_w == overhead_w
        assert model.is_overhead_at_edge


def test_an_overhead_beyond_the_grid_ends_on_its_edge() -> None:
    model = fit_eq2(energy_j(5.6, 0, 7.5))
    assert model.overhead_w == 4.0
    assert model.is_overhead_at_edge


def test_the_grid_is_the_published_one() -> None:
    assert OVERHEAD_GRID_W.size == 321
    assert OVERHEAD_GRID_W[[0, 117, 300, -1]] == pytest.approx([0, 1.4625, 3.75, 4])


def test_traffic_never_saves_energy() -> None:
    saving_j = energy_j(5.6, -800, 1.0)
    model = fit_eq1(saving_j)
    assert model.energy_per_tb_j == 0.0
    target = (saving_j - model.overhead_w * TIME_S) / TFLOP
    assert model.energy_per_tflop_j == pytest.approx(target.mean())
    ratios = left_out_ratios(saving_j, TB, model.overhead_w)
    assert model.errors == pytest.approx(np.abs(np.log(ratios)), rel=1e-6)


@pytest.mark.parametrize("tb", [TB, None])
def test_constants_and_errors_are_those_of_refits_without_each_run(tb: Vector | None) -> None:
    model = fit_paper(NOISY_J, TIME_S, tb, TFLOP * 1e12)
    expected = refit(NOISY_J, tb, model.overhead_w, np.ones(N_RUNS, dtype=bool))
    found = [model.energy_per_tflop_j, model.energy_per_tb_j or 0.0]
    assert found == pytest.approx(expected, rel=1e-6)
    ratios = left_out_ratios(NOISY_J, tb, model.overhead_w)
    assert model.errors == pytest.approx(np.abs(np.log(ratios)), rel=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_one_run_that_alone_tells_the_traffic_apart_is_left_out_without_traffic(seed: int) -> None:
    generator = np.random.default_rng(seed)
    tb = generator.uniform(1e-4, 1e-2) * TFLOP
    tb[3] *= 3
    net_j = (5.6 * TFLOP + 4_600 * tb + 1.4 * TIME_S) * np.exp(0.03 * generator.normal(size=N_RUNS))
    model = fit_eq1(net_j, tb)
    own_j = net_j - model.overhead_w * TIME_S
    mean_j = np.delete(own_j / TFLOP, 3).mean()
    assert model.errors[3] == pytest.approx(abs(np.log(own_j[3] / TFLOP[3] / mean_j)), rel=1e-6)


@pytest.mark.parametrize("tb", [TB, None])
def test_the_overhead_is_the_grids_best_on_runs_left_out(tb: Vector | None) -> None:
    model = fit_paper(NOISY_J, TIME_S, tb, TFLOP * 1e12)
    score = [((left_out_ratios(NOISY_J, tb, each) - 1) ** 2).sum() for each in OVERHEAD_GRID_W[::8]]
    own = ((left_out_ratios(NOISY_J, tb, model.overhead_w) - 1) ** 2).sum()
    assert own <= min(score) + 1e-12


def test_the_condition_number_is_that_of_the_weighted_design() -> None:
    design = np.column_stack([TFLOP, TB, TIME_S]) / TFLOP[:, None]
    lengths = np.sqrt((design**2).sum(axis=0))
    values = np.linalg.svd(design / lengths, compute_uv=False)
    assert fit_eq1(NOISY_J).condition_number == pytest.approx(values[0] / values[-1])


@pytest.mark.parametrize("factor", [0.01, 3.0, 1e6])
def test_longer_runs_of_the_same_kind_have_the_same_constants(factor: float) -> None:
    model = fit_eq1(NOISY_J)
    longer = fit_paper(factor * NOISY_J, factor * TIME_S, factor * TB, factor * TFLOP * 1e12)
    assert longer.energy_per_tflop_j == pytest.approx(model.energy_per_tflop_j, rel=1e-9)
    assert longer.energy_per_tb_j == pytest.approx(model.energy_per_tb_j, rel=1e-9)
    assert longer.overhead_w == model.overhead_w


def test_order_of_runs_does_not_matter() -> None:
    order = RNG.permutation(N_RUNS)
    model = fit_eq1(NOISY_J)
    other = fit_paper(NOISY_J[order], TIME_S[order], TB[order], TFLOP[order] * 1e12)
    assert other.overhead_w == model.overhead_w
    assert other.energy_per_tflop_j == pytest.approx(model.energy_per_tflop_j, rel=1e-9)
    assert other.energy_per_tb_j == pytest.approx(model.energy_per_tb_j, rel=1e-9)
    assert other.errors == pytest.approx(model.errors[order], rel=1e-7)


@pytest.mark.parametrize(
    ("tb", "time_s"),
    [
        (3e-3 * TFLOP, TIME_S),  # traffic goes with the work
        (TB, 0.7 * TFLOP),  # time goes with the work: constant power
        (2e-3 * TIME_S, TIME_S),  # traffic goes with the time
        (0 * TB, TIME_S),  # no traffic at all
        (3e-3 * TFLOP * (1 + 1e-6 * NOISE), TIME_S),  # nearly
    ],
)
def test_constants_that_cannot_be_told_apart_are_refused(tb: Vector, time_s: Vector) -> None:
    with pytest.raises(NotCalibratedError, match="told apart") as refusal:
        fit_paper(NOISY_J, time_s, tb, TFLOP * 1e12)
    assert "condition number" in refusal.value.expected


def test_equation_2_is_refused_where_all_runs_draw_the_same_power() -> None:
    with pytest.raises(NotCalibratedError, match="told apart"):
        fit_paper(NOISY_J, 0.7 * TFLOP, None, TFLOP * 1e12)


@pytest.mark.parametrize(("has_traffic", "n_runs"), [(True, 0), (True, 4), (False, 1), (False, 3)])
def test_too_few_runs_are_refused(has_traffic: bool, n_runs: int) -> None:
    part = slice(0, n_runs)
    tb = TB[part] if has_traffic else None
    with pytest.raises(NotCalibratedError, match="too few runs") as refusal:
        fit_paper(NOISY_J[part], TIME_S[part], tb, TFLOP[part] * 1e12)
    assert refusal.value.expected == f"at least {5 if has_traffic else 4}"
    assert refusal.value.found == str(n_runs)


@pytest.mark.parametrize(("has_traffic", "n_runs"), [(True, 5), (False, 4)])
def test_two_runs_more_than_constants_are_enough(has_traffic: bool, n_runs: int) -> None:
    part = slice(0, n_runs)
    tb = TB[part] if has_traffic else None
    assert fit_paper(NOISY_J[part], TIME_S[part], tb, TFLOP[part] * 1e12).errors.size == n_runs


def test_energy_that_falls_with_the_work_is_refused() -> None:
    with pytest.raises(NotCalibratedError, match="positive energy"):
        fit_eq1(20_000 * TB - 0.5 * TFLOP + 100)


def test_estimates_are_the_equation_solved_for_the_work() -> None:
    model = fit_eq1(energy_j(5.61, 4_621.7, 1.4625))
    answer = model.predict(np.array([1_000.0]), np.array([100.0]), np.array([0.05]), 0.9)
    assert answer.flop.tolist() == pytest.approx([(1_000 - 4_621.7 * 0.05 - 146.25) / 5.61 * 1e12], rel=1e-6)


def test_equation_2_does_not_look_at_traffic() -> None:
    model = fit_eq2(NOISY_J)
    missing, huge = (
        model.predict(NOISY_J, TIME_S, np.full(N_RUNS, value), 0.9).flop for value in (math.nan, 1e9)
    )
    np.testing.assert_array_equal(missing, huge)
    assert np.isfinite(missing).all()


def test_equation_1_has_no_estimate_without_traffic() -> None:
    assert np.isnan(fit_eq1(NOISY_J).predict(NOISY_J, TIME_S, np.full(N_RUNS, math.nan), 0.9).flop).all()


def test_more_traffic_than_energy_gives_a_negative_count_and_never_zero() -> None:
    flop = fit_eq1(NOISY_J).predict(np.array([100.0]), np.array([10.0]), np.array([50.0]), 0.9).flop
    assert flop[0] < 0


@pytest.mark.parametrize(("tb", "n_constants"), [(TB, 3), (None, 2)])
def test_the_interval_is_the_wider_of_two(tb: Vector | None, n_constants: int) -> None:
    model = fit_paper(NOISY_J, TIME_S, tb, TFLOP * 1e12)
    spread = math.sqrt(float((model.errors**2).mean()))
    bayes = float(stats.t.ppf(0.95, N_RUNS - n_constants)) * spread
    half = model.predict(NOISY_J, TIME_S, TB, 0.9).log_half
    assert half == pytest.approx(max(bayes, float(model.errors.max())))
    spiked = replace(model, errors=np.array([0.9, *np.full(N_RUNS - 1, 1e-3)]))
    assert spiked.predict(NOISY_J, TIME_S, TB, 0.9).log_half == pytest.approx(0.9)


def test_an_estimate_below_zero_leaves_the_interval_unbounded() -> None:
    model = replace(fit_eq1(NOISY_J), errors=np.array([math.inf, *np.full(N_RUNS - 1, 0.01)]))
    assert np.isinf(model.predict(NOISY_J, TIME_S, TB, 0.9).log_half).all()
