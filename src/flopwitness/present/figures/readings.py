"""Readings of a recording as lines over time: like ones of several devices together, unlike ones apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.present.figures.canvas import safe_label

__all__ = ["Line", "gather_lines", "select_readings"]

Vector = NDArray[np.float64]

_MOST_BINS: Final = 1_200
_MOST_MOMENTS: Final = 8_000
_GAP_STEPS: Final = 10.0  # times the usual step: no line is drawn across
_ROOM: Final = 0.2  # how much of the runs' length is shown before and after them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One line of a picture.

    Attributes:
        label: What it shows.
        channel: What was read.
        time_s: Seconds since the origin, shape (n,).
        value: In the channel's unit, NaN where missing, shape (n,).
    """

    label: str
    channel: Channel
    time_s: Vector
    value: Vector


def select_readings(trace: Trace, channels: Iterable[Channel]) -> tuple[list[Series], int]:
    """The readings of these channels around the marked runs, or all where no run is marked.

    Times with a date and times without one do not stand on one axis: the first series settles which.

    Returns:
        Series with a reading each, and how many more have readings that are not near.
    """
    wanted = frozenset(channels)
    series = [item for item in trace.series if item.channel in wanted and np.isfinite(item.value).any()]
    near = [item for item in _around_runs(trace, series) if np.isfinite(item.value).any()] or series
    chosen = [item for item in near if item.timing is near[0].timing]
    return chosen, len(series) - len(chosen)


def _around_runs(trace: Trace, series: Sequence[Series]) -> list[Series]:
    ends_ns = [(run.start_utc_ns, run.stop_utc_ns) for run in trace.windows if run.stop_utc_ns is not None]
    if not ends_ns:
        return []
    first_ns, last_ns = min(start for start, _ in ends_ns), max(stop for _, stop in ends_ns)
    room_ns = int(_ROOM * (last_ns - first_ns))
    shown = [(item.utc_ns >= first_ns - room_ns) & (item.utc_ns <= last_ns + room_ns) for item in series]
    return [
        replace(item, utc_ns=item.utc_ns[mask], value=item.value[mask], monotonic_ns=None)
        for item, mask in zip(series, shown, strict=True)
    ]


def gather_lines(series: Iterable[Series], *, origin_ns: int) -> list[Line]:
    """A line for each scope, part and channel: overlapping scopes are never added, devices of one scope are.

    Args:
        series: Series with a reading each.
        origin_ns: The time that counts as 0.
    """
    groups: dict[tuple[Channel, Scope, str], list[Series]] = {}
    for item in series:
        groups.setdefault((item.channel, item.scope, item.part), []).append(item)
    return [_line(group, origin_ns) for group in groups.values()]


def _line(group: Sequence[Series], origin_ns: int) -> Line:
    parts = [_in_order(item, origin_ns) for item in group]
    time_s, value = _with_gaps(*(parts[0] if len(parts) == 1 else _together(parts)), _longest_s(parts))
    time_s, value = _thinned(time_s, value)
    return Line(label=_label(group), channel=group[0].channel, time_s=time_s, value=value)


def _label(group: Sequence[Series]) -> str:
    first = group[0]
    is_sum = len(group) > 1
    words = (
        f"{len(group)} devices together" if is_sum else first.part or first.device,
        first.part if is_sum else "",
        "" if first.scope is Scope.UNKNOWN else str(first.scope),
        "running mean" if first.channel is Channel.POWER_AVERAGE_W else "",
    )
    return ", ".join(safe_label(word) for word in words if word)


def _in_order(item: Series, origin_ns: int) -> tuple[Vector, Vector]:
    order = np.argsort(item.utc_ns, kind="stable")
    time_s = (item.utc_ns[order] - origin_ns) / NANOSECOND_PER_SECOND
    value = np.where(np.isfinite(item.value[order]), item.value[order] * item.conversion, np.nan)
    return time_s, value


def _together(parts: Sequence[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    """The sum of the devices: each counts from its first reading to its last."""
    known = [(time_s[np.isfinite(value)], value[np.isfinite(value)]) for time_s, value in parts]
    moments_s = np.unique(np.concatenate([time_s for time_s, _ in known]))
    chosen = np.linspace(0, moments_s.size - 1, num=min(moments_s.size, _MOST_MOMENTS)).astype(np.intp)
    total: Vector = np.zeros(chosen.size)
    for time_s, value in known:
        total += np.interp(moments_s[chosen], time_s, value, left=0.0, right=0.0)
    return moments_s[chosen], total


def _longest_s(parts: Sequence[tuple[Vector, Vector]]) -> float:
    """The longest step that a line may bridge [s]."""
    steps = [float(np.median(np.diff(time_s))) for time_s, _ in parts if time_s.size > 1]
    return _GAP_STEPS * max(steps, default=0.0)


def _with_gaps(time_s: Vector, value: Vector, longest_s: float) -> tuple[Vector, Vector]:
    """The line with a missing value inside each step that is too long."""
    if not longest_s > 0:
        return time_s, value
    after = np.flatnonzero(np.diff(time_s) > longest_s) + 1
    return np.insert(time_s, after, time_s[after]), np.insert(value, after, np.nan)


def _thinned(time_s: Vector, value: Vector) -> tuple[Vector, Vector]:
    """No more readings than can be seen: the lowest and the highest of each bin."""
    if time_s.size <= 2 * _MOST_BINS:
        return time_s, value
    starts = np.linspace(0, time_s.size, num=_MOST_BINS, endpoint=False).astype(np.intp)
    lowest, highest = np.fmin.reduceat(value, starts), np.fmax.reduceat(value, starts)
    return np.repeat(time_s[starts], 2), np.stack([lowest, highest], axis=1).ravel()
