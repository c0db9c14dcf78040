"""Energy from a counter: what it counted, and what it could not.

A counter knows the energy of a step however long the step is, only not its course. So a long step is
covered, and bounds the run from both sides; only where the run begins or ends within one does nobody know
which share of it lies inside. What is truly lost is what a counter did not count: where it began again,
stood still, or shows what no device can have drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, format_duration, format_energy
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.counter_line import CounterEvents, CounterLine, CounterStep, lay_out_counter
from flopwitness.measure.energy import Energy, Gap, usual_period_s
from flopwitness.measure.paired import longest_step_s
from flopwitness.measure.samples import RunWindow, Series, Timing

__all__ = ["assess_counter", "compare_counter", "find_counter_events", "integrate_counter"]

_SAME_TIME_S: Final = 1e-6
_PEAK_S: Final = 1.0  # a counter moves in bursts: shorter steps show no power
_MOST_DIFFERENCE: Final = 0.1
_LIKE_TIME: Final = 0.9


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The steps of a counter, each cut to the run: shape (n - 1,)."""

    length_s: NDArray[np.float64]
    begin_s: NDArray[np.float64]
    covered_s: NDArray[np.float64]
    whole_j: NDArray[np.float64]  # of the whole step
    share_j: NDArray[np.float64]  # of the part inside the run, in proportion
    is_gap: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """The energy of each piece [J]: the least, the shown and the most, shape (n - 1,)."""

    low_j: NDArray[np.float64]
    shown_j: NDArray[np.float64]
    high_j: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """How a kind of event is told."""

    code: str
    what: str
    then: str
    severity: Severity = Severity.WARNING


_RESET: Final = _Words(
    code="counter-reset",
    what="was reset",
    then="what was drawn before that is lost, and the energy is a floor",
)
_WRAPPED: Final = _Words(
    code="counter-wrapped",
    what="ran over its range",
    then="the range is added",
    severity=Severity.NOTE,
)
_IMPLAUSIBLE: Final = _Words(
    code="counter-implausible",
    what="shows what no device can have drawn",
    then="such readings show no energy",
)
_STUCK: Final = _Words(
    code="counter-stuck",
    what="stood still",
    then="what was drawn meanwhile is not known",
)


def integrate_counter(
    series: Series, *, window: RunWindow | None = None, limit_w: float | None = None, floor_w: float = 0.0
) -> Energy:
    """The energy of one device from its counter, over the run or over the whole recording.

    Steps are cut in proportion at the run's edges. The squared power is that of each step's mean, the least
    that the step can have. Readings bound what lies between them however rare they are, so `is_slow` is
    never set. `low_j` is a floor where a counter began again: it holds what the new one shows.

    Args:
        series: Readings of a counter [J]; missing ones (NaN) are left out.
        window: The run; None for the whole recording. A run without a stop ends with the readings.
        limit_w: The most that the device can draw [W]; bounds what is lost from above.
        floor_w: What it draws at least while it is on [W]; bounds what is lost from below.

    Raises:
        ValueError: The series is no counter.
    """
    line = lay_out_counter(series, limit_w=limit_w)
    start_s, stop_s = _edges(line, window)
    inside = (line.time_s >= start_s - _SAME_TIME_S) & (line.time_s <= stop_s + _SAME_TIME_S)
    peak_w = _peak_w(line, inside)
    used = _blinded(line) if line.is_mixed or line.is_clock_doubted else line
    pieces = _clip(used, start_s, stop_s)
    ceiling_w = None if limit_w is None else max(limit_w, 0.0 if np.isnan(peak_w) else peak_w)
    bounds = _bound_pieces(used, pieces, floor_w, ceiling_w)
    is_gap, covered_s = pieces.is_gap, pieces.covered_s
    shown_w = np.divide(bounds.shown_j, covered_s, out=np.zeros_like(covered_s), where=covered_s > 0)
    return Energy(
        device=series.device,
        measured_j=float(pieces.share_j[~is_gap].sum()),
        bridged_j=float(bounds.shown_j[is_gap].sum()),
        gaps=_find_gaps(series.device, used, pieces, bounds, (start_s, stop_s), ceiling_w),
        square_w2s=float((shown_w * bounds.shown_j).sum()),
        covered_s=float(covered_s[~is_gap].sum()),
        bridged_s=float(covered_s[is_gap].sum()),
        claimed_s=max(0.0, stop_s - start_s),
        peak_w=peak_w,
        n_readings=int(inside.sum()),
        n_missing=line.n_missing,
        n_repeated=line.n_repeated,
        n_backwards=line.n_backwards,
        period_s=usual_period_s(line.time_s),
        is_slow=False,
        is_clock_doubted=line.is_clock_doubted,
        is_mixed=line.is_mixed,
        is_rounded=False,
    )


