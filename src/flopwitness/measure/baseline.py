"""The idle power to subtract: what a device draws when nothing has run for a while.

After a kernel ends a board stays at twice its idle power for a time, and a monitor that starts under load
never sees idle at all. So idle is read where it has settled, on the lowest plateau; where it was not seen
it stays unknown, and the energy above it lies between nothing and everything. Baselines are pooled over a
host, never taken for each session anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.paired import PairedReadings, is_later, pair_readings
from flopwitness.measure.reading_blocks import step_blocks
from flopwitness.measure.running_clock import usual_step_s
from flopwitness.measure.samples import Series

__all__ = [
    "Baseline",
    "DynamicEnergy",
    "assess_idle",
    "dynamic_energy",
    "find_idle",
    "pool_baselines",
]

_IDLE_PCT: Final = 5.0
_SETTLE_S: Final = 30.0
_PLATEAU_S: Final = 10.0  # a level that holds for less is noise
_FEWEST_READINGS: Final = 3
_FAR_OUT: Final = 5.0  # times the median distance from the median
_SAME_PLATEAU: Final = (
    1.25  # times the lowest: a board that has not settled draws half as much again, or more
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a device draws idle.

    Attributes:
        device: The device's name; of a pool, the first one's.
        idle_w: The mean of the idle readings, without those that stand far out [W]: the mean, because idle
            adds up to energy, and because a coarse sensor's median is off by up to half of its step.
        spread_w: Median distance of the readings from it [W].
        n: How many readings it rests on.
        first_utc_ns: When the first of them was taken.
        last_utc_ns: When the last of them was taken.
    """

    device: str
    idle_w: float
    spread_w: float
    n: int
    first_utc_ns: int
    last_utc_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicEnergy:
    """The energy of the busy time, and what of it lies above idle.

    Attributes:
        device: The device's name.
        busy_s: How long it was busy [s].
        total_j: All energy of that time [J].
        energy_j: The energy above idle [J], negative where the idle power is too high for it: an anomaly,
            which is not hidden; None where no idle power is known.
        low_j: The least that the energy above idle can be [J].
        high_j: The most [J]: all of it where no idle power is known.
    """

    device: str
    busy_s: float
    total_j: float
    energy_j: float | None
    low_j: float
    high_j: float


def find_idle(
    power: Series,
    utilisation: Series | None,
    *,
    idle_pct: float = _IDLE_PCT,
    settle_s: float = _SETTLE_S,
    plateau_s: float = _PLATEAU_S,
) -> Baseline | None:
    """What the device draws settled, on the lowest level that it holds; None where that was not seen.

    A reading has settled when utilisation has been known and low for `settle_s`, from the start of the
    recording or of any gap on. Settled stretches are cut into blocks; those whose median lies within 1.25
    times the lowest one make the baseline.

    Args:
        power: Power readings [W].
        utilisation: Utilisation of the same device [%]. Without it no reading is known to be idle, however
            low: the lowest power under load is none.
        idle_pct: Up to this utilisation, nothing runs [%].
        settle_s: How long power takes to fall after work ends [s].
        plateau_s: How long a level must hold [s]; at least three readings.
    """
    if utilisation is None:
        return None
    paired = pair_readings(power, utilisation)
    beside = (
        None
        if np.array_equal(power.utc_ns, utilisation.utc_ns) and is_later(power.utc_ns).all()
        else utilisation
    )
    settled = np.flatnonzero(_is_settled(paired, beside, idle_pct, settle_s))
    if settled.size == 0:
        return None
    block_s = max(plateau_s, _FEWEST_READINGS * _usual_s(paired))
    block = _cut_into_blocks(paired.utc_ns[settled], settled, block_s)
    in_plateau = _is_lowest_plateau(paired.power_w[settled], block)
    if not in_plateau.any():
        return None
    chosen = settled[in_plateau]
    idle_w = _robust_mean(paired.power_w[chosen])
    return Baseline(
        device=power.device,
        idle_w=idle_w,
        spread_w=float(np.median(np.abs(paired.power_w[chosen] - idle_w))),
        n=int(chosen.size),
        first_utc_ns=int(paired.utc_ns[chosen[0]]),
        last_utc_ns=int(paired.utc_ns[chosen[-1]]),
    )


def _usual_s(paired: PairedReadings) -> float:
    period_s = usual_step_s(lambda: step_blocks(paired.utc_ns))
    return 0.0 if np.isnan(period_s) else period_s


def _is_settled(
    paired: PairedReadings, utilisation: Series | None, idle_pct: float, settle_s: float
) -> NDArray[np.bool_]:
    """Which readings come long enough after anything that may have been work, shape (n,).

    Args:
        paired: The readings.
        utilisation: What was read of utilisation at times of its own; None where all of it is paired.
        idle_pct: As for `find_idle`.
        settle_s: As for `find_idle`.
    """
    is_idle = paired.utilisation_pct <= idle_pct
    after_gap = np.concatenate([[True], paired.is_gap])
    doubted_ns = np.where(after_gap | ~is_idle, paired.utc_ns, paired.utc_ns[:1])
    latest_ns = np.maximum.accumulate(doubted_ns)
    busy_ns = paired.utc_ns[:0]
    if utilisation is not None:
        is_low = (utilisation.value >= 0) & (utilisation.value <= idle_pct)
        busy_ns = np.sort(utilisation.utc_ns[~is_low])
    if busy_ns.size:
        place = np.searchsorted(busy_ns, paired.utc_ns, side="right") - 1
        latest_ns = np.where(place >= 0, np.maximum(latest_ns, busy_ns[place]), latest_ns)
    rested_s = (paired.utc_ns - latest_ns) / NANOSECOND_PER_SECOND
    settled: NDArray[np.bool_] = is_idle & (rested_s >= settle_s)
    return settled


