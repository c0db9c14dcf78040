"""Samples of a wall meter as SPEC's power and temperature daemon (PTDaemon) writes them: `spl.txt`.

Each line is a list of names and values: the time, the whole meter, the mark of the measurement, then each
channel. A channel is one power supply of the same machine, so it lies inside the total: channels are kept
only where the meter gives no total at all. -1 is the daemon's word for "not measured".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_MILLISECOND, NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, Mark, Scope, Trace
from flopwitness.measure.sources.clock_text import parse_us_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.recording import MOST_READINGS, Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "SAMPLE", "SampleLines", "decode_spl_log", "meter_name"]

SAMPLE: Final = re.compile(rb"Time,\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d{1,9},Watts,")
_EXPECTED: Final = "`Time,MM-DD-YYYY HH:MM:SS.mmm,Watts,<number>,...`"
_CHANNEL: Final = re.compile(rb"Ch\d{1,3}")
_NOT_MEASURED: Final = -1.0
_MOST_FIELDS: Final = 200
_MOST_MARKS: Final = 10_000
_LONGEST_MARK: Final = 200
_TO_MINUTE: Final = 17  # of `03-17-2021 12:56:13.954`, up to the seconds
_OWN_NAMES: Final = frozenset({"spl", "ptd_logs", "ptd_log", "ptd_out", "logs_ptdeamon", "logs_ptdaemon"})


def decode_spl_log(source: Source) -> Trace:
    """The readings of one meter, with each mark at its first and at its last reading.

    Raises:
        DecodeError: It holds no sample.

    Source:
        SPEC PTDaemon's sample lines, as MLCommons' power-dev server takes them: `Time`, `Watts`, `Volts`,
        `Amps`, `PF`, `Mark`; then `Ch1`, `Watts` and so on for each channel of a meter with several.
    """
    recording = Recording(source, times=Times.LOCAL)
    samples = SampleLines(source, recording)
    first_unread = b""
    for batch in source.lines():
        for number, line in batch:
            if line and not samples.take(line, number) and not line.isspace():
                first_unread = first_unread or line
                recording.skip(number, expected=_EXPECTED, found=line)
        samples.check_size()
    if not samples.count:
        raise DecodeError(
            "a meter's log without a sample",
            where=f"{source.where}:1",
            expected=_EXPECTED,
            found=excerpt(first_unread) or "nothing",
        )
    return samples.trace()


def meter_name(source: Source) -> str:
    """The meter's name: that of its file, unless it is what the daemon calls every such file.

    The daemon writes samples and its own log to two files: both are of one meter, and get one name.
    """
    return "ptdaemon" if source.device.lower() in _OWN_NAMES else source.device


class SampleLines:
    """What the sample lines of one file have told so far."""

    def __init__(self, source: Source, recording: Recording) -> None:
        """Begin with nothing read."""
        self.count = 0
        self._source = source
        self._recording = recording
        self._name = meter_name(source)
        self._total: Column | None = None
        self._has_total = False  # from then on channels add nothing
        self._channels: dict[bytes, Column] = {}
        self._layout: _Layout | None = None
        self._marked: dict[bytes, _Marked] = {}
        self._place = 0  # of the last sample among the meter's readings
        self._minute = b""
        self._minute_ns = 0

    def take(self, line: bytes, number: int) -> bool:
        """Whether the line is a sample; it is kept where it is one."""
        if self._has_total and self._layout is not None and self._layout.pattern is not None:
            found = self._layout.pattern.fullmatch(line)
            if found is not None and found[1] == self._minute:
                return self._take_known(found, number)
        return self._take_any(line, number)

    def _take_known(self, found: "re.Match[bytes]", line: int) -> bool:
        """A sample of the layout and the minute that the one before had, of which only the total counts."""
        _, seconds, milliseconds, power_w, mark = found.groups()
        time_ns = self._minute_ns + int(seconds + milliseconds) * NANOSECOND_PER_MILLISECOND
        self._keep(time_ns, (float(power_w),), ())
        if mark:
            self._note_mark(mark, line)
        self.count += 1
        return True

    def _take_any(self, line: bytes, number: int) -> bool:
        fields = line.split(b",", _MOST_FIELDS)
        layout = self._layout
        if layout is None or not layout.fits(fields):
            layout = _find_layout(fields)
            if layout is None or self._is_torn(layout, fields):
                return False
            self._layout = layout
        try:
            values = [_power_w(fields[place]) for place in layout.watts]
        except Unreadable:
            return False
        time_ns = self._time_ns(fields[1])
        if time_ns is None:
            return False
        self._keep(time_ns, values, layout.channels)
        if layout.mark:
            self._note_mark(fields[layout.mark], number)
        self.count += 1
        return True

    def _is_torn(self, layout: "_Layout", fields: Sequence[bytes]) -> bool:
        """Whether the line may be the beginning of one like those before: then its last value may be cut.

        A line that ends with a mark seen before is whole: so a meter looks that has lost its channels.
        """
        if self._layout is None or not self._layout.begins_like(layout):
            return False
        return (
            not layout.mark
            or layout.mark + 1 < len(fields)
            or fields[layout.mark][:_LONGEST_MARK] not in self._marked
        )

    def check_size(self) -> None:
        """Refuse what would fill the memory.

        Raises:
            DecodeError: More readings than one call may hold.
        """
        self._recording.check_size()
        if sum(len(column.times) for column in self._channels.values()) > MOST_READINGS:
            raise DecodeError(
                "too many readings", where=self._source.where, expected=f"at most {MOST_READINGS}"
            )

    def trace(self) -> Trace:
        """Everything as one trace; a mark stands where its readings do."""
        for name, held in self._channels.items():
            part = name.decode("ascii").lower()
            column = self._recording.column(self._name, Channel.POWER_W, Scope.NODE_AC, part=part)
            column.extend(held.times, held.values)
        trace = self._recording.trace()
        return replace(trace, marks=(*trace.marks, *self._marks(trace)))

    def _keep(self, time_ns: int, values: Sequence[float], channels: Sequence[bytes]) -> None:
        """The total as it stands; channels only as long as no total was ever measured."""
        if self._total is None:
            self._total = self._recording.column(self._name, Channel.POWER_W, Scope.NODE_AC)
        total_w = values[0]
        self._place = len(self._total.times)
        self._total.add(time_ns, total_w)
        if self._has_total:
            return
        if total_w == total_w:  # noqa: PLR0124 (it is no NaN)
            self._has_total = True
            self._channels.clear()
            return
        for name, power_w in zip(channels, values[1:], strict=True):
            self._channels.setdefault(name, Column()).add(time_ns, power_w)

    def _time_ns(self, stamp: bytes) -> int | None:
        """The stamp's time; its minute is remembered."""
        time_ns = parse_us_stamp(stamp)
        if time_ns is not None:
            self._minute = stamp[:_TO_MINUTE]
            self._minute_ns = time_ns - time_ns % (60 * NANOSECOND_PER_SECOND)
        return time_ns

    def _note_mark(self, name: bytes, line: int) -> None:
        name = name[:_LONGEST_MARK]
        known = self._marked.get(name)
        if known is not None:
            known.last, known.last_line = self._place, line
        elif len(self._marked) < _MOST_MARKS:
            self._marked[name] = _Marked(self._place, self._place, line, line)

    def _marks(self, trace: Trace) -> list[Mark]:
        """The marks in the order of the log, at the times that their readings have in the trace."""
        if not self._marked:
            return []
        utc_ns = trace.series[0].utc_ns  # the meter's own column, which the first sample made
        places = [
            (place, name, line)
            for name, marked in self._marked.items()
            if not self._is_cut_mark(name, marked)
            for place, line in ((marked.first, marked.first_line), (marked.last, marked.last_line))
        ]
        return [
            Mark(
                name=name.decode("utf-8", "replace"),
                utc_ns=int(utc_ns[place]),
                where=f"{self._source.where}:{line}",
            )
            for place, name, line in sorted(places)
        ]

    def _is_cut_mark(self, name: bytes, marked: "_Marked") -> bool:
        """Whether it stands on the log's last line alone and is the beginning of another: a torn end."""
        if marked.first != self._place:
            return False
        return any(other != name and other.startswith(name) for other in self._marked)


