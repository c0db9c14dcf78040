"""The most that a run can have computed, whatever was computed.

    upper = min( E_total / (s * TDP / peak_best),  chips * time * peak_best )

`peak_best` is the highest dense rate of any precision the chip has, integer included: a declared precision
must not lower a bound. `s` allows for chips that beat their data sheet's joules per operation (voltage
scaling, zero data, sparsity): 0.5 by default, 0.3 against a hostile prover. Burning watts is easy, so
energy bounds compute from above and never from below (ADR 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from flopwitness.catalogue.chips import Chip

__all__ = ["SAFETY_DEFAULT", "SAFETY_HOSTILE", "BoundBy", "UpperBound", "bound_from_above"]

SAFETY_DEFAULT: Final = Fraction(1, 2)
SAFETY_HOSTILE: Final = Fraction(3, 10)


class BoundBy(StrEnum):
    """Which of the two bounds is the lower one."""

    ENERGY = "energy"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """The most that was computed.

    Attributes:
        flop: The lower of the two bounds, rounded up.
        by: Which one it is.
        time_flop: Chips x time x best peak; None where the time or the count is unknown.
        energy_flop: Energy over the least joules per operation; None where the energy does not cover
            every chip for the whole time, or the power limit is unknown.
        safety: The factor s.
        peak_flop_per_s: The best dense rate of any precision.
        peak_precision: The precision that has it.
        chip: The chip whose peak it is: the fastest of those that a family name leaves open.
        count: How many chips the time bound counts; None where unknown.
        duration_s: The time that it counts [s]; None where unknown.
    """

    flop: int
    by: BoundBy
    time_flop: int | None
    energy_flop: int | None
    safety: Fraction
    peak_flop_per_s: float
    peak_precision: str
    chip: str
    count: int | None
    duration_s: float | None


def bound_from_above(
    chips: Sequence[Chip],
    *,
    count: int | None,
    duration_s: Fraction | float | None,
    energy_j: float | None,
    safety: Fraction = SAFETY_DEFAULT,
) -> UpperBound | None:
    """The lower of the energy bound and the time bound; None where neither can be stated.

    Args:
        chips: The chips that the run may have used; several where a name leaves the variant open, and
            then each bound is the highest over them.
        count: How many chips; None where unknown, which leaves the energy bound.
        duration_s: For how long [s], everything recorded and not only what the run's own marks claim.
        energy_j: The most energy that all of them can have drawn in that time [J]; None where the
            readings do not cover them all.
        safety: The factor s, above 0 and at most 1.

    Raises:
        ValueError: The safety factor is out of range, or there is no chip.
    """
    if not 0 < safety <= 1:
        raise ValueError(f"the safety factor must lie in (0, 1]: {safety}")
    fastest = max(chips, key=lambda chip: chip.peak_best[1].value)
    precision, peak = fastest.peak_best
    time_flop = None
    if count is not None and duration_s is not None:
        time_flop = _ceiling(count * Fraction(duration_s) * Fraction(peak.value))
    energy_flop = None
    floors = [_least_joule_per_flop(chip, safety) for chip in chips]
    known_floors = [floor for floor in floors if floor is not None]
    if energy_j is not None and len(known_floors) == len(floors):
        energy_flop = _ceiling(Fraction(energy_j) / min(known_floors))
    known = [
        (flop, by)
        for flop, by in ((time_flop, BoundBy.TIME), (energy_flop, BoundBy.ENERGY))
        if flop is not None
    ]
    if not known:
        return None
    flop, by = min(known)
    return UpperBound(
        flop=flop,
        by=by,
        time_flop=time_flop,
        energy_flop=energy_flop,
        safety=safety,
        peak_flop_per_s=peak.value,
        peak_precision=str(precision),
        chip=fastest.id,
        count=count,
        duration_s=None if duration_s is None else float(duration_s),
    )


def _least_joule_per_flop(chip: Chip, safety: Fraction) -> Fraction | None:
    """Safety x TDP / best peak [J per operation]; None where the power limit is unknown."""
    if chip.power_limit_w is None:
        return None
    return safety * Fraction(chip.power_limit_w.value) / Fraction(chip.peak_best[1].value)


def _ceiling(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)
