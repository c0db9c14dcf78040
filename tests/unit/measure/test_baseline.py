"""Idle power: read where it has settled, unknown where it was not seen, pooled over a host."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from flopwitness.foundation.verdict import Severity
from flopwitness.measure.baseline import (
    Baseline,
    assess_idle,
    dynamic_energy,
    find_idle,
    pool_baselines,
)
from flopwitness.measure.samples import Channel, Series

MakeSeries = Callable[..., Series]


@pytest.fixture
def make_log(make_series: MakeSeries) -> Callable[..., tuple[Series, Series]]:
    """How a test makes a log of one reading a second from stretches of seconds, watts and percent."""

    def make(*stretches: tuple[int, float, float], step_s: float = 1.0) -> tuple[Series, Series]:
        power_w = [power for n, power, _ in stretches for _ in range(n)]
        utilisation_pct = [pct for n, _, pct in stretches for _ in range(n)]
        times_s = [i * step_s for i in range(len(power_w))]
        return (
            make_series(power_w, time_s=times_s),
            make_series(utilisation_pct, time_s=times_s, channel=Channel.UTILISATION_PCT),
        )

    return make


MakeLog = Callable[..., tuple[Series, Series]]


def _idle_w(log: tuple[Series, Series]) -> float | None:
    baseline = find_idle(*log)
    return None if baseline is None else baseline.idle_w


def test_settled_idle_is_the_baseline(make_log: MakeLog) -> None:
    power, utilisation = make_log((100, 25, 0))
    baseline = find_idle(power, utilisation)
    assert baseline is not None
    assert (baseline.idle_w, baseline.spread_w, baseline.n) == (25, 0, 70)
    assert baseline.first_utc_ns == int(power.utc_ns[30])
    assert baseline.last_utc_ns == int(power.utc_ns[-1])
    assert baseline.device == "gpu_0"


def test_the_start_of_a_recording_may_be_the_end_of_work(make_log: MakeLog) -> None:
    """A kernel that ended just before the first reading leaves its tail there."""
    assert _idle_w(make_log((25, 51, 0))) is None
    assert _idle_w(make_log((25, 51, 0), (60, 24, 0))) == 24


def test_the_tail_after_work_is_not_idle(make_log: MakeLog) -> None:
    assert _idle_w(make_log((10, 230, 98), (29, 51, 0))) is None
    assert _idle_w(make_log((10, 230, 98), (60, 51, 0), (60, 24, 0))) == 24


def test_short_bursts_of_work_start_the_wait_anew(make_log: MakeLog) -> None:
    assert _idle_w(make_log(*[(25, 30, 0), (1, 200, 90)] * 10)) is None


def test_work_between_two_power_readings_counts(make_series: MakeSeries) -> None:
    """Utilisation that is read more often than power sees what power does not."""
    power = make_series([30.0] * 10, time_s=range(0, 100, 10))
    moments_s = [i / 2 for i in range(200)]
    quiet = [0.0] * 200
    assert find_idle(power, make_series(quiet, time_s=moments_s, channel=Channel.UTILISATION_PCT))
    burst = [80.0 if 21 < moment_s % 25 < 23 else 0.0 for moment_s in moments_s]
    assert not find_idle(power, make_series(burst, time_s=moments_s, channel=Channel.UTILISATION_PCT))


def test_a_single_burst_between_power_readings_counts(make_series: MakeSeries) -> None:
    power = make_series([30.0] * 8, time_s=range(0, 80, 10))
    moments_s = [i / 2 for i in range(150)]
    burst = [80.0 if moment_s == 45.5 else 0.0 for moment_s in moments_s]
    utilisation = make_series(burst, time_s=moments_s, channel=Channel.UTILISATION_PCT)
    assert find_idle(power, utilisation) is None


def test_a_block_that_is_half_work_is_no_plateau(make_log: MakeLog) -> None:
    """Its median lies between its two levels; the lower one alone would undercut the idle that holds."""
    assert _idle_w(make_log((30, 30, 0), *[(1, 24, 0), (1, 60, 0)] * 5, (10, 30, 0))) == 30


def test_a_gap_starts_the_wait_anew(make_series: MakeSeries) -> None:
    times_s = [*range(20), *range(60, 80), *range(120, 140)]
    power = make_series([30.0] * 60, time_s=times_s)
    utilisation = make_series([0.0] * 60, time_s=times_s, channel=Channel.UTILISATION_PCT)
    assert find_idle(power, utilisation) is None


@pytest.mark.parametrize("unknown", [math.nan, -3.0])
def test_unknown_utilisation_is_not_idle(make_log: MakeLog, unknown: float) -> None:
    assert _idle_w(make_log((100, 25, unknown))) is None
    assert _idle_w(make_log((20, 25, 0), (1, 25, unknown), (20, 25, 0))) is None


def test_without_utilisation_nothing_is_known_to_be_idle(make_log: MakeLog) -> None:
    power, _ = make_log((100, 25, 0))
    assert find_idle(power, None) is None


def test_a_log_under_load_has_no_baseline(make_log: MakeLog) -> None:
    assert _idle_w(make_log((300, 231, 98))) is None
    assert _idle_w(make_log((300, 231, 5.1))) is None
    assert _idle_w(make_log((300, 231, 5.0))) == 231


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_readings_have_no_baseline(make_log: MakeLog, n: int) -> None:
    power, utilisation = make_log((n, 25, 0))
    assert find_idle(power, utilisation, settle_s=0) is None


def test_three_slow_readings_are_enough(make_log: MakeLog) -> None:
    baseline = find_idle(*make_log((6, 75, 0), step_s=10.0))
    assert baseline is not None
    assert (baseline.idle_w, baseline.n) == (75, 3)


def test_missing_power_is_not_idle_at_zero(make_log: MakeLog) -> None:
    assert _idle_w(make_log((100, math.nan, 0))) is None
    assert _idle_w(make_log((40, 25, 0), (1, math.nan, 0), (80, 25, 0))) == 25


def test_a_lone_low_reading_is_no_plateau(make_log: MakeLog) -> None:
    assert _idle_w(make_log((40, 25, 0), (2, 0, 0), (40, 25, 0))) == 25


def test_the_lowest_of_several_levels_counts(make_log: MakeLog) -> None:
    assert _idle_w(make_log((100, 40, 0), (100, 24, 0), (100, 60, 0))) == 24


def test_noise_does_not_pull_the_baseline_down(make_series: MakeSeries) -> None:
    noise = np.random.default_rng(7).normal(50, 4, 2_000)
    power = make_series(noise.tolist())
    utilisation = make_series([0.0] * 2_000, channel=Channel.UTILISATION_PCT)
    baseline = find_idle(power, utilisation)
    assert baseline is not None
    assert baseline.idle_w == pytest.approx(50, abs=0.3)
    assert baseline.spread_w == pytest.approx(0.6745 * 4, rel=0.1)


def test_the_mean_counts_where_a_sensor_is_coarse(make_log: MakeLog) -> None:
    """Idle adds up to energy: its median would be off by a part of the sensor's step."""
    baseline = find_idle(*make_log(*[(1, 0.64, 0), (1, 0.64, 0), (1, 0.72, 0)] * 60), settle_s=0)
    assert baseline is not None
    assert baseline.idle_w == pytest.approx((2 * 0.64 + 0.72) / 3)


