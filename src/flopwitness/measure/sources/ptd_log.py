"""What SPEC's power and temperature daemon (PTDaemon) says of itself: `ptd_logs.txt`.

Most of it is talk with the meter and with its client. It holds readings in three forms: sample lines, where
the daemon was given no file for them; replies to a client that asked for the power; and one mean for each
completed measurement, which covers the time since that began. This log does not say on which side of the
supply the meter sits, and means have a scope of their own accordingly: so a meter whose samples lie beside
this log, in however many files, is not counted twice.
"""

import re
from array import array
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Mark, Scope, Trace
from flopwitness.measure.sources.clock_text import parse_us_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.local_time import place_local_times
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.spl_log import SAMPLE, SampleLines, meter_name
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number
from flopwitness.measure.wording import plural

__all__ = ["FORMATS", "decode_ptd_log"]

_BANNER: Final = b"SPEC PTDaemon Tool"
_STAMPED: Final = re.compile(rb"(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d{1,9}): (.*)", re.DOTALL)
_OWN_WORDS: Final = re.compile(
    rb"\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d{1,9}: "
    rb"(?:Attempting to connect to measurement device|Response to client sent: |Go with mark '|Avg watts )"
)
_MARK: Final = re.compile(rb"Go with mark '([^']{1,200})'")
_STARTING: Final = b"Response to client sent: Starting "
_REPLY: Final = b"Response to client sent: Watts,"
_COMPLETED: Final = b"Completed test"
_MEAN: Final = b"Avg watts "
_SUMMARY: Final = re.compile(
    rb"Avg watts (-?[0-9.]{1,30}), .*samples (\d{1,12}), errors (\d{1,12}), valid (\d{1,12})"
)
_UNCERTAIN: Final = b"WARNING: Uncertainty unknown for the last measurement sample!"
_USUAL_STEP_S: Final = 1.0  # the daemon's own; the logs' clients ask for no other
_MOST_MARKS: Final = 10_000
_LOOKED_AT: Final = 200  # lines


def decode_ptd_log(source: Source) -> Trace:
    """The samples, the replies and the means of one daemon's log, with the marks of its measurements.

    A measurement's mark stands twice: where it began, and where the daemon completed it.

    Raises:
        DecodeError: It holds no reading.

    Source:
        SPEC PTDaemon 1.9.2's own log; MLCommons, power-dev, compliance/check.py, for its words.
    """
    reader = _DaemonLog(source)
    for batch in source.lines():
        for number, line in batch:
            reader.take(line.strip(), number)
        reader.samples.check_size()
    return reader.trace()


@dataclass(slots=True)
class _Means:
    """Means of whole measurements: when each was completed, and over how long the longest was taken."""

    times: "array[int]"
    values: "array[float]"
    longest_s: float = 0.0