def find_counter_events(series: Series, *, limit_w: float | None = None) -> CounterEvents:
    """Where a counter did not just count; see `lay_out_counter` for what is taken as what.

    Raises:
        ValueError: The series is no counter.
    """
    return lay_out_counter(series, limit_w=limit_w).events


def _blinded(line: CounterLine) -> CounterLine:
    """The line with no reading left: as if the device had not been measured."""
    empty = np.zeros(0)
    return replace(line, time_s=empty, grown_j=empty, is_lost=empty > 0, is_unsure=empty > 0)


def _edges(line: CounterLine, window: RunWindow | None) -> tuple[float, float]:
    """The run's start and stop in seconds from the first reading."""
    last_s = float(line.time_s[-1]) if line.time_s.size else 0.0
    if window is None:
        return 0.0, last_s
    start_s = (window.start_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND
    if window.stop_utc_ns is None:
        return start_s, max(start_s, last_s)
    return start_s, (window.stop_utc_ns - line.origin_ns) / NANOSECOND_PER_SECOND


def _peak_w(line: CounterLine, inside: NDArray[np.bool_]) -> float:
    """The highest mean power between readings of the run at least a second apart [W]; NaN where none are."""
    time_s, grown_j = line.time_s[inside], line.grown_j[inside]
    if (np.diff(time_s) > _PEAK_S - _SAME_TIME_S).all():
        return (
            float((np.diff(grown_j) / np.diff(time_s)).max(initial=0.0)) if time_s.size > 1 else float("nan")
        )
    after = np.searchsorted(time_s, time_s + _PEAK_S - _SAME_TIME_S)
    before = np.flatnonzero(after < time_s.size)
    if before.size == 0:
        return float("nan")
    after = after[before]
    return float(((grown_j[after] - grown_j[before]) / (time_s[after] - time_s[before])).max())


def _clip(line: CounterLine, start_s: float, stop_s: float) -> _Pieces:
    """Cut each step to the run, its energy in proportion.

    A step that is longer than usual and lies in the run in part is a gap: its energy is known, and not
    where in it.
    """
    begin_s = np.clip(line.time_s[:-1], start_s, stop_s)
    end_s = np.clip(line.time_s[1:], start_s, stop_s)
    length_s, whole_j = np.diff(line.time_s), np.diff(line.grown_j)
    covered_s = np.maximum(end_s - begin_s, 0.0)
    is_cut = (covered_s > 0) & (covered_s < length_s - _SAME_TIME_S)
    return _Pieces(
        length_s=length_s,
        begin_s=begin_s,
        covered_s=covered_s,
        whole_j=whole_j,
        share_j=np.where(is_cut, whole_j * covered_s / length_s, np.where(covered_s > 0, whole_j, 0.0)),
        is_gap=line.is_unsure | (is_cut & (length_s > longest_step_s(line.time_s))),
    )


def _bound_pieces(line: CounterLine, pieces: _Pieces, floor_w: float, ceiling_w: float | None) -> _Bounds:
    """What each piece holds: the same from both sides where it is known.

    What a step shows lies in the run at least as far as it cannot lie outside. A lost step is bridged with
    the mean power of the sure steps beside it.
    """
    covered_s, outside_s = pieces.covered_s, pieces.length_s - pieces.covered_s
    most_w = float("inf") if ceiling_w is None else ceiling_w
    most_j = _times(most_w, covered_s)
    elsewhere_j = _times(most_w, np.where(outside_s > _SAME_TIME_S, outside_s, 0.0))
    is_unsure = line.is_unsure
    high_j = np.where(is_unsure, np.maximum(most_j, pieces.share_j), np.minimum(most_j, pieces.whole_j))
    certain_j = np.where(covered_s > 0, np.maximum(pieces.whole_j - elsewhere_j, 0.0), 0.0)
    low_j = np.minimum(np.maximum(certain_j, floor_w * covered_s), high_j)
    beside_j = np.where(line.is_lost, _power_beside(line, pieces) * covered_s, 0.0)
    shown_j = np.clip(np.maximum(pieces.share_j, beside_j), low_j, high_j)
    return _Bounds(
        low_j=np.where(pieces.is_gap, low_j, pieces.share_j),
        shown_j=np.where(pieces.is_gap, shown_j, pieces.share_j),
        high_j=np.where(pieces.is_gap, high_j, pieces.share_j),
    )


def _times(power_w: float, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power times time [J], of which no time has none even without a limit."""
    return np.multiply(power_w, time_s, out=np.zeros_like(time_s), where=time_s > 0)


def _power_beside(line: CounterLine, pieces: _Pieces) -> NDArray[np.float64]:
    """The mean power of the nearest sure steps before and after each step [W], shape (n - 1,); 0 for none."""
    sure = np.flatnonzero(~line.is_unsure)
    if sure.size == 0:
        return np.zeros(line.is_unsure.size)
    sure_w = pieces.whole_j[sure] / pieces.length_s[sure]
    after = np.searchsorted(sure, np.arange(line.is_unsure.size))
    right_w = sure_w[np.minimum(after, sure.size - 1)]
    left_w = sure_w[np.maximum(after - 1, 0)]
    beside_w: NDArray[np.float64] = (left_w + right_w) / 2
    return beside_w


def _find_gaps(
    device: str,
    line: CounterLine,
    pieces: _Pieces,
    bounds: _Bounds,
    edges_s: tuple[float, float],
    ceiling_w: float | None,
) -> tuple[Gap, ...]:
    """What nobody measured: lost or undivided steps, and the run's uncovered edges, in order of time."""
    start_s, stop_s = edges_s
    first_s = min(max(float(line.time_s[0]), start_s), stop_s) if line.time_s.size else stop_s
    last_s = max(min(float(line.time_s[-1]), stop_s), start_s) if line.time_s.size else stop_s
    most_w = float("inf") if ceiling_w is None else ceiling_w
    stretches = [
        (begin_s, length_s, 0.0, most_w * length_s)
        for begin_s, length_s in ((start_s, first_s - start_s), (last_s, stop_s - last_s))
        if length_s > 0
    ]
    chosen = np.flatnonzero(pieces.is_gap & (pieces.covered_s > 0))
    columns = (pieces.begin_s, pieces.covered_s, bounds.low_j, bounds.high_j)
    stretches += zip(*(column[chosen].tolist() for column in columns), strict=True)
    return tuple(
        Gap(
            device=device,
            start_utc_ns=max(0, line.origin_ns + round(begin_s * NANOSECOND_PER_SECOND)),
            duration_s=length_s,
            low_j=low_j,
            high_j=high_j if np.isfinite(high_j) else None,
        )
        for begin_s, length_s, low_j, high_j in sorted(stretches)
    )


def assess_counter(series: Series, events: CounterEvents) -> list[Finding]:
    """What is told of a counter that did not just count.

    Args:
        series: The counter.
        events: What `find_counter_events` found in it.
    """
    told = (
        (_RESET, events.resets),
        (_WRAPPED, events.wraps),
        (_IMPLAUSIBLE, (*events.backward, *events.jumps)),
        (_STUCK, events.stuck),
    )
    return [_tell(series, words, steps) for words, steps in told if steps]


def _tell(series: Series, words: _Words, steps: Sequence[CounterStep]) -> Finding:
    first = steps[0]
    between = f"between {_moment(series, first.start_utc_ns)} and {_moment(series, first.stop_utc_ns)}"
    again = f", and {len(steps) - 1:,} more times" if len(steps) > 1 else ""
    return Finding(
        code=words.code,
        severity=words.severity,
        message=f"{series.device}: the energy counter {words.what} {between}{again}; {words.then}",
        where=series.device,
        expected="a counter that only grows",
        found=f"{first.before_j:,.6g} J, then {first.after_j:,.6g} J",
        count=len(steps),
    )


def _moment(series: Series, utc_ns: int) -> str:
    """A time for a person's eye: of the calendar, or from the start where there is no date."""
    if series.timing is not Timing.DATED:
        return f"{utc_ns / NANOSECOND_PER_SECOND:,.10g} s"
    try:
        return format_utc(utc_ns)
    except ValueError:
        return "a time that is on no calendar"


def compare_counter(counter: Energy, integral: Energy) -> Finding | None:
    """What is told where a device's counter and its power readings disagree by more than a tenth.

    Their mean powers over the time that each covers are compared; None where they agree, where one covers
    nothing, and where they cover times that differ by more than a tenth, which are not to be compared.

    Args:
        counter: The energy from the counter, over the run.
        integral: The energy from power readings, over the same run.
    """
    shorter_s, longer_s = sorted((counter.covered_s, integral.covered_s))
    if shorter_s <= 0 or shorter_s < _LIKE_TIME * longer_s:
        return None
    counted_j = counter.measured_j / counter.covered_s * shorter_s
    integrated_j = integral.measured_j / integral.covered_s * shorter_s
    if abs(counted_j - integrated_j) <= _MOST_DIFFERENCE * max(counted_j, integrated_j):
        return None
    return Finding(
        code="counter-differs",
        severity=Severity.WARNING,
        message=(
            f"{counter.device}: over {format_duration(shorter_s)} its energy counter shows "
            f"{format_energy(counted_j)}, its power readings {format_energy(integrated_j)}; one of the two "
            "is wrong, or they cover different parts"
        ),
        where=counter.device,
        expected=format_energy(counted_j),
        found=format_energy(integrated_j),
    )
