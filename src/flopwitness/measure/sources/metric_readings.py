"""Samples of named metrics on their way to a recording: one column for each figure of each device.

Exporters repeat themselves. A slice of a partitioned GPU carries the whole board's power, a pod that comes
and goes makes a new set of labels for the same GPU, and two metrics may hold one figure. So samples are
gathered by device and figure, and settled at the end: one value a figure and time, never a sum.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Scope
from flopwitness.measure.sources.metric_names import Level, Metric, find_metric, name_device, name_slice
from flopwitness.measure.sources.recording import MOST_READINGS, MOST_SERIES, Recording
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.values import Unreadable, possible_range
from flopwitness.measure.wording import agree, plural

__all__ = ["NUMBER", "MetricReadings", "Samples", "parse_sample_value", "place_seconds"]

NUMBER: Final = rb"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?"
"""A pattern for a decimal number, in bounded length; it has no groups."""

_MOST_LABEL_SETS: Final = 1_000_000
_MOST_OTHERS: Final = 10_000
_NAMED_OTHERS: Final = 3
_NUMBER: Final = re.compile(NUMBER)
_SPECIAL: Final = {
    b"nan": float("nan"),
    b"inf": float("inf"),
    b"+inf": float("inf"),
    b"-inf": float("-inf"),
}
_LEAST_S: Final = 1_000_000_000  # in 2001, before there were exporters; a torn time lies before it
_MOST_S: Final = 4_000_000_000  # in 2096


@dataclass(slots=True)
class Samples:
    """What one set of labels gives, as raw numbers; other sets of the same figure share the arrays.

    Attributes:
        times: Nanoseconds, or numbers of sweeps.
        values: As the exporter writes them; NaN where it has none.
        sweep: In which sweep this set was last seen, for files without times.
    """

    times: "array[int]"
    values: "array[float]"
    sweep: int = -1


@dataclass(frozen=True, slots=True)
class _Figure:
    device: str
    channel: Channel
    scope: Scope
    part: str


@dataclass(slots=True)
class _Gathered:
    """All samples of one figure by one metric; `is_sliced` where slices repeat the board's."""

    name: str
    metric: Metric
    times: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    n_label_sets: int = 0
    is_sliced: bool = False


@dataclass(frozen=True, slots=True)
class _Settled:
    """Times, and values in the channel's unit, shape (n,)."""

    times: NDArray[np.int64]
    values: NDArray[np.float64]


