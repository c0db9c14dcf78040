"""Student's t beside textbook values, and ranks of errors beside counting them."""

import math

import numpy as np
import pytest

from flopwitness.measure.intervals import (
    FEWEST_FOR_A_GUARANTEE,
    FEWEST_FOR_A_RANK,
    left_out_quantile,
    student_t,
)


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        (0.9, 1, 6.3138),
        (0.9, 5, 2.0150),
        (0.9, 11, 1.7959),
        (0.9, 30, 1.6973),
        (0.95, 10, 2.2281),
        (0.98, 85, 2.3710),
        (0.5, 3, 0.7649),
        (0.9, 10**9, 1.6449),
    ],
)
def test_student_t_is_that_of_the_tables(level: float, freedom: int, expected: float) -> None:
    assert student_t(level, freedom) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("freedom", [0, -1, -100])
def test_without_degrees_of_freedom_one_is_counted(freedom: int) -> None:
    assert student_t(0.9, freedom) == student_t(0.9, 1)


def test_fewer_runs_and_higher_levels_widen() -> None:
    widths = [student_t(0.9, freedom) for freedom in range(1, 40)]
    assert widths == sorted(widths, reverse=True)
    assert student_t(0.95, 10) > student_t(0.9, 10) > student_t(0.5, 10) > 0


@pytest.mark.parametrize(
    ("n_errors", "level", "rank"),
    [
        (9, 0.9, 9),
        (19, 0.9, 18),
        (29, 0.9, 27),
        (24, 0.56, 14),  # 0.56 x 25 is 14 and a bit in floats
        (99, 0.9, 90),
        (14, 0.9, 14),
        (19, 0.95, 19),
        (9, 0.5, 5),
        (10, 0.5, 6),
    ],
)
def test_the_rank_is_the_levels_share_of_one_more_run(n_errors: int, level: float, rank: int) -> None:
    errors = np.arange(1.0, n_errors + 1)
    assert left_out_quantile(errors, level) == rank


@pytest.mark.parametrize(("n_errors", "level"), [(8, 0.9), (1, 0.9), (2, 0.5), (9, 0.95), (18, 0.95)])
def test_the_largest_error_stands_in_for_a_rank_beyond_them(n_errors: int, level: float) -> None:
    assert left_out_quantile(np.arange(1.0, n_errors + 1), level) == n_errors


def test_nine_runs_are_the_fewest_whose_rank_is_theirs() -> None:
    def rank(n_runs: int) -> int:
        return math.ceil(round(0.9 * (n_runs + 1), 9))

    assert [rank(n) <= n for n in (FEWEST_FOR_A_RANK - 1, FEWEST_FOR_A_RANK)] == [False, True]
    # jackknife+ promises 1 - 2 alpha; at alpha = 5 % the rank must be one of theirs
    assert [math.ceil(0.95 * (n + 1)) <= n for n in (FEWEST_FOR_A_GUARANTEE - 1, FEWEST_FOR_A_GUARANTEE)] == [
        False,
        True,
    ]


def test_order_does_not_matter_and_nothing_is_reordered() -> None:
    errors = np.array([0.3, 0.1, 0.5, 0.2, 0.4, 0.9, 0.8, 0.7, 0.6, 1.0])
    kept = errors.copy()
    assert left_out_quantile(errors, 0.5) == 0.6
    assert left_out_quantile(np.sort(errors)[::-1], 0.5) == 0.6
    np.testing.assert_array_equal(errors, kept)


def test_an_error_that_nothing_bounds_is_the_largest() -> None:
    errors = np.array([math.inf, *np.arange(1.0, 19)])
    assert left_out_quantile(errors, 0.9) == 18
    assert left_out_quantile(errors[:9], 0.9) == math.inf