def _cut_into_blocks(utc_ns: NDArray[np.int64], place: NDArray[np.intp], block_s: float) -> NDArray[np.int64]:
    """The number of each reading's block, shape (n,): runs of neighbours, cut every `block_s`."""
    is_first = np.concatenate([[True], np.diff(place) > 1])
    run = np.cumsum(is_first) - 1
    since_s = (utc_ns - utc_ns[is_first][run]) / NANOSECOND_PER_SECOND
    within = (since_s // block_s).astype(np.int64)
    is_new = np.concatenate([[True], (np.diff(run) > 0) | (np.diff(within) > 0)])
    return np.cumsum(is_new).astype(np.int64) - 1


def _is_lowest_plateau(power_w: NDArray[np.float64], block: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which readings lie in blocks whose median is about the lowest, shape (n,); short blocks tell none."""
    order = np.lexsort((power_w, block))
    sizes = np.bincount(block)
    starts = np.cumsum(sizes) - sizes
    lower, upper = power_w[order[starts + (sizes - 1) // 2]], power_w[order[starts + sizes // 2]]
    medians = np.where(sizes >= _FEWEST_READINGS, (lower + upper) / 2, np.inf)
    lowest_w = medians.min()
    if not np.isfinite(lowest_w):
        return np.zeros(power_w.size, dtype=np.bool_)
    in_plateau: NDArray[np.bool_] = (medians <= _SAME_PLATEAU * lowest_w)[block]
    return in_plateau


def _robust_mean(power_w: NDArray[np.float64]) -> float:
    """The mean of the readings that lie near the median [W]."""
    median_w = float(np.median(power_w))
    distance_w = np.abs(power_w - median_w)
    fence_w = max(_FAR_OUT * float(np.median(distance_w)), (_SAME_PLATEAU - 1) * median_w)
    return float(power_w[distance_w <= fence_w].mean())


def assess_idle(device: str, baseline: Baseline | None) -> Finding | None:
    """What is told where a device was never seen idle; None where it was."""
    if baseline is not None:
        return None
    return Finding(
        code="idle-unseen",
        severity=Severity.WARNING,
        message=(
            f"{device}: no idle observed; what it draws without work is not known, and the energy above "
            "idle lies between nothing and all of it"
        ),
        where=device,
        expected=f"readings {_SETTLE_S:.0f} s or more after the last work",
    )


def dynamic_energy(
    power: Series, utilisation: Series | None, *, idle_w: float | None, busy_pct: float = _IDLE_PCT
) -> DynamicEnergy:
    """The energy above idle of the time that a device was busy.

    Args:
        power: Power readings [W].
        utilisation: Utilisation of the same device [%]; without it all of the recording counts as busy.
        idle_w: What the device draws idle [W]; None where that is not known.
        busy_pct: Above this utilisation, the device is busy [%].
    """
    paired = pair_readings(power, utilisation)
    weight_s = paired.weight_s
    if utilisation is not None:
        weight_s = np.where(paired.utilisation_pct > busy_pct, weight_s, 0.0)
    busy_s = float(weight_s.sum())
    total_j = float((weight_s * paired.power_w).sum())
    energy_j = None if idle_w is None else total_j - idle_w * busy_s
    return DynamicEnergy(
        device=power.device,
        busy_s=busy_s,
        total_j=total_j,
        energy_j=energy_j,
        low_j=0.0 if energy_j is None else energy_j,
        high_j=total_j if energy_j is None else energy_j,
    )


def pool_baselines(baselines: Sequence[Baseline]) -> Baseline | None:
    """One idle power for several recordings of like devices on a host; None where there are none.

    The median of the baselines, each weighted by its readings: one warm session moves it little. A single
    device's session to session drift is larger than what its readings scatter, so the spread holds both.
    """
    if not baselines:
        return None
    idle_w = np.array([item.idle_w for item in baselines])
    n = np.array([item.n for item in baselines], dtype=np.float64)
    pooled_w = _weighted_median(idle_w, n)
    spread_w = np.abs(idle_w - pooled_w) + np.array([item.spread_w for item in baselines])
    return Baseline(
        device=baselines[0].device,
        idle_w=pooled_w,
        spread_w=_weighted_median(spread_w, n),
        n=sum(item.n for item in baselines),
        first_utc_ns=min(item.first_utc_ns for item in baselines),
        last_utc_ns=max(item.last_utc_ns for item in baselines),
    )


def _weighted_median(value: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The value with half of the weight on either side; the mean of two where the half falls between them."""
    order = np.argsort(value, kind="stable")
    reached = np.cumsum(weight[order])
    half = reached[-1] / 2
    lower = int(np.searchsorted(reached, half, side="left"))
    upper = min(int(np.searchsorted(reached, half, side="right")), value.size - 1)
    return float((value[order[lower]] + value[order[upper]]) / 2)
