"""The daemon's rule of sessions, poll by poll and over a whole recording."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from flopwitness.measure.samples import Channel, Series
from flopwitness.measure.sessions import (
    Event,
    Poll,
    Session,
    SessionRule,
    SessionState,
    Started,
    Stopped,
    find_sessions,
    session_energy,
    step,
)

MakeSeries = Callable[..., Series]

START_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9
NAN = math.nan


def _poll(rule: SessionRule, values: Sequence[float], *, every_s: float = 1.0) -> list[Event]:
    """The events of polls, with times in seconds."""
    state = SessionState()
    told: list[Event] = []
    for i, value in enumerate(values):
        state, events = step(rule, state, Poll(utc_ns=round(i * every_s * SECOND_NS), utilisation_pct=value))
        told += events
    return told


def _seconds(events: Sequence[Event]) -> list[tuple[str, float]]:
    return [(type(event).__name__, event.utc_ns / SECOND_NS) for event in events]


PER_SECOND = SessionRule(poll_s=1.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 90, 90], [("Started", 2)]),
        ([90, 90, 0, 0, 0], [("Started", 1), ("Stopped", 4)]),
        ([90, 90, 0, 0, 90, 0, 0], [("Started", 1)]),
        ([90, 90, 0, 0, 0, 90, 90], [("Started", 1), ("Stopped", 4), ("Started", 6)]),
        ([90, 90, 0, 0, 0, 0, 0, 0], [("Started", 1), ("Stopped", 4)]),
    ],
)
def test_two_polls_begin_and_three_end_a_session(
    values: list[float], expected: list[tuple[str, float]]
) -> None:
    assert _seconds(_poll(PER_SECOND, values)) == expected


@pytest.mark.parametrize(
    "values",
    [
        [],
        [90],
        [90, 0, 90, 0, 90],
        [5, 5, 5],
        [NAN, NAN, NAN],
        [90, NAN, 90],
        [90, 5, 90],
        [math.inf, math.inf],
    ],
)
def test_what_begins_no_session(values: list[float]) -> None:
    assert _poll(PER_SECOND, values) == []


@pytest.mark.parametrize(
    "values",
    [
        [NAN] * 50,  # unknown is not idle
        [0, 0, NAN, 0, 0, NAN],
        [0, 0, 5, 0, 0],  # at the limit is not below it
        [5] * 50,
        [0, 0, 90, 0, 0, 90],
    ],
)
def test_what_ends_no_session(values: list[float]) -> None:
    assert _seconds(_poll(PER_SECOND, [90, 90, *values])) == [("Started", 1)]


def test_a_rule_may_ask_for_other_limits() -> None:
    rule = SessionRule(start_above_pct=50, start_polls=1, stop_below_pct=20, stop_polls=2, poll_s=1)
    assert _seconds(_poll(rule, [40, 60, 30, 10, 10])) == [("Started", 1), ("Stopped", 4)]


def test_a_session_ends_where_utilisation_stays_unknown() -> None:
    rule = SessionRule(poll_s=1, longest_gap_s=3)
    assert _seconds(_poll(rule, [90, 90, 90, NAN, NAN, NAN])) == [("Started", 1)]
    assert _seconds(_poll(rule, [90, 90, 90, NAN, NAN, NAN, NAN])) == [("Started", 1), ("Stopped", 2)]
    assert _seconds(_poll(rule, [90, NAN, NAN, NAN, NAN, 90])) == []
    again = _seconds(_poll(rule, [90, 90, NAN, NAN, NAN, NAN, 90, 90]))
    assert again == [("Started", 1), ("Stopped", 1), ("Started", 7)]


def test_a_session_ends_where_nobody_polled() -> None:
    rule = SessionRule(poll_s=1, longest_gap_s=3)
    state = SessionState(is_on=True, known_ns=0)
    late = Poll(utc_ns=60 * SECOND_NS, utilisation_pct=90)
    state, events = step(rule, state, late)
    assert events == (Stopped(utc_ns=0),)
    assert not state.is_on
    once = SessionRule(poll_s=1, longest_gap_s=3, start_polls=1)
    _, events = step(once, SessionState(is_on=True, known_ns=0), late)
    assert events == (Stopped(utc_ns=0), Started(utc_ns=60 * SECOND_NS))


def test_without_a_longest_gap_a_session_lasts() -> None:
    state, events = step(
        PER_SECOND,
        SessionState(is_on=True, known_ns=0),
        Poll(utc_ns=10**9 * SECOND_NS, utilisation_pct=NAN),
    )
    assert state.is_on
    assert events == ()


def test_a_state_is_never_changed() -> None:
    state = SessionState()
    step(PER_SECOND, state, Poll(utc_ns=0, utilisation_pct=90))
    assert state == SessionState()


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_above_pct": 4.0},
        {"stop_below_pct": 6.0},
        {"stop_below_pct": NAN},
        {"start_polls": 0},
        {"stop_polls": 0},
        {"poll_s": 0.0},
        {"poll_s": -1.0},
        {"poll_s": NAN},
        {"poll_s": math.inf},
        {"longest_gap_s": 1.0},
        {"longest_gap_s": NAN},
        {"longest_gap_s": math.inf},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not a|a gap is no|cannot end"):
        SessionRule(**wrong)


def _sessions(series: Series, rule: SessionRule) -> list[tuple[float, float, bool]]:
    return [
        ((item.start_utc_ns - START_NS) / 1e9, (item.stop_utc_ns - START_NS) / 1e9, item.is_open)
        for item in find_sessions(series, rule)
    ]


@pytest.fixture
def make_utilisation(make_series: MakeSeries) -> MakeSeries:
    """How a test makes utilisation readings."""

    def make(values: Sequence[float], *, time_s: Sequence[float] | None = None) -> Series:
        return make_series(values, time_s=time_s, channel=Channel.UTILISATION_PCT)

    return make


def test_a_recording_is_polled(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([0, *[90] * 10, *[0] * 10])
    assert _sessions(series, PER_SECOND) == [(2, 13, False)]
    assert _sessions(series, SessionRule(poll_s=1.5)) == [(3, 15, False)]
    assert _sessions(series, SessionRule(poll_s=4)) == [(8, 20, False)]


def test_an_open_session_ends_with_the_last_poll(make_utilisation: MakeSeries) -> None:
    assert _sessions(make_utilisation([90] * 11), PER_SECOND) == [(1, 10, True)]


def test_a_burst_between_polls_is_not_seen(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([0, 90, 0, 90, 0, 90, 0], time_s=[0, 0.2, 0.8, 1.2, 1.8, 2.2, 2.8])
    assert _sessions(series, PER_SECOND) == []


def test_short_bursts_make_no_session(make_utilisation: MakeSeries) -> None:
    """What the totals count and the daemon never sees: bursts of 1.5 s with pauses of 5 s."""
    values = ([99.0] * 3 + [0.0] * 10) * 30
    assert _sessions(make_utilisation(values, time_s=[i / 2 for i in range(390)]), SessionRule()) == []


def test_the_last_reading_is_polled_once(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([90, 90], time_s=[0, 0.3])
    assert _sessions(series, PER_SECOND) == [(1, 1, True)]


def test_readings_that_are_not_later_are_left_out(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([90, 90, 0, 0, 0, 90], time_s=[0, 1, 0, 0.5, 1, 2])
    assert _sessions(series, PER_SECOND) == [(1, 2, True)]


def test_a_hole_of_years_costs_nothing(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([90, 90, 90], time_s=[0, 1, 10**9])
    assert _sessions(series, PER_SECOND) == [(1, 10**9, True)]
    assert _sessions(series, SessionRule(poll_s=1, longest_gap_s=5)) == [(1, 6, False)]


def test_an_old_reading_is_unknown(make_utilisation: MakeSeries) -> None:
    series = make_utilisation([90, 0, 0], time_s=[0, 60, 61])
    assert _sessions(series, PER_SECOND) == [(1, 61, True)]
    assert _sessions(series, SessionRule(poll_s=1, longest_gap_s=10)) == [(1, 10, False)]


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_readings_make_no_session(make_utilisation: MakeSeries, n: int) -> None:
    assert find_sessions(make_utilisation([90.0] * n), PER_SECOND) == ()


def test_the_energy_of_a_session_is_net_of_idle(make_series: MakeSeries) -> None:
    power = make_series([10, 10, 110, 110, 110, 10, 10])
    session = Session(start_utc_ns=START_NS + 2 * SECOND_NS, stop_utc_ns=START_NS + 4 * SECOND_NS)
    assert session_energy(power, session, 10.0) == 200
    late = Session(start_utc_ns=START_NS + 3 * SECOND_NS, stop_utc_ns=START_NS + 4 * SECOND_NS)
    assert session_energy(power, late, 10.0) == 100
    outside = Session(start_utc_ns=START_NS + 60 * SECOND_NS, stop_utc_ns=START_NS + 70 * SECOND_NS)
    assert session_energy(power, outside, 10.0) == 0


def test_a_gap_inside_a_session_holds_no_energy_of_it(make_series: MakeSeries) -> None:
    power = make_series([110, 110, 110, 110], time_s=[0, 1, 61, 62])
    session = Session(start_utc_ns=START_NS, stop_utc_ns=START_NS + 62 * SECOND_NS)
    assert session_energy(power, session, 10.0) == pytest.approx(2 * 100)
