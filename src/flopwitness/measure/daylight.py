"""Clocks that were changed for summer or winter inside a log whose time zone nobody named.

Taken as UTC, local times step back or jump ahead by an hour on such a day, and the log looks shorter or
longer than it was. Nothing here corrects that; it is told, and naming the zone mends it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Series, Timing, Trace
from flopwitness.measure.wording import plural

__all__ = ["assess_daylight"]

_SHIFTS: Final = {1_800: "30 min", 3_600: "1 h", 7_200: "2 h"}  # [s]; Lord Howe, nearly everywhere, Troll
_GAP_PERIODS: Final = 2.5
_QUARTER_NS: Final = 900 * NANOSECOND_PER_SECOND
_FEWEST: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Where the clock of a series looks changed."""

    device: str
    local_ns: int  # the last reading before it
    words: str
    is_back: bool


def assess_daylight(trace: Trace) -> list[Finding]:
    """One finding where clocks seem to have been changed in a log whose zone was assumed.

    A change is a single step back by 30 min, 1 h or 2 h, within one usual period, or a single jump ahead by
    so much, in a log that is regular otherwise. A jump counts only where a quarter of an hour strikes in it,
    as clocks are changed at such times; an outage of just an hour can look the same.

    Args:
        trace: The recordings; those of a reader that placed its times in UTC tell no `zone-assumed`.
    """
    assumed = [finding for finding in trace.findings if finding.code == "zone-assumed"]
    if not assumed:
        return []
    changes = [change for series in trace.series for change in _find_changes(series)]
    if not changes:
        return []
    first = changes[0]
    n_others = len({(change.local_ns, change.is_back) for change in changes}) - 1
    places = f", and at {plural(n_others, 'other place')}" if n_others else ""
    return [
        Finding(
            code="daylight-suspected",
            severity=Severity.WARNING,
            message=(
                f"{first.device}: the log's times {first.words} after {_shown(first.local_ns)}{places}, as "
                "where clocks are changed for summer or winter: a step back is laid out as one period, a "
                "jump ahead counts as a gap. Name the log's zone with --timezone"
            ),
            where=first.device,
            expected="times of one offset from UTC",
            found=first.words,
            count=len(changes),
        )
    ]


def _find_changes(series: Series) -> list[_Change]:
    if series.timing is not Timing.DATED or series.monotonic_ns is not None or len(series) < _FEWEST:
        return []
    steps_ns = np.diff(series.utc_ns)
    forward_ns = steps_ns[steps_ns > 0]
    if not forward_ns.size:
        return []
    usual_ns = int(np.median(forward_ns))
    back, ahead = np.flatnonzero(steps_ns < 0), np.flatnonzero(steps_ns > _GAP_PERIODS * usual_ns)
    changes = []
    for places, is_back in ((back, True), (ahead, False)):
        if places.size != 1:
            continue
        place = int(places[0])
        before_ns, after_ns = int(series.utc_ns[place]), int(series.utc_ns[place + 1])
        words = _shift_words(before_ns, after_ns, usual_ns)
        if words:
            changes.append(_Change(device=series.device, local_ns=before_ns, words=words, is_back=is_back))
    return changes


def _shift_words(before_ns: int, after_ns: int, usual_ns: int) -> str:
    """How the clock seems to have been changed between two readings; "" where it was not."""
    sign = 1 if after_ns > before_ns else -1
    for shift_s, words in _SHIFTS.items():
        shift_ns = shift_s * NANOSECOND_PER_SECOND
        unchanged_ns = after_ns - sign * shift_ns  # what the clock would have shown
        is_near = 0 <= unchanged_ns - before_ns <= 2 * usual_ns and 2 * usual_ns <= shift_ns
        strikes = unchanged_ns // _QUARTER_NS > before_ns // _QUARTER_NS
        if is_near and (sign < 0 or strikes):
            return f"jump ahead by {words}" if sign > 0 else f"step back by {words}"
    return ""


def _shown(local_ns: int) -> str:
    try:
        return format_utc(local_ns).removesuffix("Z").replace("T", " ")
    except ValueError:
        return "a time that is on no calendar"
