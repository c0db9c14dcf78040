"""Local times to UTC, where clocks go back and an hour comes twice.

Most tools stamp their logs in local time and do not say which. With the zone known, an hour that comes
twice is told apart by the order of the readings: after a step back inside it, the second one runs. A log
that begins inside such an hour and shows no step cannot be told apart; the first is taken, and counted.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND

__all__ = ["Placed", "place_local_times"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS = 3_600 * NANOSECOND_PER_SECOND
_REACH_NS = 26 * _HOUR_NS  # no zone is further from UTC, and no change of its clocks is larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Times with their place.

    Attributes:
        utc_ns: Nanoseconds since 1970 UTC, shape (n,).
        n_twice: How many local times come twice in their zone.
        n_never: How many do not exist in it, because clocks went ahead over them.
    """

    utc_ns: NDArray[np.int64]
    n_twice: int
    n_never: int


def place_local_times(local_ns: NDArray[np.int64], zone: ZoneInfo) -> Placed:
    """Local times as UTC.

    Args:
        local_ns: What the wall clock showed, as nanoseconds since 1970 by the calendar, in the order of
            the recording, shape (n,).
        zone: Its zone.
    """
    if local_ns.size == 0:
        return Placed(utc_ns=local_ns, n_twice=0, n_never=0)
    changes = _find_changes(zone, int(local_ns.min()) - _REACH_NS, int(local_ns.max()) + _REACH_NS)
    first, second = _offsets(local_ns, changes, late=False), _offsets(local_ns, changes, late=True)
    is_twice, is_never = first > second, first < second
    offset_ns = np.where(is_never, first, second)
    if is_twice.any():
        offset_ns = np.where(is_twice & ~_runs_again(local_ns, is_twice), first, offset_ns)
    return Placed(
        utc_ns=local_ns - offset_ns,
        n_twice=int(is_twice.sum()),
        n_never=int(is_never.sum()),
    )


def _runs_again(local_ns: NDArray[np.int64], is_twice: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each time, whether the clock has stepped back since its doubled hour began."""
    is_back = np.concatenate([[False], np.diff(local_ns) < 0])
    index = np.arange(local_ns.size)
    last_back = np.maximum.accumulate(np.where(is_back & is_twice, index, -1))
    last_plain = np.maximum.accumulate(np.where(is_twice, -1, index))
    return np.asarray(last_back > last_plain)


@dataclass(frozen=True, slots=True)
class _Changes:
    """From each UTC instant on, an offset [ns]; the first holds from the beginning."""

    start_utc_ns: NDArray[np.int64]
    offset_ns: NDArray[np.int64]


def _offsets(local_ns: NDArray[np.int64], changes: _Changes, *, late: bool) -> NDArray[np.int64]:
    """The offset that a local time has: of two that fit, the later one where `late`.

    A change at instant `u` from offset `a` to `b` shows as local `u + a` and `u + b`: below the smaller the
    old one holds, from the larger on the new one, and between them both do, or neither.
    """
    before, after = changes.offset_ns[:-1], changes.offset_ns[1:]
    edges = changes.start_utc_ns[1:] + (np.minimum(before, after) if late else np.maximum(before, after))
    return changes.offset_ns[np.searchsorted(edges, local_ns, side="right")]


def _find_changes(zone: ZoneInfo, start_utc_ns: int, stop_utc_ns: int) -> _Changes:
    """The offsets of a zone between two instants, found day by day and then to the second."""
    starts, offsets = [start_utc_ns], [_offset_ns(zone, start_utc_ns)]
    day_ns = 24 * _HOUR_NS
    for day in range(start_utc_ns, stop_utc_ns, day_ns):
        end_ns = min(day + day_ns, stop_utc_ns)
        if _offset_ns(zone, end_ns) != offsets[-1]:
            starts.append(_bisect(zone, day, end_ns, offsets[-1]))
            offsets.append(_offset_ns(zone, end_ns))
    return _Changes(np.array(starts, dtype=np.int64), np.array(offsets, dtype=np.int64))


def _bisect(zone: ZoneInfo, low_ns: int, high_ns: int, old_ns: int) -> int:
    """The whole second at which the offset changes."""
    low, high = low_ns // NANOSECOND_PER_SECOND, -(-high_ns // NANOSECOND_PER_SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_ns(zone, middle * NANOSECOND_PER_SECOND) == old_ns:
            low = middle
        else:
            high = middle
    return high * NANOSECOND_PER_SECOND


def _offset_ns(zone: ZoneInfo, utc_ns: int) -> int:
    try:
        moment = (_EPOCH + timedelta(seconds=utc_ns // NANOSECOND_PER_SECOND)).astimezone(zone)
    except OverflowError:  # before the year 1 or after 9999: no zone has a rule there
        return 0
    offset = moment.utcoffset() or timedelta(0)
    return (offset.days * 86_400 + offset.seconds) * NANOSECOND_PER_SECOND
