"""Power beside the utilisation of its time: what idle, waiting and totals look at.

Every reading of power stands for half of the step before it and half of the step after it. Sums with these
weights give the trapezoid's energy, and time and squared power that agree with it: cutting a run open and
putting idle in between then moves none of them, which straight lines between the readings would not give.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.energy import longest_gapless_s, usual_period_s
from flopwitness.measure.reading_blocks import step_blocks
from flopwitness.measure.running_clock import usual_step_s
from flopwitness.measure.samples import Channel, Series

__all__ = [
    "PairedReadings",
    "check_power",
    "hold_values",
    "is_later",
    "longest_step_s",
    "pair_readings",
    "usable_w",
]

_MOST_W: Final = 1e12  # as for the energy of a run: no device draws it
_POWER_CHANNELS: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedReadings:
    """Power readings in order of time, each with the utilisation that was current.

    Attributes:
        utc_ns: Wall-clock nanoseconds since 1970, shape (n,), strictly increasing.
        power_w: Power [W], shape (n,); every one known.
        utilisation_pct: Utilisation [%], shape (n,); NaN where not known.
        step_s: Time from each reading to the next [s], shape (n - 1,).
        is_gap: Whether nobody measured between the two, shape (n - 1,): they lie too far apart, or a
            reading between them holds no value.
    """

    utc_ns: NDArray[np.int64]
    power_w: NDArray[np.float64]
    utilisation_pct: NDArray[np.float64]
    step_s: NDArray[np.float64]
    is_gap: NDArray[np.bool_]

    @property
    def weight_s(self) -> NDArray[np.float64]:
        """The time that each reading stands for [s], shape (n,): half of each step beside it; no gaps."""
        half_s = np.where(self.is_gap, 0.0, self.step_s / 2)
        weight_s = np.zeros(self.power_w.size)
        weight_s[1:] += half_s
        weight_s[:-1] += half_s
        return weight_s


def pair_readings(
    power: Series, utilisation: Series | None, *, longest_gap_s: float | None = None
) -> PairedReadings:
    """The power readings that hold a value and are later than all before them, with their utilisation.

    Args:
        power: Power readings [W].
        utilisation: Utilisation of the same device [%]; None where it was not recorded.
        longest_gap_s: Readings further apart than this leave a gap, and utilisation is current for as long
            [s]; by default as `longest_step_s` says of either series.
    """
    check_power(power)
    later = _where(is_later(power.utc_ns))
    every_ns, every_w = power.utc_ns[later], usable_w(power)[later]
    known = _where(np.isfinite(every_w))
    utc_ns, power_w = every_ns[known], every_w[known]
    step_s = np.diff(utc_ns) / NANOSECOND_PER_SECOND
    most_s = _usual_gap_s(every_ns) if longest_gap_s is None else longest_gap_s
    is_gap = step_s > most_s
    if not isinstance(known, slice):
        is_gap |= np.diff(known) > 1
    utilisation_pct = np.full(utc_ns.size, np.nan)
    if utilisation is not None:
        share_pct = np.where(
            (utilisation.value >= 0) & np.isfinite(utilisation.value), utilisation.value, np.nan
        )
        if np.array_equal(every_ns, utilisation.utc_ns):
            utilisation_pct = share_pct[known]
        else:
            held_s = _usual_gap_s(utilisation.utc_ns) if longest_gap_s is None else longest_gap_s
            utilisation_pct = hold_values(utilisation.utc_ns, share_pct, utc_ns, longest_s=held_s)
    return PairedReadings(
        utc_ns=utc_ns, power_w=power_w, utilisation_pct=utilisation_pct, step_s=step_s, is_gap=is_gap
    )


def _where(chosen: NDArray[np.bool_]) -> slice | NDArray[np.intp]:
    """The places that are chosen; all of them as a slice, which copies nothing."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def check_power(series: Series) -> None:
    """Refuse a series of anything but power.

    Raises:
        ValueError: Another channel.
    """
    if series.channel not in _POWER_CHANNELS:
        raise ValueError(f"not a channel of power: {series.channel}")


def usable_w(series: Series) -> NDArray[np.float64]:
    """The readings with the recording's factor applied [W], shape (n,); NaN where they hold no power."""
    with np.errstate(invalid="ignore", over="ignore"):
        power_w = series.value * series.conversion
    return np.where((series.value >= 0) & (power_w < _MOST_W), power_w, np.nan)


def is_later(utc_ns: NDArray[np.int64], after_ns: int | None = None) -> NDArray[np.bool_]:
    """Which times lie after all times before them, shape (n,).

    A clock that was set back gives no new time until it has caught up.

    Args:
        utc_ns: Times [ns], shape (n,).
        after_ns: A time that the first one must lie after as well.
    """
    if utc_ns.size == 0:
        return np.zeros(0, dtype=np.bool_)
    later = np.full(utc_ns.size, fill_value=True)
    np.greater(utc_ns[1:], utc_ns[:-1], out=later[1:])
    if not later.all():
        latest_ns = np.maximum.accumulate(utc_ns)
        later[1:] = utc_ns[1:] > latest_ns[:-1]
    return later if after_ns is None else later & (utc_ns > after_ns)


def hold_values(
    utc_ns: NDArray[np.int64], value: NDArray[np.float64], at_ns: NDArray[np.int64], *, longest_s: float
) -> NDArray[np.float64]:
    """The reading that is current at each instant: the latest one that is not later, shape of `at_ns`.

    Args:
        utc_ns: Times of the readings [ns], shape (n,).
        value: The readings, shape (n,).
        at_ns: The instants [ns], shape (m,).
        longest_s: Older than this, a reading says nothing any more [s].

    Returns:
        NaN where no reading is current, or the current one is missing.
    """
    if utc_ns.size == 0:
        return np.full(at_ns.size, np.nan)
    if (utc_ns[1:] < utc_ns[:-1]).any():
        order = np.argsort(utc_ns, kind="stable")
        utc_ns, value = utc_ns[order], value[order]
    place = np.searchsorted(utc_ns, at_ns, side="right") - 1
    held = value[place]
    age_s = (at_ns - utc_ns[place]) / NANOSECOND_PER_SECOND
    held[(place < 0) | (age_s > longest_s) | ~np.isfinite(held)] = np.nan
    return held


def longest_step_s(time_s: NDArray[np.float64]) -> float:
    """Two readings further apart than this leave a gap [s]: 2.5 usual periods, from 0.5 s to 150 s.

    Args:
        time_s: Times [s], shape (n,), not decreasing.
    """
    return longest_gapless_s(usual_period_s(time_s))


def _usual_gap_s(utc_ns: NDArray[np.int64]) -> float:
    """The same for times in any order [ns]."""
    in_order = bool((utc_ns[1:] >= utc_ns[:-1]).all())
    sorted_ns = utc_ns if in_order else np.sort(utc_ns)
    return longest_gapless_s(usual_step_s(lambda: step_blocks(sorted_ns)))
