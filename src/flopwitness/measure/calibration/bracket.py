"""Between which counts a run lies where nobody recorded its precision.

A calibration knows joules per operation at one precision. At another they change by at most the ratio of the
chip's peak rates, which the catalogue has: tensor cores rarely gain all of it. So the run lies between the
lower end at the slowest plausible precision and the upper end at the fastest. The features are first moved to
the nearest place that the calibration knows, because another precision moves them, and what is asked here is
how efficient the chip is, not how far its efficiency can be extrapolated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flopwitness.catalogue.chips import Chip, Precision
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.prior import plausible_precisions
from flopwitness.measure.observed import ObservedRuns, log_features

__all__ = ["Bracket", "bracket_precisions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """What a run may have computed at any plausible precision.

    Attributes:
        low_flop: At the slowest of them.
        high_flop: At the fastest.
        level: The nominal level of the interval at each of them.
        calibrated: The precision that the calibration knows.
        precisions: The precisions that it runs over.
    """

    low_flop: float
    high_flop: float
    level: float
    calibrated: Precision
    precisions: tuple[Precision, ...]

    @property
    def ratio(self) -> float:
        """Upper end over lower end."""
        return self.high_flop / self.low_flop


def bracket_precisions(
    calibration: Calibration, run: ObservedRuns, chips: Sequence[Chip], *, level: float
) -> Bracket | None:
    """The bracket for one run; None where the calibration knows no one precision, or a feature is missing.

    Args:
        calibration: The calibration.
        run: The run, n = 1.
        chips: The chips that it may have used.
        level: The nominal level of the interval at each precision.
    """
    model = calibration.fitted.models.get(Method.EFFICIENCY)
    known = calibration.fingerprint.precisions
    if not isinstance(model, EfficiencyModel) or len(known) != 1 or known[0] not in tuple(Precision):
        return None
    calibrated = Precision(known[0])
    factors = [_factors(chip, calibrated) for chip in chips]
    net_j = calibration.fitted.net.of(run)
    seen = log_features(run, calibration.fitted.net, model.features)
    if not all(factors) or not factors or not np.isfinite(seen).all() or not net_j[0] > 0:
        return None
    answer = model.predict(net_j, model.pulled_in(seen), level)
    return Bracket(
        low_flop=float(answer.low_flop[0]) * min(min(each.values()) for each in factors),
        high_flop=float(answer.high_flop[0]) * max(max(each.values()) for each in factors),
        level=level,
        calibrated=calibrated,
        precisions=tuple(dict.fromkeys(precision for each in factors for precision in each)),
    )


def _factors(chip: Chip, calibrated: Precision) -> dict[Precision, float]:
    """By how much each plausible precision can exceed the calibrated one: its peak rate over that one's.

    Empty where the chip's rate at the calibrated precision is not known.
    """
    own = chip.peak_flop_per_s.get(calibrated)
    if own is None:
        return {}
    precisions = dict.fromkeys((calibrated, *plausible_precisions(chip)))
    return {precision: chip.peak(precision).value / own.value for precision in precisions}
