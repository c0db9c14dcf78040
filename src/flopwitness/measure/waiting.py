"""Time spent waiting that utilisation calls work.

A chip that spins in a collective, waiting for the others, reports full utilisation and draws little more
than idle. Taking utilisation for work would count that time as training.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import format_duration
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.paired import PairedReadings, pair_readings
from flopwitness.measure.samples import Series

__all__ = ["Stretch", "Waiting", "assess_waiting", "find_waiting"]

_FULL_PCT: Final = 80.0
_BUSY_PCT: Final = 5.0
_NEAR_IDLE_SHARE: Final = 0.2
_SHORTEST_S: Final = 30.0  # shorter dips lie between the steps of any training


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of full utilisation at near-idle power.

    Attributes:
        start_utc_ns: Its first reading.
        duration_s: How long it lasts [s].
    """

    start_utc_ns: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The busy time of one device, split into work and waiting.

    Attributes:
        device: The device's name.
        stretches: The stretches of waiting, in order of time.
        compute_s: Busy time that is no waiting [s].
        waiting_s: Waiting [s].
        compute_net_j: Energy above idle of the former [J].
        waiting_net_j: Energy above idle of the latter [J]: it may hold work, at most so much.
        limit_net_w: Net power below which full utilisation counts as waiting [W]; NaN where nothing is busy.
    """

    device: str
    stretches: tuple[Stretch, ...]
    compute_s: float
    waiting_s: float
    compute_net_j: float
    waiting_net_j: float
    limit_net_w: float


def find_waiting(
    power: Series,
    utilisation: Series,
    *,
    idle_w: float,
    working_net_w: float | None = None,
    near_idle_share: float = _NEAR_IDLE_SHARE,
    full_pct: float = _FULL_PCT,
    busy_pct: float = _BUSY_PCT,
    shortest_s: float = _SHORTEST_S,
) -> Waiting:
    """Where utilisation is high and power is nearly idle for long.

    Near idle is net power below a share of what work usually draws. Without `working_net_w` that is the
    energy-weighted mean of the busy readings, int p^2 / int p, which time spent waiting moves little even
    where it is most of the time; a recording that holds waiting alone shows none of it.

    Args:
        power: Power readings [W].
        utilisation: Utilisation of the same device [%].
        idle_w: What the device draws idle [W].
        working_net_w: What work draws above idle [W], from a calibration.
        near_idle_share: Share of that below which power is nearly idle, 0 to 1. Twice what spinning in a
            collective draws, and more: 43 W beside 565 W in the bug reports that this check goes back to.
        full_pct: From this utilisation on, it is high [%].
        busy_pct: Above this utilisation, the device is busy [%].
        shortest_s: Stretches shorter than this are work [s].
    """
    paired = pair_readings(power, utilisation)
    weight_s, net_w = paired.weight_s, paired.power_w - idle_w
    busy_s = np.where(paired.utilisation_pct > busy_pct, weight_s, 0.0)
    if working_net_w is None:
        working_net_w = _energy_weighted_w(net_w, busy_s)
    limit_net_w = near_idle_share * working_net_w
    may_wait = (paired.utilisation_pct >= full_pct) & (net_w < limit_net_w)
    stretches, waits = _long_stretches(paired, may_wait, weight_s, shortest_s)
    waiting_s = np.where(waits, weight_s, 0.0)
    compute_s = np.where(waits, 0.0, busy_s)
    return Waiting(
        device=power.device,
        stretches=stretches,
        compute_s=float(compute_s.sum()),
        waiting_s=float(waiting_s.sum()),
        compute_net_j=float((compute_s * net_w).sum()),
        waiting_net_j=float((waiting_s * net_w).sum()),
        limit_net_w=limit_net_w,
    )


def _energy_weighted_w(net_w: NDArray[np.float64], weight_s: NDArray[np.float64]) -> float:
    """The energy-weighted mean [W]; NaN where there is no energy."""
    above_w = np.maximum(net_w, 0.0)
    energy_j = float((weight_s * above_w).sum())
    return float((weight_s * above_w**2).sum()) / energy_j if energy_j > 0 else float("nan")


def _long_stretches(
    paired: PairedReadings,
    may_wait: NDArray[np.bool_],
    weight_s: NDArray[np.float64],
    shortest_s: float,
) -> tuple[tuple[Stretch, ...], NDArray[np.bool_]]:
    """The stretches that last, and which readings lie in them; a gap ends a stretch."""
    if not may_wait.any():
        return (), may_wait
    place = np.flatnonzero(may_wait)
    starts_anew = np.concatenate([[True], (np.diff(place) > 1) | paired.is_gap[place[1:] - 1]])
    run = np.cumsum(starts_anew) - 1
    length_s = np.bincount(run, weights=weight_s[place])
    is_long = length_s >= shortest_s
    waits = np.zeros(may_wait.size, dtype=np.bool_)
    waits[place] = is_long[run]
    first_ns = paired.utc_ns[place[starts_anew]]
    stretches = tuple(
        Stretch(start_utc_ns=int(first_ns[i]), duration_s=float(length_s[i])) for i in np.flatnonzero(is_long)
    )
    return stretches, waits


def assess_waiting(waiting: Waiting) -> Finding | None:
    """What is told of the waiting; None where there is none."""
    if not waiting.stretches:
        return None
    return Finding(
        code="busy-at-idle-power",
        severity=Severity.WARNING,
        message=(
            f"{waiting.device}: {format_duration(waiting.waiting_s)} of full utilisation at near-idle power; "
            "the device waited, as for others in a collective, and utilisation does not show work"
        ),
        where=waiting.device,
        expected=f"{waiting.limit_net_w:,.4g} W or more above idle while utilisation is high",
        found=f"{waiting.waiting_net_j / waiting.waiting_s:,.4g} W above idle",
        count=len(waiting.stretches),
    )
