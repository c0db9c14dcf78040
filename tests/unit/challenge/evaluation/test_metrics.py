"""Errors relative to the truth, beside sums done by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.challenge.evaluation.metrics import Errors, join_errors, score

NAN = math.nan


def make(
    ratio: list[float],
    *,
    split: list[int] | None = None,
    log_half: float | list[float] = 0.1,
    refused: list[bool] | None = None,
) -> Errors:
    n_estimates = len(ratio)
    return Errors(
        split=np.array(split if split is not None else [0] * n_estimates, dtype=np.intp),
        run=np.arange(n_estimates, dtype=np.intp),
        ratio=np.array(ratio, dtype=np.float64),
        log_half=np.broadcast_to(np.asarray(log_half, dtype=np.float64), (n_estimates,)),
        is_refused=np.array(refused if refused is not None else [False] * n_estimates),
    )


def test_errors_are_relative_to_the_truth() -> None:
    found = score(make([1.02, 0.9, 1.0, 1.2]))
    assert found is not None
    assert found.n_estimates == 4
    assert found.n_missing == 0
    assert found.mean_abs_error_pct == pytest.approx((2 + 10 + 0 + 20) / 4)
    assert found.bias_pct == pytest.approx((2 - 10 + 0 + 20) / 4)
    assert found.median_abs_error_pct == pytest.approx(6)
    assert found.max_abs_error_pct == pytest.approx(20)
    assert found.sd_pct == pytest.approx(math.sqrt(((2 - 8) ** 2 + (10 - 8) ** 2 + 8**2 + 12**2) / 4))
    assert found.p95_abs_error_pct == pytest.approx(10 + 0.85 * 10)


def test_estimates_that_could_not_be_made_are_counted_and_left_out() -> None:
    whole, holed = score(make([1.02, 0.9])), score(make([1.02, NAN, 0.9, math.inf]))
    assert whole is not None
    assert holed is not None
    assert (holed.n_estimates, holed.n_missing) == (2, 2)
    assert replace(holed, n_missing=0) == whole


@pytest.mark.parametrize("ratio", [[], [NAN], [NAN, NAN]])
def test_no_estimates_have_no_score(ratio: list[float]) -> None:
    assert score(make(ratio)) is None


def test_a_split_counts_once_however_many_errors_it_has() -> None:
    found = score(make([1.2, 1.3, 1.0, 1.05, 1.0, NAN], split=[0, 0, 1, 2, 3, 9]))
    assert found is not None
    assert found.splits_over_10pct_pct == 25


def test_exactly_ten_percent_is_not_over() -> None:
    found = score(make([0.9, 1.09], split=[0, 1]))
    assert found is not None
    assert found.splits_over_10pct_pct == 0
    over = score(make([0.899, 1.101], split=[0, 1]))
    assert over is not None
    assert over.splits_over_10pct_pct == 100


@pytest.mark.parametrize(
    ("ratio", "is_held"),
    [
        (1.0, True),
        (math.exp(0.0999), True),
        (math.exp(-0.0999), True),
        (math.exp(0.1001), False),
        (math.exp(-0.1001), False),
        (0.0, False),
        (-1.0, False),
        (NAN, False),
    ],
)
def test_an_interval_holds_the_truth_within_its_half_width(ratio: float, is_held: bool) -> None:
    assert make([ratio]).is_held().tolist() == [is_held]


def test_an_interval_without_bound_holds_any_truth_of_a_point() -> None:
    assert make([5.0, -5.0], log_half=math.inf).is_held().tolist() == [True, False]


def test_coverage_counts_estimates_that_were_made() -> None:
    found = score(make([1.0, 1.05, 1.5, NAN]))
    assert found is not None
    assert found.coverage_pct == pytest.approx(200 / 3)


def test_the_interval_ratio_is_that_of_the_median_width() -> None:
    found = score(make([1.0, 1.0, 1.0], log_half=[0.1, 0.2, 5.0]))
    assert found is not None
    assert found.interval_ratio == pytest.approx(math.exp(0.4))
    unbounded = score(make([1.0], log_half=[math.inf]))
    assert unbounded is not None
    assert unbounded.interval_ratio == math.inf


def test_refusals_are_a_share_of_the_estimates() -> None:
    found = score(make([1.0, 1.0, 1.0, 1.0, NAN], refused=[True, False, False, False, True]))
    assert found is not None
    assert found.refused_pct == 25


def test_negative_estimates_count_as_errors_beyond_all() -> None:
    found = score(make([-0.5, 1.0]))
    assert found is not None
    assert found.max_abs_error_pct == 150
    assert found.coverage_pct == 50


def test_joined_errors_stand_in_their_order() -> None:
    one, other = make([1.0, 1.1], split=[0, 0]), make([1.2], split=[1], refused=[True], log_half=0.3)
    joined = join_errors([one, other])
    assert joined.ratio.tolist() == [1.0, 1.1, 1.2]
    assert joined.split.tolist() == [0, 0, 1]
    assert joined.run.tolist() == [0, 1, 0]
    assert joined.log_half.tolist() == [0.1, 0.1, 0.3]
    assert joined.is_refused.tolist() == [False, False, True]


def test_order_of_estimates_does_not_matter() -> None:
    ratio, split = [1.2, 0.95, 1.01, 0.8], [0, 0, 1, 1]
    own, other = score(make(ratio, split=split)), score(make(ratio[::-1], split=split[::-1]))
    assert own == other
