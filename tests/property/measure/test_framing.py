"""What must hold of every result log: no event of it lies outside the time that the bound counts."""

import json
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_MILLISECOND
from flopwitness.measure.framing import assess_clock, claimed_stretches, recorded_length_s, recorded_span
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.result_log import decode_result_log
from flopwitness.measure.sources.source import Source

START_MS = 1_700_000_000_000
KEYS = st.sampled_from(["run_start", "run_stop", "eval_stop", "cache_clear", "submission_benchmark"])
EVENTS = st.lists(st.tuples(KEYS, st.integers(0, 10**9)), min_size=1, max_size=12)


def _decode(events: list[tuple[str, int]]) -> Trace | None:
    lines = (
        f":::MLLOG {json.dumps({'time_ms': START_MS + late_ms, 'key': key, 'value': 'b'})}"
        for key, late_ms in events
    )
    try:
        return decode_result_log(Source(blocks=["\n".join(lines).encode()], where="r.txt", device="r"))
    except DecodeError:
        return None  # it marks no run


@given(EVENTS)
def test_every_pair_of_events_lies_within_the_recorded_time(events: list[tuple[str, int]]) -> None:
    trace = _decode(events)
    if trace is None:
        return
    times_ms = [late_ms for _, late_ms in events]
    apart_s = (max(times_ms) - min(times_ms)) / 1_000
    window = trace.windows[0] if trace.windows else None
    recorded_s = recorded_length_s(recorded_span([], window, claimed_stretches(trace)), trace)
    assert (recorded_s or 0.0) == apart_s
    assert assess_clock(trace) == []


@given(EVENTS)
def test_the_order_of_the_lines_does_not_change_the_extent(events: list[tuple[str, int]]) -> None:
    trace, other = _decode(events), _decode(events[::-1])
    if trace is not None and other is not None:
        assert trace.extent == other.extent


@given(EVENTS, st.integers(1, 10**9))
@example(events=[("run_start", 2), ("run_start", 60_003), ("run_start", 0)], late_ms=1)
def test_a_stop_more_never_shortens_the_recorded_time(events: list[tuple[str, int]], late_ms: int) -> None:
    trace, more = _decode(events), _decode([*events, ("run_stop", late_ms)])
    if trace is None or more is None:
        return
    lengths_s = [
        recorded_length_s(recorded_span([], None, claimed_stretches(each)), each) or 0.0
        for each in (trace, more)
    ]
    assert lengths_s[0] <= lengths_s[1]


@given(EVENTS, st.integers(0, START_MS // 2_000))
def test_one_time_of_the_wrong_unit_takes_the_length_away(
    events: list[tuple[str, int]], early_s: int
) -> None:
    trace = _decode([("run_start", 0), *events, ("eval_stop", early_s - START_MS)])
    assert trace is not None
    assert trace.extent is not None
    assert Fraction(trace.extent.start_utc_ns, NANOSECOND_PER_MILLISECOND) == early_s
    assert recorded_length_s(None, trace) is None
    assert [finding.code for finding in assess_clock(trace)] == ["clock-implausible"]
