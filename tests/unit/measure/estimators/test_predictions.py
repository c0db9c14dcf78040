"""Ends of intervals from points and half widths."""

import math

import numpy as np
import pytest

from flopwitness.measure.estimators.predictions import Predictions


def test_the_point_is_the_geometric_middle_of_its_interval() -> None:
    answer = Predictions(flop=np.array([1e20, 5e15]), log_half=np.array([0.1, 2.0]))
    assert np.sqrt(answer.low_flop * answer.high_flop).tolist() == pytest.approx(answer.flop.tolist())
    assert (answer.high_flop / answer.low_flop).tolist() == pytest.approx([math.exp(0.2), math.exp(4)])


def test_no_interval_is_narrower_than_a_sensor_is_known() -> None:
    answer = Predictions(flop=np.array([7.0, 7.0]), log_half=np.array([0.0, 0.02]))
    assert answer.log_half.tolist() == [0.01, 0.02]
    assert answer.low_flop.tolist() == pytest.approx([7 * math.exp(-0.01), 7 * math.exp(-0.02)])


@pytest.mark.parametrize("log_half", [math.inf, 1e100, 800.0])
def test_a_width_without_bound_reaches_from_zero_to_anything(log_half: float) -> None:
    answer = Predictions(flop=np.array([1e20]), log_half=np.array([log_half]))
    assert answer.low_flop.tolist() == [0.0]
    assert answer.high_flop.tolist() == [math.inf]


@pytest.mark.parametrize("flop", [0.0, -1e15, math.nan])
def test_no_sensible_point_gives_no_sensible_ends(flop: float) -> None:
    answer = Predictions(flop=np.array([flop]), log_half=np.array([0.5]))
    assert not answer.low_flop[0] > 0
    assert not answer.high_flop[0] > 0


@pytest.mark.parametrize("flop", [0.0, -1e15, math.nan])
def test_nothing_is_complained_of_where_the_width_is_unbounded_too(flop: float) -> None:
    answer = Predictions(flop=np.array([flop]), log_half=np.array([math.inf]))
    assert not answer.low_flop[0] > 0
    assert not answer.high_flop[0] > 0
