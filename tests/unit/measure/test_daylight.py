"""Clocks changed for summer or winter in a log without a zone are suspected, and other jumps are not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.daylight import assess_daylight
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources.local_time import place_local_times

MakeSeries = Callable[..., Series]

ASSUMED = Finding(code="zone-assumed", severity=Severity.NOTE, message="taken as UTC")
OTHER = Finding(code="times-undated", severity=Severity.NOTE, message="no date")
HOUR_S = 3_600
QUARTER_S = 1_000  # the tests' time begins so many seconds before a full quarter of an hour


def _assess(*series: Series, findings: Sequence[Finding] = (ASSUMED,)) -> list[Finding]:
    return assess_daylight(Trace(series=series, findings=tuple(findings)))


def _changed(
    make_series: MakeSeries, shift_s: float, *, step_s: float = 10, at_s: float = QUARTER_S, **names: object
) -> Series:
    """A regular log whose clock shows so much more from a given second on."""
    time_s = [step_s * i for i in range(1_200)]
    shown_s = [second + (shift_s if second >= at_s else 0) for second in time_s]
    return make_series([400.0] * 1_200, time_s=shown_s, **names)


def test_the_tests_own_time_begins_before_a_quarter(make_series: MakeSeries) -> None:
    assert (int(make_series([1.0]).utc_ns[0]) // 10**9 + QUARTER_S) % 900 == 0


@pytest.mark.parametrize(
    ("shift_s", "words"),
    [
        (-1_800, "step back by 30 min"),
        (-3_600, "step back by 1 h"),
        (-7_200, "step back by 2 h"),
        (1_800, "jump ahead by 30 min"),
        (3_600, "jump ahead by 1 h"),
        (7_200, "jump ahead by 2 h"),
    ],
)
@pytest.mark.parametrize("step_s", [1, 10, 60, 600])
def test_a_change_of_the_clock_is_suspected(
    make_series: MakeSeries, shift_s: int, words: str, step_s: int
) -> None:
    (finding,) = _assess(
        _changed(make_series, shift_s, step_s=step_s, at_s=QUARTER_S if step_s < 600 else 1_200)
    )
    assert (finding.code, finding.severity) == ("daylight-suspected", Severity.WARNING)
    assert (finding.where, finding.count, finding.found) == ("gpu_0", 1, words)
    assert words in finding.message
    assert "--timezone" in finding.message


def test_the_place_is_told_as_the_log_shows_it(make_series: MakeSeries) -> None:
    (finding,) = _assess(_changed(make_series, -HOUR_S))
    assert "after 2023-11-14 22:29:50, as where" in finding.message


def test_a_berlin_log_is_suspected_until_its_zone_is_named() -> None:
    """What the finding asks for mends what it tells of."""
    utc_ns = (1_729_980_000 + 60 * np.arange(400, dtype=np.int64)) * 10**9
    offset_ns = np.where(utc_ns < 1_729_990_800 * 10**9, 7_200, 3_600) * 10**9
    series = Series(
        device="gpu0", channel=Channel.POWER_W, scope=Scope.GPU, utc_ns=utc_ns + offset_ns, value=np.ones(400)
    )
    assert [finding.found for finding in _assess(series)] == ["step back by 1 h"]
    placed = place_local_times(series.utc_ns, ZoneInfo("Europe/Berlin"))
    assert placed.utc_ns.tolist() == utc_ns.tolist()
    assert _assess(replace(series, utc_ns=placed.utc_ns)) == []


def test_one_finding_counts_all_series_and_names_other_places(make_series: MakeSeries) -> None:
    series = [_changed(make_series, -HOUR_S, device=f"gpu{number}") for number in range(3)]
    (finding,) = _assess(*series)
    assert (finding.where, finding.count) == ("gpu0", 3)
    assert "other place" not in finding.message
    (finding,) = _assess(*series, _changed(make_series, HOUR_S, device="gpu3"))
    assert finding.count == 4
    assert "and at 1 other place" in finding.message


def test_a_year_with_both_changes_shows_both(make_series: MakeSeries) -> None:
    time_s = np.arange(2_000) * 10.0
    shown_s = time_s + np.where((time_s >= QUARTER_S) & (time_s < QUARTER_S + 9_000), HOUR_S, 0)
    (finding,) = _assess(make_series([400.0] * 2_000, time_s=shown_s.tolist()))
    assert finding.count == 2
    assert finding.found == "step back by 1 h"


@pytest.mark.parametrize(
    ("shift_s", "at_s"),
    [
        *(
            (-60, QUARTER_S),
            (-1_700, QUARTER_S),
            (-3_000, QUARTER_S),
            (-3_700, QUARTER_S),
            (-86_400, QUARTER_S),
        ),
        *((60, QUARTER_S), (3_700, QUARTER_S), (3_000, QUARTER_S), (86_400, QUARTER_S)),
        (3_600, QUARTER_S + 300),
        (1_800, QUARTER_S - 20),
        (0, QUARTER_S),
    ],
)
def test_other_jumps_are_not_suspected(make_series: MakeSeries, shift_s: int, at_s: int) -> None:
    assert _assess(_changed(make_series, shift_s, at_s=at_s)) == []


def test_a_log_that_jumps_again_and_again_is_not_regular(make_series: MakeSeries) -> None:
    time_s = np.arange(400) * 10.0
    twice_back = time_s - HOUR_S * (time_s >= QUARTER_S) - HOUR_S * (time_s >= QUARTER_S + 900)
    with_gap = time_s + HOUR_S * (time_s >= QUARTER_S) + 500 * (time_s >= 3_000)
    for shown_s in (twice_back, with_gap):
        assert _assess(make_series([400.0] * 400, time_s=shown_s.tolist())) == []


def test_a_log_too_slow_to_tell_is_not_suspected(make_series: MakeSeries) -> None:
    hourly = make_series([400.0] * 5, time_s=[0, 3_600, 3_600, 7_200, 10_800])
    stepping = make_series([400.0] * 6, time_s=[0, 3_000, 6_000, 5_400, 8_400, 11_400])
    assert _assess(hourly, stepping) == []


def test_nothing_is_said_where_no_zone_was_assumed(make_series: MakeSeries) -> None:
    series = _changed(make_series, -HOUR_S)
    assert _assess(series, findings=()) == []
    assert _assess(series, findings=(OTHER,)) == []
    assert len(_assess(series, findings=(OTHER, ASSUMED))) == 1


def test_nothing_is_said_of_times_without_a_date_or_with_a_steady_clock(make_series: MakeSeries) -> None:
    series = _changed(make_series, -HOUR_S)
    assert _assess(replace(series, timing=Timing.RELATIVE), replace(series, timing=Timing.COUNTED)) == []
    assert _assess(replace(series, monotonic_ns=np.arange(1_200, dtype=np.int64))) == []


@pytest.mark.parametrize("time_s", [[], [0], [3_600, 0], [0, 3_600, 1], [5, 5, 5, 5, 5], [9, 8, 7, 6, 5]])
def test_logs_of_hardly_any_reading_are_not_judged(make_series: MakeSeries, time_s: list[float]) -> None:
    assert _assess(make_series([400.0] * len(time_s), time_s=time_s)) == []


def test_a_time_on_no_calendar_is_told_all_the_same() -> None:
    steps_s = np.array([0, 10, 20, 30, 30 - 3_590, 30 - 3_580, 30 - 3_570])
    series = Series(
        device="gpu0",
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        utc_ns=(steps_s - 10**6) * 10**9,
        value=np.ones(steps_s.size),
    )
    (finding,) = _assess(series)
    assert "after a time that is on no calendar" in finding.message
