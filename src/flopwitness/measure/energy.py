"""Energy from power readings, with what nobody measured kept apart.

The trapezoid runs over the time between readings that lie close enough together. Where they do not,
there is a gap: its energy is bridged by a straight line for the estimate and bounded from both sides for
everything that must hold. Nothing is filled in silently.

What bounds must not rest on two things that a recording can hide behind: a clock that stands still, and
readings so rare that the load may have changed between them.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import RunWindow, Series

__all__ = [
    "Energy",
    "Gap",
    "doubt_clock",
    "integrate_for_bound",
    "integrate_power",
    "recorded_stretch",
    "usual_period_s",
]

_GAP_PERIODS: Final = 2.5
_SHORTEST_GAP_S: Final = 0.5
_LONGEST_STEP_S: Final = 150.0  # 2.5 times the slowest common scrape; who reads less often leaves gaps
_LONGEST_BLIND_S: Final = (
    10.5  # between two readings of an instant: a log that reads every 10 s, jitter included
)
_MANY: Final = 0.05  # unlike readings at one time beyond this share are no accident
_MOST_IN_A_SECOND: Final = 4  # readings that share a stamp because it is rounded to a second
_ONE_SIDED: Final = 0.9  # where one reading of a second nearly always lies above the next, they are unlike
_LONGEST_STANDSTILL: Final = 20  # readings in a row at one time; more sensors than that write no one log
_FEW_BACK: Final = 3  # steps back: summer time ends, a clock is set
_FEW_BACK_SHARE: Final = 0.001
_SAME_TIME_S: Final = 1e-6  # what seconds since the first reading lose beside nanoseconds
_MOST_W: Final = 1e12  # about a third of the world's electricity: no device draws it


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


@dataclass(frozen=True, slots=True)
class _Line:
    """Readings on a clock that never runs backwards: seconds from the first one, and watts."""

    time_s: NDArray[np.float64]
    power_w: NDArray[np.float64]
    skips_missing: NDArray[np.bool_]  # whether a step leads over a missing reading, shape (n - 1,)
    origin_ns: int
    n_missing: int
    n_repeated: int
    n_backwards: int
    is_mixed: bool = False
    is_rounded: bool = False


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a clock, laid out so that none leads back."""

    length_s: NDArray[np.float64]  # shape (n - 1,)
    is_repeat: NDArray[np.bool_]  # a step that takes no time
    n_backwards: int


