"""The mixture of Gaussian processes beside a plain one: one Cholesky factor for each point of the grid."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.efficiency import (
    MOST_RUNS,
    EfficiencyModel,
    fit_efficiency,
    take_evenly,
)
from flopwitness.measure.observed import Feature

Vector = NDArray[np.float64]
Point = tuple[float, float, float, float]

KERNELS = [
    (t, a, length)
    for t in (0.15, 0.3, 0.6)
    for a, length in [(0.0, 1.0), *itertools.product((0.4, 0.8, 1.2), (0.5, 1.0, 2.0))]
]
GRID: list[Point] = [(*kernel, s) for kernel in KERNELS for s in (0.1, 0.2, 0.35, 0.6, 0.9)]

RNG = np.random.default_rng(5)
FEATURES = (Feature.POWER, Feature.MEMORY)
X = RNG.normal([5.0, -6.0], [0.3, 0.8], size=(11, 2))
NET_J = RNG.uniform(500, 2_000, 11)
Y = 25 + 0.2 * (X[:, 0] - 5) - 0.1 * (X[:, 1] + 6) ** 2 + 0.03 * RNG.normal(size=11)
OTHERS = RNG.normal([5.0, -6.0], [0.5, 1.2], size=(7, 2))


def fit(x: Vector = X, y: Vector = Y, features: tuple[Feature, ...] = FEATURES) -> EfficiencyModel:
    return fit_efficiency(features, x, NET_J[: len(y)], NET_J[: len(y)] * np.exp(y))


def covariance(left: Vector, right: Vector, point: Point) -> Vector:
    t, a, length, _ = point
    square = np.array([((right - one) ** 2).sum(axis=1) for one in left])
    made: Vector = 4 + t**2 * left @ right.T + a**2 * np.exp(-square / (2 * length**2 * left.shape[1]))
    return made


def posterior(z: Vector, r: Vector, at: Vector, point: Point) -> tuple[Vector, Vector, float]:
    """Mean and variance of new readings, noise included, and the logarithm of the evidence."""
    noise = point[3] ** 2
    factor = np.linalg.cholesky(covariance(z, z, point) + noise * np.eye(len(z)))
    white = np.linalg.solve(factor, r)
    across = np.linalg.solve(factor, covariance(z, at, point))
    variance = np.diag(covariance(at, at, point)) + noise - (across**2).sum(axis=0)
    return across.T @ white, variance, float(-0.5 * white @ white - np.log(np.diag(factor)).sum())


def standardised(x: Vector, y: Vector, at: Vector) -> tuple[Vector, Vector, Vector]:
    mean, sd = x.mean(axis=0), x.std(axis=0, ddof=1)
    return (x - mean) / sd, (y - y.mean()) / y.std(ddof=1), (at - mean) / sd


def mixture(x: Vector, y: Vector, at: Vector) -> tuple[Vector, Vector, Vector]:
    """Mean and spread of y at new places, and the weights of the grid's points."""
    z, r, places = standardised(x, y, at)
    parts = [posterior(z, r, places, point) for point in GRID]
    evidence = np.array([part[2] for part in parts])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    means, variances = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
    mean = weight @ means
    sd = np.sqrt(weight @ (variances + means**2) - mean**2)
    scale = y.std(ddof=1)
    return y.mean() + scale * mean, scale * sd, weight


def test_points_are_those_of_the_plain_mixture() -> None:
    mean, _, _ = mixture(X, Y, OTHERS)
    found = fit().predict(np.ones(7), OTHERS, 0.9).flop
    np.testing.assert_allclose(np.log(found), mean, rtol=1e-10)


def test_intervals_are_the_wider_of_the_mixture_and_the_runs_left_out() -> None:
    _, sd, _ = mixture(X, Y, OTHERS)
    model = fit()
    bayes = stats.t.ppf(0.75, 8) * sd
    left_out = np.sort(model.errors)[6 - 1]  # rank ceil(0.5 x 12)
    assert (bayes > left_out).any()
    assert (bayes < left_out).any()
    found = model.predict(np.ones(7), OTHERS, 0.5).log_half
    np.testing.assert_allclose(found, np.maximum(bayes, left_out), rtol=1e-8)


def test_doubt_is_the_mixtures_spread_over_the_usual_one() -> None:
    _, own, _ = mixture(X, Y, X)
    _, other, _ = mixture(X, Y, OTHERS)
    np.testing.assert_allclose(fit().doubt(OTHERS), other / np.median(own), rtol=1e-8)
    assert np.median(fit().doubt(X)) == pytest.approx(1)


