"""The published estimator: energy less what memory traffic and overhead took, over joules per operation.

    Eq. (1)  F = (E_net - e_TB TB - P_ovh t) / e_TFLOP
    Eq. (2)  F = (E_net - P_ovh t) / e_TFLOP

It is an energy roofline (Choi, Bedard, Fowler, Vuduc, IPDPS 2013) solved for the work, with idle power taken
off before. Fitted as published: least squares in energy weighted by 1/F^2, `e_TB >= 0`, and `P_ovh` from a
grid of 0 to 4 W by the squared error on runs left out. Where all runs draw the same power, `P_ovh t` grows
with the energy and can take the place of the work; the grid bounds that, and a value on its edge is told.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.predictions import Predictions
from flopwitness.measure.intervals import left_out_quantile, student_t

__all__ = ["OVERHEAD_GRID_W", "PaperModel", "fit_paper"]

Vector = NDArray[np.float64]

OVERHEAD_GRID_W: Final = np.linspace(0.0, 4.0, 321)
"""The overheads that are tried [W]: as published, in steps of 1/80 W."""

_SPARE_RUNS: Final = 2
_LARGEST_CONDITION: Final = 1_000.0  # at it, an error of 0.1 % in a reading moves a constant by all of it
_LEAST_SHARE: Final = 1e-6  # of all joules per operation: less is no energy that computes
_PRINTED_WHOLE: Final = 1e6
_ROUNDING: Final = 1e-10  # of a sum of squares: what is left of it when it cancels
_TERA: Final = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModel:
    """The constants of Eq. (1) or (2).

    Attributes:
        energy_per_tflop_j: e_TFLOP [J/TFLOP], > 0.
        energy_per_tb_j: e_TB [J/TB], or per unit of the traffic counter; None for Eq. (2).
        overhead_w: P_ovh [W].
        condition_number: Of the weighted design [F, TB, t] with columns of unit length.
        errors: Errors of log F on runs left out, absolute, shape (n,); infinite for an estimate that was not
            above zero.
    """

    energy_per_tflop_j: float
    energy_per_tb_j: float | None
    overhead_w: float
    condition_number: float
    errors: Vector

    @property
    def has_traffic(self) -> bool:
        """Whether it is Eq. (1)."""
        return self.energy_per_tb_j is not None

    @property
    def is_overhead_at_edge(self) -> bool:
        """Whether the overhead lies on an edge of the grid: then it is not known, only bounded."""
        return bool(self.overhead_w in (OVERHEAD_GRID_W[0], OVERHEAD_GRID_W[-1]))

    def predict(self, net_j: Vector, duration_s: Vector, traffic_tb: Vector, level: float) -> Predictions:
        """Estimates, shape (n,); at or below zero where overhead and traffic explain more than the energy.

        Args:
            net_j: Energy above idle [J], shape (n,).
            duration_s: Length [s], shape (n,).
            traffic_tb: Memory traffic, shape (n,); not looked at by Eq. (2).
            level: The interval's nominal level.
        """
        moved_j = self.energy_per_tb_j * traffic_tb if self.energy_per_tb_j is not None else 0.0
        left_j = net_j - moved_j - self.overhead_w * duration_s
        n_constants = 3 if self.has_traffic else 2
        spread = float(np.sqrt(np.mean(self.errors**2)))
        half = max(
            student_t(level, self.errors.size - n_constants) * spread, left_out_quantile(self.errors, level)
        )
        return Predictions(flop=left_j / self.energy_per_tflop_j * _TERA, log_half=np.full(net_j.shape, half))


def fit_paper(net_j: Vector, duration_s: Vector, traffic_tb: Vector | None, flop: Vector) -> PaperModel:
    """The constants by the published recipe.

    Args:
        net_j: Energy above idle [J], shape (n,), > 0.
        duration_s: Length [s], shape (n,), > 0.
        traffic_tb: Memory traffic, shape (n,); None for Eq. (2).
        flop: True operations, shape (n,), > 0.

    Raises:
        NotCalibratedError: Too few runs, constants that cannot be told apart, or no overhead of the grid
            with a positive energy per operation.
    """
    tflop = flop / _TERA
    design = np.column_stack([np.ones_like(tflop), *(() if traffic_tb is None else (traffic_tb / tflop,))])
    condition_number = _check_identified(design, duration_s / tflop)
    target = (net_j - OVERHEAD_GRID_W[:, None] * duration_s) / tflop  # (grid, n): J per TFLOP
    left_out = _left_out_constants(design, target)
    moved_j = 0.0 if traffic_tb is None else left_out[..., 1] * traffic_tb
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (net_j - OVERHEAD_GRID_W[:, None] * duration_s - moved_j) / left_out[..., 0] / tflop
        score = ((ratio - 1) ** 2).sum(axis=1)
    score = np.where((left_out[..., 0] > 0).all(axis=1), score, np.inf)
    best = int(score.argmin())
    constants = _constants(design, target[best][None, :])[0]
    if not np.isfinite(score[best]) or constants[0] <= _LEAST_SHARE * float(np.median(net_j / tflop)):
        raise NotCalibratedError(
            "no overhead leaves a positive energy per operation", expected="energy that grows with the work"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(ratio[best] > 0, np.abs(np.log(ratio[best])), np.inf)
    return PaperModel(
        energy_per_tflop_j=float(constants[0]),
        energy_per_tb_j=None if traffic_tb is None else float(constants[1]),
        overhead_w=float(OVERHEAD_GRID_W[best]),
        condition_number=condition_number,
        errors=errors,
    )


def _check_identified(design: Vector, time_per_work: Vector) -> float:
    """The condition number of the design with the overhead's column, all of unit length.

    Raises:
        NotCalibratedError: Too few runs, or columns that nearly depend on each other.
    """
    n_runs, n_constants = design.shape[0], design.shape[1] + 1
    if n_runs < n_constants + _SPARE_RUNS:
        raise NotCalibratedError(
            f"too few runs for {n_constants} constants",
            expected=f"at least {n_constants + _SPARE_RUNS}",
            found=str(n_runs),
        )
    full = np.column_stack([design, time_per_work])
    lengths = np.linalg.norm(full, axis=0)
    condition = float(np.linalg.cond(full / lengths)) if (lengths > 0).all() else np.inf
    if not condition <= _LARGEST_CONDITION:
        raise NotCalibratedError(
            "the constants cannot be told apart",
            expected=f"a condition number of at most {_LARGEST_CONDITION:,.0f}",
            found=f"{condition:,.0f}" if condition < _PRINTED_WHOLE else f"{condition:.0e}",
        )
    return condition


def _constants(design: Vector, target: Vector) -> Vector:
    """Least squares for each row of `target`, shape (m, 2), with the traffic's constant not below 0."""
    solved = target @ np.linalg.pinv(design).T
    if design.shape[1] == 1:
        return np.column_stack([solved, np.zeros(len(solved))])
    is_negative = solved[:, 1] < 0
    return np.where(is_negative[:, None], np.column_stack([target.mean(axis=1), 0 * is_negative]), solved)


def _left_out_constants(design: Vector, target: Vector) -> Vector:
    """The constants without each run in turn, shape (grid, n, 2).

    Least squares of two constants needs five sums; without a run they are the sums less its own terms.
    """
    n_others = design.shape[0] - 1
    mean = (target.sum(axis=1, keepdims=True) - target) / n_others
    if design.shape[1] == 1:
        return np.stack([mean, np.zeros_like(mean)], axis=-1)
    centre = design[:, 1].mean()
    traffic = design[:, 1] - centre
    sum_t = traffic.sum() - traffic
    sum_tt = (traffic**2).sum() - traffic**2
    sum_ty = (target @ traffic)[:, None] - target * traffic
    spread = sum_tt - sum_t**2 / n_others
    is_told_apart = spread > _ROUNDING * (traffic**2).sum()  # else, without that run, traffic does not differ
    slope = np.where(is_told_apart, (sum_ty - sum_t * mean) / np.where(is_told_apart, spread, 1.0), 0.0)
    level = mean - slope * (sum_t / n_others + centre)
    is_negative = slope < 0
    return np.stack([np.where(is_negative, mean, level), np.where(is_negative, 0.0, slope)], axis=-1)
