"""Local times to UTC, where clocks go back and an hour comes twice.

Most tools stamp their logs in local time and do not say which. With the zone known, an hour that comes
twice is told apart by the order of the readings: after a step back inside it, the second one runs. A step
of a minute or less is no such sign: clocks are set by so much, and threads write out of turn. A log that
begins inside such an hour and shows no step cannot be told apart; the first is taken, and counted.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND

__all__ = ["Placed", "place_local_times"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS: Final = 3_600 * NANOSECOND_PER_SECOND
_DAY_NS: Final = 24 * _HOUR_NS
_STRETCH_NS: Final = 512 * _DAY_NS
_REACH_NS: Final = 26 * _HOUR_NS  # no zone is further from UTC, and no change of its clocks is larger
_LEAST_BACK_NS: Final = 60 * NANOSECOND_PER_SECOND
_BLOCK: Final = 1 << 20


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
    utc_ns = np.empty_like(local_ns)
    odd = [np.zeros(0, dtype=np.int64)]
    for start in range(0, local_ns.size, _BLOCK):
        block_ns = local_ns[start : start + _BLOCK]
        last = changes.last_begun(block_ns)
        utc_ns[start : start + _BLOCK] = block_ns - changes.offset_ns[last]
        odd.append(start + np.flatnonzero(block_ns < changes.end_local_ns[last]))
    return _place_odd(local_ns, utc_ns, np.concatenate(odd), changes)


def _place_odd(
    local_ns: NDArray[np.int64], utc_ns: NDArray[np.int64], odd: NDArray[np.int64], changes: "_Changes"
) -> Placed:
    """The times that come twice, or never, moved from the later offset to the earlier one where that holds.

    Args:
        local_ns: All times.
        utc_ns: The same by the later offset; changed in place.
        odd: Where such times stand, in order.
        changes: The zone's changes.
    """
    last = changes.last_begun(local_ns[odd])
    longer_ns = changes.offset_ns[last - 1] - changes.offset_ns[last]  # by so much the clock went back
    is_twice = longer_ns > 0
    is_earlier = ~is_twice
    is_earlier[is_twice] = ~_runs_again(local_ns, odd[is_twice])
    utc_ns[odd[is_earlier]] -= longer_ns[is_earlier]
    return Placed(utc_ns=utc_ns, n_twice=int(is_twice.sum()), n_never=int((~is_twice).sum()))


def _runs_again(local_ns: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each place of a time that comes twice, whether the clock has stepped back since its hour began."""
    before_ns = local_ns[np.maximum(places - 1, 0)]
    is_back = local_ns[places] - before_ns < -_LEAST_BACK_NS
    is_begin = np.diff(places, prepend=-2) > 1
    index = np.arange(places.size)
    last_back = np.maximum.accumulate(np.where(is_back, index, -1))
    last_begin = np.maximum.accumulate(np.where(is_begin, index, -1))
    return np.asarray(last_back >= last_begin)


@dataclass(frozen=True, slots=True)
class _Changes:
    """The offsets of a zone in order of time [ns]; the first holds from the beginning.

    A change at instant `u` from offset `a` to `b` shows as local `u + a` and `u + b`: below the smaller the
    old one holds, from the larger on the new one, and between them both do, or neither.
    """

    offset_ns: NDArray[np.int64]  # shape (n + 1,)
    begin_local_ns: NDArray[np.int64]  # the smaller of the two, shape (n,)
    end_local_ns: NDArray[np.int64]  # the larger of the two, shape (n + 1,); of the first, below all times

    def last_begun(self, local_ns: NDArray[np.int64]) -> NDArray[np.intp]:
        """The last change that has begun at each local time: its place in `offset_ns`."""
        return np.searchsorted(self.begin_local_ns, local_ns, side="right")


def _find_changes(zone: ZoneInfo, start_utc_ns: int, stop_utc_ns: int) -> _Changes:
    """The offsets of a zone from one instant to another at least."""
    first, last = start_utc_ns // _STRETCH_NS, stop_utc_ns // _STRETCH_NS
    found = [change for stretch in range(first, last + 1) for change in _changes_within(zone, stretch)]
    change_ns = np.array([instant_ns for instant_ns, _ in found], dtype=np.int64)
    offset_ns = np.array(
        [_offset_ns(zone, first * _STRETCH_NS), *(offset_ns for _, offset_ns in found)], dtype=np.int64
    )
    ends_ns = change_ns + np.maximum(offset_ns[:-1], offset_ns[1:])
    return _Changes(
        offset_ns=offset_ns,
        begin_local_ns=change_ns + np.minimum(offset_ns[:-1], offset_ns[1:]),
        end_local_ns=np.concatenate([[np.iinfo(np.int64).min], ends_ns]),
    )


@lru_cache(maxsize=1_024)
def _changes_within(zone: ZoneInfo, stretch: int) -> tuple[tuple[int, int], ...]:
    """The changes in one of the stretches into which time is cut, found day by day and then to the second.

    They are kept, because a log of many columns asks for them once a column.
    """
    start_ns = stretch * _STRETCH_NS
    old_ns, changes = _offset_ns(zone, start_ns), []
    for day_ns in range(start_ns, start_ns + _STRETCH_NS, _DAY_NS):
        new_ns = _offset_ns(zone, day_ns + _DAY_NS)
        if new_ns != old_ns:
            changes.append((_bisect(zone, day_ns, day_ns + _DAY_NS, old_ns), new_ns))
            old_ns = new_ns
    return tuple(changes)


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
