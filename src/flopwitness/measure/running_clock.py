"""The ticks of a clock as seconds that never run back.

A clock that was set back must not make a recording shorter than it was: each step back counts as one usual
step forward.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.middle import Blocks, middle_pair

__all__ = ["RunningClock", "laid_out_ns", "laid_out_ticks", "usual_step_s"]


class RunningClock:
    """Seconds from the first reading, with each step back taken as one usual step forward."""

    def __init__(self, usual_s: float = float("nan")) -> None:
        """Begin before the first reading.

        Args:
            usual_s: The usual step forward [s], NaN where there is none; may be set later, before a time
                behind a step back is asked for.
        """
        self.usual_s = usual_s
        self.n_backwards = 0
        self._lost_s = 0.0
        self._first_ns: int | None = None

    @property
    def back_s(self) -> float:
        """How long a step back is taken to be [s]: nothing, where no step leads forward."""
        return 0.0 if math.isnan(self.usual_s) else self.usual_s

    def pass_by(self, steps_ns: NDArray[np.int64]) -> bool:
        """Count the steps back of the next block; whether there were any."""
        is_disturbed = bool(steps_ns.min(initial=0) < 0)
        if is_disturbed:
            back_ns = steps_ns[steps_ns < 0]
            self.n_backwards += back_ns.size
            self._lost_s -= float(back_ns.sum(dtype=np.float64)) / NANOSECOND_PER_SECOND
        return is_disturbed

    def time_s(self, tick_ns: int) -> float:
        """The time at a tick of the clock [s]; the first one that is asked for is 0."""
        if self._first_ns is None:
            self._first_ns = tick_ns
        passed_s = (tick_ns - self._first_ns) / NANOSECOND_PER_SECOND
        return passed_s + (self._lost_s + self.n_backwards * self.back_s)


def usual_step_s(steps: Blocks) -> float:
    """The median of the steps forward [s]; NaN where there is none.

    Args:
        steps: Gives the steps of a clock in blocks [ns], the same ones at each call.
    """
    middle = middle_pair(lambda: _forward(steps()))
    if middle is None:
        return float("nan")
    low_ns, high_ns = middle
    return (low_ns / NANOSECOND_PER_SECOND + high_ns / NANOSECOND_PER_SECOND) / 2


def _forward(steps: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
    for block in steps:
        forward_ns = block if block.min() > 0 else block[block > 0]
        if forward_ns.size:
            yield forward_ns


def laid_out_ns(first_ns: int, last_ns: int, steps: Blocks) -> int:
    """How long a clock ran from its first tick to its last [ns].

    Args:
        first_ns: The first tick.
        last_ns: The last one, which may lie before the first.
        steps: Gives the steps between in blocks [ns], the same ones at each call.
    """
    clock = RunningClock()
    clock.time_s(first_ns)
    for steps_ns in steps():
        clock.pass_by(steps_ns)
    if not clock.n_backwards:
        return last_ns - first_ns
    clock.usual_s = usual_step_s(steps)
    return round(clock.time_s(last_ns) * NANOSECOND_PER_SECOND)


def laid_out_ticks(ticks_ns: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Ticks that never run back, from the same first one, and how many steps back there were.

    Args:
        ticks_ns: Ticks of a clock [ns], shape (n,).

    Returns:
        The ticks [ns], shape (n,), with each step back as one usual step forward, and none where no step
        leads forward.
    """
    steps_ns = np.diff(ticks_ns)
    is_back = steps_ns < 0
    if not is_back.any():
        return ticks_ns, 0
    forward_ns = steps_ns[steps_ns > 0]
    steps_ns[is_back] = int(np.median(forward_ns)) if forward_ns.size else 0
    return ticks_ns[0] + np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps_ns)]), int(
        is_back.sum()
    )
