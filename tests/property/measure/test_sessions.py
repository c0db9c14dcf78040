"""Polling a recording all at once must tell what polling it one by one tells."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.sessions import (
    Poll,
    Session,
    SessionRule,
    SessionState,
    Started,
    find_sessions,
    step,
)

START_NS = 1_700_000_000 * 10**9

VALUES_PCT = st.sampled_from([0.0, 4.0, 5.0, 6.0, 40.0, 99.0, math.nan, math.inf])
RULES = st.builds(
    SessionRule,
    start_above_pct=st.sampled_from([5.0, 10.0]),
    start_polls=st.integers(1, 3),
    stop_polls=st.integers(1, 4),
    poll_s=st.sampled_from([0.5, 1.0, 1.5, 4.0]),
    longest_gap_s=st.one_of(st.none(), st.sampled_from([4.0, 5.0, 7.5, 20.0])),
)


@st.composite
def recordings(draw: st.DrawFn) -> Series:
    """Utilisation at uneven times, held for a few readings, now and then with a hole or a step back."""
    pieces = draw(st.lists(st.tuples(VALUES_PCT, st.integers(1, 8)), max_size=8))
    values = [value for value, n in pieces for _ in range(n)]
    steps_ms = draw(
        st.lists(
            st.sampled_from([-700, 0, 100, 500, 1_000, 1_500, 2_300, 9_000, 40_000]),
            min_size=len(values),
            max_size=len(values),
        )
    )
    return Series(
        device="gpu_0",
        channel=Channel.UTILISATION_PCT,
        scope=Scope.GPU,
        utc_ns=START_NS + np.cumsum(np.array(steps_ms, dtype=np.int64)) * 1_000_000,
        value=np.array(values, dtype=np.float64),
    )


def _polls(series: Series, rule: SessionRule) -> list[Poll]:
    """Every poll by itself: each sees the latest reading, unless that has grown old."""
    readings: list[tuple[int, float]] = []
    for utc_ns, value in zip(series.utc_ns.tolist(), series.value.tolist(), strict=True):
        if not readings or utc_ns > readings[-1][0]:
            readings.append((utc_ns, value))
    if not readings:
        return []
    poll_ns = round(rule.poll_s * 1e9)
    first_ns, last_ns = readings[0][0], readings[-1][0]
    n_polls = math.ceil(Fraction(last_ns - first_ns, poll_ns)) + 1
    polls = []
    for i in range(n_polls):
        moment_ns = first_ns + i * poll_ns
        read_ns, value = next(item for item in reversed(readings) if item[0] <= moment_ns)
        is_old = rule.longest_gap_s is not None and moment_ns - read_ns > rule.longest_gap_s * 1e9
        polls.append(Poll(utc_ns=moment_ns, utilisation_pct=math.nan if is_old else value))
    return polls


def _fold(rule: SessionRule, polls: list[Poll]) -> tuple[Session, ...]:
    state, sessions, start_ns = SessionState(), [], 0
    for poll in polls:
        state, events = step(rule, state, poll)
        for event in events:
            if isinstance(event, Started):
                start_ns = event.utc_ns
            else:
                sessions.append(Session(start_utc_ns=start_ns, stop_utc_ns=event.utc_ns))
    if state.is_on:
        sessions.append(Session(start_utc_ns=start_ns, stop_utc_ns=polls[-1].utc_ns, is_open=True))
    return tuple(sessions)


@given(recordings(), RULES)
def test_all_at_once_is_one_by_one(series: Series, rule: SessionRule) -> None:
    assert find_sessions(series, rule) == _fold(rule, _polls(series, rule))


@given(recordings(), RULES)
def test_sessions_follow_each_other(series: Series, rule: SessionRule) -> None:
    sessions = find_sessions(series, rule)
    moments = [moment for item in sessions for moment in (item.start_utc_ns, item.stop_utc_ns)]
    assert moments == sorted(moments)
    assert all(not item.is_open for item in sessions[:-1])
