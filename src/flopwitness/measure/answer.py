"""What the meter answers: energy, estimate, bound and findings of one run."""

from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.bounds import UpperBound
from flopwitness.measure.calibration.use import CalibratedAnswer
from flopwitness.measure.energy import Energy
from flopwitness.measure.estimators.prior import Prior
from flopwitness.measure.samples import RunWindow, Scope

__all__ = ["CONVENTION", "FEWEST_COVERED", "Estimate", "Measurement", "RunEnergy"]

CONVENTION: Final = (
    "model FLOP, a multiply-add is 2; the upper bound holds for executed FLOP of any precision"
)
FEWEST_COVERED: Final = 0.8
"""Share of a run from which its energy, or its traffic, is brought up to the whole of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """The energy of all devices together.

    Attributes:
        scope: What the readings cover.
        devices: One figure a device, over the run.
        shown_j: What the readings show over the run [J].
        working_w: Energy-weighted mean power of all devices together [W], int p^2 / int p: idle time around
            the work, or pauses in it, hardly change it.
        low_j: The least that they leave possible [J].
        high_j: The most [J]; None where a gap or a missing device has no limit.
        recorded_high_j: The most over everything recorded [J]; None likewise.
        coverage: Covered time over claimed time, 0 to 1, of the least covered devices that the chips need:
            what else was handed over does not make up for them. None where a table of runs does not say.
        filled: Covered or bridged time over claimed time of the same devices, 0 to 1.
    """

    scope: Scope
    devices: tuple[Energy, ...]
    shown_j: float
    working_w: float
    low_j: float
    high_j: float | None
    recorded_high_j: float | None
    coverage: float | None
    filled: float

    @property
    def covered(self) -> float:
        """Covered time over claimed time, 0 to 1; of a table of runs, the bridged time with it."""
        return self.filled if self.coverage is None else self.coverage

    @property
    def whole_j(self) -> float | None:
        """What is shown, brought up to the whole run [J]; None where too little of it was covered."""
        return self.shown_j / self.filled if self.covered >= FEWEST_COVERED and self.filled > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A point never travels without its interval, level, method and the digest of what it rests on.

    Attributes:
        flop: The point.
        low_flop: Lower end, rounded down.
        high_flop: Upper end, rounded up; at most the upper bound.
        level: Nominal level of the interval.
        method: The estimator: a calibrated one, `prior-energy` or `prior-time`.
        calibration: Digest of the calibration, or of the prior's reference table.
        precisions: The precisions for which it holds.
        prior: How the prior came to it; None where a calibration did.
        n_runs: How many runs the calibration rests on; None for the prior.
    """

    flop: int
    low_flop: int
    high_flop: int
    level: float
    method: str
    calibration: str
    precisions: tuple[str, ...] = ()
    prior: Prior | None = None
    n_runs: int | None = None

    @property
    def ratio(self) -> float:
        """Upper end over lower end."""
        return self.high_flop / max(1, self.low_flop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The meter's answer for one run.

    Attributes:
        duration_s: The run's length as marked, else the recording's [s]; None where unknown.
        recorded_s: The length of everything recorded [s]; None where unknown.
        window: The run that was measured; None for the whole recording.
        energy: The energy; None where no power was recorded.
        estimate: The interval; None where nothing can be estimated.
        upper: The bound; None where nothing bounds the run.
        findings: What a reader must know, worst first.
        calibrated: What the calibration said, refusals included; None where none was handed over.
    """

    duration_s: float | None
    recorded_s: float | None
    window: RunWindow | None
    energy: RunEnergy | None
    estimate: Estimate | None
    upper: UpperBound | None
    findings: tuple[Finding, ...]
    calibrated: CalibratedAnswer | None = None

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Why the calibration gave no point; none where it gave one, or was not asked."""
        return () if self.calibrated is None else self.calibrated.refusals