class MetricReadings:
    """The samples of one file by metric and labels."""

    def __init__(self, source: Source, recording: Recording) -> None:
        """Begin with nothing.

        Args:
            source: The file, for its place and for the name of a device that it does not name.
            recording: Where `settle` puts everything.
        """
        self._source = source
        self._recording = recording
        self._sets: dict[tuple[str, tuple[tuple[str, str], ...]], Samples] = {}
        self._figures: dict[_Figure, dict[str, _Gathered]] = {}
        self._meaningless: dict[str, _Gathered] = {}
        self._flags: dict[str, _Gathered] = {}
        self._others: dict[str, None] = {}
        self._told = _Repetitions()

    def find(self, name: str, labels: Mapping[str, str]) -> Samples | None:
        """Where the samples of a metric with these labels go; None where they are no readings.

        Raises:
            DecodeError: More devices, figures or sets of labels than any fleet has.
        """
        metric = find_metric(name, labels)
        if metric is None:
            self._pass_over(name)
            return None
        key = (name, tuple(sorted(labels.items())))
        samples = self._sets.get(key)
        if samples is None:
            self._check_count(len(self._sets), _MOST_LABEL_SETS, "sets of labels")
            gathered = self._gather(name, metric, labels)
            if gathered is None:
                return None
            gathered.n_label_sets += 1
            samples = self._sets[key] = Samples(gathered.times, gathered.values)
        return samples

    def check_size(self) -> None:
        """Refuse what would fill the memory; readers call it once a batch.

        Raises:
            DecodeError: More samples than one call may hold.
        """
        self._check_count(sum(len(one.times) for one in self._all()), MOST_READINGS, "readings")

    def settle(self) -> None:
        """Put everything into the recording, one value a figure and time, and tell what was repeated.

        Raises:
            DecodeError: No metric of the file is known, or none of them has a sample.
        """
        if not any(one.times for by_name in self._figures.values() for one in by_name.values()):
            raise DecodeError(
                "no sample of power, energy or activity",
                where=f"{self._source.where}:1",
                expected="metrics of DCGM's, AMD's or nvidia_smi's exporter, of RAPL, IPMI or the like",
                found=self._name_others() or "no metric that is known",
            )
        for name, flag in self._flags.items():
            if any(value > 0 for value in flag.values):
                self._recording.describe(Device(name=name, is_shared=True))
        for figure, by_name in self._figures.items():
            self._settle_figure(figure, [one for one in by_name.values() if one.times])
        for finding in self._findings():
            self._recording.tell(finding)

    def _check_count(self, count: int, limit: int, what: str) -> None:
        if count > limit:
            raise DecodeError(f"too many {what}", where=self._source.where, expected=f"at most {limit:,}")

    def _all(self) -> Iterator[_Gathered]:
        for by_name in self._figures.values():
            yield from by_name.values()
        yield from self._meaningless.values()
        yield from self._flags.values()

    def _gather(self, name: str, metric: Metric, labels: Mapping[str, str]) -> _Gathered | None:
        """Where samples belong; None for a metric that only describes its device."""
        device = name_device(metric, labels, file=self._source.device)
        self._recording.describe(device)
        if metric.channel is None:
            return self._flags.setdefault(device.name, _Gathered(name, metric)) if metric.is_flag else None
        cut = "" if metric.is_host else name_slice(labels)
        if cut and metric.level is Level.UNSLICED:
            return self._meaningless.setdefault(device.name, _Gathered(name, metric))
        scope, part = metric.scope, metric.part
        if cut and metric.level is Level.SLICE:
            scope, part = Scope.INSTANCE, f"{cut}/{part}" if part else cut
        figure = _Figure(device.name, metric.channel, scope, part)
        by_name = self._figures.setdefault(figure, {})
        self._check_count(len(self._figures), MOST_SERIES, "series")
        gathered = by_name.setdefault(name, _Gathered(name, metric))
        gathered.is_sliced |= bool(cut) and metric.level is Level.BOARD
        return gathered

    def _pass_over(self, name: str) -> None:
        if len(self._others) < _MOST_OTHERS:
            self._others[name] = None

    def _settle_figure(self, figure: _Figure, gathered: list[_Gathered]) -> None:
        """The best metric for a figure, with what others hold before its first and after its last sample."""
        if not gathered:
            return
        settled = [(one, self._settle_one(figure.channel, one)) for one in gathered]
        settled.sort(key=lambda pair: (not _holds_any(pair[1], figure.channel), pair[0].metric.rank))
        (first, whole), *others = settled
        averaged_s = first.metric.averaged_s
        for one, other in others:
            self._pass_over(one.name)
            is_outside = (other.times < whole.times.min()) | (other.times > whole.times.max())
            if is_outside.any():
                whole = _extend(whole, other, is_outside)
                averaged_s = max(averaged_s, one.metric.averaged_s)
        column = self._recording.column(
            figure.device, figure.channel, figure.scope, part=figure.part, averaged_s=averaged_s
        )
        column.extend(whole.times, whole.values)

    def _settle_one(self, channel: Channel, gathered: _Gathered) -> _Settled:
        times = np.array(gathered.times, dtype=np.int64)
        values = np.array(gathered.values, dtype=np.float64)
        metric = gathered.metric
        is_blank = (values >= metric.blank_from) | np.isin(values, metric.blanks)
        with np.errstate(over="ignore"):
            # Blanks go below every channel's range: the recording counts them with all that no sensor gives.
            values = np.where(is_blank, -np.inf, values * metric.factor)
        if gathered.n_label_sets == 1:
            return _Settled(times, values)
        merged, n_repeated, widest = _merge(times, values)
        self._told.add(channel, n_repeated, widest, is_sliced=gathered.is_sliced)
        return merged

    def _findings(self) -> Iterator[Finding]:
        where = self._source.where
        yield from self._told.findings(where)
        n_meaningless = sum(
            int((np.array(one.values, dtype=np.float64) >= 0).sum()) for one in self._meaningless.values()
        )
        if n_meaningless:
            yield Finding(
                code="mig-utilisation",
                severity=Severity.WARNING,
                message=(
                    f"{plural(n_meaningless, 'reading')} of a utilisation that does not work on partitioned "
                    "GPUs; left out: a 0 there is no idle GPU"
                ),
                where=where,
                count=n_meaningless,
            )
        if self._others:
            yield Finding(
                code="metrics-other",
                severity=Severity.NOTE,
                message=f"passed over: {self._name_others()}",
                where=where,
                count=len(self._others),
            )

    def _name_others(self) -> str:
        if not self._others:
            return ""
        first = [name[:80] for name in list(self._others)[:_NAMED_OTHERS]]
        more = ", ..." if len(self._others) > len(first) else ""
        at_least = "at least " if len(self._others) >= _MOST_OTHERS else ""
        return f"{at_least}{plural(len(self._others), 'other metric')} ({', '.join(first)}{more})"


