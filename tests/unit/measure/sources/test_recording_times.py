"""Times of every kind become those of a trace, or DecodeError; what had to be assumed is told."""

import datetime as dt
import math
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Mark, RunWindow, Scope, Timing, Trace
from flopwitness.measure.sources import recording as module
from flopwitness.measure.sources.recording import Column, Recording, Times
from flopwitness.measure.sources.source import ReadOptions, Source

BERLIN = ZoneInfo("Europe/Berlin")
MOST_NS = 2**62
SECOND_NS = 10**9
HOUR_NS = 3_600 * SECOND_NS


def _record(times: Times = Times.UTC, *, options: ReadOptions | None = None) -> Recording:
    source = Source(blocks=(), where="a/log.csv", device="log", options=options or ReadOptions())
    return Recording(source, times=times)


def _power(recording: Recording, device: str = "gpu0") -> Column:
    return recording.column(device, Channel.POWER_W, Scope.GPU)


def _with_times(times: Times, numbers: Sequence[int], *, options: ReadOptions | None = None) -> Recording:
    recording = _record(times, options=options)
    for number in numbers:
        _power(recording).add(number, 400.0)
    return recording


def _codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.findings]


def _local_ns(text: str) -> int:
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1) * SECOND_NS


@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize("number", [-MOST_NS, MOST_NS, -(2**63), 2**63 - 1])
def test_a_length_that_no_clock_shows_is_refused(zone: ZoneInfo | None, number: int) -> None:
    recording = _with_times(Times.RELATIVE, [0, number], options=ReadOptions(zone=zone))
    with pytest.raises(DecodeError, match="a time that no clock shows") as caught:
        recording.trace()
    assert caught.value.where == "a/log.csv"


@pytest.mark.parametrize("times", [Times.UTC, Times.LOCAL])
@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize("number", [-1, -MOST_NS, MOST_NS, -(2**63), 2**63 - 1])
def test_one_date_that_is_on_no_calendar_does_not_hide_the_others(
    times: Times, zone: ZoneInfo | None, number: int
) -> None:
    good = 10**18
    trace = _with_times(times, [good, number, good + 1], options=ReadOptions(zone=zone)).trace()
    assert len(trace.series[0]) == 2
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "a/log.csv"


@pytest.mark.parametrize("times", list(Times))
@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize(
    "number", [*(sign * 2**power for power in range(0, 80, 7) for sign in (1, -1)), 9_223_372_036_854_775_807]
)
def test_any_number_gives_a_trace_or_a_decode_error(times: Times, zone: ZoneInfo | None, number: int) -> None:
    """As a time of a reading, of a mark and of both ends of a run."""
    for place in range(4):
        numbers = [0, 0, 0, 0]
        numbers[place] = number
        recording = _record(times, options=ReadOptions(zone=zone))
        try:
            _power(recording).add(numbers[0], 1.0)
            recording.mark("m", numbers[1], line=1)
            recording.window(numbers[2], numbers[3])
            trace = recording.trace()
        except DecodeError:
            continue
        assert trace.n_skipped or abs(number) < MOST_NS + 26 * HOUR_NS
        assert len(trace.series[0]) + trace.n_skipped == len(trace.marks) == len(trace.windows) == 1


def test_utc_needs_no_assumption() -> None:
    trace = _with_times(Times.UTC, [1, 2], options=ReadOptions(zone=BERLIN, period_s=5.0)).trace()
    assert trace.series[0].utc_ns.tolist() == [1, 2]
    assert (trace.series[0].timing, trace.findings) == (Timing.DATED, ())


def test_local_times_without_a_zone_are_taken_as_utc_and_told() -> None:
    trace = _with_times(Times.LOCAL, [1, 2]).trace()
    assert trace.series[0].utc_ns.tolist() == [1, 2]
    assert (trace.series[0].timing, _codes(trace)) == (Timing.DATED, ["zone-assumed"])
    assert "--timezone" in trace.findings[0].message


def test_local_times_with_a_zone_are_placed_and_what_is_ambiguous_is_told() -> None:
    labels = ["2024-10-27 01:30", "2024-10-27 02:30", "2024-10-27 02:10", "2024-10-27 03:00"]
    options = ReadOptions(zone=BERLIN)
    trace = _with_times(Times.LOCAL, list(map(_local_ns, labels)), options=options).trace()
    hours = [time / HOUR_NS for time in np.diff(trace.series[0].utc_ns)]
    assert hours == pytest.approx([1, 2 / 3, 5 / 6])
    (finding,) = trace.findings
    assert (finding.code, finding.severity, finding.count) == ("times-ambiguous", Severity.NOTE, 2)
    assert "resolved by the order of the readings and the time zone" in finding.message
    assert "2 times lie" in finding.message


