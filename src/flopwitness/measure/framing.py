"""Which readings, which run and which time an answer is about.

Logs of one run overlap, disagree and run past each other. What is chosen here is told as a finding.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.clock import utc_year
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, SECOND_PER_HOUR, format_duration
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.capacity import device_limit_w, expected_devices, least_count
from flopwitness.measure.energy import recorded_stretch
from flopwitness.measure.lanes import join_recordings
from flopwitness.measure.plausibility import Hardware, settle_hardware
from flopwitness.measure.power_choice import choose_power
from flopwitness.measure.question import Question
from flopwitness.measure.samples import RunWindow, Scope, Series, Timing, Trace
from flopwitness.measure.timing import doubt_clocks

__all__ = [
    "Frame",
    "assess_clock",
    "choose_window",
    "claimed_stretches",
    "frame_run",
    "length_s",
    "recorded_length_s",
    "recorded_span",
]

_DAY_NS: Final = 86_400 * NANOSECOND_PER_SECOND
_LATE_S: Final = 60.0  # within it a log is closed after its run
_FIRST_NS: Final = 1_262_304_000 * NANOSECOND_PER_SECOND  # 2010: no log format that is read here is older
_LAST_NS: Final = 4_102_444_800 * NANOSECOND_PER_SECOND  # 2100
_LONGEST_RUN_S: Final = 100 * 365 * 24 * SECOND_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What an answer is about.

    Attributes:
        trace: The logs of the run, merged.
        question: What the user states beside them.
        scope: What the chosen readings cover.
        series: One power series a device, those that follow each other joined; none where no power was
            recorded.
        recordings: The same as they were recorded.
        counters: The counter of energy of each device that has one beside its power, by the device's name.
        window: The run, as its log marks it; None where no mark can be used.
        in_run: The stretch that is estimated: the run, else the readings; None where nothing has a length.
        span: The stretch that is bounded: everything that anything recorded speaks of.
        duration_s: Length of what is estimated [s]; None where unknown.
        recorded_s: Length of what is bounded [s]; None where no clock can be believed, or nothing has one.
        count: How many chips are estimated: the user's number, or one for each recorded device.
        hardware: What the bound covers: every chip, and the largest count, that any record names.
    """

    trace: Trace
    question: Question
    scope: Scope
    series: tuple[Series, ...]
    recordings: tuple[Series, ...]
    counters: dict[str, Series]
    window: RunWindow | None
    in_run: RunWindow | None
    span: RunWindow | None
    duration_s: float | None
    recorded_s: float | None
    count: int
    hardware: Hardware

    @property
    def n_expected(self) -> int:
        """How many devices the power of the estimated chips should come from."""
        return expected_devices(self.trace, self.series, self.scope, self.question.chips, self.question.count)

    @property
    def limit_w(self) -> float | None:
        """The most that one device of the estimated chips can draw [W]; None where it is not known."""
        return device_limit_w(self.question.chips, self.question.count, self.scope, self.n_expected)


def frame_run(trace: Trace, question: Question, findings: list[Finding]) -> Frame:
    """Choose readings, run, times and hardware; what is odd about the choice goes to `findings`."""
    choice = choose_power(trace, findings)
    scope, recordings = choice.scope, choice.series
    series = join_recordings(recordings, findings)
    window = choose_window(trace, recordings, findings)
    findings += assess_clock(trace)
    readings = recorded_span((*series, *_companions(trace, series)), window)
    span = recorded_span(series, window, claimed_stretches(trace))
    is_lost = doubt_clocks(trace, recordings, findings)
    is_counted = any(item.timing is Timing.COUNTED for item in trace.series)
    recorded_s = None if is_lost or is_counted else recorded_length_s(span, trace)
    count = least_count(series, scope, question.count)
    return Frame(
        trace=trace,
        question=question,
        scope=scope,
        series=series,
        recordings=recordings,
        window=window,
        in_run=window or readings,
        span=span,
        counters={item.device: item for item in join_recordings(tuple(choice.counters.values()), [])},
        duration_s=length_s(window) or length_s(readings) or recorded_s,
        recorded_s=recorded_s,
        count=count,
        hardware=settle_hardware(
            question.chips,
            count,
            declared_chips=question.declared_chips,
            declared_count=None if trace.declaration is None else trace.declaration.chips,
            findings=findings,
        ),
    )


def _companions(trace: Trace, series: Sequence[Series]) -> list[Series]:
    """What else was recorded of the same devices: power that stops while a device is watched is missing."""
    devices = {item.device for item in series}
    return [item for item in trace.series if item.device in devices and len(item)]


