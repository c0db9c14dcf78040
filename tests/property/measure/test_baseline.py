"""What must hold of idle power however a log looks: idle readings alone make it, and no work moves it."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.baseline import Baseline, dynamic_energy, find_idle, pool_baselines
from flopwitness.measure.samples import Channel, Scope, Series

START_NS = 1_700_000_000 * 10**9

STRETCHES = st.lists(
    st.tuples(
        st.integers(1, 50),
        st.floats(0, 700),
        st.sampled_from([0.0, 3.0, 5.0, 5.1, 60.0, 100.0, math.nan]),
    ),
    max_size=8,
)


def _log(stretches: list[tuple[int, float, float]]) -> tuple[Series, Series]:
    """One reading a second; within a stretch power wobbles by a few percent."""
    power_w = [watts * (1 + 0.03 * math.sin(i)) for n, watts, _ in stretches for i in range(n)]
    utilisation_pct = [share for n, _, share in stretches for _ in range(n)]
    utc_ns = START_NS + np.arange(len(power_w), dtype=np.int64) * 10**9
    power, utilisation = (
        Series(
            device="gpu_0",
            channel=channel,
            scope=Scope.GPU,
            utc_ns=utc_ns,
            value=np.array(values, dtype=np.float64),
        )
        for channel, values in (
            (Channel.POWER_W, power_w),
            (Channel.UTILISATION_PCT, utilisation_pct),
        )
    )
    return power, utilisation


@given(STRETCHES)
def test_idle_is_read_from_idle_readings(stretches: list[tuple[int, float, float]]) -> None:
    power, utilisation = _log(stretches)
    baseline = find_idle(power, utilisation)
    if baseline is None:
        return
    idle_w = power.value[utilisation.value <= 5]
    assert idle_w.min() <= baseline.idle_w <= idle_w.max() * (1 + 1e-12)
    assert 3 <= baseline.n <= idle_w.size
    assert 0 <= baseline.spread_w <= idle_w.max() - idle_w.min()
    settled_ns = START_NS + 30 * 10**9
    assert settled_ns <= baseline.first_utc_ns <= baseline.last_utc_ns <= int(power.utc_ns[-1])


@given(STRETCHES, st.floats(0, 700))
def test_work_at_the_end_changes_nothing(stretches: list[tuple[int, float, float]], watts: float) -> None:
    alone = find_idle(*_log(stretches))
    followed = find_idle(*_log([*stretches, (40, watts, 98.0), (29, watts, 0.0)]))
    assert followed == alone


@given(STRETCHES)
def test_idle_is_found_wherever_it_settles_lowest(stretches: list[tuple[int, float, float]]) -> None:
    """Whatever came before: a minute and a half at the end that draws half of anything else."""
    lowest_w = min((watts for _, watts, _ in stretches), default=700.0) / 2
    baseline = find_idle(*_log([*stretches, (90, lowest_w, 0.0)]))
    assert baseline is not None
    assert math.isclose(baseline.idle_w, lowest_w, rel_tol=0.03)


@given(STRETCHES, st.floats(0, 100))
def test_dynamic_energy_lies_within_its_bounds(
    stretches: list[tuple[int, float, float]], idle_w: float
) -> None:
    power, utilisation = _log(stretches)
    known = dynamic_energy(power, utilisation, idle_w=idle_w)
    unknown = dynamic_energy(power, utilisation, idle_w=None)
    assert known.energy_j is not None
    assert known.energy_j <= unknown.high_j == unknown.total_j == known.total_j
    assert unknown.low_j == 0
    assert 0 <= known.busy_s <= max(0, len(power) - 1)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 1_000)), min_size=1, max_size=8),
    st.permutations(range(8)),
)
def test_a_pool_has_no_order_and_lies_among_its_baselines(
    pairs: list[tuple[float, int]], order: list[int]
) -> None:
    baselines = [
        Baseline(device="gpu_0", idle_w=idle_w, spread_w=0.5, n=n, first_utc_ns=0, last_utc_ns=1)
        for idle_w, n in pairs
    ]
    pooled = pool_baselines(baselines)
    assert pooled is not None
    assert pooled == pool_baselines([baselines[i] for i in order if i < len(baselines)])
    assert min(idle_w for idle_w, _ in pairs) <= pooled.idle_w <= max(idle_w for idle_w, _ in pairs)
    below = sum(n for idle_w, n in pairs if idle_w < pooled.idle_w)
    above = sum(n for idle_w, n in pairs if idle_w > pooled.idle_w)
    assert max(below, above) <= pooled.n / 2