def test_local_times_that_do_not_exist_are_told() -> None:
    times = [_local_ns("2024-03-31 02:30")]
    trace = _with_times(Times.LOCAL, times, options=ReadOptions(zone=BERLIN)).trace()
    (finding,) = trace.findings
    assert (finding.code, finding.severity, finding.count) == ("times-nonexistent", Severity.WARNING, 1)
    assert finding.message.startswith("1 local time does not exist")


def test_each_column_is_placed_by_its_own_order() -> None:
    recording = _record(Times.LOCAL, options=ReadOptions(zone=BERLIN))
    labels = [_local_ns(f"2024-10-27 {time}") for time in ("01:50", "02:40", "02:20")]
    _power(recording).extend(labels, [1.0] * 3)
    _power(recording, "gpu1").extend(labels[:2], [1.0] * 2)
    trace = recording.trace()
    assert trace.series[0].utc_ns[:2].tolist() == trace.series[1].utc_ns.tolist()
    assert trace.findings[0].count == 3


def test_relative_times_count_from_the_earliest_of_everything() -> None:
    recording = _record(Times.RELATIVE)
    _power(recording).extend([50, 40, 60], [1.0] * 3)
    _power(recording, "gpu1").extend([35, 90], [1.0] * 2)
    _power(recording, "gpu2")
    trace = recording.trace()
    assert [series.utc_ns.tolist() for series in trace.series] == [[15, 5, 25], [0, 55], []]
    assert {series.timing for series in trace.series} == {Timing.RELATIVE}
    assert _codes(trace) == ["times-undated"]


@pytest.mark.parametrize(
    ("start", "stop", "mark", "shift"),
    [(30, 70, 40, 30), (60, 25, 40, 25), (60, 70, 20, 20), (60, 70, 90, 35), (60, None, 90, 35)],
)
def test_runs_and_marks_lie_in_the_same_relative_time(
    start: int, stop: int | None, mark: int, shift: int
) -> None:
    recording = _record(Times.RELATIVE)
    _power(recording).extend([35, 90], [1.0] * 2)
    recording.window(start, stop, status="success")
    recording.mark("m", mark, line=7)
    trace = recording.trace()
    assert trace.series[0].utc_ns.tolist() == [35 - shift, 90 - shift]
    placed = RunWindow(
        start_utc_ns=start - shift,
        stop_utc_ns=None if stop is None else stop - shift,
        status="success",
    )
    assert trace.windows == (placed,)
    assert trace.marks == (Mark(name="m", utc_ns=mark - shift, where="a/log.csv:7"),)


def test_negative_relative_times_are_times_like_others() -> None:
    trace = _with_times(Times.RELATIVE, [-5 * SECOND_NS, 0]).trace()
    assert trace.series[0].utc_ns.tolist() == [0, 5 * SECOND_NS]


def test_relative_times_as_far_apart_as_can_be_do_not_wrap() -> None:
    trace = _with_times(Times.RELATIVE, [-MOST_NS + 1, MOST_NS - 1]).trace()
    assert trace.series[0].utc_ns.tolist() == [0, 2 * MOST_NS - 2]


def test_counted_readings_take_the_tools_usual_period_and_say_so() -> None:
    recording = _with_times(Times.COUNTED, [0, 1, 1, 5])
    recording.counted_period_s = 0.5
    trace = recording.trace()
    (series,) = trace.series
    assert (series.utc_ns / SECOND_NS).tolist() == [0, 0.5, 0.5, 2.5]
    assert series.timing is Timing.COUNTED
    (finding,) = trace.findings
    assert (finding.code, finding.severity) == ("period-assumed", Severity.WARNING)
    assert "0.5 s apart" in finding.message
    assert "--period" in finding.message


def test_counted_readings_take_the_users_period() -> None:
    trace = _with_times(Times.COUNTED, [0, 3], options=ReadOptions(period_s=10.0)).trace()
    (series,) = trace.series
    assert series.utc_ns.tolist() == [0, 30 * SECOND_NS]
    assert (series.timing, _codes(trace)) == (Timing.RELATIVE, ["times-undated"])


def test_runs_and_marks_are_counted_like_readings() -> None:
    recording = _with_times(Times.COUNTED, [0, 9], options=ReadOptions(period_s=2.0))
    recording.window(1, 4)
    recording.mark("m", 3, line=1)
    trace = recording.trace()
    assert trace.windows == (RunWindow(start_utc_ns=2 * SECOND_NS, stop_utc_ns=8 * SECOND_NS),)
    assert [mark.utc_ns for mark in trace.marks] == [6 * SECOND_NS]