def usual_period_s(time_s: NDArray[np.float64]) -> float:
    """The median step between readings [s]; NaN for fewer than two.

    Args:
        time_s: Times [s], shape (n,), not decreasing.
    """
    steps = np.diff(time_s)
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else float("nan")


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
    line = _straighten(series)
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
        The energy, of which `high_j` is meant.
    """
    line = _straighten(series)
    step_s = min(_longest_step_s(line), _longest_blind_s(series))
    return _integrate(series, line, window, (0.0, limit_w), step_s)


def doubt_clock(series: Series) -> str:
    """Why a recording's clock tells no length: `clock-stuck`, `clock-backwards`, or "" where it can.

    A clock that stands still or steps back makes a recording shorter than it was, and nobody can tell by
    how much: more than 20 readings in a row at one time, or more than 3 steps back that are more than 0.1 %
    of all steps. Less than that is rounding, and clocks that were set.

    Args:
        series: Readings, with values or without.
    """
    steps_ns = np.diff(_clock_ns(series))
    moves = np.concatenate([[-1], np.flatnonzero(steps_ns), [steps_ns.size]])
    if int(np.diff(moves).max()) > _LONGEST_STANDSTILL:
        return "clock-stuck"
    n_backwards = int((steps_ns < 0).sum())
    is_back = n_backwards > max(_FEW_BACK, _FEW_BACK_SHARE * steps_ns.size)
    return "clock-backwards" if is_back else ""


def recorded_stretch(series: Series) -> RunWindow:
    """From the first to the last instant of a recording, with steps back in time laid end to end.

    A clock that steps back now and then must not make a recording shorter than it was. One that does so
    often, or stands still, tells no length at all (`doubt_clock`).

    Args:
        series: At least one reading; those without a value have their time all the same.
    """
    clock_ns, is_known = _clock_ns(series), _known(series)
    start_ns, stop_ns = int(series.utc_ns.min()), int(series.utc_ns.max())
    ends_ns = [
        int(series.utc_ns[chosen][0]) + _laid_out_ns(clock_ns[chosen])
        for chosen in (np.full(len(series), fill_value=True), is_known)
        if chosen.any()
    ]
    return RunWindow(start_utc_ns=start_ns, stop_utc_ns=max(stop_ns, *ends_ns))


def _laid_out_ns(ticks_ns: NDArray[np.int64]) -> int:
    """How long a clock ran, with steps back laid end to end [ns]."""
    steps = _lay_out(ticks_ns)
    if not steps.n_backwards:
        return int(ticks_ns[-1]) - int(ticks_ns[0])
    return round(float(steps.length_s.sum()) * NANOSECOND_PER_SECOND)


def _lay_out(ticks_ns: NDArray[np.int64]) -> _Steps:
    """The steps of a clock [s], each step back counted as one usual period."""
    length_s = np.diff(ticks_ns) / NANOSECOND_PER_SECOND
    is_back = length_s < 0
    forward_s = length_s[length_s > 0]
    usual_s = float(np.median(forward_s)) if forward_s.size else 0.0
    return _Steps(
        length_s=np.where(is_back, usual_s, length_s),
        is_repeat=length_s == 0,
        n_backwards=int(is_back.sum()),
    )


def _clock_ns(series: Series) -> NDArray[np.int64]:
    return series.monotonic_ns if series.monotonic_ns is not None else series.utc_ns


def _converted_w(series: Series) -> NDArray[np.float64]:
    return series.value.clip(-1.0, _MOST_W) * min(series.conversion, _MOST_W)


def _known(series: Series) -> NDArray[np.bool_]:
    """Which readings hold a power: nothing draws less than nothing."""
    return (series.value >= 0) & (_converted_w(series) < _MOST_W)


def _straighten(series: Series) -> _Line:
    """Drop missing readings and lay the rest on a clock that never runs backwards."""
    known = _known(series)
    n_missing = int((~known).sum())
    ticks_ns, power_w = _clock_ns(series)[known], _converted_w(series)[known]
    if ticks_ns.size == 0:
        empty = np.zeros(0)
        return _Line(empty, empty, empty > 0, 0, n_missing, 0, 0)
    steps = _lay_out(ticks_ns)
    n_differing = int((steps.is_repeat & (np.diff(power_w) != 0)).sum())
    has_many = n_differing > _MANY * ticks_ns.size
    spread_ns = _spread_seconds(ticks_ns, power_w) if has_many else None
    if spread_ns is not None:
        steps = replace(steps, length_s=np.diff(spread_ns) / NANOSECOND_PER_SECOND)
    return _Line(
        time_s=np.concatenate([np.zeros(1), np.cumsum(steps.length_s)]),
        power_w=power_w,
        skips_missing=np.diff(np.flatnonzero(known)) > 1,
        origin_ns=int(series.utc_ns[known][0]),
        n_missing=n_missing,
        n_repeated=int(steps.is_repeat.sum()),
        n_backwards=steps.n_backwards,
        is_mixed=has_many and spread_ns is None,
        is_rounded=spread_ns is not None,
    )


def _spread_seconds(ticks_ns: NDArray[np.int64], power_w: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Stamps of whole seconds with the readings of each second spread over it; None where they are not.

    Sensors that write one log in turn, one stamp for each turn, are told by a reading of each second that
    nearly always lies above, or below, the next.
    """
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
    spread_ns: NDArray[np.int64] = ticks_ns + place * NANOSECOND_PER_SECOND // each
    return spread_ns


def _longest_step_s(line: _Line) -> float:
    """Two readings further apart than this leave a gap [s]."""
    shortest_s = _GAP_PERIODS if line.is_rounded else _SHORTEST_GAP_S  # a stamp may be off by a second
    return min(max(shortest_s, _GAP_PERIODS * usual_period_s(line.time_s)), _LONGEST_STEP_S)


def _longest_blind_s(series: Series) -> float:
    """Two readings further apart than this do not bound what lies between them [s]."""
    return min(_LONGEST_BLIND_S + series.averaged_s, _LONGEST_STEP_S)


