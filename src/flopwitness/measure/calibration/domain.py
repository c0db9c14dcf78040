"""Where a calibration may speak: near the features that it was made from.

A feature more than one range outside refuses the point. The range is the population's as the sample tells it:
the smallest and largest of n values lie `R / (n - 1)` inside its ends, R being the distance between them
(unbiased where values lie evenly). Other precisions and power modes show in these features: fp16 on a
calibration of fp32 moves more bytes a joule, a capped board draws less.

Source:
    Ours: docs/adr/0008, with how often honest runs are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.observed import Feature

__all__ = ["Domain", "settle_domain"]

Vector = NDArray[np.float64]

_NARROWEST: Final = 0.01  # no counter or sensor is known more closely than by 1 %


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """The features that calibration runs had.

    Attributes:
        features: Which features.
        log_low: The smallest of each, natural logarithm, shape (k,).
        log_high: The largest, shape (k,).
        n_runs: How many runs, repeats of one workload counted once.
    """

    features: tuple[Feature, ...]
    log_low: Vector
    log_high: Vector
    n_runs: int

    @property
    def most_ranges(self) -> float:
        """How many ranges of the sample a feature may lie outside before the point is refused."""
        return (self.n_runs + 2) / (self.n_runs - 1)

    def ranges_outside(self, log_features: Vector) -> Vector:
        """How many ranges each feature lies outside, shape (n, k): 0 inside, negative below."""
        width = np.maximum(self.log_high - self.log_low, _NARROWEST)
        below = np.minimum(log_features - self.log_low, 0.0)
        above = np.maximum(log_features - self.log_high, 0.0)
        outside: Vector = (below + above) / width
        return outside

    def is_outside(self, log_features: Vector) -> NDArray[np.bool_]:
        """Which features lie too far outside, shape (n, k); one that was not recorded does not."""
        return np.abs(np.nan_to_num(self.ranges_outside(log_features))) > self.most_ranges


def settle_domain(features: Sequence[Feature], log_features: Vector, *, n_runs: int) -> Domain:
    """The domain of calibration runs.

    Args:
        features: Which features.
        log_features: Their natural logarithms, shape (n, k), finite, n >= 2.
        n_runs: How many of them are no repeats.
    """
    return Domain(
        features=tuple(features),
        log_low=log_features.min(axis=0),
        log_high=log_features.max(axis=0),
        n_runs=n_runs,
    )
