"""The plainest estimator: operations per joule are the same for every run.

    F = E_net exp(mean of log(F / E_net))

Whoever has something better must beat it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.predictions import Predictions
from flopwitness.measure.intervals import left_out_quantile, student_t

__all__ = ["ConstantModel", "fit_constant"]

FEWEST_RUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantModel:
    """Operations per joule above idle, and how much they scatter.

    Attributes:
        log_flop_per_j: The mean of its logarithm.
        log_sd: The spread of its logarithm between runs.
        errors: Errors of the logarithm on runs left out, absolute, shape (n,).
    """

    log_flop_per_j: float
    log_sd: float
    errors: NDArray[np.float64]

    def predict(self, net_j: NDArray[np.float64], level: float) -> Predictions:
        """Estimates from energy above idle [J], shape (n,)."""
        n_runs = self.errors.size
        bayes = student_t(level, n_runs - 1) * self.log_sd * np.sqrt(1 + 1 / n_runs)
        half = max(float(bayes), left_out_quantile(self.errors, level))
        return Predictions(flop=net_j * np.exp(self.log_flop_per_j), log_half=np.full(net_j.shape, half))


def fit_constant(net_j: NDArray[np.float64], flop: NDArray[np.float64]) -> ConstantModel:
    """The mean of log(F / E) over runs.

    Args:
        net_j: Energy above idle [J], shape (n,), > 0.
        flop: True operations, shape (n,), > 0.

    Raises:
        NotCalibratedError: Fewer than three runs.
    """
    n_runs = net_j.size
    if n_runs < FEWEST_RUNS:
        raise NotCalibratedError(
            "too few runs for a constant", expected=f"at least {FEWEST_RUNS}", found=str(n_runs)
        )
    log_flop_per_j = np.log(flop / net_j)
    mean = float(log_flop_per_j.mean())
    return ConstantModel(
        log_flop_per_j=mean,
        log_sd=float(log_flop_per_j.std(ddof=1)),
        errors=np.abs(log_flop_per_j - mean) * n_runs / (n_runs - 1),
    )
