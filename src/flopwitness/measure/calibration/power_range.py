"""A calibration whose runs draw so differently that another power mode fits in between."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.observed import Feature

__all__ = ["assess_power_range"]

_WIDE: Final = 2.0  # times: a lower power mode of the same board draws about half


def assess_power_range(calibration: Calibration) -> Iterator[Finding]:
    """One finding where the power of the calibration runs differs by more than two times."""
    domain = calibration.fitted.domain
    place = domain.features.index(Feature.POWER)
    low_w, high_w = np.exp([domain.log_low[place], domain.log_high[place]])
    if high_w > _WIDE * low_w:
        yield Finding(
            code="power-range-wide",
            severity=Severity.WARNING,
            message=(
                f"the calibration runs draw {low_w:.3g} to {high_w:.3g} W above idle: a run in another power "
                "mode may lie between, and its features would not refuse it. Name the mode, or calibrate "
                "with --gate 80, which keeps the busy runs"
            ),
            expected=f"at most {_WIDE:g} times",
            found=f"{high_w / low_w:.1f} times",
        )
