"""The wall meter's daemon: means as means, samples and replies as readings, and all its talk as nothing."""

import math
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import spl_log
from flopwitness.measure.sources.ptd_log import FORMATS
from flopwitness.measure.sources.source import ReadOptions, Source

NINE = 1_747_213_200 * 10**9
BANNER = "                               SPEC PTDaemon Tool"


def _said(second: float, words: str) -> str:
    return f"05-14-2025 09:00:{second:06.3f}: {words}"


def _mean(second: float, watts: object = 413.25, *, errors: int = 0, valid: int = 8) -> str:
    words = f"Avg watts {watts}, min watts 1.0, max watts 9.0, samples 8, errors {errors}, valid {valid}"
    return _said(second, words)


def _sample(second: float, watts: float, mark: str = "m") -> str:
    return f"Time,05-14-2025 09:00:{second:06.3f},Watts,{watts},Volts,230.1,Amps,1.8,PF,0.99,Mark,{mark}"


def _decode(*lines: str, options: ReadOptions | None = None) -> Trace:
    data = "\r\n".join(lines).encode()
    source = Source(blocks=[data], where="p.txt", device="ptd_logs", options=options or ReadOptions())
    return FORMATS[0].decode(source)


def test_a_mean_is_an_average_over_its_measurement() -> None:
    trace = _decode(
        BANNER,
        _said(1, "Go with mark 'x_ranging'"),
        _said(1, "Response to client sent: Starting untimed measurement, maximum 500000 samples"),
        _said(9.5, "Completed test"),
        _mean(9.5, 410),
        _said(20, "Go with mark 'x_testing'"),
        _said(27, "Completed test"),
        _mean(27, 411),
    )
    (series,) = trace.series
    assert (series.device, series.channel, series.scope) == (
        "ptdaemon",
        Channel.POWER_AVERAGE_W,
        Scope.NODE,
    )
    assert series.value.tolist() == [410.0, 411.0]
    assert series.utc_ns.tolist() == [NINE + 9_500_000_000, NINE + 27 * 10**9]
    assert series.averaged_s == 8.5
    assert [(mark.name, mark.utc_ns - NINE) for mark in trace.marks] == [
        ("x_ranging", 10**9),
        ("x_ranging", 9_500_000_000),
        ("x_testing", 20 * 10**9),
        ("x_testing", 27 * 10**9),
    ]
    assert trace.n_skipped == 0


def test_a_mean_whose_start_is_not_told_covers_its_samples() -> None:
    (series,) = _decode(_said(0, "Hello"), _mean(9)).series
    assert series.averaged_s == 8.0


@pytest.mark.parametrize("line", [_mean(9, -1), _mean(9, "-1.000000"), _mean(9, 5, valid=0)])
def test_a_mean_of_nothing_is_missing(line: str) -> None:
    trace = _decode(line)
    assert math.isnan(trace.series[0].value[0])
    assert trace.n_skipped == 0


def test_samples_and_replies_are_instant_readings_of_the_same_meter() -> None:
    trace = _decode(
        BANNER,
        _said(0, "Response to client sent: Watts,400.5,230.1"),
        _sample(1, 401),
        _sample(2, 402),
        _said(3, "Response to client sent: Watts,-1.0"),
        _mean(9),
    )
    instant, mean = trace.series
    assert (instant.channel, mean.channel) == (Channel.POWER_W, Channel.POWER_AVERAGE_W)
    assert instant.device == mean.device
    assert (instant.scope, mean.scope) == (Scope.NODE_AC, Scope.NODE)
    assert instant.value.tolist()[:3] == [400.5, 401.0, 402.0]
    assert math.isnan(instant.value[3])
    assert [mark.utc_ns - NINE for mark in trace.marks] == [10**9, 2 * 10**9]


def test_the_users_zone_places_marks_too() -> None:
    trace = _decode(
        _said(1, "Go with mark 'x'"), _mean(9), options=ReadOptions(zone=ZoneInfo("Europe/Berlin"))
    )
    assert [mark.utc_ns for mark in trace.marks] == [NINE - 7_199 * 10**9]
    assert trace.series[0].utc_ns.tolist() == [NINE - 7_191 * 10**9]


def test_what_the_daemon_doubts_is_told() -> None:
    warning = "WARNING: Uncertainty unknown for the last measurement sample! channel 1"
    trace = _decode(_said(1, warning), _said(2, warning), _mean(9, errors=3))
    told = {finding.code: finding for finding in trace.findings}
    assert told["meter-uncertain"].count == 2
    assert told["meter-uncertain"].severity is Severity.NOTE
    assert told["meter-errors"].count == 3
    assert told["meter-errors"].severity is Severity.WARNING


def test_a_log_without_doubts_tells_none() -> None:
    assert [finding.code for finding in _decode(_mean(9)).findings] == ["zone-assumed"]


def test_talk_is_no_skip() -> None:
    trace = _decode(
        "Yokogawa ethernet/USB interface specified.",
        BANNER,
        "...",
        _said(0, "Analyzer identity response of 33 bytes: A,B,C"),
        _said(0, "ERROR: Can't evaluate uncertainty of this sample!"),
        _said(0, "Response to client sent: Ranges,0,20.000000,1,300.000000"),
        _mean(9),
    )
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        _said(3, "Avg watts 12"),
        _said(3, "Avg watts 1.2.3, min watts 1, max watts 9, samples 8, errors 0, valid 8"),
        _said(3, "Response to client sent: Watts,abc"),
        "Time,05-14-2025 09:00:01.000,Watts",
        "13-14-2025 09:00:01.000: Avg watts 1.0, min watts 1, max watts 9, samples 8, errors 0, valid 8",
        "02-30-2025 09:00:01.000: Go with mark 'x'",
    ],
)
def test_a_reading_that_cannot_be_read_is_skipped_with_its_place(line: str) -> None:
    trace = _decode(_mean(1, 5), line, _mean(9, 7))
    assert trace.series[-1].value.tolist() == [5.0, 7.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "p.txt:2")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [BANNER],
        [BANNER, _said(0, "Go with mark 'x'"), _said(9, "Completed test")],
        [_said(3, "Avg watts 12")],
    ],
)
def test_a_log_without_a_reading_is_refused(lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "p.txt:1"
    assert "Avg watts" in caught.value.expected


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (BANNER.encode(), True),
        (_said(0, "Attempting to connect to measurement device type 8...").encode(), True),
        (b"...\n" + _mean(9).encode(), True),
        (("\n" + BANNER).encode("utf-16"), True),
        (_sample(0, 1).encode(), False),
        (_sample(0, 1).encode() + b"\n" + _mean(9).encode(), False),
        (b"05-14-2025 09:00:00.000: something else", False),
        (b"", False),
    ],
)
def test_it_is_known_by_its_words(head: bytes, is_it: bool) -> None:
    assert FORMATS[0].is_it(head, "x") is is_it
    assert not (is_it and spl_log.FORMATS[0].is_it(head, "x"))