def test_errors_are_those_of_each_process_without_each_run() -> None:
    _, _, weight = mixture(X, Y, X)
    z, r, _ = standardised(X, Y, X)
    for place in range(0, len(Y), 2):
        rest = np.arange(len(Y)) != place
        means = [posterior(z[rest], r[rest], z[[place]], point)[0][0] for point in GRID]
        error = abs(r[place] - weight @ np.array(means)) * Y.std(ddof=1)
        assert fit().errors[place] == pytest.approx(error, rel=1e-7)


def test_errors_are_near_those_of_real_refits_without_each_run() -> None:
    real = []
    for place in range(len(Y)):
        rest = np.arange(len(Y)) != place
        model = fit_efficiency(FEATURES, X[rest], NET_J[rest], NET_J[rest] * np.exp(Y[rest]))
        real.append(abs(Y[place] - np.log(model.predict(np.ones(1), X[[place]], 0.9).flop[0])))
    assert math.sqrt(np.mean(np.square(real))) == pytest.approx(
        math.sqrt(np.mean(fit().errors ** 2)), rel=0.25
    )


def test_estimates_grow_with_energy_and_intervals_do_not() -> None:
    model = fit()
    one, thousand = (model.predict(np.full(7, net_j), OTHERS, 0.9) for net_j in (1.0, 1_000.0))
    np.testing.assert_allclose(thousand.flop, 1_000 * one.flop, rtol=1e-12)
    np.testing.assert_array_equal(thousand.log_half, one.log_half)


def test_the_fit_does_not_depend_on_the_order_of_runs() -> None:
    order = RNG.permutation(len(Y))
    other = fit_efficiency(FEATURES, X[order], NET_J[order], NET_J[order] * np.exp(Y[order]))
    own, theirs = (model.predict(np.ones(7), OTHERS, 0.9) for model in (fit(), other))
    np.testing.assert_allclose(theirs.flop, own.flop, rtol=1e-9)
    np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-7)
    np.testing.assert_allclose(other.errors, fit().errors[order], rtol=1e-6)


def test_the_fit_does_not_depend_on_the_order_of_features() -> None:
    other = fit(X[:, ::-1], features=FEATURES[::-1])
    own, theirs = fit().predict(np.ones(7), OTHERS, 0.9), other.predict(np.ones(7), OTHERS[:, ::-1], 0.9)
    np.testing.assert_allclose(theirs.flop, own.flop, rtol=1e-9)
    np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-7)


def test_another_unit_of_a_counter_changes_nothing() -> None:
    shift = np.log([1.0, 1_024.0])
    own, other = (
        fit().predict(np.ones(7), OTHERS, 0.9),
        fit(X + shift).predict(np.ones(7), OTHERS + shift, 0.9),
    )
    np.testing.assert_allclose(other.flop, own.flop, rtol=1e-9)
    np.testing.assert_allclose(other.log_half, own.log_half, rtol=1e-7)


def test_another_unit_of_work_moves_the_points_alone() -> None:
    own, other = (
        fit().predict(np.ones(7), OTHERS, 0.9),
        fit(y=Y + math.log(2)).predict(np.ones(7), OTHERS, 0.9),
    )
    np.testing.assert_allclose(other.flop, 2 * own.flop, rtol=1e-9)
    np.testing.assert_allclose(other.log_half, own.log_half, rtol=1e-7)


def test_a_law_without_noise_is_learnt_better_than_a_constant() -> None:
    x = RNG.normal([5.0, -6.0], [0.3, 0.8], size=(60, 2))
    y = 25 + 0.3 * (x[:, 0] - 5) - 0.2 * np.tanh(x[:, 1] + 6)
    net_j = np.ones(40)
    model = fit_efficiency(FEATURES, x[:40], net_j, np.exp(y[:40]))
    error = np.log(model.predict(np.ones(20), x[40:], 0.9).flop) - y[40:]
    assert np.abs(error).mean() < 0.2 * y[40:].std()


def test_far_from_the_runs_it_doubts() -> None:
    doubt = fit().doubt(X.mean(axis=0) + np.array([[0.0], [3.0], [10.0], [100.0]]) * X.std(axis=0))
    assert doubt.tolist() == sorted(doubt.tolist())
    assert doubt[0] < 1.5
    assert doubt[-1] > 20


def test_features_that_hardly_differ_are_left_out() -> None:
    flat = X.copy()
    flat[:, 1] = -6.0
    model = fit(flat)
    assert model.features == (Feature.POWER,)
    assert model.log_features.shape == (11, 1)
    alone = fit(X[:, :1], features=(Feature.POWER,))
    np.testing.assert_array_equal(
        model.predict(np.ones(7), OTHERS[:, :1], 0.9).flop, alone.predict(np.ones(7), OTHERS[:, :1], 0.9).flop
    )


