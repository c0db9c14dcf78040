"""Power readings laid out on a clock that never runs backwards, as far as that can be known without them all.

What a calculation needs of the whole recording before it can begin (the usual period, the length, the range)
is found in passes over blocks; then the readings come again, block by block, with their steps laid out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.reading_blocks import (
    Block,
    clock_ns,
    factor_of,
    is_known,
    known_blocks,
    known_step_blocks,
)
from flopwitness.measure.running_clock import RunningClock, usual_step_s
from flopwitness.measure.samples import Series

__all__ = ["LaidBlock", "PowerLine", "lay_out_power"]

_MANY: Final = 0.05  # unlike readings at one time beyond this share are no accident
_MOST_IN_A_SECOND: Final = 4  # readings that share a stamp because it is rounded to a second
_ONE_SIDED: Final = 0.9  # where one reading of a second nearly always lies above the next, they are unlike


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidBlock:
    """Readings that follow each other, the last one of the block before in front.

    Attributes:
        power_w: The readings [W], shape (n,).
        length_s: The steps between them [s], none of which leads back, shape (n - 1,).
        over_missing: The steps, by number, that lead over a reading without a value.
        begin_s: The time of the first [s].
        end_s: The time of the last [s].
        n_new: How many readings are new.
    """

    power_w: NDArray[np.float64]
    length_s: NDArray[np.float64]
    over_missing: NDArray[np.int64]
    begin_s: float
    end_s: float
    n_new: int

    @property
    def time_s(self) -> NDArray[np.float64]:
        """The time of each reading [s], shape (n,), not decreasing."""
        time_s = np.empty(self.power_w.size)
        time_s[0] = self.begin_s
        np.cumsum(self.length_s, out=time_s[1:])
        time_s[1:] += self.begin_s
        return time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLine:
    """The readings of a device on a clock that never runs backwards.

    Attributes:
        ticks_ns: The clock's times [ns], those of readings without a value among them.
        value: The readings as they stand.
        factor: What they are multiplied with.
        origin_ns: The wall-clock time of the first reading with a value [ns]; 0 where there is none.
        last_s: The time of the last one [s], counted from the first.
        usual_s: The usual step forward [s]; NaN where there is none. A step back takes as long.
        lowest_w: The lowest reading [W]; infinite where there is none.
        highest_w: The highest [W]; 0 where there is none.
        n_known: Readings with a value.
        n_missing: Readings without.
        n_repeated: Readings at the time of the reading before.
        n_backwards: Steps back in time.
        is_mixed: Whether more than 5 % of the readings differ from another one at the same time.
        is_rounded: Whether as many differed, and all stamps are whole seconds: `ticks_ns` then holds the
            readings of each second spread over it.
    """

    ticks_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    factor: float
    origin_ns: int
    last_s: float
    usual_s: float
    lowest_w: float
    highest_w: float
    n_known: int
    n_missing: int
    n_repeated: int
    n_backwards: int
    is_mixed: bool
    is_rounded: bool

    def blocks(self) -> Iterator[LaidBlock]:
        """The readings with a value, in order."""
        clock = RunningClock(usual_s=self.usual_s)
        for block in known_blocks(self.ticks_ns, self.value, self.factor):
            begin_s = clock.time_s(int(block.ticks_ns[0]))
            steps_ns = block.steps_ns
            length_s = steps_ns / NANOSECOND_PER_SECOND
            if clock.pass_by(steps_ns):
                length_s[steps_ns < 0] = clock.back_s
            yield LaidBlock(
                power_w=block.power_w,
                length_s=length_s,
                over_missing=block.over_missing,
                begin_s=begin_s,
                end_s=clock.time_s(int(block.ticks_ns[-1])),
                n_new=block.n_new,
            )


class _Survey:
    """What one pass over the readings finds."""

    def __init__(self) -> None:
        self.clock = RunningClock()
        self.first = self.last = 0
        self.n_known = self.n_repeated = self.n_differing = 0
        self.lowest_w, self.highest_w = float("inf"), 0.0

    def add(self, block: Block) -> None:
        if not self.n_known:
            self.first = block.first
            self.clock.time_s(int(block.ticks_ns[0]))
        self.last = block.last
        self.n_known += block.n_new
        self.lowest_w = min(self.lowest_w, float(block.power_w.min()))
        self.highest_w = max(self.highest_w, float(block.power_w.max()))
        steps_ns = block.steps_ns
        self.clock.pass_by(steps_ns)
        if not steps_ns.all():
            is_repeat = steps_ns == 0
            self.n_repeated += int(is_repeat.sum())
            self.n_differing += int((is_repeat & (np.diff(block.power_w) != 0)).sum())


def lay_out_power(series: Series) -> PowerLine:
    """Drop missing readings and lay the rest on a clock that never runs backwards.

    Args:
        series: Power readings [W].
    """
    ticks_ns, factor, survey = clock_ns(series), factor_of(series), _Survey()
    for block in known_blocks(ticks_ns, series.value, factor):
        survey.add(block)
    has_many = survey.n_differing > _MANY * survey.n_known
    spread_ns = _spread_seconds(ticks_ns, series.value, factor) if has_many else None
    used_ns = ticks_ns if spread_ns is None else spread_ns
    usual_s = usual_step_s(lambda: known_step_blocks(used_ns, series.value, factor))
    survey.clock.usual_s = usual_s
    return PowerLine(
        ticks_ns=used_ns,
        value=series.value,
        factor=factor,
        origin_ns=int(series.utc_ns[survey.first]) if survey.n_known else 0,
        last_s=survey.clock.time_s(int(used_ns[survey.last])) if survey.n_known else 0.0,
        usual_s=usual_s,
        lowest_w=survey.lowest_w,
        highest_w=survey.highest_w,
        n_known=survey.n_known,
        n_missing=len(series) - survey.n_known,
        n_repeated=survey.n_repeated,
        n_backwards=survey.clock.n_backwards,
        is_mixed=has_many and spread_ns is None,
        is_rounded=spread_ns is not None,
    )


def _spread_seconds(
    all_ticks_ns: NDArray[np.int64], value: NDArray[np.float64], factor: float
) -> NDArray[np.int64] | None:
    """Stamps of whole seconds with the readings of each second spread over it; None where they are not.

    Sensors that write one log in turn, one stamp for each turn, are told by a reading of each second that
    nearly always lies above, or below, the next. Such logs are rare, and whole arrays are taken for them.
    """
    known = is_known(value, factor)
    ticks_ns, power_w = all_ticks_ns[known], value[known]
    steps_ns = np.diff(ticks_ns)
    starts = np.concatenate([[0], np.flatnonzero(steps_ns) + 1])
    counts = np.diff(np.concatenate([starts, [ticks_ns.size]]))
    is_whole = not (ticks_ns % NANOSECOND_PER_SECOND).any() and not (steps_ns < 0).any()
    forward_ns = steps_ns[steps_ns > 0]
    if not is_whole or not forward_ns.size or counts.max() > _MOST_IN_A_SECOND:
        return None
    if np.median(forward_ns) > NANOSECOND_PER_SECOND:
        return None
    inner = counts[1:-1]
    if inner.size and (inner == inner[0]).all() and inner[0] > 1:
        turns = np.diff(power_w[starts[1] : starts[-1]].reshape(inner.size, -1))
        if (np.abs(np.sign(turns).mean(axis=0)) > _ONE_SIDED).any():
            return None
    each = np.repeat(counts, counts)
    place = np.arange(ticks_ns.size, dtype=np.int64) - np.repeat(starts, counts)
    spread_ns = all_ticks_ns.copy()
    spread_ns[known] = ticks_ns + place * NANOSECOND_PER_SECOND // each
    return spread_ns
