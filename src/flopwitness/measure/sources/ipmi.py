"""A machine's own power meter as its management controller tells it over IPMI's DCMI.

`ipmitool dcmi power reading`, FreeIPMI's `ipmi-dcmi --get-system-power-statistics` and `ipmiutil dcmi power`
print the same answer in different words; logs hold one answer or many, often with the host's `date` between
them. The controller's own stamp is taken where it has one: its clock is often local, and often wrong. The
average is over a time that the controller chooses, which may be five seconds or the weeks since it started.
"""

import re
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.clock_text import ClockStamp, parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, is_missing, parse_number
from flopwitness.measure.wording import plural

__all__ = ["FORMATS", "decode_dcmi"]

_FIELD: Final = re.compile(rb"([A-Za-z][A-Za-z ]{2,60}?)\s*:\s*(.*)", re.DOTALL)
_WATTS: Final = re.compile(rb"(\S{1,64})\s+[Ww](?:atts?)?\.?")
_PERIOD: Final = re.compile(
    rb"(\d{1,12})[\s_]*(milliseconds?|ms|seconds?|sec|s|minutes?|min|hours?|days?)\b", re.IGNORECASE
)
_MERGED_PERIOD: Final = re.compile(rb"(.*?)\s+Sampling period:\s*(.*)", re.DOTALL)
_INSTANT: Final = (b"instantaneous power reading", b"current power")
_AVERAGE: Final = (
    b"average power reading over sample period",
    b"average power over sampling duration",
    b"avg power over sample duration",
)
_STAMPS: Final = (b"ipmi timestamp", b"time stamp", b"timestamp")
_PERIODS: Final = (b"sampling period", b"statistics reporting time period")
_STATES: Final = (b"power reading state is", b"power measurement")
_IGNORED: Final = (  # of the same answers
    b"minimum during sampling period",
    b"maximum during sampling period",
    b"minimum power over sampling duration",
    b"maximum power over sampling duration",
    b"min power over sample duration",
    b"max power over sample duration",
)
_ON: Final = (b"activated", b"active")
_OFF: Final = (b"deactivated", b"inactive", b"not active", b"not available", b"not activated")
_SECONDS: Final = {b"s": 1.0, b"m": 60.0, b"h": 3_600.0, b"d": 86_400.0}
_LONGEST_LINE: Final = 1_000
_CHATTER: Final = (
    b"--",
    b"$ ",
    b"# ",
    b"ipmiutil",
    b"dcmi ",
    b"current limit state",
    b"exception action",
    b"power limit",
    b"correction time",
)
_FIRST_SET_NS: Final = 946_684_800 * NANOSECOND_PER_SECOND  # a controller's clock before 2000 was never set
_ANSWER: Final = re.compile(
    rb"^[ \t]*(?:Instantaneous power reading\s*:|Current Power\s*:\s*\S+\s+[Ww]atts)", re.MULTILINE
)


def decode_dcmi(source: Source) -> Trace:
    """The instant readings of one machine, and its averages beside them.

    Where no answer has a time, answers are numbered. An answer whose measurement is off is missing. An
    average is kept only where the log says over how long it was taken.

    Raises:
        DecodeError: It holds no answer with a power.

    Source:
        DCMI 1.5, section 6.6.1 (Get Power Reading); ipmitool, lib/ipmi_dcmi.c; FreeIPMI, ipmi-dcmi(8).
    """
    reader = _DcmiLog(source)
    for batch in source.lines():
        for number, line in batch:
            reader.take(line.strip(), number)
    return reader.trace()


class _Answer:
    """One answer as its lines come."""

    __slots__ = ("average_w", "instant_w", "is_off", "line", "period_s", "stamp")

    def __init__(self, line: int, instant_w: float, stamp: ClockStamp | None) -> None:
        self.line = line
        self.instant_w = instant_w
        self.average_w = float("nan")
        self.stamp = stamp
        self.period_s = 0.0
        self.is_off = False