def choose_window(trace: Trace, series: Sequence[Series], findings: list[Finding]) -> RunWindow | None:
    """The run that the readings fall into; None where no log marks one that can be used."""
    findings += _assess_stops(trace)
    usable = [window for window in trace.windows if length_s(window) is None or (length_s(window) or 0) > 0]
    if len(usable) < len(trace.windows):
        findings.append(
            Finding(
                code="run-reversed",
                severity=Severity.CONTRADICTION,
                message="the log marks a run that does not stop after it starts; its marks are not used",
            )
        )
    usable = [window for window in usable if (length_s(window) or 0) <= _LONGEST_RUN_S]
    if not usable:
        return None
    best = max(usable, key=lambda window: _overlap_ns(window, series))
    if series and _overlap_ns(best, series) == 0:
        findings.append(
            Finding(
                code="clocks-apart",
                severity=Severity.WARNING,
                message=(
                    "no power reading falls into the marked run: the logs' clocks disagree, or they are "
                    "not of one run; the whole power recording is used"
                ),
            )
        )
        return None
    if len(usable) > 1:
        findings.append(
            Finding(
                code="runs-several",
                severity=Severity.WARNING,
                message=f"the logs mark {len(usable)} runs; the one that the readings cover best is used",
                count=len(usable),
            )
        )
    return best


def _assess_stops(trace: Trace) -> list[Finding]:
    """Stops that a log marks beside the last one, and events that come long after it."""
    findings = []
    more = [mark for mark in trace.marks if mark.name == "run_stop"]
    if more:
        findings.append(
            Finding(
                code="stops-several",
                severity=Severity.WARNING,
                message=(
                    "the log marks more than one stop of the same run, a minute or more apart; the latest "
                    "counts"
                ),
                where=more[0].where,
                count=len(more),
            )
        )
    stops_ns = [window.stop_utc_ns or 0 for window in trace.windows if (length_s(window) or 0) > 0]
    if trace.extent is None or trace.extent.stop_utc_ns is None or not stops_ns:
        return findings
    late_s = (trace.extent.stop_utc_ns - max(stops_ns)) / NANOSECOND_PER_SECOND
    if late_s > _LATE_S:
        findings.append(
            Finding(
                code="events-after-stop",
                severity=Severity.WARNING,
                message=(
                    f"the result log goes on for {format_duration(late_s)} after the last stop that it "
                    "marks; the estimate is for the marked run, the bound covers at least the "
                    f"{format_duration(length_s(trace.extent) or 0.0)} from the log's first event to its last"
                ),
                expected=f"at most {format_duration(_LATE_S)}",
                found=format_duration(late_s),
            )
        )
    return findings


def assess_clock(trace: Trace) -> list[Finding]:
    """Instants that no clock of such a recording shows.

    A time before its time comes from a clock that was never set, or from a unit taken for another, and then
    lengths are as wrong as dates: seconds in place of milliseconds make a month of 43 minutes. A time far
    ahead can only make the recording longer. A switch's estimate is not looked at; its date is told apart.
    """
    instants = list(_instants(trace))
    early = [utc_ns for utc_ns in instants if utc_ns < _FIRST_NS]
    late = [utc_ns for utc_ns in instants if utc_ns >= _LAST_NS]
    messages = []
    if early:
        messages.append(
            f"the recording holds times stamped {utc_year(max(0, min(early)))}: seconds in place of "
            "milliseconds? No length can be trusted, so neither time nor energy bounds the run"
        )
    if late:
        messages.append("the recording holds times after the year 2099; the bound covers all of that time")
    return [
        Finding(
            code="clock-implausible",
            severity=Severity.WARNING,
            message=message,
            expected="times between 2010 and 2099",
        )
        for message in messages
    ]


def _instants(trace: Trace) -> Iterator[int]:
    """The first and last time of everything with a date, switches left out [ns since 1970]."""
    for item in trace.series:
        if len(item) and item.scope is not Scope.SWITCH and item.timing is Timing.DATED:
            yield from (int(item.utc_ns.min()), int(item.utc_ns.max()))
    if trace.series and all(item.timing is not Timing.DATED for item in trace.series):
        return  # their marks have no date either
    for window in (*trace.windows, *claimed_stretches(trace)):
        yield window.start_utc_ns
        if window.stop_utc_ns is not None:
            yield window.stop_utc_ns


