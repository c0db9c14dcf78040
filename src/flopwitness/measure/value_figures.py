"""What the values of readings show by themselves, found block by block: how many, how high, how still.

A year of readings is looked at a piece at a time, and no longer than until the answer stands.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.reading_blocks import BLOCK
from flopwitness.measure.samples import Series

__all__ = [
    "agree_widely",
    "count_usable",
    "has_many_values",
    "holds_positive",
    "longest_still",
    "share_over",
    "typical_w",
    "typically_over",
]


def count_usable(value: NDArray[np.float64], *, is_power: bool) -> int:
    """How many readings hold a value: a number, and of power none below zero, or nothing but zeros.

    Args:
        value: The readings, shape (n,).
        is_power: Whether they are of power.
    """
    n_usable, has_any = 0, not is_power
    for values in _blocks(value):
        usable = np.isfinite(values)
        if is_power:
            usable &= values >= 0
            has_any = has_any or bool((values[usable] > 0).any())
        n_usable += int(np.count_nonzero(usable))
    return n_usable if has_any else 0


def holds_positive(value: NDArray[np.float64]) -> bool:
    """Whether any reading is a number above zero."""
    return any(bool((np.isfinite(values) & (values > 0)).any()) for values in _blocks(value))


def share_over(series: Sequence[Series], limit_w: float) -> float:
    """Share of all readings with a value that lie over a device's limit, 0 to 1."""
    n_known = n_over = 0
    for values in (values for item in series for values in _blocks(item.value)):
        known = np.isfinite(values)
        n_known += int(np.count_nonzero(known))
        n_over += int(np.count_nonzero(known & (values > limit_w)))
    return n_over / n_known if n_known else 0.0


def typically_over(series: Sequence[Series], limit_w: float) -> bool:
    """Whether the middle readings of all devices together lie over a limit.

    Where not even the highest ones do, the middle ones are not looked for.
    """
    highest_w = sum(float(np.fmax.reduce(item.value, initial=0.0)) for item in series)
    return highest_w > limit_w and typical_w(series) > limit_w


def typical_w(series: Sequence[Series]) -> float:
    """The middle reading of each device, all devices together [W]: a glitch hardly moves it."""
    total_w = 0.0
    for item in series:
        known = item.value[np.isfinite(item.value)]
        if known.size:
            with np.errstate(over="ignore"):  # two readings beyond any power
                total_w += float(np.median(known, overwrite_input=True))
    return total_w


def longest_still(value: NDArray[np.float64]) -> int:
    """How many readings in a row have the same value at most."""
    longest = run = min(1, value.size)
    for start in range(0, value.size - 1, BLOCK):
        values = value[start : start + BLOCK + 1]
        changes = np.flatnonzero(values[1:] != values[:-1])
        if changes.size == 0:
            run += values.size - 1
            continue
        longest = max(longest, run + int(changes[0]), int(np.diff(changes).max(initial=1)))
        run = values.size - 1 - int(changes[-1])
    return max(longest, run)


def has_many_values(value: NDArray[np.float64], n_values: int) -> bool:
    """Whether there are at least so many unlike values; missing ones are alike."""
    seen: NDArray[np.float64] = np.zeros(0)
    for values in _blocks(value):
        seen = np.unique(np.concatenate([seen, values]))[:n_values]
        if seen.size == n_values:
            return True
    return False


def agree_widely(ours: NDArray[np.float64], theirs: NDArray[np.float64], share: float) -> bool:
    """Whether at least such a share of the readings are the same, missing ones among them.

    Args:
        ours: Readings, shape (n,).
        theirs: Others, shape (n,).
        share: 0 to 1.
    """
    n_unlike, n_all = 0, ours.size
    for our, their in zip(_blocks(ours), _blocks(theirs), strict=True):
        n_unlike += int(np.count_nonzero((our != their) & ~(np.isnan(our) & np.isnan(their))))
        if (n_all - n_unlike) / n_all < share:
            return False
    return True


def _blocks(value: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    return (value[start : start + BLOCK] for start in range(0, value.size, BLOCK))
