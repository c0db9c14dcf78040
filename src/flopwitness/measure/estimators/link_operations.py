"""Declared operations through link traffic: a test of a claim, never an estimate of its own.

In data-parallel training every all-reduce moves the gradients once, so that link traffic counts parameters
times steps. With the declared tokens of a step M, sequence length s and width d:

    F_ops = c N M (1 + s / (6 d)),   one constant c from calibration

because 6 operations a parameter and token make the matrix products, and attention adds s / (6 d) of them. How
well kernels use the chip does not enter. M, s and d are claims; the link's traffic is not. Who declares fewer
tokens than were trained on makes F_ops fall below what the energy shows.

Limits: data parallelism with a full all-reduce of all gradients, over one kind of link with one software
stack. Sharding, tensor or pipeline parallelism, gradient compression, local SGD or another number of chips
change c. Padded traffic raises F_ops only, and a claim is never used to lower an estimate.

Source:
    Ours: docs/adr/0009; measured on two V100 with NCCL.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.predictions import Predictions
from flopwitness.measure.intervals import left_out_quantile, student_t
from flopwitness.measure.observed import pool_means

__all__ = ["FALSE_ALARM", "DeclaredSteps", "LinkModel", "fit_link", "gate"]

Vector = NDArray[np.float64]

FEWEST_RUNS: Final = 8
FALSE_ALARM: Final = 0.01
"""How often an honest claim is doubted, nominally."""

_ATTENTION: Final = 6.0  # attention's share of the products is s / (6 d), with d_ff = 4 d


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSteps:
    """What the Prover declares of the steps of each run, shape (n,); NaN where it does not say.

    Attributes:
        tokens: Tokens for each all-reduce, over all chips.
        sequence_length: Tokens in a sequence.
        width: The model's width d.
    """

    tokens: Vector
    sequence_length: Vector
    width: Vector

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "DeclaredSteps":
        """Some of the runs."""
        return DeclaredSteps(
            tokens=self.tokens[index],
            sequence_length=self.sequence_length[index],
            width=self.width[index],
        )

    def work(self, link_tb: Vector) -> Vector:
        """N M (1 + s / (6 d)) [TB tokens], shape (n,); NaN where a part is missing or not above 0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            work = link_tb * self.tokens * (1 + self.sequence_length / (_ATTENTION * self.width))
        is_whole = (self.tokens > 0) & (self.sequence_length > 0) & (self.width > 0) & (link_tb > 0)
        return np.where(np.isfinite(work) & is_whole, work, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkModel:
    """The constant of a link and software stack.

    Attributes:
        log_flop_per_tb_token: The logarithm of c, c in FLOP/(TB token).
        log_sd: The spread of its logarithm between runs.
        errors: Errors of the logarithm on runs left out, absolute, shape (n,).
    """

    log_flop_per_tb_token: float
    log_sd: float
    errors: Vector

    def predict(self, link_tb: Vector, declared: DeclaredSteps, level: float) -> Predictions:
        """Declared operations through link traffic [TB], shape (n,)."""
        n_runs = self.errors.size
        bayes = student_t(level, n_runs - 1) * self.log_sd * float(np.sqrt(1 + 1 / n_runs))
        half = max(bayes, left_out_quantile(self.errors, level))
        flop = np.exp(self.log_flop_per_tb_token) * declared.work(link_tb)
        return Predictions(flop=flop, log_half=np.full(flop.shape, half))


def fit_link(
    link_tb: Vector,
    declared: DeclaredSteps,
    flop: Vector,
    *,
    workload: NDArray[np.intp] | None = None,
) -> LinkModel:
    """The constant from runs of known size; runs without traffic or declaration are passed over.

    Repeats of one workload count once, by their mean.

    Args:
        link_tb: Traffic between chips [TB], shape (n,).
        declared: What was declared of the steps.
        flop: True operations, shape (n,), > 0.
        workload: The number of each run's workload, shape (n,); each its own where None.

    Raises:
        NotCalibratedError: Fewer than 8 workloads with both.
    """
    log_constant = np.log(flop / declared.work(link_tb))
    known = np.isfinite(log_constant)
    group = np.arange(flop.size) if workload is None else workload
    log_constant = pool_means(log_constant[known], np.unique(group[known], return_inverse=True)[1])
    n_runs = log_constant.size
    if n_runs < FEWEST_RUNS:
        raise NotCalibratedError(
            "too few runs with link traffic and declared steps",
            expected=f"at least {FEWEST_RUNS}",
            found=str(n_runs),
        )
    mean = float(log_constant.mean())
    return LinkModel(
        log_flop_per_tb_token=mean,
        log_sd=float(log_constant.std(ddof=1)),
        errors=np.abs(log_constant - mean) * n_runs / (n_runs - 1),
    )


def gate(link: LinkModel, energy_errors: Vector) -> float:
    """How far log(F_ops / F_energy) may fall below 0 by chance: a claim below it is doubted.

    Student's t at the nominal rate of false alarms, with the spread of both estimates on runs left out. It is
    made of calibration runs alone.

    Args:
        link: The constant.
        energy_errors: Errors of log F of the estimate from energy on runs left out, shape (n,).

    Returns:
        A negative number.
    """
    n_runs = min(link.errors.size, energy_errors.size)
    spread = np.sqrt(np.mean(link.errors**2) + np.mean(energy_errors**2))
    return -student_t(1 - 2 * FALSE_ALARM, n_runs - 3) * float(spread)