def test_a_reading_that_stands_far_out_does_not_move_it(make_log: MakeLog) -> None:
    assert _idle_w(make_log((50, 25, 0), (1, 900, 0), (50, 25, 0))) == 25


def test_readings_that_all_scatter_all_count(make_log: MakeLog) -> None:
    baseline = find_idle(*make_log(*[(1, 2, 0), (1, 4, 0), (1, 8, 0)] * 60), settle_s=0)
    assert baseline is not None
    assert baseline.idle_w == pytest.approx(14 / 3)


def test_a_rail_may_draw_nothing_idle(make_log: MakeLog) -> None:
    assert _idle_w(make_log((60, 0, 0), (60, 5, 90))) == 0


def test_unseen_idle_is_told(make_log: MakeLog) -> None:
    finding = assess_idle("gpu_3", None)
    assert finding is not None
    assert (finding.code, finding.where, finding.severity) == ("idle-unseen", "gpu_3", Severity.WARNING)
    assert assess_idle("gpu_3", find_idle(*make_log((100, 25, 0)))) is None


def test_dynamic_energy_is_that_of_the_busy_time(make_log: MakeLog) -> None:
    power, utilisation = make_log((60, 24, 0), (300, 231, 98), (60, 24, 0))
    dynamic = dynamic_energy(power, utilisation, idle_w=24)
    assert (dynamic.busy_s, dynamic.total_j) == (300, 69_300)
    assert dynamic.energy_j == dynamic.low_j == dynamic.high_j == 62_100


