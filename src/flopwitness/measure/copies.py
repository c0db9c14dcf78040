"""Recordings that are copies of another: at most one of them was measured."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Series
from flopwitness.measure.value_figures import agree_widely, has_many_values
from flopwitness.measure.wording import agree, plural

__all__ = ["assess_copies"]

_TELLING_VALUES: Final = 8
_COMMON_SHARE: Final = 0.9  # of the readings: two devices never agree so far
_FEW: Final = 64  # so many are compared each with each; more by what they have in common
_N_WINDOWS: Final = 64
_WINDOW: Final = 4  # readings: of a copy with a tenth touched up, two windows of three are left whole
_MOST_ALIKE: Final = 8

_Mark: TypeAlias = tuple[int, bytes]


def assess_copies(series: Sequence[Series]) -> list[Finding]:
    """Devices whose readings are the same, or all but: at most one of them was recorded.

    Where the values vary enough to tell two devices apart, times do not count, and neither do a few changed
    readings: a copy may be shifted or touched up.
    """
    copies: list[tuple[str, str]] = []
    originals: list[Series] = []
    index = _Index(is_whole=len(series) <= _FEW)
    for item in series:
        marks = index.marks_of(item)
        twin = next((each for each in index.alike(marks, originals) if _is_copy(each, item)), None)
        if twin is None:
            index.add(marks, len(originals))
            originals.append(item)
        else:
            copies.append((twin.device, item.device))
    if not copies:
        return []
    original, copy = copies[0]
    return [
        Finding(
            code="recording-copied",
            severity=Severity.WARNING,
            message=(
                f"{len(copies)} of {len(series)} power recordings are copies of another, {copy} of "
                f"{original} for example: {plural(len(originals), 'device')} "
                f"{agree(len(originals), 'was', 'were')} recorded. The energy counts copies as "
                "they stand, and bounds nothing"
            ),
            where=copy,
            expected="a recording of its own for each device",
            found=f"{len(originals)} that differ",
            count=len(copies),
        )
    ]


def _is_copy(first: Series, second: Series) -> bool:
    n_common = min(len(first), len(second))
    if n_common < 2 or n_common < _COMMON_SHARE * max(len(first), len(second)):  # noqa: PLR2004 (one is chance)
        return False
    ours, theirs = first.value[:n_common], second.value[:n_common]
    if has_many_values(first.value, _TELLING_VALUES):
        return agree_widely(ours, theirs, _COMMON_SHARE)
    is_same_time = np.array_equal(first.utc_ns, second.utc_ns)
    return is_same_time and np.array_equal(first.value, second.value, equal_nan=True)


class _Index:
    """Which originals have a few readings in common with another, so that not all need be compared."""

    def __init__(self, *, is_whole: bool) -> None:
        """Begin empty.

        Args:
            is_whole: Whether all originals are to be compared, because there are few.
        """
        self._is_whole = is_whole
        self._places: dict[_Mark, list[int]] = {}

    def marks_of(self, series: Series) -> list[_Mark]:
        """Short runs of its readings with their places; of readings that vary little all of it at once."""
        if self._is_whole:
            return []
        if not has_many_values(series.value, _TELLING_VALUES):
            return [(hash(series.utc_ns.tobytes()), series.value.tobytes())]
        step = max(_WINDOW, 1 << max(0, (len(series) // _N_WINDOWS).bit_length() - 1))
        places = {k * each for each in (step, 2 * step) for k in range(_N_WINDOWS)}
        windows = ((place, series.value[place : place + _WINDOW].tobytes()) for place in places)
        return [
            (place, window) for place, window in windows if len(window) == _WINDOW * series.value.itemsize
        ]

    def alike(self, marks: Sequence[_Mark], originals: Sequence[Series]) -> Iterator[Series]:
        """The originals to compare with, in their order."""
        if self._is_whole:
            yield from originals
            return
        found = {place for mark in marks for place in self._places.get(mark, ())}
        for place in sorted(found):
            yield originals[place]

    def add(self, marks: Sequence[_Mark], place: int) -> None:
        """Keep an original."""
        for mark in marks:
            known = self._places.setdefault(mark, [])
            if len(known) < _MOST_ALIKE:
                known.append(place)
