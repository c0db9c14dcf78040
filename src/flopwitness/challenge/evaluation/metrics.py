"""How good estimates are: errors relative to the truth, and how often intervals hold it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Errors", "Score", "join_errors", "score"]

Vector = NDArray[np.float64]

_LIMIT = 0.10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Errors:
    """Estimates of runs that were held out, one entry an estimate, shape (m,).

    Attributes:
        split: The number of the split.
        run: The place of the run in the table.
        ratio: Estimate over truth; NaN where there was no estimate.
        log_half: Half the width of its interval, in natural logarithms.
        is_refused: Whether a user would have been refused a point: features outside the calibration's.
    """

    split: NDArray[np.intp]
    run: NDArray[np.intp]
    ratio: Vector
    log_half: Vector
    is_refused: NDArray[np.bool_]

    def is_held(self) -> NDArray[np.bool_]:
        """Which intervals hold the truth."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(np.log(np.where(self.ratio > 0, self.ratio, np.nan))) <= self.log_half


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How an estimator did on runs that it was not calibrated on, pooled over splits.

    Attributes:
        n_estimates: How many estimates were judged.
        n_missing: How many more could not be made.
        mean_abs_error_pct: Mean of |estimate / truth - 1| [%].
        sd_pct: Standard deviation of the same [%].
        bias_pct: Mean of estimate / truth - 1 [%].
        median_abs_error_pct: Median of |estimate / truth - 1| [%].
        p95_abs_error_pct: Its 95 % quantile [%].
        max_abs_error_pct: The largest [%].
        splits_over_10pct_pct: Share of splits with an error above 10 % [%]; more judges, more splits.
        coverage_pct: Share of estimates whose interval holds the truth [%].
        interval_ratio: Median ratio of the intervals' ends.
        refused_pct: Share of estimates that a user would have been refused [%].
    """

    n_estimates: int
    n_missing: int
    mean_abs_error_pct: float
    sd_pct: float
    bias_pct: float
    median_abs_error_pct: float
    p95_abs_error_pct: float
    max_abs_error_pct: float
    splits_over_10pct_pct: float
    coverage_pct: float
    interval_ratio: float
    refused_pct: float


def score(errors: Errors) -> Score | None:
    """The score of estimates; None where there are none."""
    known = np.isfinite(errors.ratio)
    if not known.any():
        return None
    signed = errors.ratio[known] - 1
    absolute = np.abs(signed)
    over = np.unique(errors.split[known][absolute > _LIMIT]).size / np.unique(errors.split[known]).size
    with np.errstate(over="ignore"):
        ratio = float(np.exp(2 * np.median(errors.log_half[known])))
    return Score(
        n_estimates=int(known.sum()),
        n_missing=int((~known).sum()),
        mean_abs_error_pct=100 * float(absolute.mean()),
        sd_pct=100 * float(absolute.std()),
        bias_pct=100 * float(signed.mean()),
        median_abs_error_pct=100 * float(np.median(absolute)),
        p95_abs_error_pct=100 * float(np.quantile(absolute, 0.95)),
        max_abs_error_pct=100 * float(absolute.max()),
        splits_over_10pct_pct=100 * over,
        coverage_pct=100 * float(errors.is_held()[known].mean()),
        interval_ratio=ratio,
        refused_pct=100 * float(errors.is_refused[known].mean()),
    )


def join_errors(parts: list[Errors]) -> Errors:
    """The estimates of several splits as one."""
    return Errors(
        split=np.concatenate([part.split for part in parts]),
        run=np.concatenate([part.run for part in parts]),
        ratio=np.concatenate([part.ratio for part in parts]),
        log_half=np.concatenate([part.log_half for part in parts]),
        is_refused=np.concatenate([part.is_refused for part in parts]),
    )