def test_utilisation_at_the_limit_is_not_busy(make_log: MakeLog) -> None:
    assert dynamic_energy(*make_log((101, 231, 5)), idle_w=24).busy_s == 0
    assert dynamic_energy(*make_log((101, 231, 6)), idle_w=24, busy_pct=6).busy_s == 0


def test_without_idle_the_dynamic_energy_has_bounds(make_log: MakeLog) -> None:
    dynamic = dynamic_energy(*make_log((301, 231, 98)), idle_w=None)
    assert dynamic.energy_j is None
    assert (dynamic.low_j, dynamic.high_j) == (0, 69_300)


def test_without_utilisation_all_time_counts(make_log: MakeLog) -> None:
    power, _ = make_log((101, 100, 0))
    dynamic = dynamic_energy(power, None, idle_w=30)
    assert (dynamic.busy_s, dynamic.total_j, dynamic.energy_j) == (100, 10_000, 7_000)


def test_an_idle_power_above_the_load_is_not_hidden(make_log: MakeLog) -> None:
    dynamic = dynamic_energy(*make_log((101, 20, 98)), idle_w=30)
    assert dynamic.energy_j == -1_000


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_read_is_no_energy(make_log: MakeLog, n: int) -> None:
    dynamic = dynamic_energy(*make_log((n, 231, 98)), idle_w=24)
    assert (dynamic.busy_s, dynamic.total_j, dynamic.energy_j) == (0, 0, 0)


def _baseline(idle_w: float, n: int, spread_w: float = 0.0, at_ns: int = 0) -> Baseline:
    return Baseline(
        device="gpu_0", idle_w=idle_w, spread_w=spread_w, n=n, first_utc_ns=at_ns, last_utc_ns=at_ns + 5
    )


@pytest.mark.parametrize(
    ("pairs", "idle_w"),
    [
        ([(24, 10)], 24),
        ([(24, 10), (26, 10)], 25),
        ([(24, 10), (26, 11)], 26),
        ([(24, 100), (26, 10), (90, 20)], 24),
        ([(90, 20), (26, 30), (24, 30)], 26),
        ([(1, 1), (2, 1), (3, 1), (4, 1)], 2.5),
    ],
)
def test_a_pool_is_the_weighted_median(pairs: Sequence[tuple[float, int]], idle_w: float) -> None:
    pooled = pool_baselines([_baseline(value, n) for value, n in pairs])
    assert pooled is not None
    assert pooled.idle_w == idle_w
    assert pooled.n == sum(n for _, n in pairs)


def test_a_pool_spreads_as_its_sessions_do() -> None:
    pooled = pool_baselines([_baseline(20, 10, 1, 7), _baseline(30, 10, 1, 3), _baseline(40, 10, 1, 5)])
    assert pooled is not None
    assert pooled.spread_w == 11
    assert (pooled.first_utc_ns, pooled.last_utc_ns) == (3, 12)


def test_no_baselines_make_no_pool() -> None:
    assert pool_baselines([]) is None
