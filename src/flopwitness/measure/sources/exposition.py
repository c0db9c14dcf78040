r"""The Prometheus text format and OpenMetrics: scrapes of exporters, one or many, as somebody kept them.

A line is `name{label="value",...} value [time]`. Whoever appends scrapes to a file often keeps no times:
then the scrapes are counted. A metric may stand with new labels in the next scrape, and is the same
sensor all the same; what is a sensor at all, `metric_names` says.

Source:
    Prometheus, "Exposition formats", text-based format 0.0.4; OpenMetrics 1.0, "Text format"; `promtool tsdb
    dump`, which writes the name as the label `__name__`.
"""

import re
from array import array
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from flopwitness.foundation.units import NANOSECOND_PER_MILLISECOND
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.lines import LineBatch
from flopwitness.measure.sources.metric_names import find_metric
from flopwitness.measure.sources.metric_readings import (
    NUMBER,
    MetricReadings,
    Samples,
    parse_sample_value,
    place_seconds,
)
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS"]

_USUAL_PERIOD_S: Final = 60.0  # Prometheus' own default
_MOST_KNOWN_HEADS: Final = 500_000
_LOOKED_AT_BYTES: Final = 64 << 10
_LOOKED_AT_LINES: Final = 200
_LONGEST_SAMPLE_BYTES: Final = 64 << 10  # far beyond what exporters write, and cheap to look through
_SECONDS_BELOW: Final = 10**11  # a time below is in seconds; in milliseconds it would lie before 1974

_TAIL: Final = re.compile(rb"(" + NUMBER + rb")(?: ([1-3][0-9]{12}))?")  # as usual: a number, milliseconds
_TIME: Final = re.compile(rb"[0-9]{1,19}(?:\.[0-9]{0,19})?(?:[eE]\+?[0-9]{1,2})?")
_NAME: Final = re.compile(rb"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)?([ \t]*)(\{)?")
_LABEL: Final = re.compile(rb'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*([,}])')
_QUOTED: Final = re.compile(rb'[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*([,}])')  # a name in Prometheus 3's way
_CLOSED: Final = re.compile(rb"[ \t]*\}")
_ESCAPED: Final = re.compile(rb"\\(.)")
_TYPE: Final = re.compile(rb"#[ \t]+TYPE[ \t]+([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]+[a-z]+[ \t]*")
_EXPECTED: Final = 'a sample such as `name{label="value"} 1.5 1700000000000`'
_UNKNOWN: Final = Samples(array("q"), array("d"))


class _Exposition:
    """What has been read so far."""

    def __init__(self, source: Source) -> None:
        self._recording = Recording(source, times=Times.COUNTED)
        self._recording.counted_period_s = _USUAL_PERIOD_S
        self._readings = MetricReadings(source, self._recording)
        self._known: dict[bytes, Samples | None] = {}  # by all that stands before the value
        self._typed: set[bytes] = set()
        self._is_said_again = False
        self._is_stamped: bool | None = None
        self._sweep = 0

    def take(self, batch: LineBatch) -> None:
        """The samples of some lines; what is not written in the usual way is read with more care."""
        known, split_tail = self._known, _TAIL.fullmatch
        for number, line in batch:
            head, _, tail = line.rpartition(b"} ")
            samples = known.get(head, _UNKNOWN)
            if samples is None:
                continue
            found = None if samples is _UNKNOWN else split_tail(tail)
            if found is None:
                self._take_carefully(number, line)
                continue
            value, stamp = found.groups()
            if stamp is None:
                self._add(samples, float(value), None, number=number, line=line)
            elif self._is_stamped:
                samples.times.append(int(stamp) * NANOSECOND_PER_MILLISECOND)
                samples.values.append(float(value))
            else:
                time_ns = int(stamp) * NANOSECOND_PER_MILLISECOND
                self._add(samples, float(value), time_ns, number=number, line=line)
        self._readings.check_size()

    def trace(self) -> Trace:
        self._recording.times = Times.UTC if self._is_stamped else Times.COUNTED
        self._readings.settle()
        return self._recording.trace()

    def _take_carefully(self, number: int, line: bytes) -> None:
        text = line.strip()
        if not text:
            return
        if text.startswith(b"#"):
            self._note_type(text)
            return
        head = _split_head(line) if len(line) <= _LONGEST_SAMPLE_BYTES else None
        if head is None:
            self._recording.skip(number, expected=_EXPECTED, found=line)
            return
        name, labels, end = head
        samples = self._readings.find(name, labels)
        is_usual = len(line.rpartition(b"} ")[0]) + 1 == end
        if is_usual and len(self._known) < _MOST_KNOWN_HEADS:
            self._known[line[: end - 1]] = samples
        if samples is None:
            return
        try:
            value, time_ns = _parse_tail(line[end:])
        except Unreadable:
            self._recording.skip(number, expected=_EXPECTED, found=line[end:])
            return
        self._add(samples, value, time_ns, number=number, line=line)

    def _add(self, samples: Samples, value: float, time_ns: int | None, *, number: int, line: bytes) -> None:
        """One sample: at its time, or in its sweep where the file has no times."""
        is_stamped = time_ns is not None
        if self._is_stamped is None:
            self._is_stamped = is_stamped
        if is_stamped is not self._is_stamped:
            expected = "a time" if self._is_stamped else "no time"
            self._recording.skip(number, expected=f"{expected}, as with the samples before", found=line)
            return
        if time_ns is None:
            is_read = bool(samples.times) and samples.times[-1] == self._sweep
            if samples.sweep == self._sweep or (self._is_said_again and is_read):
                self._begin_sweep()
            self._is_said_again = False
            samples.sweep = time_ns = self._sweep
        samples.times.append(time_ns)
        samples.values.append(value)

    def _note_type(self, comment: bytes) -> None:
        """Mark where the type of a metric of ours is said once more: the next scrape, or another host's.

        It begins the next sweep only where the sample that follows is of a figure that was read already.
        """
        found = _TYPE.fullmatch(comment)
        if found is None or find_metric(found[1].decode(), {}) is None:
            return
        if found[1] in self._typed:
            self._is_said_again = True
            self._typed.clear()
        self._typed.add(found[1])

    def _begin_sweep(self) -> None:
        self._sweep += 1