def _integrate(
    series: Series,
    line: _Line,
    window: RunWindow | None,
    range_w: tuple[float, float | None],
    longest_step_s: float,
) -> Energy:
    """The integral over the run; steps longer than `longest_step_s` [s] are gaps.

    Args:
        series: The readings.
        line: The same, laid out.
        window: The run.
        range_w: The least and the most that the device draws [W].
        longest_step_s: See above.
    """
    start_s, stop_s = _edges(line, window)
    if window is not None and line.time_s.size:
        stop_s = max(stop_s, min(stop_s + series.averaged_s, float(line.time_s[-1])))
    inside = (line.time_s >= start_s - _SAME_TIME_S) & (line.time_s <= stop_s + _SAME_TIME_S)
    is_doubted = bool(doubt_clock(series))
    used = _blinded(line) if line.is_mixed or is_doubted else line
    pieces = _clip(used, start_s, stop_s)
    is_gap = (pieces.length_s > longest_step_s) | used.skips_missing
    period_s = usual_period_s(line.time_s)
    return Energy(
        device=series.device,
        measured_j=float(pieces.energy_j[~is_gap].sum()),
        bridged_j=float(pieces.energy_j[is_gap].sum()),
        gaps=_find_gaps(series.device, used, pieces, is_gap, (start_s, stop_s), range_w),
        square_w2s=float((pieces.energy_j * pieces.middle_w).sum()),
        covered_s=float(pieces.covered_s[~is_gap].sum()),
        bridged_s=float(pieces.covered_s[is_gap].sum()),
        claimed_s=max(0.0, stop_s - start_s),
        peak_w=float(line.power_w[inside].max()) if inside.any() else float("nan"),
        n_readings=int(inside.sum()),
        n_missing=line.n_missing,
        n_repeated=line.n_repeated,
        n_backwards=line.n_backwards,
        period_s=period_s,
        is_slow=period_s > _longest_blind_s(series),
        is_clock_doubted=is_doubted,
        is_mixed=line.is_mixed,
        is_rounded=line.is_rounded,
    )


def _blinded(line: _Line) -> _Line:
    """The line with no reading left: as if the device had not been measured."""
    empty = np.zeros(0)
    return replace(line, time_s=empty, power_w=empty, skips_missing=empty > 0)


def _edges(line: _Line, window: RunWindow | None) -> tuple[float, float]:
    """The run's start and stop in seconds from the first reading."""
    last_s = float(line.time_s[-1]) if line.time_s.size else 0.0
    if window is None:
        return 0.0, last_s
    start_s = (window.start_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND
    if window.stop_utc_ns is None:
        return start_s, max(start_s, last_s)
    return start_s, (window.stop_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The steps between readings, each cut to the run: shape (n - 1,)."""

    length_s: NDArray[np.float64]  # of the whole step
    covered_s: NDArray[np.float64]  # of the part inside the run
    begin_s: NDArray[np.float64]
    middle_w: NDArray[np.float64]
    energy_j: NDArray[np.float64]


def _clip(line: _Line, start_s: float, stop_s: float) -> _Pieces:
    """Cut each step to the run, its power read off the straight line between its two readings."""
    left_s, right_s = line.time_s[:-1], line.time_s[1:]
    begin_s = np.clip(left_s, start_s, stop_s)
    end_s = np.clip(right_s, start_s, stop_s)
    length_s = right_s - left_s
    safe_s = np.where(length_s > 0, length_s, 1.0)
    slope = np.diff(line.power_w) / safe_s
    middle_w = line.power_w[:-1] + slope * ((begin_s + end_s) / 2 - left_s)
    covered_s = np.maximum(end_s - begin_s, 0.0)
    return _Pieces(length_s, covered_s, begin_s, middle_w, middle_w * covered_s)


def _find_gaps(
    device: str,
    line: _Line,
    pieces: _Pieces,
    is_gap: NDArray[np.bool_],
    edges_s: tuple[float, float],
    range_w: tuple[float, float | None],
) -> tuple[Gap, ...]:
    """The gaps between readings and the run's uncovered edges, in order of time."""
    start_s, stop_s = edges_s
    floor_w, limit_w = range_w
    floor_w = min(floor_w, float(line.power_w.min(initial=floor_w)))
    ceiling_w = None if limit_w is None else max(limit_w, float(line.power_w.max(initial=0.0)))
    stretches = [
        (float(pieces.begin_s[i]), float(pieces.covered_s[i]), floor_w)
        for i in np.flatnonzero(is_gap & (pieces.covered_s > 0))
    ]
    if line.time_s.size:
        first_s = min(max(float(line.time_s[0]), start_s), stop_s)
        last_s = max(min(float(line.time_s[-1]), stop_s), start_s)
        stretches += [(start_s, first_s - start_s, 0.0), (last_s, stop_s - last_s, 0.0)]
    else:
        stretches.append((start_s, stop_s - start_s, 0.0))
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
