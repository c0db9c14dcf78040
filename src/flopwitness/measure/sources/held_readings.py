"""Readings held until the end of a file shows whether it has times at all.

Meters are polled by scripts, and some scripts write a date beside each answer and some do not. Only the
whole file tells which kind it is: then readings get their times, or their numbers, and those that are unlike
the others are skipped and located.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.clock_text import ClockStamp
from flopwitness.measure.sources.recording import MOST_READINGS, MOST_SERIES, Recording, Times

__all__ = ["Figure", "HeldReadings"]

_KINDS: Final = (Times.COUNTED, Times.RELATIVE, Times.LOCAL, Times.UTC)
_NUMBERED: Final = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """What a reading is of.

    Attributes:
        device: As in `Series.device`.
        channel: What is read.
        scope: What it covers.
        part: What of the device it covers; "" for all of it.
    """

    device: str
    channel: Channel
    scope: Scope
    part: str = ""


@dataclass(slots=True)
class _Held:
    times: "array[int]" = field(default_factory=lambda: array("q"))
    kinds: "array[int]" = field(default_factory=lambda: array("b"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    averaged_s: float = 0.0
    is_between: bool = False


class HeldReadings:
    """The readings of one file by what they are of."""

    def __init__(self, where: str) -> None:
        """Begin with nothing held."""
        self.count = 0
        self._where = where
        self._held: dict[Figure, _Held] = {}

    def add(
        self,
        figure: Figure,
        value: float,
        *,
        stamp: ClockStamp | None,
        line: int,
        number: int | None = None,
        averaged_s: float | None = 0.0,
    ) -> None:
        """Hold one reading.

        Args:
            figure: What it is of.
            value: NaN where the meter has none.
            stamp: Its time; None where there is none.
            line: Where it stands.
            number: The number of the poll that it is of, from 0; None counts the figure's own readings.
            averaged_s: As in `Series`; None where the reading is a mean since the one before.

        Raises:
            DecodeError: More figures or readings than any machine gives.
        """
        held = self._held.get(figure)
        if held is None:
            if len(self._held) >= MOST_SERIES:
                raise DecodeError("too many series", where=self._where, expected=f"at most {MOST_SERIES}")
            held = self._held[figure] = _Held()
        self.count += 1
        if self.count > MOST_READINGS:
            raise DecodeError("too many readings", where=self._where, expected=f"at most {MOST_READINGS}")
        if stamp is None:
            held.kinds.append(_NUMBERED)
            held.times.append(len(held.times) if number is None else number)
        else:
            held.kinds.append(_KINDS.index(stamp.times))
            held.times.append(stamp.time_ns)
        held.values.append(value)
        held.lines.append(line)
        held.is_between = held.is_between or averaged_s is None
        held.averaged_s = max(held.averaged_s, averaged_s or 0.0)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What readings are held of, in the order in which the first of each came."""
        return tuple(self._held)

    def fill(
        self,
        recording: Recording,
        *,
        names: Mapping[Figure, Figure] = MappingProxyType({}),
        ranges_j: Mapping[Figure, float] = MappingProxyType({}),
    ) -> None:
        """Put all of it into the recording, with its kind of times, and skip what is unlike it.

        The kind is that of the first reading with a time; where none has one, readings are numbered.

        Args:
            recording: Where to.
            names: What figures turn out to be that were held under another name.
            ranges_j: Where counters begin again at 0, by the name that they were held under.
        """
        kinds = [np.array(held.kinds, dtype=np.int8) for held in self._held.values()]
        timed = [int(kind[kind != _NUMBERED][0]) for kind in kinds if (kind != _NUMBERED).any()]
        kind = timed[0] if timed else _NUMBERED
        recording.times = _KINDS[kind]
        unlike: set[int] = set()
        for (held_as, held), own_kinds in zip(self._held.items(), kinds, strict=True):
            figure = names.get(held_as, held_as)
            is_kept = own_kinds == kind
            times = np.array(held.times, dtype=np.int64)[is_kept]
            step_s = recording.counted_period_s if kind == _NUMBERED else _longest_step_s(times)
            recording.column(
                figure.device,
                figure.channel,
                figure.scope,
                part=figure.part,
                averaged_s=max(held.averaged_s, step_s if held.is_between else 0.0),
                counter_range_j=ranges_j.get(held_as),
            ).extend(times, np.array(held.values, dtype=np.float64)[is_kept])
            unlike.update(np.array(held.lines, dtype=np.int64)[~is_kept].tolist())
        for line in sorted(unlike):
            expected = "a reading with a time like those of the others"
            recording.skip(line, expected=expected, found=b"one with another kind of time, or with none")


def _longest_step_s(times: NDArray[np.int64]) -> float:
    return float(np.abs(np.diff(times)).max()) / NANOSECOND_PER_SECOND if times.size > 1 else 0.0
