"""What every calibrated estimator gives for runs: points with intervals, in floats."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.intervals import NARROWEST_LOG_HALF

__all__ = ["Predictions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Estimates of several runs, shape (n,).

    Attributes:
        flop: The points. At or below zero where the estimator gives no sensible count: an anomaly to report,
            never zero. NaN where something it needs was not recorded.
        log_half: Half the interval's width in natural logarithms, at least 0.01; infinite where nothing
            bounds it.
    """

    flop: NDArray[np.float64]
    log_half: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Widen what is narrower than any sensor is known."""
        object.__setattr__(self, "log_half", np.maximum(self.log_half, NARROWEST_LOG_HALF))

    @property
    def low_flop(self) -> NDArray[np.float64]:
        """Lower ends of the intervals."""
        with np.errstate(invalid="ignore"):
            return self.flop * np.exp(-self.log_half)

    @property
    def high_flop(self) -> NDArray[np.float64]:
        """Upper ends of the intervals."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.flop * np.exp(self.log_half)
