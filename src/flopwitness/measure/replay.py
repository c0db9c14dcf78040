"""A recording played again, reading by reading, in place of live sensors; and live readings kept as a trace.

What follows sensors (a daemon, a session rule, a ledger) can so be tried on recorded truth, at any speed.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from flopwitness.measure.samples import Series, Trace

__all__ = ["Collector", "Poll", "PolledValue", "play"]


@dataclass(frozen=True, slots=True)
class PolledValue:
    """One reading.

    Attributes:
        place: The number of its series in the trace that is played.
        value: The reading in its channel's unit; NaN where there is none.
        monotonic_ns: Its time on a clock that never steps; None where none was recorded.
    """

    place: int
    value: float
    monotonic_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """All readings of one instant.

    Attributes:
        utc_ns: The instant, as the trace stamps it.
        wait_ns: How long after the poll before; 0 for the first, and where the clock steps back.
        values: The readings, in the order of the trace's series.
    """

    utc_ns: int
    wait_ns: int
    values: tuple[PolledValue, ...]


def play(trace: Trace) -> Iterator[Poll]:
    """The readings of a trace in the order of their times; those of one instant together.

    Within a series the order of the recording stays: where its clock steps back, its readings follow each
    other all the same, at the times that they carry.
    """
    if not any(len(series) for series in trace.series):
        return
    places = np.repeat(np.arange(len(trace.series)), [len(series) for series in trace.series])
    stamps = np.concatenate([series.utc_ns for series in trace.series])
    values = np.concatenate([series.value for series in trace.series])
    indices = np.concatenate([np.arange(len(series)) for series in trace.series])
    turns = np.concatenate([np.maximum.accumulate(series.utc_ns) for series in trace.series if len(series)])
    order = np.lexsort((places, turns))
    turns, stamps, places, values, indices = (
        part[order] for part in (turns, stamps, places, values, indices)
    )
    edges = np.flatnonzero((np.diff(turns) != 0) | (np.diff(stamps) != 0)) + 1
    before_ns = int(turns[0])
    for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), turns.size], strict=True):
        turn_ns = int(turns[start])
        yield Poll(
            utc_ns=int(stamps[start]),
            wait_ns=max(0, turn_ns - before_ns),
            values=tuple(
                _polled(trace.series[place], int(place), int(index), float(value))
                for place, index, value in zip(
                    places[start:stop], indices[start:stop], values[start:stop], strict=True
                )
            ),
        )
        before_ns = turn_ns


def _polled(series: Series, place: int, index: int, value: float) -> PolledValue:
    monotonic_ns = None if series.monotonic_ns is None else int(series.monotonic_ns[index])
    return PolledValue(place, value, monotonic_ns)


class Collector:
    """Readings as they come, kept compactly until a trace is asked for."""

    def __init__(self, like: Trace) -> None:
        """Begin with no reading.

        Args:
            like: Says what each series is; its readings are not taken.
        """
        self._like = like
        self._times = [array("q") for _ in like.series]
        self._values = [array("d") for _ in like.series]
        self._monotonic = [array("q") for _ in like.series]

    def add(self, poll: Poll) -> None:
        """Keep the readings of one instant."""
        for reading in poll.values:
            self._times[reading.place].append(poll.utc_ns)
            self._values[reading.place].append(reading.value)
            if reading.monotonic_ns is not None:
                self._monotonic[reading.place].append(reading.monotonic_ns)

    @property
    def n_readings(self) -> int:
        """How many readings so far."""
        return sum(map(len, self._times))

    def trace(self) -> Trace:
        """What was collected so far, as a trace; a series without a reading is not in it."""
        columns = zip(self._like.series, self._times, self._values, self._monotonic, strict=True)
        return replace(
            self._like,
            series=tuple(
                replace(
                    series,
                    utc_ns=np.array(times, dtype=np.int64),
                    value=np.array(values, dtype=np.float64),
                    monotonic_ns=np.array(monotonic, dtype=np.int64) if monotonic else None,
                )
                for series, times, values, monotonic in columns
                if times
            ),
        )
