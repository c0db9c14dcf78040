"""How far outside its runs a calibration may still speak."""

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from flopwitness.measure.calibration.domain import Domain, settle_domain
from flopwitness.measure.observed import Feature

FEATURES = (Feature.POWER, Feature.MEMORY)
SEEN = np.array([[5.0, -7.0], [6.0, -7.5], [5.5, -7.2]])


def settle_power(log_power_w: ArrayLike) -> Domain:
    seen = np.asarray(log_power_w, dtype=np.float64)[:, None]
    return settle_domain((Feature.POWER,), seen, n_runs=len(seen))


@pytest.fixture
def domain() -> Domain:
    return settle_domain(FEATURES, SEEN, n_runs=3)


def test_it_keeps_the_ends_of_each_feature(domain: Domain) -> None:
    assert domain.features == FEATURES
    assert domain.log_low.tolist() == [5.0, -7.5]
    assert domain.log_high.tolist() == [6.0, -7.0]
    assert domain.n_runs == 3


def test_calibration_runs_lie_inside(domain: Domain) -> None:
    assert not domain.ranges_outside(SEEN).any()
    assert not domain.is_outside(SEEN).any()


def test_distance_counts_in_ranges_with_a_sign(domain: Domain) -> None:
    far = np.array([[3.0, -7.2], [8.5, -6.75], [5.2, -9.5]])
    assert domain.ranges_outside(far).tolist() == pytest.approx(
        np.array([[-2.0, 0.0], [2.5, 0.5], [0.0, -4.0]])
    )


@pytest.mark.parametrize(("n_runs", "most"), [(2, 4.0), (8, 10 / 7), (14, 16 / 13), (58, 60 / 57)])
def test_the_limit_shrinks_to_one_range_as_runs_grow(n_runs: int, most: float) -> None:
    domain = settle_power(np.linspace(0, 1, n_runs))
    assert domain.most_ranges == pytest.approx(most)
    inside, outside = domain.is_outside(np.array([[1 + most - 1e-9], [1 + most + 1e-9]]))
    assert not inside
    assert outside
    assert domain.is_outside(np.array([[-most - 1e-9]])).all()


@pytest.mark.parametrize("n_runs", [2, 5, 14, 200])
def test_it_is_one_range_of_the_population_that_even_runs_come_from(n_runs: int) -> None:
    # n of them lie at i / (n + 1) of a population from 0 to 1, whose range ends at -1 and 2
    domain = settle_power(np.arange(1, n_runs + 1) / (n_runs + 1))
    edges = np.array([[-1 + 1e-9], [2 - 1e-9], [-1 - 1e-9], [2 + 1e-9]])
    assert domain.is_outside(edges)[:, 0].tolist() == [False, False, True, True]


def test_a_feature_that_was_not_recorded_does_not_lie_outside(domain: Domain) -> None:
    assert domain.is_outside(np.array([[math.nan, -7.2], [math.nan, -99.0]])).tolist() == [
        [False, False],
        [False, True],
    ]


def test_a_feature_that_never_varied_allows_what_sensors_cannot_tell_apart() -> None:
    domain = settle_power(np.full(14, 5.0))
    assert not domain.is_outside(np.array([[5.0], [5.012], [4.988]])).any()
    assert domain.is_outside(np.array([[5.02], [4.98], [5.5]])).all()


def test_order_of_runs_does_not_matter(domain: Domain) -> None:
    other = settle_domain(FEATURES, SEEN[::-1], n_runs=3)
    assert other.log_low.tolist() == domain.log_low.tolist()
    assert other.log_high.tolist() == domain.log_high.tolist()


def test_repeats_do_not_narrow_the_limit(domain: Domain) -> None:
    repeated = settle_domain(FEATURES, np.repeat(SEEN, 10, axis=0), n_runs=3)
    assert repeated.most_ranges == domain.most_ranges == 2.5
