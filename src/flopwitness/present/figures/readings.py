"""Readings of a recording as lines over time: like ones of several devices together, unlike ones apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.present.figures.canvas import safe_label

__all__ = ["Line", "gather_lines"]

Vector = NDArray[np.float64]

_MOST_BINS: Final = 2_000


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
    time_s, value = parts[0] if len(parts) == 1 else _together(parts)
    time_s, value = _thinned(time_s, value)
    return Line(label=_label(group), channel=group[0].channel, time_s=time_s, value=value)


def _label(group: Sequence[Series]) -> str:
    first = group[0]
    scope = "" if first.scope is Scope.UNKNOWN else f"{first.scope}"
    who = first.part or first.device if len(group) == 1 else f"{len(group)} devices together"
    mean = "running mean" if first.channel is Channel.POWER_AVERAGE_W else ""
    part = first.part if len(group) > 1 else ""
    return ", ".join(safe_label(word) for word in (who, part, scope, mean) if word)


def _in_order(item: Series, origin_ns: int) -> tuple[Vector, Vector]:
    order = np.argsort(item.utc_ns, kind="stable")
    time_s = (item.utc_ns[order] - origin_ns) / NANOSECOND_PER_SECOND
    value = np.where(np.isfinite(item.value[order]), item.value[order] * item.conversion, np.nan)
    return time_s, value


def _together(parts: Sequence[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    """The devices' sum on a common grid over the usual device's recording."""
    known = [(time_s[np.isfinite(value)], value[np.isfinite(value)]) for time_s, value in parts]
    start_s = float(np.median([time_s[0] for time_s, _ in known]))
    stop_s = max(start_s, float(np.median([time_s[-1] for time_s, _ in known])))
    grid_s = np.linspace(start_s, stop_s, num=max(2, min(4_000, max(time_s.size for time_s, _ in known))))
    total: Vector = np.zeros(grid_s.size)
    for time_s, value in known:
        total += np.interp(grid_s, time_s, value)
    return grid_s, total


def _thinned(time_s: Vector, value: Vector) -> tuple[Vector, Vector]:
    """No more readings than can be seen: the lowest and the highest of each bin."""
    if time_s.size <= 2 * _MOST_BINS:
        return time_s, value
    starts = np.linspace(0, time_s.size, num=_MOST_BINS, endpoint=False).astype(np.intp)
    lowest, highest = np.fmin.reduceat(value, starts), np.fmax.reduceat(value, starts)
    return np.repeat(time_s[starts], 2), np.stack([lowest, highest], axis=1).ravel()
