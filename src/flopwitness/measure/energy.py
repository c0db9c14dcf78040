"""Energy from power readings, with what nobody measured kept apart.

The trapezoid runs over the time between readings that lie close enough together. Where they do not,
there is a gap: its energy is bridged by a straight line for the estimate and bounded from both sides for
everything that must hold. Nothing is filled in silently.

What bounds must not rest on two things that a recording can hide behind: a clock that stands still, and
readings so rare that the load may have changed between them.
"""

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.power_line import LaidBlock, PowerLine, lay_out_power
from flopwitness.measure.reading_blocks import (
    clock_ns,
    factor_of,
    known_blocks,
    known_step_blocks,
    step_blocks,
)
from flopwitness.measure.running_clock import laid_out_ns
from flopwitness.measure.samples import RunWindow, Series

__all__ = [
    "Energy",
    "Gap",
    "doubt_clock",
    "integrate_for_bound",
    "integrate_power",
    "longest_blind_s",
    "longest_gapless_s",
    "recorded_stretch",
    "usual_period_s",
]

_GAP_PERIODS: Final = 2.5
_SHORTEST_GAP_S: Final = 0.5
_LONGEST_STEP_S: Final = 150.0  # 2.5 times the slowest common scrape; who reads less often leaves gaps
_LONGEST_BLIND_S: Final = (
    10.5  # between two readings of an instant: a log that reads every 10 s, jitter included
)
_LONGEST_STANDSTILL: Final = 20  # readings in a row at one time; more sensors than that write no one log
_FEW_BACK: Final = 3  # steps back: summer time ends, a clock is set
_FEW_BACK_SHARE: Final = 0.001
_SAME_TIME_S: Final = 1e-6  # what seconds since the first reading lose beside nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch without readings.

    Attributes:
        device: Whose readings are missing.
        start_utc_ns: The last reading before it, or the start of the run at its edge.
        duration_s: How long it lasts [s].
        low_j: The least energy that it can hold [J]: what the device draws at least, throughout; 0 where
            nobody vouches for that.
        high_j: The most [J]: the device's power limit throughout, or its highest reading where that is
            higher; None where no limit is known.
    """

    device: str
    start_utc_ns: int
    duration_s: float
    low_j: float
    high_j: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """The energy of one device between two instants.

    Attributes:
        device: The device's name in the recording.
        measured_j: Trapezoid over the covered time [J], conversion factor applied.
        bridged_j: Straight lines across the gaps between readings [J].
        gaps: The stretches without readings, edges of the run included, in order of time.
        square_w2s: Integral of the squared power over covered and bridged time [W^2 s].
        covered_s: Time between readings that are close enough [s].
        bridged_s: Time in gaps between two readings [s].
        claimed_s: Length of the run, or of the recording where no run is marked [s].
        peak_w: The highest reading inside the run [W]; NaN where there is none.
        n_readings: Readings with a value inside the run.
        n_missing: Readings that hold no value, in the whole recording.
        n_repeated: Readings at the time of the reading before, in the whole recording.
        n_backwards: Steps back in time, in the whole recording; each counts as one usual period.
        period_s: The usual period between readings [s]; NaN for fewer than two instants.
        is_slow: Whether the usual period is so long that readings do not bound what lies between them.
        is_clock_doubted: Whether the clock stands still or steps back too often to tell any length
            (`doubt_clock`): the whole run counts as a gap.
        is_mixed: Whether more than 5 % of the readings differ from another one at the same time. Several
            sensors may then write one log, whose sum nobody can tell: the whole run counts as a gap.
        is_rounded: Whether as many differ because all stamps are whole seconds: the readings of a second
            are then spread over it. That they are of one sensor cannot be told, so they bound nothing.
    """

    device: str
    measured_j: float
    bridged_j: float
    gaps: tuple[Gap, ...]
    square_w2s: float
    covered_s: float
    bridged_s: float
    claimed_s: float
    peak_w: float
    n_readings: int
    n_missing: int
    n_repeated: int
    n_backwards: int
    period_s: float
    is_slow: bool
    is_clock_doubted: bool
    is_mixed: bool
    is_rounded: bool

    @property
    def shown_j(self) -> float:
        """What the readings show: measured, and bridged between two readings [J]."""
        return self.measured_j + self.bridged_j

    @property
    def low_j(self) -> float:
        """The least energy that the readings leave possible [J]."""
        low_j = self.measured_j + sum(gap.low_j for gap in self.gaps)
        return min(low_j, self.shown_j)  # apart by rounding alone

    @property
    def high_j(self) -> float | None:
        """The most energy that the readings leave possible [J]; None where a gap has no limit."""
        highs = [gap.high_j for gap in self.gaps]
        if any(high is None for high in highs):
            return None
        high_j = self.measured_j + sum(high for high in highs if high is not None)
        return max(high_j, self.shown_j)

    @property
    def coverage(self) -> float:
        """Covered time over claimed time, 0 to 1."""
        return min(1.0, self.covered_s / self.claimed_s) if self.claimed_s > 0 else 0.0


def usual_period_s(time_s: NDArray[np.float64]) -> float:
    """The median step between readings [s]; NaN for fewer than two.

    Args:
        time_s: Times [s], shape (n,), not decreasing.
    """
    steps = np.diff(time_s)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else float("nan")


def longest_gapless_s(period_s: float, *, most_s: float = _LONGEST_STEP_S) -> float:
    """Two readings further apart than this leave a gap [s]: 2.5 usual periods, from 0.5 s to 150 s.

    Args:
        period_s: The usual period between readings [s]; NaN where there is none, which gives 0.5 s.
        most_s: The 150 s of power [s]: what changes less may be read less often.
    """
    if math.isnan(period_s):
        return _SHORTEST_GAP_S
    return min(max(_SHORTEST_GAP_S, _GAP_PERIODS * period_s), most_s)


def longest_blind_s(series: Series) -> float:
    """Two readings further apart than this do not bound what lies between them [s].

    Args:
        series: Power readings: 10.5 s for those of an instant, and as much longer as they average over.
    """
    return min(_LONGEST_BLIND_S + series.averaged_s, _LONGEST_STEP_S)


def integrate_power(
    series: Series,
    *,
    window: RunWindow | None = None,
    limit_w: float | None = None,
    floor_w: float = 0.0,
    longest_step_s: float | None = None,
) -> Energy:
    """The energy of one device, over the run or over the whole recording.

    Energy from averaged readings is late, so the run is taken as longer by the time that they average over,
    as far as readings go: a burst cut at its own end would lose up to half of its energy.

    Args:
        series: Power readings [W]; missing ones (NaN) are left out, never taken as zero.
        window: The run; None for the whole recording. A run without a stop ends with the readings.
        limit_w: The most that the device can draw [W]; bounds the gaps from above.
        floor_w: What the device draws at least while it is on [W]; bounds the gaps from below.
        longest_step_s: Two readings further apart than this leave a gap [s]; by default 2.5 usual periods,
            at least 0.5 s and at most 150 s.

    Returns:
        The energy with its gaps; zero coverage where fewer than two readings fall into the run.
    """
    line = lay_out_power(series)
    step_s = _longest_step_s(line) if longest_step_s is None else longest_step_s
    return _integrate(series, line, window, (floor_w, limit_w), step_s)


def integrate_for_bound(
    series: Series, *, window: RunWindow | None = None, limit_w: float | None = None
) -> Energy:
    """The same for what must hold: readings of an instant bound at most the ten seconds between them.

    A load that rests whenever it is read would hide in longer steps, so those are gaps here. An averaged
    reading speaks of the time before it too, and bounds so much more.

    Args:
        series: As for `integrate_power`.
        window: As for `integrate_power`.
        limit_w: As for `integrate_power`.

    Returns:
        The energy, of which `high_j` is meant; gaps that follow each other are told as one.
    """
    line = lay_out_power(series)
    step_s = min(_longest_step_s(line), longest_blind_s(series))
    return _integrate(series, line, window, (0.0, limit_w), step_s, is_merged=True)


def doubt_clock(series: Series) -> str:
    """Why a recording's clock tells no length: `clock-stuck`, `clock-backwards`, or "" where it can.

    A clock that stands still or steps back makes a recording shorter than it was, and nobody can tell by
    how much: more than 20 readings in a row at one time, or more than 3 steps back that are more than 0.1 %
    of all steps. Less than that is rounding, and clocks that were set.

    Args:
        series: Readings, with values or without.
    """
    longest = still = n_backwards = 0  # steps that take no time, one after the other
    for steps_ns in step_blocks(clock_ns(series)):
        if steps_ns.min() > 0:
            longest, still = max(longest, still), 0
            continue
        n_backwards += int((steps_ns < 0).sum())
        moves = np.flatnonzero(steps_ns)
        if moves.size == 0:
            still += steps_ns.size
            continue
        longest = max(longest, still + int(moves[0]), int(np.diff(moves).max(initial=1)) - 1)
        still = steps_ns.size - 1 - int(moves[-1])
    if max(longest, still) >= _LONGEST_STANDSTILL:
        return "clock-stuck"
    is_back = n_backwards > max(_FEW_BACK, _FEW_BACK_SHARE * (len(series) - 1))
    return "clock-backwards" if is_back else ""


def recorded_stretch(series: Series) -> RunWindow:
    """From the first to the last instant of a recording, with steps back in time laid end to end.

    A clock that steps back now and then must not make a recording shorter than it was. One that does so
    often, or stands still, tells no length at all (`doubt_clock`).

    Args:
        series: At least one reading; those without a value have their time all the same.
    """
    clock, utc_ns = clock_ns(series), series.utc_ns
    if clock is utc_ns and all(steps_ns.min() >= 0 for steps_ns in step_blocks(utc_ns)):
        return RunWindow(start_utc_ns=int(utc_ns[0]), stop_utc_ns=int(utc_ns[-1]))
    start_ns, stop_ns = int(utc_ns.min()), int(utc_ns.max())
    length_ns = laid_out_ns(int(clock[0]), int(clock[-1]), lambda: step_blocks(clock))
    ends_ns = [stop_ns, int(utc_ns[0]) + length_ns]
    factor, known = factor_of(series), None
    for block in known_blocks(clock, series.value, factor):
        known = (block.first if known is None else known[0], block.last)
    if known is not None:
        first, last = known
        known_steps = functools.partial(known_step_blocks, clock, series.value, factor)
        length_ns = laid_out_ns(int(clock[first]), int(clock[last]), known_steps)
        ends_ns.append(int(utc_ns[first]) + length_ns)
    return RunWindow(start_utc_ns=start_ns, stop_utc_ns=max(ends_ns))


def _longest_step_s(line: PowerLine) -> float:
    """Two readings further apart than this leave a gap [s]."""
    gapless_s = longest_gapless_s(line.usual_s)
    return max(_GAP_PERIODS, gapless_s) if line.is_rounded else gapless_s  # a stamp may be off by a second


class _Sums:
    """What blocks of readings add up to inside the run."""

    def __init__(self, start_s: float, stop_s: float, longest_step_s: float) -> None:
        self.start_s, self.stop_s, self.longest_step_s = start_s, stop_s, longest_step_s
        self.measured_j = self.bridged_j = self.square_w2s = self.covered_s = self.bridged_s = 0.0
        self.peak_w, self.n_readings = float("nan"), 0
        self.stretches: list[tuple[float, float]] = []  # gaps: when each begins, and how long it is [s]

    def see(self, block: LaidBlock) -> None:
        """Count the readings inside the run."""
        power_w = block.power_w[-block.n_new :]
        if not self._holds(block):
            time_s = block.time_s[-block.n_new :]
            power_w = power_w[
                (time_s >= self.start_s - _SAME_TIME_S) & (time_s <= self.stop_s + _SAME_TIME_S)
            ]
        if power_w.size:
            self.n_readings += power_w.size
            self.peak_w = float(np.fmax(self.peak_w, power_w.max()))

    def add(self, block: LaidBlock, *, is_merged: bool) -> None:
        """Add the energy of the steps between the readings, each cut to the run."""
        covered_s, middle_w = block.length_s, (block.power_w[:-1] + block.power_w[1:]) / 2
        if not self._holds(block):
            covered_s, middle_w = _clip(block, self.start_s, self.stop_s)
        energy_j = middle_w * covered_s
        self.square_w2s += float((energy_j * middle_w).sum())
        if not block.over_missing.size and block.length_s.max(initial=0.0) <= self.longest_step_s:
            self.measured_j += float(energy_j.sum())
            self.covered_s += float(covered_s.sum())
            return
        is_gap = block.length_s > self.longest_step_s
        is_gap[block.over_missing] = True
        self.measured_j += float(energy_j[~is_gap].sum())
        self.covered_s += float(covered_s[~is_gap].sum())
        self.bridged_j += float(energy_j[is_gap].sum())
        self.bridged_s += float(covered_s[is_gap].sum())
        gaps = np.flatnonzero(is_gap & (covered_s > 0))
        firsts = np.flatnonzero(np.diff(gaps, prepend=-2) > 1) if is_merged else np.arange(gaps.size)
        if gaps.size:
            begin_s = np.clip(block.time_s[gaps[firsts]], self.start_s, self.stop_s)
            length_s = np.add.reduceat(covered_s[gaps], firsts)
            self.stretches += zip(begin_s.tolist(), length_s.tolist(), strict=True)

    def misses(self, block: LaidBlock) -> bool:
        """Whether the block lies outside the run."""
        is_before = block.end_s < self.start_s - _SAME_TIME_S
        return is_before or block.begin_s > self.stop_s + _SAME_TIME_S

    def _holds(self, block: LaidBlock) -> bool:
        return self.start_s <= block.begin_s and block.end_s <= self.stop_s


def _clip(block: LaidBlock, start_s: float, stop_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of each step inside the run [s], and its middle power [W] on the line between its readings."""
    time_s, power_w = block.time_s, block.power_w
    left_s = time_s[:-1]
    begin_s, end_s = np.clip(left_s, start_s, stop_s), np.clip(time_s[1:], start_s, stop_s)
    slope = np.diff(power_w) / np.where(block.length_s > 0, block.length_s, 1.0)
    middle_w: NDArray[np.float64] = power_w[:-1] + slope * ((begin_s + end_s) / 2 - left_s)
    return np.maximum(end_s - begin_s, 0.0), middle_w


