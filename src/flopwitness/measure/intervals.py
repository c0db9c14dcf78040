"""How wide an interval is: Student's t beside the errors that were made when each run was left out.

Everything is in natural logarithms, so that an interval is `[F / e^h, F e^h]` and never reaches below zero.
At the sizes that calibrations have (8 to 100 runs) no method guarantees its level: jackknife+ promises
1 - 2 alpha, split conformal needs nine held-out runs for 90 %. So the wider of two is taken, and the level is
called nominal. What it gives is measured by `evaluate`.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FEWEST_FOR_A_GUARANTEE",
    "FEWEST_FOR_A_RANK",
    "NARROWEST_LOG_HALF",
    "left_out_quantile",
    "student_t",
]

NARROWEST_LOG_HALF: Final = 0.01
"""No interval is narrower than this on either side: no sensor is known more closely than by 1 %."""

FEWEST_FOR_A_RANK: Final = 9
"""From as many runs on, the rank of the 90 % quantile is one of theirs."""

FEWEST_FOR_A_GUARANTEE: Final = 19
"""From as many runs on, jackknife+ at half of the miss rate promises 90 % (Barber et al. 2021, theorem 1)."""


def student_t(level: float, freedom: int) -> float:
    """The two-sided quantile of Student's t.

    Args:
        level: The interval's nominal level, such as 0.9.
        freedom: Degrees of freedom; counts as 1 where it is less.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to load, and no help text needs it)

    return float(stdtrit(max(1, freedom), (1 + level) / 2))


def left_out_quantile(errors: NDArray[np.float64], level: float) -> float:
    """The error that the level asks for among those made on runs left out: rank `ceil(level (n + 1))`.

    Where that rank exceeds n, the largest error stands in: then only Student's t can widen the interval, and
    whoever reports it says so.

    Args:
        errors: Absolute errors of logarithms, shape (n,), n >= 1.
        level: The interval's nominal level.
    """
    rank = math.ceil(round(level * (errors.size + 1), 9))
    return float(np.sort(errors)[min(rank, errors.size) - 1])
