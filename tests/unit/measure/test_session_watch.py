"""The rule told while readings come gives what it gives over the whole recording."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.session_watch import SessionWatch
from flopwitness.measure.sessions import SessionRule, Started, Stopped, find_sessions

_READINGS = st.lists(
    st.tuples(
        st.one_of(st.integers(min_value=-2, max_value=6), st.just(40), st.just(4_000)),
        st.sampled_from([0.0, 3.0, 50.0, float("nan")]),
    ),
    min_size=1,
    max_size=40,
)
_RULES = st.builds(
    SessionRule,
    start_polls=st.integers(1, 3),
    stop_polls=st.integers(1, 3),
    poll_s=st.sampled_from([0.5, 1.5]),
    longest_gap_s=st.sampled_from([None, 1.5, 9.0]),
)


@given(_READINGS, _RULES)
@settings(deadline=None)
def test_the_stream_tells_what_the_recording_shows(
    readings: list[tuple[int, float]], rule: SessionRule
) -> None:
    half_seconds = np.cumsum([step for step, _ in readings]).astype(np.int64)
    utc_ns = 10**18 + half_seconds * 500_000_000
    series = Series(
        device="gpu_0",
        channel=Channel.UTILISATION_PCT,
        scope=Scope.GPU,
        utc_ns=utc_ns,
        value=np.array([value for _, value in readings]),
    )
    watch = SessionWatch(rule=rule)
    events = [
        event
        for time, value in zip(utc_ns, series.value, strict=True)
        for event in watch.see(int(time), value)
    ]
    events += watch.end()
    starts = [event.utc_ns for event in events if isinstance(event, Started)]
    stops = [event.utc_ns for event in events if isinstance(event, Stopped)]
    found = find_sessions(series, rule)
    assert starts == [session.start_utc_ns for session in found]
    assert stops == [session.stop_utc_ns for session in found if not session.is_open]