def test_without_features_that_differ_it_is_a_constant() -> None:
    model = fit(np.tile([5.0, -6.0], (11, 1)))
    assert model.features == ()
    answer = model.predict(np.ones(3), np.empty((3, 0)), 0.9)
    assert np.log(answer.flop).tolist() == pytest.approx([Y.mean()] * 3)
    assert model.pulled_in(np.empty((3, 0))).shape == (3, 0)


def test_runs_that_all_compute_alike_leave_a_sensors_width() -> None:
    model = fit(y=np.full(11, 25.0))
    answer = model.predict(np.ones(7), OTHERS, 0.9)
    np.testing.assert_allclose(answer.flop, math.exp(25), rtol=1e-6)
    assert answer.log_half.tolist() == [0.01] * 7


def test_repeats_of_one_run_do_not_break_it() -> None:
    x, y = np.repeat(X[:4], 3, axis=0), np.repeat(Y[:4], 3)
    answer = fit_efficiency(FEATURES, x, np.ones(12), np.exp(y)).predict(np.ones(7), OTHERS, 0.9)
    assert np.isfinite(answer.flop).all()
    assert (answer.log_half > 0).all()


@pytest.mark.parametrize("n_runs", [0, 1, 7])
def test_too_few_runs_are_refused(n_runs: int) -> None:
    with pytest.raises(NotCalibratedError, match="too few runs") as refusal:
        fit_efficiency((Feature.POWER,), np.ones((n_runs, 1)), np.ones(n_runs), np.ones(n_runs))
    assert refusal.value.expected == "at least 8"


def test_of_many_runs_as_many_are_taken_from_all_parts() -> None:
    assert take_evenly(9).tolist() == list(range(9))
    taken = take_evenly(10 * MOST_RUNS)
    assert (taken[0], taken[-1], taken.size) == (0, 10 * MOST_RUNS - 1, MOST_RUNS)
    assert set(np.diff(taken)) <= {10, 11}
    place = np.linspace(0, 1, MOST_RUNS + 1)[:, None]
    model = fit_efficiency((Feature.POWER,), place, np.ones(MOST_RUNS + 1), np.exp(place[:, 0]))
    assert model.n_runs == MOST_RUNS
    np.testing.assert_array_equal(model.log_features, place[take_evenly(MOST_RUNS + 1)])


def test_eight_runs_are_enough() -> None:
    model = fit(X[:8], Y[:8])
    assert model.n_runs == 8
    assert np.isfinite(model.predict(np.ones(7), OTHERS, 0.9).flop).all()


def test_a_missing_feature_gives_no_estimate() -> None:
    answer = fit().predict(np.ones(2), np.array([[5.0, math.nan], [5.0, -6.0]]), 0.9)
    assert np.isnan(answer.flop).tolist() == [True, False]


def test_calibration_runs_are_not_pulled_anywhere() -> None:
    np.testing.assert_allclose(fit().pulled_in(X), X, rtol=1e-9)


def test_a_run_outside_is_pulled_onto_the_box_of_principal_axes() -> None:
    model = fit()
    far = X.mean(axis=0) + np.array([[50.0, 3.0], [-7.0, 80.0], [0.5, 0.5]]) * X.std(axis=0, ddof=1)
    pulled = model.pulled_in(far)
    z, _, inside = standardised(X, Y, pulled)
    axes = np.linalg.eigh(z.T @ z)[1]
    low, high = (z @ axes).min(axis=0), (z @ axes).max(axis=0)
    assert (inside @ axes > low - 1e-9).all()
    assert (inside @ axes < high + 1e-9).all()
    np.testing.assert_allclose(model.pulled_in(pulled), pulled, rtol=1e-9)
    assert (model.doubt(pulled) <= model.doubt(far) + 1e-9).all()


def test_what_lies_inside_the_box_along_an_axis_is_kept() -> None:
    model = fit()
    z, _, _ = standardised(X, Y, X)
    axes = np.linalg.eigh(z.T @ z)[1]
    low, high = (z @ axes).min(axis=0), (z @ axes).max(axis=0)
    place = np.array([[high[0] + 5, (low[1] + high[1]) / 2]])
    far = place @ axes.T * X.std(axis=0, ddof=1) + X.mean(axis=0)
    _, _, inside = standardised(X, Y, model.pulled_in(far))
    assert (inside @ axes)[0] == pytest.approx([high[0], place[0, 1]])
