"""An energy counter's readings laid out as energy that only grows, with what they cannot tell.

A counter begins again at 0 when its driver reloads, runs over where its register is full, stands still
where its sensor hangs, and now and then a log holds a reading that it never had. Each of these is found
here and told by its time. Nothing is clamped to zero, and nothing runs over without a known range.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.energy import doubt_clock
from flopwitness.measure.paired import longest_step_s
from flopwitness.measure.running_clock import laid_out_ticks
from flopwitness.measure.samples import Channel, Series

__all__ = ["CounterEvents", "CounterLine", "CounterStep", "lay_out_counter"]

_MOST_W: Final = 1e7  # a hall: no single meter counts more, where no limit is known
_TIMES_USUAL: Final = 20.0  # a device that works draws less than so many times what it draws usually
_MOST_J: Final = 1e18
_SLACK_S: Final = 2.0  # counters move in bursts, and stamps are rounded to a second
_TIMES_LIMIT: Final = 2.0  # a rise beyond so many times the limit is none
_TOP: Final = 0.9  # of the range: from here a counter runs over
_BOTTOM: Final = 0.1  # to here
_STUCK_S: Final = 10.0
_STUCK_TIMES: Final = 20.0  # the usual time between changes
_FEWEST_STUCK: Final = 3
_FEW_FALLS: Final = 3
_FEW_FALLS_SHARE: Final = 0.05

_PLAIN: Final = 0
_WRAP: Final = 1
_RESET: Final = 2
_BACK: Final = 3
_JUMP: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterStep:
    """Two readings of a counter, and what lies between them.

    Attributes:
        start_utc_ns: The time of the first.
        stop_utc_ns: The time of the second.
        before_j: What the counter showed first [J].
        after_j: What it showed then [J].
    """

    start_utc_ns: int
    stop_utc_ns: int
    before_j: float
    after_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEvents:
    """Where a counter did not just count, in order of time.

    Attributes:
        resets: It began again at 0; what was drawn before that is lost.
        wraps: It ran over its range; no energy is lost.
        backward: It fell to a value that it cannot have reached from 0, or a reading stands out that it
            cannot have had.
        jumps: It rose by more than any device draws; what was drawn is not known.
        stuck: It did not move for long.
    """

    resets: tuple[CounterStep, ...] = ()
    wraps: tuple[CounterStep, ...] = ()
    backward: tuple[CounterStep, ...] = ()
    jumps: tuple[CounterStep, ...] = ()
    stuck: tuple[CounterStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterLine:
    """A counter's readings on a clock that never runs backwards; n of them tell something.

    Attributes:
        time_s: Seconds from the first reading with a value, shape (n,), strictly increasing.
        grown_j: Energy that was counted since then for certain [J], shape (n,), not decreasing.
        is_lost: Whether a step's energy was not counted, or not all of it, shape (n - 1,).
        is_unsure: Whether a step may hold more energy than it shows, shape (n - 1,): all lost ones, and
            those in which a reset or a second wrap may hide.
        origin_ns: The time of the first reading with a value.
        events: Where it did not just count.
        n_missing: Readings without a value.
        n_repeated: Readings at the time of the reading before.
        n_backwards: Steps back in time; each counts as one usual period.
        is_clock_doubted: Whether the clock tells no length (`doubt_clock`).
        is_mixed: Whether it falls so often that several counters seem to write one log.
    """

    time_s: NDArray[np.float64]
    grown_j: NDArray[np.float64]
    is_lost: NDArray[np.bool_]
    is_unsure: NDArray[np.bool_]
    origin_ns: int
    events: CounterEvents
    n_missing: int
    n_repeated: int
    n_backwards: int
    is_clock_doubted: bool
    is_mixed: bool


@dataclass(frozen=True, slots=True)
class _Readings:
    """Readings with a value, on a clock that never runs backwards; shape (n,) each."""

    time_s: NDArray[np.float64]
    value_j: NDArray[np.float64]
    utc_ns: NDArray[np.int64]

    def keep(self, chosen: NDArray[np.bool_]) -> "_Readings":
        if chosen.all():
            return self
        return _Readings(self.time_s[chosen], self.value_j[chosen], self.utc_ns[chosen])

    def tell(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[CounterStep, ...]:
        """What lies between pairs of readings, told by their place."""
        return tuple(
            CounterStep(start_utc_ns=start, stop_utc_ns=stop, before_j=old_j, after_j=new_j)
            for start, stop, old_j, new_j in zip(
                self.utc_ns[before].tolist(),
                self.utc_ns[after].tolist(),
                self.value_j[before].tolist(),
                self.value_j[after].tolist(),
                strict=True,
            )
        )

    def tell_steps(self, is_one: NDArray[np.bool_]) -> tuple[CounterStep, ...]:
        place = np.flatnonzero(is_one)
        return self.tell(place, place + 1)


def lay_out_counter(series: Series, *, limit_w: float | None = None) -> CounterLine:
    """The readings of a counter as energy that only grows.

    * A reading that stands out from both neighbours, as no counter can, is left out.
    * A fall is a **wrap** where the range is known, and the rest up to it plus the new reading makes a
      power that the device can draw, or it leads from the top tenth of the range to the bottom tenth.
    * A fall to what such a device can have counted within the step is a **reset**. The new reading is
      energy of the step; what was drawn before the counter began again is lost. Without a limit, that is
      what 20 times its usual power gives: a counter that slips back a little has not begun again.
    * Any other fall, and a rise by more than twice what the device can draw, shows no energy at all.
    * A counter that does not move for 10 s, and for 20 times as long as usual, is **stuck**.

    A counter that begins again and counts past its old reading within one step looks like any other; so
    does one that runs over twice. With `limit_w`, a step in which that is possible is unsure, as far as the
    former goes only where it is longer than usual. Without, a rise is taken at its word.

    Args:
        series: Readings of a counter [J]; NaN where missing.
        limit_w: The most that the device can draw [W].

    Raises:
        ValueError: The series is no counter.
    """
    if series.channel is not Channel.ENERGY_COUNTER_J:
        raise ValueError(f"not a counter of energy: {series.channel}")
    every, n_backwards = _read(series)
    last_of_time = np.diff(every.time_s, append=np.inf) > 0
    timed = every.keep(last_of_time)
    is_outlier = _find_outliers(timed, limit_w)
    used = timed.keep(~is_outlier)
    range_j = None if series.counter_range_j is None else series.counter_range_j * series.conversion
    kind = _classify(used, range_j, limit_w)
    grown_j = _grow(used.value_j, kind, range_j or 0.0)
    first, last = _find_stuck(used.time_s, grown_j)
    is_told, is_stuck = _leave_out_stuck(used.time_s.size, first, last)
    is_lost = np.isin(kind, (_RESET, _BACK, _JUMP)) | is_stuck
    is_unsure = is_lost | _may_hide(used, grown_j, range_j, limit_w)
    n_falls = int(is_outlier.sum() + np.isin(kind, (_RESET, _BACK)).sum())
    return CounterLine(
        time_s=used.time_s[is_told],
        grown_j=grown_j[is_told],
        is_lost=_join_steps(is_lost, is_told),
        is_unsure=_join_steps(is_unsure, is_told),
        origin_ns=int(every.utc_ns[0]) if every.utc_ns.size else 0,
        events=CounterEvents(
            resets=used.tell_steps(kind == _RESET),
            wraps=used.tell_steps(kind == _WRAP),
            backward=_merge(timed.tell_steps(is_outlier[1:]), used.tell_steps(kind == _BACK)),
            jumps=used.tell_steps(kind == _JUMP),
            stuck=used.tell(first, last),
        ),
        n_missing=len(series) - every.time_s.size,
        n_repeated=int((~last_of_time).sum()),
        n_backwards=n_backwards,
        is_clock_doubted=bool(doubt_clock(series)),
        is_mixed=n_falls > max(_FEW_FALLS, _FEW_FALLS_SHARE * timed.time_s.size),
    )


def _merge(first: tuple[CounterStep, ...], second: tuple[CounterStep, ...]) -> tuple[CounterStep, ...]:
    return tuple(sorted((*first, *second), key=lambda step: step.start_utc_ns))


def _read(series: Series) -> tuple[_Readings, int]:
    """The readings with a value, and how many steps back in time there are: each counts as a usual period."""
    with np.errstate(invalid="ignore", over="ignore"):
        value_j = series.value * series.conversion
    known = (series.value >= 0) & (value_j < _MOST_J)
    ticks_ns = series.utc_ns if series.monotonic_ns is None else series.monotonic_ns
    laid_ns, n_back = laid_out_ticks(ticks_ns[known])
    time_s = (laid_ns - laid_ns[:1]) / NANOSECOND_PER_SECOND
    return _Readings(time_s, value_j[known], series.utc_ns[known]), n_back


def _most_rise_j(readings: _Readings, limit_w: float | None) -> NDArray[np.float64]:
    """The most that a counter can rise by in each step [J], shape (n - 1,), with room for rounded times."""
    most_w = _MOST_W if limit_w is None else limit_w
    most_j: NDArray[np.float64] = _TIMES_LIMIT * most_w * (np.diff(readings.time_s) + _SLACK_S)
    return most_j


def _most_anew_j(readings: _Readings, limit_w: float | None) -> NDArray[np.float64]:
    """The most that a counter can show that began again within each step [J], shape (n - 1,)."""
    length_s = np.diff(readings.time_s)
    if limit_w is None:
        rise_j = np.diff(readings.value_j)
        usual_w = rise_j[rise_j > 0] / length_s[rise_j > 0]
        limit_w = min(_MOST_W, _TIMES_USUAL * float(np.median(usual_w))) if usual_w.size else _MOST_W
    most_j: NDArray[np.float64] = limit_w * (length_s + _SLACK_S)
    return most_j


def _find_outliers(readings: _Readings, limit_w: float | None) -> NDArray[np.bool_]:
    """Which readings stand out from both neighbours as no counter can, shape (n,).

    A low one is none where the counter can have begun again: it lies within what a device can draw, and so
    does the step after it.
    """
    is_outlier = np.zeros(readings.value_j.size, dtype=np.bool_)
    if is_outlier.size < 3:  # noqa: PLR2004 (a reading and its two neighbours)
        return is_outlier
    before, here, after = readings.value_j[:-2], readings.value_j[1:-1], readings.value_j[2:]
    rise_j, anew_j = _most_rise_j(readings, limit_w), _most_anew_j(readings, limit_w)
    is_high = (here - before > rise_j[:-1]) & (before <= after) & (after < here)
    can_be_reset = (here <= anew_j[:-1]) & (after - here <= anew_j[1:])
    is_low = (here < before) & (before <= after) & ~can_be_reset
    is_outlier[1:-1] = is_high | is_low
    return is_outlier


def _classify(readings: _Readings, range_j: float | None, limit_w: float | None) -> NDArray[np.int8]:
    """What each step is, shape (n - 1,)."""
    old_j, new_j = readings.value_j[:-1], readings.value_j[1:]
    anew_j = _most_anew_j(readings, limit_w)
    kind = np.full(old_j.size, _PLAIN, dtype=np.int8)
    is_fall = new_j < old_j
    kind[new_j - old_j > _most_rise_j(readings, limit_w)] = _JUMP
    kind[is_fall] = _BACK
    kind[is_fall & (new_j <= anew_j)] = _RESET
    if range_j is not None:
        rest_j = new_j + range_j - old_j
        runs_over = (old_j >= _TOP * range_j) & (new_j <= _BOTTOM * range_j)
        if limit_w is not None:
            runs_over |= rest_j <= anew_j
        kind[is_fall & runs_over & (rest_j >= 0)] = _WRAP
    return kind


def _grow(value_j: NDArray[np.float64], kind: NDArray[np.int8], range_j: float) -> NDArray[np.float64]:
    """The energy that was counted for certain since the first reading [J], shape (n,)."""
    rise_j, new_j = np.diff(value_j), value_j[1:]
    growth_j = np.select([kind == _PLAIN, kind == _WRAP, kind == _RESET], [rise_j, rise_j + range_j, new_j])
    return np.concatenate([np.zeros(min(1, value_j.size)), np.cumsum(growth_j)])


def _may_hide(
    readings: _Readings, grown_j: NDArray[np.float64], range_j: float | None, limit_w: float | None
) -> NDArray[np.bool_]:
    """In which steps the device can have drawn more than the counter tells, shape (n - 1,).

    A counter that stands at 0 begins with the measurement, and hides nothing before its next reading.
    """
    length_s = np.diff(readings.time_s)
    if limit_w is None:
        return np.zeros(length_s.size, dtype=np.bool_)
    is_long = length_s > longest_step_s(readings.time_s)
    hides: NDArray[np.bool_] = (
        is_long & (readings.value_j[:-1] > 0) & (readings.value_j[1:] <= limit_w * length_s)
    )
    if range_j is not None:
        hides |= np.diff(grown_j) + range_j <= limit_w * length_s
    return hides


def _find_stuck(
    time_s: NDArray[np.float64], grown_j: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last reading of each stretch in which a counter does not move for long."""
    moves = np.flatnonzero(np.diff(grown_j) > 0) + 1
    first = np.concatenate([[0], moves]).astype(np.int64)
    last = np.concatenate([moves - 1, [time_s.size - 1]]).astype(np.int64)
    if time_s.size < _FEWEST_STUCK:
        return first[:0], last[:0]
    between_s = np.diff(time_s[moves])
    usual_s = float(np.median(between_s)) if between_s.size else 0.0
    still_s = time_s[last] - time_s[first]
    is_long = (still_s >= max(_STUCK_S, _STUCK_TIMES * usual_s)) & (last - first + 1 >= _FEWEST_STUCK)
    return first[is_long], last[is_long]


def _leave_out_stuck(
    n: int, first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which readings tell something, shape (n,), and which steps are stuck, shape (n - 1,).

    A counter that moves again may have caught up: the stretch and the step that ends it are one step.
    """
    ends = np.minimum(last + 1, n - 1)
    inside = np.zeros(n + 1, dtype=np.int64)
    np.add.at(inside, first + 1, 1)
    np.add.at(inside, ends, -1)
    is_told = np.cumsum(inside)[:n] == 0
    steps = np.zeros(n + 1, dtype=np.int64)
    np.add.at(steps, first, 1)
    np.add.at(steps, ends, -1)
    return is_told, (np.cumsum(steps)[: max(0, n - 1)] > 0)


def _join_steps(is_so: NDArray[np.bool_], is_told: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether it is so of any step between two told readings, shape (m - 1,)."""
    counted = np.concatenate([[0], np.cumsum(is_so)])[: is_told.size][is_told]
    joined: NDArray[np.bool_] = np.diff(counted) > 0
    return joined