@dataclass(slots=True)
class _Marked:
    """The first and the last reading that bear a mark, by their numbers, and their lines."""

    first: int
    last: int
    first_line: int
    last_line: int


class _Layout:
    """Which field of a line holds what, learnt from one line and checked on each."""

    def __init__(
        self, names: dict[int, bytes], n_fields: int, watts: list[int], channels: list[bytes]
    ) -> None:
        self.watts = watts
        self.channels = channels
        self.mark = next((place + 1 for place, name in names.items() if name == b"Mark"), 0)
        self.pattern: re.Pattern[bytes] | None = None  # of lines to come, once a second one is alike
        self.n_fields = n_fields
        self.names = names

    def fits(self, fields: Sequence[bytes]) -> bool:
        if len(fields) != self.n_fields or any(fields[place] != name for place, name in self.names.items()):
            return False
        self.pattern = self.pattern or _pattern(self.names, self.n_fields, mark=self.mark)
        return True

    def begins_like(self, other: "_Layout") -> bool:
        """Whether the other layout is this one, cut off."""
        return other.n_fields < self.n_fields and other.names.items() <= self.names.items()


def _pattern(names: dict[int, bytes], n_fields: int, *, mark: int) -> "re.Pattern[bytes]":
    """Lines of a layout with a total above zero: the minute, second, millisecond, total and mark."""
    fields = [re.escape(names[place]) if place in names else rb"[^,]*" for place in range(n_fields)]
    fields[1] = rb"(\d\d-\d\d-\d{4} \d\d:\d\d:)([0-5]\d)\.(\d{3})"
    fields[3] = rb"(\d{1,12}(?:\.\d{0,12})?)"
    if mark:
        fields[mark] = rb"([^,]*)"
    return re.compile(b",".join(fields) + (b"" if mark else b"()"))


def _find_layout(fields: Sequence[bytes]) -> _Layout | None:
    """The layout of a line of names and values; None where it is none with a time and a power."""
    names: dict[int, bytes] = {}
    watts: list[int] = []
    channels: list[bytes] = []
    place = 0
    while place < len(fields):
        name = names[place] = fields[place]
        if _CHANNEL.fullmatch(name):
            channels.append(name)
            place += 1
            continue
        if name == b"Watts":
            watts.append(place + 1)
        place += 2
    is_whole = place == len(fields) and fields[0] == b"Time" and names.get(2) == b"Watts"
    if not is_whole or len(watts) != 1 + len(channels) or len(set(channels)) != len(channels):
        return None
    return _Layout(names, len(fields), watts, channels)


def _power_w(text: bytes) -> float:
    power_w = parse_number(text)
    return float("nan") if power_w == _NOT_MEASURED else power_w


def _is_spl_log(head: bytes, name: str) -> bool:
    del name
    first = decode_head(head[:4096]).lstrip()
    return SAMPLE.match(first) is not None


FORMATS: Final = (Format(name="spec-ptd", is_it=_is_spl_log, decode=decode_spl_log),)
