"""The median of numbers that come in blocks, exact and without a copy of them all.

A year of readings is hundreds of megabytes; sorting or partitioning it takes as much again. Here the numbers
are counted in bins, and the bin with the middle is split until few numbers are left, or one value.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks", "middle_pair"]

Blocks: TypeAlias = Callable[[], Iterable[NDArray[np.int64]]]

_BITS: Final = 16  # of one split: as many bins fit into a fast memory
_FEW: Final = 1 << 16


def middle_pair(blocks: Blocks) -> tuple[int, int] | None:
    """The two middle numbers, the same one twice for an odd count; None where there is no number.

    The steps of a clock are much alike, so the middle of the first block is tried before anything else.

    Args:
        blocks: Gives all numbers in blocks, none of them empty and the same ones at each call; called a few
            times.
    """
    guess = next((int(np.partition(block, block.size // 2)[block.size // 2]) for block in blocks()), None)
    if guess is None:
        return None
    if _is_middle(blocks, guess):
        return guess, guess
    count, low, high = _survey(blocks)
    skipped = 0  # numbers below `low`
    left, right = (count - 1) // 2, count // 2
    while low < high:
        shift = max(0, (high - low).bit_length() - _BITS)
        up_to = skipped + np.cumsum(_count_bins(blocks, low, high, shift))
        place, next_place = (int(np.searchsorted(up_to, rank, side="right")) for rank in (left, right))
        if place != next_place:
            return _around(blocks, low + ((place + 1) << shift) - 1)
        skipped = int(up_to[place - 1]) if place else skipped
        low, high = low + (place << shift), min(high, low + ((place + 1) << shift) - 1)
        if up_to[place] - skipped <= _FEW:
            few = np.sort(np.concatenate(list(_between(blocks, low, high))))
            return int(few[left - skipped]), int(few[right - skipped])
    return low, low


def _is_middle(blocks: Blocks, guess: int) -> bool:
    """Whether both middle numbers are this one."""
    count = n_below = n_above = 0
    for block in blocks():
        count += block.size
        n_below += int(np.count_nonzero(block < guess))
        n_above += int(np.count_nonzero(block > guess))
    return 2 * max(n_below, n_above) < count


def _survey(blocks: Blocks) -> tuple[int, int, int]:
    """How many there are, the least and the greatest."""
    count, low, high = 0, 2**63 - 1, -(2**63)
    for block in blocks():
        count += block.size
        low, high = min(low, int(block.min())), max(high, int(block.max()))
    return count, low, high


def _between(blocks: Blocks, low: int, high: int) -> Iterator[NDArray[np.int64]]:
    """The numbers from `low` to `high`."""
    for block in blocks():
        if low <= int(block.min()) and int(block.max()) <= high:
            yield block
        else:
            yield block[(block >= low) & (block <= high)]


def _count_bins(blocks: Blocks, low: int, high: int, shift: int) -> NDArray[np.int64]:
    """How many numbers fall into each bin of `2^shift` from `low` on."""
    counts = np.zeros(((high - low) >> shift) + 1, dtype=np.int64)
    base = np.int64(low).view(np.uint64)
    for block in _between(blocks, low, high):
        place = block.view(np.uint64) - base  # modulo 2^64: right for any two numbers of 64 bits
        place >>= np.uint64(shift)
        counts += np.bincount(place.view(np.int64), minlength=counts.size)
    return counts


def _around(blocks: Blocks, split: int) -> tuple[int, int]:
    """The greatest number up to `split` and the least beyond it; there is one on either side."""
    below, above = -(2**63), 2**63 - 1
    for block in blocks():
        is_below = block <= split
        below = int(block[is_below].max(initial=below))
        above = int(block[~is_below].min(initial=above))
    return below, above