def parse_sample_value(text: bytes) -> float:
    """The number of a sample as Prometheus writes it; NaN and infinities are numbers to it.

    Raises:
        Unreadable: It is none.
    """
    if _NUMBER.fullmatch(text):
        return float(text)
    value = _SPECIAL.get(text.lower())
    if value is None:
        raise Unreadable(text[:40].decode("utf-8", "backslashreplace"))
    return value


def place_seconds(time_s: Decimal) -> int:
    """Nanoseconds since 1970, without rounding of a binary fraction.

    Raises:
        Unreadable: A time at which there were no exporters, or too far ahead.
    """
    if not time_s.is_finite() or not _LEAST_S <= time_s < _MOST_S:
        raise Unreadable("a time outside 2001 to 2096")
    return int(time_s * NANOSECOND_PER_SECOND)


class _Repetitions:
    """What stood several times for one figure and time."""

    def __init__(self) -> None:
        self._of_boards: Counter[Channel] = Counter()
        self._n_other = 0
        self._widest_w = 0.0

    def add(self, channel: Channel, n_repeated: int, widest: float, *, is_sliced: bool) -> None:
        if not is_sliced:
            self._n_other += n_repeated
        elif n_repeated:
            self._of_boards[channel] += n_repeated
            if channel in (Channel.POWER_W, Channel.POWER_AVERAGE_W):
                self._widest_w = max(self._widest_w, widest)

    def findings(self, where: str) -> Iterator[Finding]:
        if self._of_boards:
            count = sum(self._of_boards.values())
            yield Finding(
                code="mig-power-repeated",
                severity=Severity.WARNING,
                message=(
                    "slices of partitioned GPUs repeat figures of the whole board "
                    f"({', '.join(self._of_boards)}): {plural(count, 'repetition')}, not added; one value a "
                    "board and time is kept, the highest"
                ),
                where=where,
                found=f"power that differs by up to {self._widest_w:.3g} W" if self._widest_w else "",
                count=count,
            )
        if self._n_other:
            yield Finding(
                code="labels-repeated",
                severity=Severity.NOTE,
                message=(
                    f"{plural(self._n_other, 'sample')} of a device and time "
                    f"{agree(self._n_other, 'stands', 'stand')} there again under other labels, such as a "
                    "pod's; one is kept, the highest"
                ),
                where=where,
                count=self._n_other,
            )


def _holds_any(settled: _Settled, channel: Channel) -> bool:
    """Whether there is a reading that the channel's sensor can give."""
    low, high = possible_range(channel)
    return bool(((settled.values >= low) & (settled.values <= high)).any())


def _merge(times: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[_Settled, int, float]:
    """One value a time, the highest, in the order of time; how many others there were, and how far apart."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], times[1:] != times[:-1]]))
    highest = np.fmax.reduceat(values, starts)
    finite = np.where(np.isfinite(values), values, np.nan)
    n_finite = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    with np.errstate(over="ignore"):
        apart = np.fmax.reduceat(finite, starts) - np.fmin.reduceat(finite, starts)
    widest = float(np.max(apart, initial=0.0, where=np.isfinite(apart)))
    return _Settled(times[starts], highest), int(np.maximum(n_finite - 1, 0).sum()), widest


def _extend(best: _Settled, other: _Settled, is_outside: NDArray[np.bool_]) -> _Settled:
    """The best metric's samples and some of another, in the order of time."""
    times = np.concatenate([best.times, other.times[is_outside]])
    values = np.concatenate([best.values, other.values[is_outside]])
    order = np.argsort(times, kind="stable")
    return _Settled(times[order], values[order])
