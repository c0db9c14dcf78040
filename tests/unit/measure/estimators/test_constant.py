"""One number of operations per joule, with errors that a refit without each run confirms."""

import numpy as np
import pytest
from scipy import stats

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.constant import ConstantModel, fit_constant

RNG = np.random.default_rng(3)
NET_J = RNG.uniform(500, 2_000, 12)
FLOP = 2e11 * NET_J * np.exp(0.1 * RNG.normal(size=12))


@pytest.fixture
def model() -> ConstantModel:
    return fit_constant(NET_J, FLOP)


def test_operations_per_joule_are_recovered() -> None:
    model = fit_constant(NET_J, 2e11 * NET_J)
    assert np.exp(model.log_flop_per_j) == pytest.approx(2e11, rel=1e-12)
    assert model.log_sd == pytest.approx(0, abs=1e-12)
    assert model.predict(np.array([7.0]), 0.9).flop.tolist() == pytest.approx([14e11])


def test_the_mean_is_geometric(model: ConstantModel) -> None:
    assert np.exp(model.log_flop_per_j) == pytest.approx(stats.gmean(FLOP / NET_J))
    assert np.exp(model.log_sd) == pytest.approx(stats.gstd(FLOP / NET_J))


def test_errors_are_those_of_refits_without_each_run(model: ConstantModel) -> None:
    for place in range(12):
        rest = np.delete(np.arange(12), place)
        (flop,) = fit_constant(NET_J[rest], FLOP[rest]).predict(NET_J[[place]], 0.9).flop
        assert model.errors[place] == pytest.approx(abs(np.log(FLOP[place] / flop)), rel=1e-9)


@pytest.mark.parametrize("n_runs", [0, 1, 2])
def test_too_few_runs_are_refused(n_runs: int) -> None:
    with pytest.raises(NotCalibratedError, match="too few runs") as refusal:
        fit_constant(NET_J[:n_runs], FLOP[:n_runs])
    assert refusal.value.found == str(n_runs)


def test_three_runs_are_enough() -> None:
    assert fit_constant(NET_J[:3], FLOP[:3]).errors.size == 3


def test_the_interval_is_the_wider_of_two() -> None:
    # two clusters: no run errs by much more than the spread, so that Student's t is wider
    even = fit_constant(NET_J, 2e11 * NET_J * np.exp(0.1 * (-1.0) ** np.arange(12)))
    bayes = stats.t.ppf(0.95, 11) * np.sqrt(0.01 * 12 / 11) * np.sqrt(13 / 12)
    assert even.predict(NET_J, 0.9).log_half == pytest.approx(bayes)
    assert bayes > even.errors.max()
    # and one run that errs by far: the error is wider
    spiked = fit_constant(NET_J, np.where(np.arange(12) == 0, FLOP * 30, FLOP))
    assert spiked.predict(NET_J, 0.9).log_half[0] == pytest.approx(spiked.errors[0])


def test_a_higher_level_is_wider_and_moves_no_point(model: ConstantModel) -> None:
    narrow, wide = (model.predict(NET_J, level) for level in (0.5, 0.95))
    assert (wide.log_half > narrow.log_half).all()
    np.testing.assert_array_equal(wide.flop, narrow.flop)


def test_order_of_runs_does_not_matter(model: ConstantModel) -> None:
    order = RNG.permutation(12)
    other = fit_constant(NET_J[order], FLOP[order])
    assert other.log_flop_per_j == pytest.approx(model.log_flop_per_j, rel=1e-14)
    assert other.errors == pytest.approx(model.errors[order], rel=1e-9)


def test_a_run_without_energy_has_no_estimate(model: ConstantModel) -> None:
    flop = model.predict(np.array([np.nan, 100.0]), 0.9).flop
    assert np.isnan(flop).tolist() == [True, False]
