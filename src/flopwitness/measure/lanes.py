"""Recordings that follow each other, as logs do that a new file takes on each week: one device, not many."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import doubt_clock, recorded_stretch
from flopwitness.measure.samples import RunWindow, Series
from flopwitness.measure.wording import plural

__all__ = ["join_recordings"]

_MOST_TRIED: Final = 1_000  # lanes too short to be followed, before one that is not
_LONGEST_PAUSE_NS: Final = 7 * 86_400 * NANOSECOND_PER_SECOND

_Stretched: TypeAlias = tuple[Series, int, int]  # with its first and last instant [ns since 1970]


def join_recordings(series: Sequence[Series], findings: list[Finding]) -> tuple[Series, ...]:
    """The series, those that never overlap joined: what counts devices then counts what ran at one time.

    Two follow each other where the second starts after the first has ended, at most a week later, and no
    later than both last together. A clock that tells no length follows none. Which file goes on with which
    changes neither how many run at one time nor any sum.

    Args:
        series: Power series of one scope, each with a reading.
        findings: What was joined goes here.
    """
    lanes = _lay_lanes([(item, *_ends(recorded_stretch(item))) for item in series])
    joined = tuple(item for lane in lanes for item in _join(lane))
    if len(joined) == len(series):
        return tuple(series)
    originals = set(map(id, series))
    findings.append(
        Finding(
            code="recordings-joined",
            severity=Severity.NOTE,
            message=(
                f"{plural(len(series), 'recording')}, some of which follow each other, are taken as "
                f"{plural(len(lanes), 'device')}"
                if len(joined) > 1
                else f"{plural(len(series), 'recording')} that follow each other are taken as 1 device"
            ),
            where=next(item.device for item in joined if id(item) not in originals),
            count=len(series) - len(joined),
        )
    )
    return joined


def _ends(stretch: RunWindow) -> tuple[int, int]:
    return stretch.start_utc_ns, stretch.stop_utc_ns or stretch.start_utc_ns


def _lay_lanes(stretched: Sequence[_Stretched]) -> list[list[_Stretched]]:
    """The recordings in lanes, each going on with the lane that ended last of those that it can follow."""
    lanes: list[list[_Stretched]] = []
    ended: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(
        list
    )  # (stop, lane), by kind, sorted
    for item in sorted(stretched, key=lambda item: item[1]):
        if doubt_clock(item[0]):
            lanes.append([item])
            continue
        ends = ended[_kind(item[0])]
        place = _find_lane(ends, lanes, item)
        if place is None:
            lanes.append([item])
            insort(ends, (item[2], len(lanes) - 1))
        else:
            _, number = ends.pop(place)
            lanes[number].append(item)
            insort(ends, (item[2], number))
    return lanes


def _find_lane(
    ends: Sequence[tuple[int, int]], lanes: Sequence[Sequence[_Stretched]], item: _Stretched
) -> int | None:
    """The place of the lane that ends last before the recording and that it can follow; None where none."""
    _, start_ns, stop_ns = item
    last = bisect_right(ends, (start_ns, len(lanes)))
    for place in range(last - 1, max(-1, last - 1 - _MOST_TRIED), -1):
        lane_stop_ns, number = ends[place]
        pause_ns = start_ns - lane_stop_ns
        if pause_ns > _LONGEST_PAUSE_NS:
            return None
        both_ns = lane_stop_ns - lanes[number][0][1] + stop_ns - start_ns
        if both_ns > 0 and pause_ns <= both_ns:
            return place
    return None


def _kind(series: Series) -> tuple[object, ...]:
    """What recordings of one device have in common."""
    return (
        series.channel,
        series.scope,
        series.part,
        series.conversion,
        series.timing,
        series.averaged_s,
        series.counter_range_j,
    )


def _join(lane: Sequence[_Stretched]) -> list[Series]:
    """One series of a lane, under its first device's name; the lane as it is where that has no clock."""
    items = [item for item, _, _ in lane]
    if len(items) == 1:
        return items
    joined = replace(
        items[0],
        utc_ns=np.concatenate([item.utc_ns for item in items]),
        monotonic_ns=_joined_clock(lane),
        value=np.concatenate([item.value for item in items]),
        is_estimate=any(item.is_estimate for item in items),
    )
    return items if doubt_clock(joined) else [joined]


def _joined_clock(lane: Sequence[_Stretched]) -> NDArray[np.int64] | None:
    """The steady clocks end to end, apart by what the calendar says; None where none has any."""
    if all(item.monotonic_ns is None for item, _, _ in lane):
        return None
    clocks = []
    for item, start_ns, _ in lane:
        clock_ns = item.utc_ns if item.monotonic_ns is None else item.monotonic_ns
        clocks.append(clock_ns + (start_ns - int(clock_ns[0])))
    return np.concatenate(clocks)
