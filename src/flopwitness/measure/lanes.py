"""Recordings that follow each other, as logs do that a new file takes on each week: one device, not many."""

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
    lanes: list[list[_Stretched]] = []
    stretched = [(item, *_ends(recorded_stretch(item))) for item in series]
    for item in sorted(stretched, key=lambda item: item[1]):
        fitting = [lane for lane in lanes if _follows(lane, item)]
        if fitting:
            max(fitting, key=lambda lane: lane[-1][2]).append(item)
        else:
            lanes.append([item])
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


def _follows(lane: Sequence[_Stretched], item: _Stretched) -> bool:
    """Whether the recording goes on where the lane ends."""
    series, start_ns, stop_ns = item
    first, lane_start_ns, _ = lane[0]
    lane_stop_ns = lane[-1][2]
    pause_ns = start_ns - lane_stop_ns
    both_ns = lane_stop_ns - lane_start_ns + stop_ns - start_ns
    is_near = both_ns > 0 and 0 <= pause_ns <= min(_LONGEST_PAUSE_NS, both_ns)
    return _kind(series) == _kind(first) and is_near and not doubt_clock(first) and not doubt_clock(series)


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