def length_s(window: RunWindow | None) -> float | None:
    """The window's length [s]; None where there is no window, or no stop."""
    if window is None or window.stop_utc_ns is None:
        return None
    return (window.stop_utc_ns - window.start_utc_ns) / NANOSECOND_PER_SECOND


def _overlap_ns(window: RunWindow, series: Sequence[Series]) -> int:
    """How much of the readings' time lies in the run, all devices together [ns]."""
    total = 0
    for item in series:
        first, last = int(item.utc_ns.min()), int(item.utc_ns.max())
        stop = window.stop_utc_ns if window.stop_utc_ns is not None else last
        total += max(0, min(stop, last) - max(window.start_utc_ns, first))
    return total


def claimed_stretches(trace: Trace) -> list[RunWindow]:
    """What the logs take by their own words beside runs and readings.

    The events of all result logs together, and the marks of each power log by itself.
    """
    by_log: dict[str, list[int]] = defaultdict(list)
    for mark in trace.marks:
        by_log[mark.where.rpartition(":")[0]].append(mark.utc_ns)
    claims = [RunWindow(start_utc_ns=min(marks), stop_utc_ns=max(marks)) for marks in by_log.values()]
    return claims if trace.extent is None else [trace.extent, *claims]


def recorded_span(
    series: Sequence[Series], window: RunWindow | None, claims: Sequence[RunWindow] = ()
) -> RunWindow | None:
    """From the first to the last instant that the readings and the run's marks speak of, and any claims.

    A device whose clock stands a day or more from the others', and from the run, does not stretch it; such
    a device shows as uncovered. The marks and claims only add to what the readings span by themselves.
    """
    stretches = [_ends(recorded_stretch(item)) for item in series]
    anchors_ns = [sorted(stretches)[len(stretches) // 2][0]] if stretches else []
    if window is not None:
        anchors_ns.append(window.start_utc_ns)
        last_ns = max((stop for _, stop in stretches), default=window.start_utc_ns)
        stop_ns = window.stop_utc_ns if window.stop_utc_ns is not None else max(last_ns, window.start_utc_ns)
        stretches.append((window.start_utc_ns, stop_ns))
    if not stretches:
        return None
    stretches += map(_ends, claims)
    near = [(a, b) for a, b in stretches if any(_is_near(a, b, anchor_ns) for anchor_ns in anchors_ns)]
    return RunWindow(start_utc_ns=min(a for a, _ in near), stop_utc_ns=max(b for _, b in near))


def _is_near(start_ns: int, stop_ns: int, anchor_ns: int) -> bool:
    return abs(start_ns - anchor_ns) < _DAY_NS or start_ns <= anchor_ns <= stop_ns


def _ends(stretch: RunWindow) -> tuple[int, int]:
    return stretch.start_utc_ns, stretch.stop_utc_ns or stretch.start_utc_ns


def recorded_length_s(span: RunWindow | None, trace: Trace) -> float | None:
    """The longest time that anything recorded claims [s]: a bound must not trust the shorter of two marks.

    The span, all readings (values missing or not, of any channel), all marked runs, all events of the
    result logs, and the power logs' marks together; what overlaps counts once. What lies between two of
    them counts too, where that is no more than a day, or than the longest of them. None where nothing has
    a length: a single reading says nothing about time; and None where a clock shows a time before its time.
    """
    if any(utc_ns < _FIRST_NS for utc_ns in _instants(trace)):
        return None
    recordings = [item for item in trace.series if len(item) and item.scope is not Scope.SWITCH]
    stretches = [
        _ends(item)
        for item in (span, *map(recorded_stretch, recordings), *claimed_stretches(trace), *trace.windows)
        if item is not None
    ]
    total_s = _joined_ns(stretches) / NANOSECOND_PER_SECOND
    return total_s if total_s > 0 else None


def _joined_ns(stretches: Sequence[tuple[int, int]]) -> int:
    """The time that the stretches take, those near each other with what lies between [ns]."""
    lasting = sorted((start_ns, stop_ns) for start_ns, stop_ns in stretches if stop_ns > start_ns)
    pause_ns = max(_DAY_NS, *(stop_ns - start_ns for start_ns, stop_ns in lasting), 0)
    total_ns, end_ns = 0, None
    for start_ns, stop_ns in lasting:
        if end_ns is None or start_ns - end_ns > pause_ns:
            end_ns = start_ns
        total_ns += max(0, stop_ns - end_ns)
        end_ns = max(end_ns, stop_ns)
    return total_ns