def _split_head(line: bytes) -> tuple[str, dict[str, str], int] | None:
    """The name and the labels of a sample, and where they end; None where none begins."""
    found = _NAME.match(line)
    if found is None or (found[3] is None and not (found[1] and found[2])):
        return None
    name = found[1]
    if found[3] is None:
        return name.decode(), {}, found.end()
    labels: dict[str, str] = {}
    end = found.end()
    while (closed := _CLOSED.match(line, end)) is None:
        label = _LABEL.match(line, end)
        if label is not None:
            labels[label[1].decode()] = _unescape(label[2])
        else:
            label = _QUOTED.match(line, end)
            if label is None or name is not None:
                return None
            name = label[1]
        end = label.end()
        if label[label.lastindex or 0] == b"}":
            break
    else:
        end = closed.end()
    named = labels.pop("__name__", "") if name is None else _unescape(name)
    return (named, labels, end) if named else None


def _unescape(text: bytes) -> str:
    if b"\\" in text:
        text = _ESCAPED.sub(lambda escape: b"\n" if escape[1] == b"n" else escape[1], text)
    return text.decode("utf-8", "replace")


def _parse_tail(text: bytes) -> tuple[float, int | None]:
    """The value of a sample and its time; what follows them, such as an exemplar, tells of something else.

    Raises:
        Unreadable: There is no number, or a time that no exporter can have seen.
    """
    value, *stamp = text.partition(b"#")[0].split()[:3] or (b"",)
    if len(stamp) > 1:
        raise Unreadable("more than a value and a time")
    return parse_sample_value(value), _parse_time(stamp[0]) if stamp else None


def _parse_time(text: bytes) -> int:
    """Nanoseconds since 1970 of a time in milliseconds, or in OpenMetrics' seconds."""
    if not _TIME.fullmatch(text):
        raise Unreadable("no time")
    time = Decimal(text.decode())
    return place_seconds(time if time < _SECONDS_BELOW else time / 1_000)


def _is_exposition(head: bytes, name: str) -> bool:
    """Whether a file begins with samples that have labels, or with a metric's type and samples."""
    del name
    lines = [line.strip() for line in decode_head(head[:_LOOKED_AT_BYTES]).split(b"\n")]
    if len(head) > _LOOKED_AT_BYTES:
        lines.pop()  # most likely torn
    lines = [line for line in lines if line][:_LOOKED_AT_LINES]
    is_typed = any(_TYPE.fullmatch(line) for line in lines)
    samples = [line for line in lines if not line.startswith(b"#")]
    labels = [_labels_of(line) for line in samples]
    read = [found for found in labels if found is not None]
    if not read or labels[0] is None:
        return False
    return (is_typed or any(read)) and 2 * len(read) > len(samples)


def _labels_of(line: bytes) -> Mapping[str, str] | None:
    """The labels of a whole sample; None where the line is none."""
    head = _split_head(line)
    if head is None:
        return None
    try:
        _parse_tail(line[head[2] :])
    except Unreadable:
        return None
    return head[1]


def _decode_exposition(source: Source, /) -> Trace:
    """The readings of one or more scrapes.

    Times are UTC where the samples have them. Without, a set of labels that stands again begins the next
    scrape, and so does the type of a metric that is said again.

    Raises:
        DecodeError: No known metric has a sample, or there are more than any fleet has.
    """
    reader = _Exposition(source)
    for batch in source.lines():
        reader.take(batch)
    return reader.trace()


FORMATS: Final = (Format(name="prometheus-text", is_it=_is_exposition, decode=_decode_exposition),)
