"""Power readings a block at a time, those without a value left out.

Whole arrays of a year's readings cost memory several times over for every step of a calculation. All that is
calculated from readings is therefore summed over blocks, each of which begins with the last reading of the
block before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.samples import Series

__all__ = [
    "BLOCK",
    "MOST_W",
    "Block",
    "clock_ns",
    "factor_of",
    "is_known",
    "known_blocks",
    "known_step_blocks",
    "step_blocks",
]

BLOCK: Final = 1 << 14  # readings: a few arrays of them fit into a processor's cache, and a heap keeps them
_MOST_EDGES: Final = 128  # of stretches with a value in a block, that are taken one by one
MOST_W: Final = 1e12  # about a third of the world's electricity: no device draws it


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Readings that follow each other and have a value, the last one of the block before in front.

    Attributes:
        ticks_ns: The clock's times [ns], int64, shape (n,).
        power_w: The readings [W], >= 0, shape (n,).
        over_missing: The steps, by number, that lead over a reading without a value; in order.
        n_new: How many readings are new: n, less the one in front.
        first: The number of the first one among all readings.
        last: That of the last one.
    """

    ticks_ns: NDArray[np.int64]
    power_w: NDArray[np.float64]
    over_missing: NDArray[np.int64]
    n_new: int
    first: int
    last: int

    @property
    def steps_ns(self) -> NDArray[np.int64]:
        """The steps between the readings [ns], shape (n - 1,)."""
        return self.ticks_ns[1:] - self.ticks_ns[:-1]


def clock_ns(series: Series) -> NDArray[np.int64]:
    """The clock that tells lengths [ns]: the monotonic one where it was recorded."""
    return series.monotonic_ns if series.monotonic_ns is not None else series.utc_ns


def factor_of(series: Series) -> float:
    """The conversion factor, as far as any can be."""
    return min(series.conversion, MOST_W)


def step_blocks(ticks_ns: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The steps from each time to the next [ns]."""
    for start in range(0, ticks_ns.size - 1, BLOCK):
        ticks = ticks_ns[start : start + BLOCK + 1]
        yield ticks[1:] - ticks[:-1]


def known_blocks(ticks_ns: NDArray[np.int64], value: NDArray[np.float64], factor: float) -> Iterator[Block]:
    """The readings that hold a power: nothing draws less than nothing, or more than `MOST_W`.

    Args:
        ticks_ns: The clock's times [ns], shape (n,).
        value: The readings, shape (n,); NaN where missing.
        factor: What they are to be multiplied with.
    """
    last: int | None = None  # the last reading with a value
    for piece in _known_pieces(value, factor):
        start, stop = (piece.start, piece.stop) if isinstance(piece, slice) else (piece[0], piece[-1] + 1)
        if last is not None and last < start - 1 and isinstance(piece, slice):
            yield _take(ticks_ns, value, factor, np.array([last, start]))  # the step over missing readings
            last = start
        if isinstance(piece, slice):
            chosen: slice | NDArray[np.int64] = slice(start if last is None else last, stop)
        else:
            chosen = piece if last is None else np.concatenate([[last], piece])
        if last is None or stop > last + 1:
            yield _take(ticks_ns, value, factor, chosen, has_front=last is not None)
        last = int(stop) - 1


def _take(
    ticks_ns: NDArray[np.int64],
    value: NDArray[np.float64],
    factor: float,
    chosen: slice | NDArray[np.int64],
    *,
    has_front: bool = True,
) -> Block:
    """The chosen readings, all of which hold a power."""
    power_w = value[chosen] if factor == 1 else _converted_w(value[chosen], factor)
    if isinstance(chosen, slice):
        first, last, over_missing = chosen.start, chosen.stop - 1, np.zeros(0, dtype=np.int64)
    else:
        first, last, over_missing = int(chosen[0]), int(chosen[-1]), np.flatnonzero(np.diff(chosen) > 1)
    return Block(
        ticks_ns=ticks_ns[chosen],
        power_w=power_w,
        over_missing=over_missing,
        n_new=power_w.size - has_front,
        first=first,
        last=last,
    )


def _known_pieces(value: NDArray[np.float64], factor: float) -> Iterator[slice | NDArray[np.int64]]:
    """The readings that hold a power: where few are missing as slices, else by number."""
    for start in range(0, value.size, BLOCK):
        values = value[start : start + BLOCK]
        if _is_all_known(values, factor):
            yield slice(start, start + values.size)
            continue
        known = is_known(values, factor)
        edges = start + np.flatnonzero(np.diff(known, prepend=False, append=False))
        if edges.size <= _MOST_EDGES:
            yield from (slice(first, stop) for first, stop in edges.reshape(-1, 2).tolist())
        else:
            yield start + np.flatnonzero(known)


def known_step_blocks(
    ticks_ns: NDArray[np.int64], value: NDArray[np.float64], factor: float
) -> Iterator[NDArray[np.int64]]:
    """The steps from each reading that holds a power to the next [ns].

    Args:
        ticks_ns: As for `known_blocks`.
        value: As for `known_blocks`.
        factor: As for `known_blocks`.
    """
    for block in known_blocks(ticks_ns, value, factor):
        if block.ticks_ns.size > 1:
            yield block.steps_ns


def is_known(values: NDArray[np.float64], factor: float) -> NDArray[np.bool_]:
    """Which readings hold a power."""
    return (values >= 0) & (_converted_w(values, factor) < MOST_W)


def _converted_w(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    return values.clip(-1.0, MOST_W) * factor


def _is_all_known(values: NDArray[np.float64], factor: float) -> bool:
    """Whether every reading holds a power; a missing one among them makes both comparisons false."""
    return bool(values.min() >= 0) and min(float(values.max()), MOST_W) * factor < MOST_W