def _integrate(
    series: Series,
    line: PowerLine,
    window: RunWindow | None,
    range_w: tuple[float, float | None],
    longest_step_s: float,
    *,
    is_merged: bool = False,
) -> Energy:
    """The integral over the run; steps longer than `longest_step_s` [s] are gaps.

    Args:
        series: The readings.
        line: The same, laid out.
        window: The run.
        range_w: The least and the most that the device draws [W].
        longest_step_s: See above.
        is_merged: Whether gaps that follow each other are told as one.
    """
    start_s, stop_s = _edges(line, window)
    if window is not None and line.n_known:
        stop_s = max(stop_s, min(stop_s + series.averaged_s, line.last_s))
    is_doubted = bool(doubt_clock(series))
    is_blind = line.is_mixed or is_doubted  # as if the device had not been measured
    sums = _Sums(start_s, stop_s, longest_step_s)
    for block in line.blocks():
        if not sums.misses(block):
            sums.see(block)
            if not is_blind:
                sums.add(block, is_merged=is_merged)
    return Energy(
        device=series.device,
        measured_j=sums.measured_j,
        bridged_j=sums.bridged_j,
        gaps=_find_gaps(series.device, line, sums, range_w, is_blind=is_blind),
        square_w2s=sums.square_w2s,
        covered_s=sums.covered_s,
        bridged_s=sums.bridged_s,
        claimed_s=max(0.0, stop_s - start_s),
        peak_w=sums.peak_w,
        n_readings=sums.n_readings,
        n_missing=line.n_missing,
        n_repeated=line.n_repeated,
        n_backwards=line.n_backwards,
        period_s=line.usual_s,
        is_slow=line.usual_s > longest_blind_s(series),
        is_clock_doubted=is_doubted,
        is_mixed=line.is_mixed,
        is_rounded=line.is_rounded,
    )


