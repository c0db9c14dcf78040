"""A recorded run cut open, with its own idle put in between: a simulation of splitting.

It shows what counting does with a run in pieces, not what hardware does: it has no cool-down and no restart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Series

__all__ = ["Spliced", "splice_idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spliced:
    """A run in pieces.

    Attributes:
        power: Its power readings [W].
        utilisation: Its utilisation [%], 0 where idle was put in.
        idle_j: The energy of the idle that was put in [J].
    """

    power: Series
    utilisation: Series
    idle_j: float


def splice_idle(
    power: Series,
    utilisation: Series,
    *,
    places_ns: Sequence[int],
    idle_w: NDArray[np.float64],
    gap_s: float,
    step_s: float,
) -> Spliced:
    """The run cut open at each place, with idle readings in between.

    Args:
        power: Power readings in order of time [W].
        utilisation: Utilisation in order of time [%].
        places_ns: Where to cut, in order, each before some later reading of power.
        idle_w: Recorded idle readings [W], shape (n,); taken in turn, from the start again where they end.
        gap_s: How much idle to put in at each place [s].
        step_s: From reading to reading in it [s].
    """
    n_idle, step_ns = round(gap_s / step_s), round(step_s * NANOSECOND_PER_SECOND)
    watts, shares, shift_ns, idle_j = _Pieces(power), _Pieces(utilisation), 0, 0.0
    edges = [int(power.utc_ns[0]) - 1, *places_ns, int(max(power.utc_ns[-1], utilisation.utc_ns[-1])) + 1]
    for number, (begin_ns, end_ns) in enumerate(pairwise(edges)):
        watts.keep(begin_ns, end_ns, shift_ns)
        shares.keep(begin_ns, end_ns, shift_ns)
        if number == len(places_ns):
            break
        idle_ns = watts.last_ns + step_ns * np.arange(1, n_idle + 1)
        taken_w = np.take(idle_w, np.arange(number * n_idle, (number + 1) * n_idle), mode="wrap")
        watts.put(idle_ns, taken_w)
        shares.put(idle_ns, np.zeros(n_idle))
        following_ns = int(power.utc_ns[np.searchsorted(power.utc_ns, end_ns)])
        shift_ns = int(idle_ns[-1]) + step_ns - following_ns
        idle_j += step_s * float(taken_w.sum())
    return Spliced(power=watts.series(), utilisation=shares.series(), idle_j=idle_j)


class _Pieces:
    """One channel as it is put together."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._times: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.float64]] = []

    def keep(self, begin_ns: int, end_ns: int, shift_ns: int) -> None:
        """Take the recorded readings from one instant to before another, later by `shift_ns`."""
        inside = (self._series.utc_ns >= begin_ns) & (self._series.utc_ns < end_ns)
        self.put(self._series.utc_ns[inside] + shift_ns, self._series.value[inside])

    def put(self, utc_ns: NDArray[np.int64], value: NDArray[np.float64]) -> None:
        """Add readings."""
        self._times.append(utc_ns)
        self._values.append(value)

    @property
    def last_ns(self) -> int:
        """The time of the last reading."""
        return int(self._times[-1][-1])

    def series(self) -> Series:
        """All of it."""
        return replace(self._series, utc_ns=np.concatenate(self._times), value=np.concatenate(self._values))