@pytest.mark.parametrize(
    ("number", "period_s"), [(-1, 1.0), (60_000, 86_400.0), (2**62, 1e-3), (2**62, 1e-9), (5, 1e9)]
)
def test_numbers_that_time_has_no_room_for_are_refused_not_pressed_together(
    number: int, period_s: float
) -> None:
    recording = _with_times(Times.COUNTED, [0, number], options=ReadOptions(period_s=period_s))
    with pytest.raises(DecodeError) as caught:
        recording.trace()
    assert caught.value.where == "a/log.csv"


@pytest.mark.parametrize("period_s", [0.0, -1.0, math.nan, math.inf, 1e300, 1e-300])
def test_a_period_that_is_none_is_refused(period_s: float) -> None:
    recording = _with_times(Times.COUNTED, [0, 1])
    recording.counted_period_s = period_s
    with pytest.raises(DecodeError, match="no period"):
        recording.trace()


def test_the_kind_of_times_may_be_settled_last() -> None:
    recording = _with_times(Times.COUNTED, [7 * SECOND_NS])
    recording.times = Times.UTC
    assert recording.trace().series[0].utc_ns.tolist() == [7 * SECOND_NS]


# Marks and runs


def test_marks_and_runs_in_utc_stand_as_they_are() -> None:
    recording = _record()
    recording.mark("stop", 20, line=4)
    recording.mark("start", 10, line=9)
    recording.window(30, 10, status="aborted")
    recording.window(5, None)
    trace = recording.trace()
    assert trace.marks == (
        Mark(name="stop", utc_ns=20, where="a/log.csv:4"),
        Mark(name="start", utc_ns=10, where="a/log.csv:9"),
    )
    assert trace.windows == (
        RunWindow(start_utc_ns=30, stop_utc_ns=10, status="aborted"),
        RunWindow(start_utc_ns=5, stop_utc_ns=None),
    )
    assert trace.findings == ()


def test_marks_and_runs_of_local_times_are_placed_like_readings() -> None:
    """Into the second of two equal hours where the order says so."""
    first, second, third = (_local_ns(f"2024-10-27 {time}") for time in ("01:00", "02:40", "02:20"))
    recording = _record(Times.LOCAL, options=ReadOptions(zone=BERLIN))
    for line, time in enumerate((first, second, third), start=1):
        recording.mark("m", time, line=line)
    recording.window(first, second)
    recording.window(third, None)
    trace = recording.trace()
    shifted = [first - 2 * HOUR_NS, second - 2 * HOUR_NS, third - HOUR_NS]
    assert [mark.utc_ns for mark in trace.marks] == shifted
    assert [mark.where for mark in trace.marks] == [f"a/log.csv:{line}" for line in (1, 2, 3)]
    assert trace.windows == (
        RunWindow(start_utc_ns=shifted[0], stop_utc_ns=shifted[1]),
        RunWindow(start_utc_ns=shifted[2], stop_utc_ns=None),
    )
    assert [(finding.code, finding.count) for finding in trace.findings] == [("times-ambiguous", 4)]


@pytest.mark.parametrize(
    ("times", "code"),
    [(Times.LOCAL, "zone-assumed"), (Times.RELATIVE, "times-undated"), (Times.COUNTED, "period-assumed")],
)
def test_a_log_of_runs_alone_tells_what_its_times_are_worth(times: Times, code: str) -> None:
    recording = _record(times)
    recording.window(1, 2)
    assert _codes(recording.trace()) == [code]


def test_marks_and_runs_beyond_the_limit_are_counted_as_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MARKS", 2)
    recording = _record()
    for line in (1, 2, 3):
        recording.mark(f"mark {line}\n", line, line=line)
        recording.window(line, line)
    trace = recording.trace()
    assert (len(trace.marks), len(trace.windows), trace.n_skipped) == (2, 2, 2)
    assert trace.skipped[0].where == "a/log.csv:3"
    assert (trace.skipped[0].expected, trace.skipped[0].found) == ("at most 2 marks in one log", "mark 3\\n")
    assert trace.skipped[1].expected == "at most 2 runs in one log"


def test_names_and_outcomes_of_any_length_are_bounded() -> None:
    recording = _record()
    recording.mark("m" * 100_000, 1, line=1)
    recording.window(1, 2, status="s" * 100_000)
    trace = recording.trace()
    assert len(trace.marks[0].name) <= 200
    assert len(trace.windows[0].status) <= 200


@pytest.mark.parametrize("number", [2**63, -(10**400)])
def test_marks_and_runs_beyond_64_bits_are_refused(number: int) -> None:
    for times in Times:
        marked, run = _record(times), _record(times)
        marked.mark("m", number, line=1)
        run.window(0, number)
        for recording in (marked, run):
            with pytest.raises(DecodeError):
                recording.trace()
