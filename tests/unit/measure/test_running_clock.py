"""Ticks as seconds: steps back count as one usual step, and everything else as it stands."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from flopwitness.measure.reading_blocks import step_blocks
from flopwitness.measure.running_clock import RunningClock, laid_out_ns, usual_step_s

S = 10**9


def _ticks(time_s: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([round(moment * S) for moment in time_s], dtype=np.int64)


@pytest.mark.parametrize(
    ("time_s", "usual_s"),
    [
        ([0, 1, 2, 2, 10], 1.0),
        ([0, 1, 3], 1.5),
        ([0, 0.1, 0.2, 0.4, 0.3, 0.35], 0.1),
        ([0, 3, 1, 4], 3.0),
    ],
)
def test_the_usual_step_is_the_median_of_the_steps_forward(time_s: list[float], usual_s: float) -> None:
    assert usual_step_s(lambda: step_blocks(_ticks(time_s))) == pytest.approx(usual_s, rel=1e-12)


@pytest.mark.parametrize("time_s", [[], [4], [4, 4, 4], [3, 2, 1]])
def test_without_a_step_forward_there_is_no_usual_one(time_s: list[float]) -> None:
    assert math.isnan(usual_step_s(lambda: step_blocks(_ticks(time_s))))


@pytest.mark.parametrize(
    ("time_s", "length_s"),
    [
        ([5], 0),
        ([5, 6, 9], 4),
        ([0, 1, 2, 0, 1, 2], 5),
        ([0, 1, 2, 3, 1, 2], 5),
        ([3, 2, 1, 0], 0),
        ([0, 10, 20, 5, 25], 50),
    ],
)
def test_a_clock_that_steps_back_is_laid_end_to_end(time_s: list[float], length_s: float) -> None:
    ticks = _ticks(time_s)
    length_ns = laid_out_ns(int(ticks[0]), int(ticks[-1]), lambda: step_blocks(ticks))
    assert length_ns == length_s * S


def test_a_clock_without_steps_back_is_taken_to_the_nanosecond() -> None:
    assert laid_out_ns(1, 2**62 + 1, lambda: step_blocks(np.array([1, 2**62 + 1]))) == 2**62


def test_times_go_on_behind_a_step_back() -> None:
    clock = RunningClock(usual_s=1.0)
    assert clock.time_s(100 * S) == 0
    assert not clock.pass_by(np.array([S, S]))
    assert clock.time_s(102 * S) == 2
    assert clock.pass_by(np.array([-50 * S, S]))
    assert clock.n_backwards == 1
    assert clock.time_s(53 * S) == 4


def test_a_step_back_takes_no_time_where_none_leads_forward() -> None:
    clock = RunningClock()
    clock.time_s(9 * S)
    clock.pass_by(np.array([-4 * S]))
    assert clock.time_s(5 * S) == 0
    assert clock.back_s == 0
