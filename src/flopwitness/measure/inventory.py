"""What a recording holds, and how good each of its readings is, before anything is estimated from it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.energy import doubt_clock, longest_blind_s, longest_gapless_s
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace

__all__ = ["Grade", "Group", "Reading", "group_readings", "list_readings"]

_WELL_COVERED: Final = 0.99
_FAIRLY_COVERED: Final = 0.8
_POWER: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)


class Grade(StrEnum):
    """How far a channel can be used."""

    GOOD = "good"
    FAIR = "fair"  # for an estimate, with what is doubted told
    POOR = "poor"  # lengths or most values are not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One channel of one device.

    Attributes:
        device: The device.
        channel: What is read.
        scope: What the figure covers.
        part: What of the device is read; "" for all of it.
        n_readings: How many readings, missing ones included.
        n_missing: How many hold no value.
        start_utc_ns: The first time; None where the times have no date, or there is none.
        duration_s: From the first to the last time [s].
        period_s: The usual step [s]; NaN for fewer than two instants.
        coverage: Share of the duration in steps that are no gaps, 0 to 1. Power that is missing leaves one,
            and so do steps of more than 150 s.
        low: The lowest value; NaN where there is none.
        high: The highest value; NaN likewise.
        grade: How far it can be used.
        doubts: Why it is not better, in words.
    """

    device: str
    channel: Channel
    scope: Scope
    part: str
    n_readings: int
    n_missing: int
    start_utc_ns: int | None
    duration_s: float
    period_s: float
    coverage: float
    low: float
    high: float
    grade: Grade
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The same channel of several devices.

    Attributes:
        readings: One a device.
    """

    readings: tuple[Reading, ...]

    @property
    def worst(self) -> Reading:
        """The one that can be used least."""
        order = list(Grade)
        return max(
            self.readings,
            key=lambda reading: (order.index(reading.grade), -reading.coverage, reading.n_missing),
        )


def list_readings(trace: Trace) -> tuple[Reading, ...]:
    """Every channel of every device, in the order of the recording."""
    return tuple(_assess(series) for series in trace.series)


def group_readings(readings: Sequence[Reading]) -> tuple[Group, ...]:
    """The readings by channel, scope and part, over all devices."""
    groups: dict[tuple[Channel, Scope, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        groups[reading.channel, reading.scope, reading.part].append(reading)
    return tuple(Group(readings=tuple(items)) for items in groups.values())


def _assess(series: Series) -> Reading:
    known = np.isfinite(series.value)
    clock_ns = series.monotonic_ns if series.monotonic_ns is not None else series.utc_ns
    steps_s = np.diff(clock_ns) / NANOSECOND_PER_SECOND
    forward_s = steps_s[steps_s > 0]
    period_s = float(np.median(forward_s)) if forward_s.size else float("nan")
    coverage = _coverage(series, clock_ns, float(forward_s.sum()))
    grade, doubts = _grade(series, coverage=coverage, period_s=period_s, n_missing=int((~known).sum()))
    is_dated = series.timing is Timing.DATED and len(series) > 0
    return Reading(
        device=series.device,
        channel=series.channel,
        scope=series.scope,
        part=series.part,
        n_readings=len(series),
        n_missing=int((~known).sum()),
        start_utc_ns=int(series.utc_ns.min()) if is_dated else None,
        duration_s=float(forward_s.sum()),
        period_s=period_s,
        coverage=coverage,
        low=float(series.value[known].min()) if known.any() else float("nan"),
        high=float(series.value[known].max()) if known.any() else float("nan"),
        grade=grade,
        doubts=tuple(doubts),
    )


def _coverage(series: Series, clock_ns: NDArray[np.int64], duration_s: float) -> float:
    """Share of the time in steps between known readings that are no gaps."""
    places = np.flatnonzero(np.isfinite(series.value))
    steps_s = np.diff(clock_ns[places]) / NANOSECOND_PER_SECOND
    is_forward = steps_s > 0
    if not is_forward.any():
        return 0.0
    usual_s, is_power = float(np.median(steps_s[is_forward])), series.channel in _POWER
    longest_s = longest_gapless_s(usual_s) if is_power else longest_gapless_s(usual_s, most_s=math.inf)
    is_covered = is_forward & (steps_s <= longest_s)
    if is_power:  # as its energy is counted
        is_covered &= np.diff(places) == 1
    return min(1.0, float(steps_s[is_covered].sum()) / duration_s)


def _grade(series: Series, *, coverage: float, period_s: float, n_missing: int) -> tuple[Grade, list[str]]:
    poor, fair = [], []
    if len(series) < 2:  # noqa: PLR2004 (one reading has no length)
        poor.append("a single reading" if len(series) else "no reading")
    elif n_missing == len(series):
        poor.append("no reading has a value")
    elif coverage < _FAIRLY_COVERED:
        poor.append(f"{100 * coverage:.0f} % of the time covered")
    elif coverage < _WELL_COVERED:
        fair.append(f"{100 * coverage:.1f} % of the time covered")
    if series.timing is Timing.COUNTED:
        poor.append("no times: lengths are assumed")
    elif series.timing is Timing.RELATIVE:
        fair.append("no dates")
    if doubt_clock(series):
        poor.append("a clock that stands still or steps back")
    if series.channel in _POWER:
        fair += _doubt_power(series, period_s)
    if 0 < n_missing < len(series):
        fair.append(f"{n_missing:,} without a value")
    grade = Grade.POOR if poor else Grade.FAIR if fair else Grade.GOOD
    return grade, [*poor, *fair]


def _doubt_power(series: Series, period_s: float) -> list[str]:
    doubts = []
    if period_s > longest_blind_s(series):
        doubts.append("too rare to bound what lies between")
    if series.averaged_s:
        doubts.append(f"may be a mean over {series.averaged_s:g} s")
    if series.scope is Scope.UNKNOWN:
        doubts.append("what it covers is not recorded")
    elif series.scope is Scope.RAIL:
        doubts.append("one rail, not the whole device")
    return doubts
