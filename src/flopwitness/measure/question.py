"""What a user states beside the logs."""

from dataclasses import dataclass
from fractions import Fraction

from flopwitness.catalogue.chips import Chip, Precision
from flopwitness.measure.bounds import SAFETY_DEFAULT
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.reference import Workload

__all__ = ["Question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user states beside the logs.

    Attributes:
        chips: The chips that may have been used; several where a name leaves the variant open.
        count: How many chips in all.
        precisions: The precisions that may have been used; empty where nobody says.
        workload: What is stated of the workload.
        safety: The factor s of the energy bound.
        level: Nominal level of the interval.
        idle_w: What each device draws at least while it is on [W]; 0 where nobody vouches for it.
        declared_chips: The chips that the log itself declares; the bound covers them too.
        power_mode: The power mode or power limit, such as `25W`; "" where nobody says.
        calibration: What was learnt on such a device; None leaves the estimate to the prior.
        method: Which of the calibration's estimators.
    """

    chips: tuple[Chip, ...]
    count: int
    precisions: tuple[Precision, ...] = ()
    workload: Workload = Workload.ANY
    safety: Fraction = SAFETY_DEFAULT
    level: float = 0.9
    idle_w: float = 0.0
    declared_chips: tuple[Chip, ...] = ()
    power_mode: str = ""
    calibration: Calibration | None = None
    method: Method = Method.EFFICIENCY