class _DaemonLog:
    """What one log has told so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recording = Recording(source, times=Times.LOCAL)
        self.samples = SampleLines(source, self._recording)
        self._means = _Means(array("q"), array("d"))
        self._n_replies = 0
        self._start_ns: int | None = None
        self._mark = ""
        self._marks: list[tuple[str, int, int]] = []
        self._n_uncertain = self._n_errors = 0

    def take(self, line: bytes, number: int) -> None:
        if line.startswith(b"Time,"):
            if not self.samples.take(line, number):
                self._recording.skip(number, expected="a sample line with its power", found=line)
            return
        found = _STAMPED.fullmatch(line)
        if found is None:
            return
        words = found[2]
        if words.startswith(_UNCERTAIN):
            self._n_uncertain += 1
        elif words.startswith((b"Go with mark", _STARTING, _REPLY, _COMPLETED, _MEAN)):
            time_ns = parse_us_stamp(found[1])
            if time_ns is None:
                self._recording.skip(number, expected="a date that exists", found=line)
            else:
                self._take_event(words, time_ns, number)

    def _take_event(self, words: bytes, time_ns: int, line: int) -> None:
        if mark := _MARK.fullmatch(words):
            self._mark = mark[1].decode("utf-8", "replace")
            self._start_ns = time_ns
            self._note_mark(time_ns, line)
        elif words.startswith(_STARTING):
            self._start_ns = time_ns
        elif words.startswith(_REPLY):
            self._take_reply(words, time_ns, line)
        elif words == _COMPLETED and self._mark:
            self._note_mark(time_ns, line)
            self._mark = ""
        elif words.startswith(_MEAN):
            self._take_mean(words, time_ns, line)

    def _note_mark(self, time_ns: int, line: int) -> None:
        if len(self._marks) < _MOST_MARKS:
            self._marks.append((self._mark, time_ns, line))

    def _take_reply(self, words: bytes, time_ns: int, line: int) -> None:
        """What the daemon answered to a client that asked for the power."""
        value = words.removeprefix(_REPLY).split(b",", 1)[0]
        try:
            power_w = parse_number(value)
        except Unreadable:
            self._recording.skip(line, expected="`Watts,<number>` in a reply", found=words)
            return
        column = self._recording.column(meter_name(self._source), Channel.POWER_W, Scope.NODE_AC)
        column.add(time_ns, float("nan") if power_w == -1 else power_w)
        self._n_replies += 1

    def _take_mean(self, words: bytes, time_ns: int, line: int) -> None:
        """The mean of a measurement that was completed now."""
        found = _SUMMARY.fullmatch(words)
        try:
            mean_w = parse_number(found[1]) if found is not None else float("nan")
        except Unreadable:
            found = None
        if found is None:
            expected = "`Avg watts <number>, ..., samples N, errors N, valid N`"
            self._recording.skip(line, expected=expected, found=words)
            return
        n_samples, n_errors, n_valid = int(found[2]), int(found[3]), int(found[4])
        self._n_errors += n_errors
        self._means.times.append(time_ns)
        self._means.values.append(mean_w if n_valid and mean_w != -1 else float("nan"))
        length_s = n_samples * _USUAL_STEP_S
        if self._start_ns is not None and self._start_ns < time_ns:
            length_s = (time_ns - self._start_ns) / NANOSECOND_PER_SECOND
        self._means.longest_s = max(self._means.longest_s, length_s)
        self._start_ns = None

    def trace(self) -> Trace:
        if not self.samples.count and not self._n_replies and not len(self._means.times):
            raise DecodeError(
                "a daemon's log without a reading",
                where=f"{self._source.where}:1",
                expected="sample lines, `Watts,` replies or `Avg watts` lines",
                found="talk with the meter and its client; the samples may lie in a file of their own",
            )
        if len(self._means.times):
            self._recording.column(
                meter_name(self._source),
                Channel.POWER_AVERAGE_W,
                Scope.NODE,
                averaged_s=self._means.longest_s,
            ).extend(self._means.times, self._means.values)
        self._tell_doubts()
        trace = self.samples.trace()
        return replace(trace, marks=(*trace.marks, *self._placed_marks()))

    def _placed_marks(self) -> list[Mark]:
        """The measurements' marks in UTC, as the recording's readings are."""
        local_ns = np.array([time_ns for _, time_ns, _ in self._marks], dtype=np.int64)
        zone = self._source.options.zone
        utc_ns = local_ns if zone is None else place_local_times(local_ns, zone).utc_ns
        return [
            Mark(name=name, utc_ns=int(placed_ns), where=f"{self._source.where}:{line}")
            for (name, _, line), placed_ns in zip(self._marks, utc_ns, strict=True)
        ]

    def _tell_doubts(self) -> None:
        if self._n_uncertain:
            self._recording.tell(
                Finding(
                    code="meter-uncertain",
                    severity=Severity.NOTE,
                    message=(
                        f"the meter's daemon says {plural(self._n_uncertain, 'time')} that it cannot state "
                        "the uncertainty of a sample"
                    ),
                    where=self._source.where,
                    count=self._n_uncertain,
                )
            )
        if self._n_errors:
            self._recording.tell(
                Finding(
                    code="meter-errors",
                    severity=Severity.WARNING,
                    message=(
                        f"{plural(self._n_errors, 'sample')} of the meter were in error; the daemon's means "
                        "leave them out"
                    ),
                    where=self._source.where,
                    count=self._n_errors,
                )
            )


def _is_ptd_log(head: bytes, name: str) -> bool:
    """By the daemon's banner or its own words; a file that begins with samples is one of samples."""
    del name
    lines = decode_head(head[: 1 << 16]).split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    return not SAMPLE.match(lines[0]) and any(_BANNER in line or _OWN_WORDS.match(line) for line in lines)


FORMATS: Final = (Format(name="ptd-log", is_it=_is_ptd_log, decode=decode_ptd_log),)