class _DcmiLog:
    """What one log has told so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recording = Recording(source, times=Times.COUNTED)
        self._answer: _Answer | None = None
        self._date: ClockStamp | None = None  # what stood on a line of its own before the answer
        self._held = HeldReadings(source.where)
        self._n_answers = 0
        self._n_off = 0
        self._first_unread = b""

    def take(self, line: bytes, number: int) -> None:
        if not line:
            return
        if len(line) > _LONGEST_LINE:
            self._skip(number, b"a line of an answer", line)
            return
        found = _FIELD.fullmatch(line)
        name = found[1].lower() if found is not None else b""
        if found is None or not self._take_field(name, found[2].strip(), number):
            self._take_other(line, number)

    def _take_field(self, name: bytes, value: bytes, number: int) -> bool:
        """Whether the line is one of an answer's."""
        if name in _INSTANT:
            self._begin_answer(value, number)
        elif name in _AVERAGE or name in _IGNORED:
            self._take_average(name, value, number)
        elif name in _STAMPS:
            self._take_stamp(value)
        elif name in _PERIODS:
            self._take_period(value)
        elif name in _STATES:
            self._take_state(value, number)
        else:
            return False
        return True

    def _begin_answer(self, value: bytes, number: int) -> None:
        self._end_answer()
        power_w = _power_w(value)
        if power_w is None:
            self._skip(number, b"an instant power in watts", value)
            return
        self._answer = _Answer(number, power_w, self._date)
        self._date = None

    def _take_average(self, name: bytes, value: bytes, number: int) -> None:
        power_w = _power_w(value)
        if power_w is None:
            self._skip(number, name + b" in watts", value)
        elif self._answer is not None and name in _AVERAGE:
            self._answer.average_w = power_w

    def _take_stamp(self, value: bytes) -> None:
        """The controller's own time; newer versions of ipmitool print the period on the same line."""
        merged = _MERGED_PERIOD.fullmatch(value)
        if merged is not None:
            value = merged[1]
            self._take_period(merged[2])
        stamp = parse_stamp(value)
        if self._answer is not None and stamp is not None and stamp.time_ns >= _FIRST_SET_NS:
            self._answer.stamp = stamp

    def _take_period(self, value: bytes) -> None:
        found = _PERIOD.match(value)
        if found is None or self._answer is None:
            return
        unit = found[2].lower()
        scale = 1e-3 if unit.startswith((b"ms", b"milli")) else _SECONDS[unit[:1]]
        self._answer.period_s = int(found[1]) * scale

    def _take_state(self, value: bytes, number: int) -> None:
        state = value.rstrip(b".").lower()
        if state not in _ON and state not in _OFF:
            self._skip(number, b"`activated` or `deactivated`", value)
        if self._answer is not None:
            self._answer.is_off = state in _OFF
        self._end_answer()

    def _take_other(self, line: bytes, number: int) -> None:
        """A line that is none of an answer's: a date on its own, or the tools' talk."""
        stamp = parse_stamp(line)
        if stamp is not None:
            self._end_answer()
            self._date = stamp
        elif line and not _is_chatter(line):
            self._skip(number, b"a line of `ipmitool dcmi power reading` or its like", line)

    def _end_answer(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if answer.is_off:
            self._n_off += 1
            answer.instant_w = answer.average_w = float("nan")
        self._hold(Channel.POWER_W, answer.instant_w, answer)
        if answer.period_s > 0:
            self._hold(Channel.POWER_AVERAGE_W, answer.average_w, answer, averaged_s=answer.period_s)
        self._n_answers += 1

    def _hold(self, channel: Channel, power_w: float, answer: _Answer, *, averaged_s: float = 0.0) -> None:
        self._held.add(
            Figure(self._source.device, channel, Scope.NODE),
            power_w,
            stamp=answer.stamp,
            line=answer.line,
            number=self._n_answers,
            averaged_s=averaged_s,
        )

    def _skip(self, number: int, expected: bytes, found: bytes) -> None:
        self._first_unread = self._first_unread or found
        self._recording.skip(number, expected=expected.decode("ascii"), found=found)

    def trace(self) -> Trace:
        self._end_answer()
        if not self._n_answers:
            raise DecodeError(
                "no power reading of a management controller",
                where=f"{self._source.where}:1",
                expected="`Instantaneous power reading: <number> Watts` or `Current Power : <number> Watts`",
                found=excerpt(self._first_unread) or "no such line",
            )
        self._tell_off()
        self._held.fill(self._recording)
        return self._recording.trace()

    def _tell_off(self) -> None:
        if self._n_off:
            self._recording.tell(
                Finding(
                    code="power-reading-off",
                    severity=Severity.WARNING,
                    message=(
                        f"{plural(self._n_off, 'answer')} of the management controller say that power is not "
                        "being measured; their figures are left out"
                    ),
                    where=self._source.where,
                    count=self._n_off,
                )
            )


def _power_w(value: bytes) -> float | None:
    """The power, NaN where a marker stands for it, None where neither does."""
    found = _WATTS.fullmatch(value)
    if found is None:
        return float("nan") if is_missing(value) else None
    try:
        return parse_number(found[1])
    except Unreadable:
        return None


def _is_chatter(line: bytes) -> bool:
    """What the tools print around the answer, and what a shell repeats of a command."""
    return line.lower().startswith(_CHATTER)


def _is_dcmi(head: bytes, name: str) -> bool:
    del name
    return _ANSWER.search(decode_head(head[: 1 << 16])) is not None


FORMATS: Final = (Format(name="ipmi-dcmi", is_it=_is_dcmi, decode=decode_dcmi),)
