"""Energy from power readings, with what nobody measured kept apart.

The trapezoid runs over the time between readings that lie close enough together. Where they do not,
there is a gap: its energy is bridged by a straight line for the estimate and bounded from both sides for
everything that must hold. Nothing is filled in silently (DESIGN section 6, "Energy").
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import RunWindow, Series

__all__ = ["Energy", "Gap", "integrate_power", "recorded_stretch", "usual_period_s"]

_GAP_PERIODS: Final = 2.5
_SHORTEST_GAP_S: Final = 0.5
_LONGEST_STEP_S: Final = 150.0  # 2.5 times the slowest common scrape; who reads less often leaves gaps
_SAME_TIME_S: Final = 1e-6  # what seconds since the first reading lose beside nanoseconds
_MOST_W: Final = 1e12  # about a third of the world's electricity: no device draws it


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch without readings.

    Attributes:
        device: Whose readings are missing.
        start_utc_ns: The last reading before it, or the start of the run at its edge.
        duration_s: How long it lasts [s].
        low_j: The least energy that it can hold [J]: the lowest reading seen, throughout.
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
        peak_w: The highest reading [W]; NaN where there is none.
        n_readings: Readings inside the run.
        n_missing: Readings inside the run that hold no value.
        n_repeated: Readings at the time of the reading before.
        n_backwards: Steps back in time; each counts as one usual period.
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

    @property
    def shown_j(self) -> float:
        """What the readings show: measured, and bridged between two readings [J]."""
        return self.measured_j + self.bridged_j

    @property
    def low_j(self) -> float:
        """The least energy that the readings leave possible [J]."""
        return self.measured_j + sum(gap.low_j for gap in self.gaps)

    @property
    def high_j(self) -> float | None:
        """The most energy that the readings leave possible [J]; None where a gap has no limit."""
        highs = [gap.high_j for gap in self.gaps]
        if any(high is None for high in highs):
            return None
        return self.measured_j + sum(high for high in highs if high is not None)

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
    longest_step_s: float | None = None,
) -> Energy:
    """The energy of one device, over the run or over the whole recording.

    Args:
        series: Power readings [W]; missing ones (NaN) are left out, never taken as zero.
        window: The run; None for the whole recording. A run without a stop ends with the readings.
        limit_w: The most that the device can draw [W]; bounds the gaps from above.
        longest_step_s: Two readings further apart than this leave a gap [s]; by default 2.5 usual periods,
            at least 0.5 s and at most 150 s.

    Returns:
        The energy with its gaps; zero coverage where fewer than two readings fall into the run.
    """
    line = _straighten(series)
    start_s, stop_s = _edges(line, window)
    period_s = usual_period_s(line.time_s)
    usual_s = min(max(_SHORTEST_GAP_S, _GAP_PERIODS * period_s), _LONGEST_STEP_S)
    step_s = longest_step_s if longest_step_s is not None else usual_s
    pieces = _clip(line, start_s, stop_s)
    is_gap = (pieces.length_s > step_s) | line.skips_missing
    gaps = _find_gaps(series.device, line, pieces, is_gap, (start_s, stop_s), limit_w)
    inside = (line.time_s >= start_s - _SAME_TIME_S) & (line.time_s <= stop_s + _SAME_TIME_S)
    return Energy(
        device=series.device,
        measured_j=float(pieces.energy_j[~is_gap].sum()),
        bridged_j=float(pieces.energy_j[is_gap].sum()),
        gaps=gaps,
        square_w2s=float((pieces.energy_j * pieces.middle_w).sum()),
        covered_s=float(pieces.covered_s[~is_gap].sum()),
        bridged_s=float(pieces.covered_s[is_gap].sum()),
        claimed_s=max(0.0, stop_s - start_s),
        peak_w=float(line.power_w[inside].max()) if inside.any() else float("nan"),
        n_readings=int(inside.sum()),
        n_missing=line.n_missing,
        n_repeated=line.n_repeated,
        n_backwards=line.n_backwards,
    )


def recorded_stretch(series: Series) -> RunWindow:
    """From the first to the last instant of a recording, with steps back in time laid end to end.

    A clock that steps back, or stands still beside the monotonic one, must not make a recording shorter
    than it was.

    Args:
        series: At least one reading.
    """
    start_ns, stop_ns = int(series.utc_ns.min()), int(series.utc_ns.max())
    line = _straighten(series)
    if line.n_backwards or series.monotonic_ns is not None:
        length_s = float(line.time_s[-1]) if line.time_s.size else 0.0
        stop_ns = max(stop_ns, line.origin_ns + round(length_s * NANOSECOND_PER_SECOND))
    return RunWindow(start_utc_ns=start_ns, stop_utc_ns=stop_ns)


def _straighten(series: Series) -> _Line:
    """Drop missing readings and lay the rest on a clock that never runs backwards."""
    converted_w = series.value.clip(-1.0, _MOST_W) * min(series.conversion, _MOST_W)
    known = (series.value >= 0) & (converted_w < _MOST_W)  # nothing draws less than nothing
    clock_ns = series.monotonic_ns if series.monotonic_ns is not None else series.utc_ns
    ticks_ns, power_w = clock_ns[known], converted_w[known]
    if ticks_ns.size == 0:
        empty = np.zeros(0)
        return _Line(empty, empty, empty > 0, 0, int((~known).sum()), 0, 0)
    steps_s = np.diff(ticks_ns) / NANOSECOND_PER_SECOND
    backwards = steps_s < 0
    forward = steps_s[steps_s > 0]
    steps_s[backwards] = float(np.median(forward)) if forward.size else 0.0
    time_s = np.concatenate([np.zeros(1), np.cumsum(steps_s)])
    return _Line(
        time_s=time_s,
        power_w=power_w,
        skips_missing=np.diff(np.flatnonzero(known)) > 1,
        origin_ns=int(series.utc_ns[known][0]),
        n_missing=int((~known).sum()),
        n_repeated=int((steps_s == 0).sum()),
        n_backwards=int(backwards.sum()),
    )


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
    limit_w: float | None,
) -> tuple[Gap, ...]:
    """The gaps between readings and the run's uncovered edges, in order of time."""
    start_s, stop_s = edges_s
    floor_w = float(line.power_w.min()) if line.power_w.size else 0.0
    ceiling_w = None if limit_w is None else max(limit_w, float(line.power_w.max(initial=0.0)))
    stretches = [
        (float(pieces.begin_s[i]), float(pieces.covered_s[i]))
        for i in np.flatnonzero(is_gap & (pieces.covered_s > 0))
    ]
    if line.time_s.size:
        first_s = min(max(float(line.time_s[0]), start_s), stop_s)
        last_s = max(min(float(line.time_s[-1]), stop_s), start_s)
        stretches += [(start_s, first_s - start_s), (last_s, stop_s - last_s)]
    else:
        stretches.append((start_s, stop_s - start_s))
    return tuple(
        Gap(
            device=device,
            start_utc_ns=max(0, line.origin_ns + round(begin_s * NANOSECOND_PER_SECOND)),
            duration_s=length_s,
            low_j=floor_w * length_s,
            high_j=None if ceiling_w is None else ceiling_w * length_s,
        )
        for begin_s, length_s in sorted(stretches)
        if length_s > 0
    )
