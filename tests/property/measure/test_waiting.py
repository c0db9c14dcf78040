"""What must hold of waiting: it is busy time, it lasts, and work and waiting are the busy time together."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.waiting import find_waiting

START_NS = 1_700_000_000 * 10**9

READINGS = st.lists(
    st.tuples(
        st.integers(1, 60),
        st.sampled_from([70.0, 75.0, 90.0, 118.0, 400.0, 640.0, math.nan]),
        st.sampled_from([0.0, 5.0, 40.0, 80.0, 100.0, math.nan]),
        st.sampled_from([500, 1_000, 30_000]),
    ),
    max_size=10,
)


def _series(channel: Channel, utc_ns: list[int], values: list[float]) -> Series:
    return Series(
        device="gpu_0",
        channel=channel,
        scope=Scope.GPU,
        utc_ns=np.array(utc_ns, dtype=np.int64),
        value=np.array(values, dtype=np.float64),
    )


def _log(readings: list[tuple[int, float, float, int]]) -> tuple[Series, Series]:
    steps_ms = [step if i == 0 else 1_000 for n, _, _, step in readings for i in range(n)]
    utc_ns = [START_NS + int(moment) * 1_000_000 for moment in np.cumsum(steps_ms)]
    return (
        _series(Channel.POWER_W, utc_ns, [watts for n, watts, _, _ in readings for _ in range(n)]),
        _series(Channel.UTILISATION_PCT, utc_ns, [share for n, _, share, _ in readings for _ in range(n)]),
    )


@given(READINGS)
def test_work_and_waiting_are_the_busy_time(readings: list[tuple[int, float, float, int]]) -> None:
    power, utilisation = _log(readings)
    waiting = find_waiting(power, utilisation, idle_w=75.0)
    never = find_waiting(power, utilisation, idle_w=75.0, shortest_s=1e9)
    assert math.isclose(waiting.compute_s + waiting.waiting_s, never.compute_s, abs_tol=1e-6)
    net_j = waiting.compute_net_j + waiting.waiting_net_j
    assert math.isclose(net_j, never.compute_net_j, rel_tol=1e-9, abs_tol=1e-3)
    assert never.waiting_s == 0


@given(READINGS)
def test_every_stretch_lasts_and_they_are_all_of_it(readings: list[tuple[int, float, float, int]]) -> None:
    power, utilisation = _log(readings)
    waiting = find_waiting(power, utilisation, idle_w=75.0)
    lengths_s = [stretch.duration_s for stretch in waiting.stretches]
    assert all(length_s >= 30 for length_s in lengths_s)
    assert math.isclose(sum(lengths_s), waiting.waiting_s, abs_tol=1e-6)
    starts_ns = [stretch.start_utc_ns for stretch in waiting.stretches]
    assert starts_ns == sorted(set(starts_ns))
    first = {int(moment): i for i, moment in enumerate(power.utc_ns.tolist())}
    for moment in starts_ns:
        assert utilisation.value[first[moment]] >= 80
        assert power.value[first[moment]] - 75 < waiting.limit_net_w


@given(READINGS, st.floats(10, 1_000))
def test_a_higher_measure_of_work_finds_no_less(
    readings: list[tuple[int, float, float, int]], working_net_w: float
) -> None:
    power, utilisation = _log(readings)
    low, high = (
        find_waiting(power, utilisation, idle_w=75.0, working_net_w=watts)
        for watts in (working_net_w, 2 * working_net_w)
    )
    assert high.waiting_s >= low.waiting_s - 1e-9
