"""How far the upper bound lies above runs of known size: it must lie above all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flopwitness.catalogue.chips import Chip, ChipCatalogue
from flopwitness.foundation.errors import UnknownChipError
from flopwitness.measure.bounds import SAFETY_DEFAULT, bound_from_above
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["BoundScore", "Margin", "judge_bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """Bound over truth, over runs.

    Attributes:
        n_runs: How many runs could be judged.
        n_violated: How many of them computed more than the bound allows.
        least: The smallest ratio of bound to truth.
        median: The median ratio.
    """

    n_runs: int
    n_violated: int
    least: float
    median: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundScore:
    """The parts of the bound against the truth; None where the table does not tell what a part needs.

    Attributes:
        safety: The factor s of the energy bounds.
        total_energy: By energy with idle included, as the bound is stated.
        net_energy: By energy above idle alone, which is harder to hold.
        time: By chips x time x best peak.
    """

    safety: Fraction
    total_energy: Margin | None
    net_energy: Margin | None
    time: Margin | None


def judge_bounds(
    rows: Sequence[RunRow], catalogue: ChipCatalogue, *, safety: Fraction = SAFETY_DEFAULT
) -> BoundScore:
    """The margins over all rows of known size.

    The energy bound is judged whatever the meter covers: where a rail narrower than the chip's limit is read,
    `estimate` states no energy bound, and the formula is tested all the harder.
    """
    total, net, time = [], [], []
    for row in rows:
        chips = _chips(row, catalogue)
        if not chips or not row.true_flop:
            continue
        total.append(_ratio(row, chips, row.energy_j, safety))
        net.append(_ratio(row, chips, row.net_energy_j, safety))
        if row.count is not None and row.duration_s is not None:
            upper = bound_from_above(chips, count=row.count, duration_s=row.duration_s, energy_j=None)
            time.append(None if upper is None else upper.flop / row.true_flop)
    return BoundScore(safety=safety, total_energy=_margin(total), net_energy=_margin(net), time=_margin(time))


def _chips(row: RunRow, catalogue: ChipCatalogue) -> tuple[Chip, ...]:
    try:
        return catalogue.find_all(row.chip_name) if row.chip_name else ()
    except UnknownChipError:
        return ()


def _ratio(row: RunRow, chips: Sequence[Chip], energy_j: float | None, safety: Fraction) -> float | None:
    if not energy_j or not row.true_flop:
        return None
    upper = bound_from_above(chips, count=None, duration_s=None, energy_j=energy_j, safety=safety)
    return None if upper is None else upper.flop / row.true_flop


def _margin(ratios: Sequence[float | None]) -> Margin | None:
    known = np.array([ratio for ratio in ratios if ratio is not None])
    if not known.size:
        return None
    return Margin(
        n_runs=int(known.size),
        n_violated=int((known < 1).sum()),
        least=float(known.min()),
        median=float(np.median(known)),
    )