def _edges(line: PowerLine, window: RunWindow | None) -> tuple[float, float]:
    """The run's start and stop in seconds from the first reading."""
    if window is None:
        return 0.0, line.last_s
    start_s = (window.start_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND
    if window.stop_utc_ns is None:
        return start_s, max(start_s, line.last_s)
    return start_s, (window.stop_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND


def _find_gaps(
    device: str, line: PowerLine, sums: _Sums, range_w: tuple[float, float | None], *, is_blind: bool
) -> tuple[Gap, ...]:
    """The gaps between readings and the run's uncovered edges, in order of time."""
    floor_w, limit_w = range_w
    start_s, stop_s, ceiling_w = sums.start_s, sums.stop_s, limit_w
    if is_blind or not line.n_known:
        stretches = [(start_s, stop_s - start_s, 0.0)]
    else:
        floor_w = min(floor_w, line.lowest_w)
        ceiling_w = None if limit_w is None else max(limit_w, line.highest_w)
        first_s, last_s = min(max(0.0, start_s), stop_s), max(min(line.last_s, stop_s), start_s)
        stretches = [(begin_s, length_s, floor_w) for begin_s, length_s in sums.stretches]
        stretches += [(start_s, first_s - start_s, 0.0), (last_s, stop_s - last_s, 0.0)]
    return tuple(
        Gap(
            device=device,
            start_utc_ns=max(0, line.origin_ns + round(begin_s * NANOSECOND_PER_SECOND)),
            duration_s=length_s,
            low_j=least_w * length_s,
            high_j=None if ceiling_w is None else ceiling_w * length_s,
        )
        for begin_s, length_s, least_w in sorted(stretches)
        if length_s > 0
    )
