"""What cutting, repeating and padding a stream of readings must not change."""

import math
from dataclasses import fields, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.totals import LedgerState, Totals, extend

START_NS = 1_700_000_000 * 10**9

Stream: TypeAlias = tuple[Series, Series]

POWERS_W = st.one_of(st.floats(0, 1_000, allow_nan=False), st.just(math.nan), st.just(-1.0))
SHARES_PCT = st.one_of(st.floats(0, 100), st.just(math.nan))
STEPS_MS = st.sampled_from([0, 3, 400, 500, 501, 1_000, 2_500, 2_501, 30_000])


def _series(channel: Channel, times_ms: list[int], values: list[float]) -> Series:
    return Series(
        device="gpu_0",
        channel=channel,
        scope=Scope.GPU,
        utc_ns=START_NS + np.array(times_ms, dtype=np.int64) * 1_000_000,
        value=np.array(values, dtype=np.float64),
    )


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Power and utilisation, each at its own times, with holes, repeats and missing readings."""
    made = []
    for channel, values in ((Channel.POWER_W, POWERS_W), (Channel.UTILISATION_PCT, SHARES_PCT)):
        readings = draw(st.lists(st.tuples(STEPS_MS, values), max_size=30))
        times_ms = np.cumsum([step for step, _ in readings]).tolist()
        made.append(_series(channel, times_ms, [value for _, value in readings]))
    return made[0], made[1]


CUTS_MS = st.lists(st.integers(0, 60_000), max_size=8).map(sorted)
IDLES_W = st.one_of(st.none(), st.floats(0, 100))


def _cut(series: Series, start_ns: float, stop_ns: float) -> Series:
    inside = (series.utc_ns >= start_ns) & (series.utc_ns < stop_ns)
    return replace(series, utc_ns=series.utc_ns[inside], value=series.value[inside])


def _add(state: LedgerState, stream: Stream, idle_w: float | None) -> LedgerState:
    power, utilisation = stream
    return extend(state, power, utilisation, idle_w=idle_w, longest_step_s=2.5, floor_w=5.0, limit_w=1_050.0)


def _totals(state: LedgerState) -> Totals:
    (meter,) = state.meters.values()
    return meter.totals


@given(streams(), CUTS_MS, IDLES_W)
def test_any_cutting_gives_the_same_bits(stream: Stream, cuts_ms: list[int], idle_w: float | None) -> None:
    whole = _add(LedgerState(), stream, idle_w)
    state = LedgerState()
    edges_ns = [-math.inf, *(START_NS + cut * 1_000_000 for cut in cuts_ms), math.inf]
    for start_ns, stop_ns in pairwise(edges_ns):
        state = _add(state, (_cut(stream[0], start_ns, stop_ns), _cut(stream[1], start_ns, stop_ns)), idle_w)
    assert state == whole


@given(streams(), CUTS_MS, IDLES_W)
def test_overlapping_pieces_add_nothing_twice(
    stream: Stream, cuts_ms: list[int], idle_w: float | None
) -> None:
    whole = _add(LedgerState(), stream, idle_w)
    state = LedgerState()
    for cut_ms in [*cuts_ms, math.inf]:
        stop_ns = START_NS + cut_ms * 1_000_000
        state = _add(
            state, (_cut(stream[0], -math.inf, stop_ns), _cut(stream[1], -math.inf, stop_ns)), idle_w
        )
    assert replace(_totals(state), n_ignored=0) == replace(_totals(whole), n_ignored=0)


@given(streams(), IDLES_W)
def test_the_figures_fit_together(stream: Stream, idle_w: float | None) -> None:
    totals = _totals(_add(LedgerState(), stream, idle_w))
    assert totals.gap_high_j is not None
    assert 0 <= totals.gap_low_j <= totals.gap_high_j
    assert totals.gap_low_j - 1e-9 <= totals.bridged_j <= totals.gap_high_j + 1e-9
    assert 0 <= totals.busy_s <= totals.covered_s
    assert 0 <= totals.used_s <= totals.utilisation_s <= totals.covered_s
    assert totals.n_readings + totals.n_missing + totals.n_ignored == len(stream[0])
    expected_j = totals.energy_j if idle_w is None else totals.net_energy_j + idle_w * totals.covered_s
    assert math.isclose(expected_j, totals.energy_j, rel_tol=1e-9, abs_tol=1e-6)
    assert math.isclose(totals.net_high_j, totals.energy_j if idle_w is None else totals.net_energy_j)


@given(
    power_w=st.lists(st.floats(20, 1_000), min_size=2, max_size=40),
    places=st.sets(st.integers(1, 39), max_size=6),
    n_idle=st.integers(1, 20),
)
def test_idle_spliced_into_a_run_changes_nothing(power_w: list[float], places: set[int], n_idle: int) -> None:
    """Pauses between sessions, at the usual step: no energy above idle, no busy time, no other P*."""
    spliced = [
        value
        for i, power in enumerate(power_w)
        for value in ([10.0] * n_idle if i in places else []) + [power]
    ]
    padded, cut = [10.0, *power_w, 10.0], [10.0, *spliced, 10.0]
    whole, parts = (
        _totals(
            extend(
                LedgerState(),
                _series(Channel.POWER_W, list(range(0, 500 * len(values), 500)), values),
                idle_w=10.0,
                longest_step_s=2.5,
            )
        )
        for values in (padded, cut)
    )
    for name in ("net_energy_j", "busy_s", "net_square_w2s", "working_net_w"):
        assert math.isclose(getattr(whole, name), getattr(parts, name), rel_tol=1e-12), name
    n_inside = sum(1 for place in places if place < len(power_w))
    assert math.isclose(parts.energy_j - whole.energy_j, 5.0 * n_idle * n_inside, abs_tol=1e-6)


@given(streams())
def test_no_sum_shrinks_as_a_stream_grows(stream: Stream) -> None:
    power, utilisation = stream
    half = len(power) // 2
    part = replace(power, utc_ns=power.utc_ns[:half], value=power.value[:half])
    small, large = (_totals(_add(LedgerState(), (item, utilisation), 0.0)) for item in (part, power))
    for item in fields(Totals):
        assert getattr(large, item.name) >= getattr(small, item.name), item.name
