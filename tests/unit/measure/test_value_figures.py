"""What values show by themselves, wherever one block of them ends."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from flopwitness.measure import value_figures
from flopwitness.measure.samples import Series
from flopwitness.measure.value_figures import (
    agree_widely,
    count_usable,
    has_many_values,
    holds_positive,
    longest_still,
    share_over,
    typical_w,
    typically_over,
)

MakeSeries = Callable[..., Series]
NAN, INF = math.nan, math.inf


@pytest.fixture(params=[1, 2, 3, 7, 1_000], autouse=True)
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_figures, "BLOCK", request.param)


def _values(values: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("values", "n_of_power", "n_of_others"),
    [
        ([1, 2, 3], 3, 3),
        ([0, 0, 5], 3, 3),
        ([0, 0, 0], 0, 3),
        ([0, NAN, 0], 0, 2),
        ([-1, 2, -3], 1, 3),
        ([NAN, INF, -INF, 4], 1, 1),
        ([NAN, NAN], 0, 0),
        ([-1, 0], 0, 2),
        ([], 0, 0),
    ],
)
def test_usable_readings_are_counted(values: list[float], n_of_power: int, n_of_others: int) -> None:
    assert count_usable(_values(values), is_power=True) == n_of_power
    assert count_usable(_values(values), is_power=False) == n_of_others


@pytest.mark.parametrize(
    ("values", "is_held"),
    [([0, 0, 1], True), ([NAN, 3], True), ([0, 0], False), ([NAN, INF, -1], False), ([], False)],
)
def test_a_dead_sensor_never_reads_above_zero(values: list[float], *, is_held: bool) -> None:
    assert holds_positive(_values(values)) is is_held


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([1, 2, 3, 4], 0.25),
        ([4, 4, NAN, INF], 1.0),
        ([NAN], 0.0),
        ([], 0.0),
        ([3, 3], 0.0),
        ([3, 9, 9], 2 / 3),
    ],
)
def test_the_share_over_a_limit_is_of_what_holds_a_value(
    make_series: MakeSeries, values: list[float], share: float
) -> None:
    assert share_over([make_series(values)], 3.0) == share
    assert share_over([make_series(values), make_series(values)], 3.0) == share


def test_the_typical_power_is_the_sum_of_the_middle_readings(make_series: MakeSeries) -> None:
    glitch = make_series([100.0, 100.0, 1e9, NAN, 100.0])
    known = [glitch, make_series([50.0] * 5), make_series([NAN])]
    assert typical_w(known) == 150
    assert typical_w([]) == 0
    assert glitch.value[2] == 1e9
    assert typically_over(known, 149.0)
    assert not typically_over(known, 150.0)
    assert not typically_over([], 0.0)


@pytest.mark.parametrize("huge", [1.7e308, INF])
def test_readings_beyond_any_power_overflow_nothing(make_series: MakeSeries, huge: float) -> None:
    series = [make_series([huge, huge, 1.0]), make_series([huge, huge])]
    assert typically_over(series, 1e9) is (huge < INF)
    assert not typically_over([make_series([huge, 5.0, 5.0])], 6.0)


@pytest.mark.parametrize(
    ("values", "longest"),
    [
        ([], 0),
        ([5], 1),
        ([NAN, NAN, NAN], 1),
        ([1, 2, 3], 1),
        ([7, 7, 7, 7, 7], 5),
        ([1, 7, 7, 7, 2, 2], 3),
        ([7, 7, 1, 7, 7, 7], 3),
        ([7, 7, 7, 1, 2, 7, 7], 3),
        ([1, 1, 2, 2, 2, 2, 3, 3, 3], 4),
        ([1, NAN, 1, 1], 2),
    ],
)
def test_the_longest_still_stretch_is_found(values: list[float], longest: int) -> None:
    assert longest_still(_values(values)) == longest


@pytest.mark.parametrize("seed", range(5))
def test_still_stretches_of_noise_are_those_of_a_plain_walk(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2, 200).astype(np.float64)
    longest = run = 1
    for before, here in pairwise(values):
        run = run + 1 if before == here else 1
        longest = max(longest, run)
    assert longest_still(values) == longest


@pytest.mark.parametrize(
    ("values", "is_many"),
    [([1, 2, 3], True), ([1, 1, 2, 2, 3], True), ([1, NAN, NAN, 2], True), ([1, 2, 1], False), ([], False)],
)
def test_values_are_counted_until_there_are_enough(values: list[float], *, is_many: bool) -> None:
    assert has_many_values(_values(values), 3) is is_many


@pytest.mark.parametrize(
    ("theirs", "share", "do_agree"),
    [
        ([1, 2, 3, NAN], 1.0, True),
        ([1, 2, 3, 4], 0.75, True),
        ([1, 2, 3, 4], 0.76, False),
        ([9, 9, 3, NAN], 0.5, True),
        ([9, 9, 9, NAN], 0.5, False),
        ([NAN, 2, 3, NAN], 0.9, False),
    ],
)
def test_readings_agree_by_their_share(theirs: list[float], share: float, *, do_agree: bool) -> None:
    ours = _values([1, 2, 3, NAN])
    assert agree_widely(ours, _values(theirs), share) is do_agree
    assert agree_widely(_values(theirs), ours, share) is do_agree
