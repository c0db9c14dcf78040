"""The ledger's totals: what counts, what it counts as, and what a repeated piece adds: nothing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.totals import LedgerState, MeterKey, Totals, add_totals, busy_limit_w, extend

MakeSeries = Callable[..., Series]
Total = Callable[..., Totals]


def _totals(state: LedgerState) -> Totals:
    (meter,) = state.meters.values()
    return meter.totals


@pytest.fixture
def total(make_series: MakeSeries) -> Total:
    """How a test adds up readings, one a second where no times are given."""

    def add(
        power_w: Sequence[float],
        utilisation_pct: Sequence[float] | None = None,
        *,
        time_s: Sequence[float] | None = None,
        **settings: Any,  # noqa: ANN401 (passed on)
    ) -> Totals:
        utilisation = (
            None
            if utilisation_pct is None
            else make_series(utilisation_pct, time_s=time_s, channel=Channel.UTILISATION_PCT)
        )
        settings = {"idle_w": 0.0, "longest_step_s": 2.5, **settings}
        return _totals(extend(LedgerState(), make_series(power_w, time_s=time_s), utilisation, **settings))

    return add


def test_energy_is_the_trapezoid(total: Total, make_series: MakeSeries) -> None:
    power_w, time_s = [10, 70, 30, 5, 90], [0, 1, 2.5, 3, 4.25]
    totals = total(power_w, time_s=time_s)
    assert totals.energy_j == pytest.approx(integrate_power(make_series(power_w, time_s=time_s)).shown_j)
    assert (totals.covered_s, totals.gap_s, totals.n_readings) == (4.25, 0, 5)


def test_net_energy_is_above_idle(total: Total) -> None:
    totals = total([10, 110, 110, 10], idle_w=10.0)
    assert totals.energy_j == 60 + 110 + 60
    assert totals.net_energy_j == totals.net_low_j == totals.net_high_j == 200
    assert totals.net_square_w2s == 2 * 100**2
    assert totals.working_net_w == 100
    assert totals.busy_s == 2
    assert totals.unnetted_j == 0


def test_readings_below_idle_are_not_clipped(total: Total) -> None:
    """Noise around idle adds up to nothing only where both sides of it count."""
    assert total([9, 11, 9, 11, 9], idle_w=10.0).net_energy_j == 0
    assert total([8, 8, 8], idle_w=10.0).net_energy_j == -4
    assert total([8, 8, 8], idle_w=10.0).working_net_w is None


def test_unknown_idle_leaves_the_net_energy_open(total: Total) -> None:
    totals = total([10, 110, 110, 10], idle_w=None)
    assert totals.energy_j == totals.unnetted_j == 230
    assert (totals.net_low_j, totals.net_high_j) == (0, 230)
    assert (totals.busy_s, totals.net_square_w2s) == (0, 0)
    assert totals.working_net_w is None


def test_idle_time_moves_neither_busy_time_nor_working_power(total: Total) -> None:
    short = total([10, 110, 110, 10], idle_w=10.0)
    padded = total([10] * 50 + [10, 110, 110, 10] + [10] * 50, idle_w=10.0)
    assert padded.busy_s == short.busy_s
    assert padded.working_net_w == short.working_net_w
    assert padded.covered_s > 10 * short.covered_s


def test_a_run_cut_open_keeps_its_totals(total: Total) -> None:
    """What straight lines between readings would not give: a step down and up again adds no busy time."""
    whole = total([10, *[110] * 10, 10], idle_w=10.0)
    cut = total([10, *[110] * 4, *[10] * 6, *[110] * 6, 10], idle_w=10.0)
    for name in ("net_energy_j", "busy_s", "net_square_w2s"):
        assert getattr(cut, name) == getattr(whole, name), name


def test_utilisation_tells_time_in_use(total: Total) -> None:
    totals = total([10] * 7, [0, 0, 90, 5.1, 5, math.nan, 0], idle_w=10.0)
    assert totals.used_s == 2
    assert totals.utilisation_s == 5
    assert totals.busy_s == 0


def test_without_utilisation_no_time_is_in_use(total: Total) -> None:
    totals = total([10, 110, 110])
    assert (totals.used_s, totals.utilisation_s) == (0, 0)


@pytest.mark.parametrize(
    ("working_net_w", "limit_w"), [(None, 0.5), (0.0, 0.5), (8.0, 0.5), (10.0, 0.5), (100.0, 5.0)]
)
def test_the_busy_limit(working_net_w: float | None, limit_w: float) -> None:
    assert busy_limit_w(working_net_w) == limit_w


def test_the_busy_limit_decides(total: Total) -> None:
    assert total([12] * 5, idle_w=10.0, busy_net_w=busy_limit_w(30.0)).busy_s == 4
    assert total([12] * 5, idle_w=10.0, busy_net_w=busy_limit_w(100.0)).busy_s == 0


def test_a_gap_is_bounded_and_in_no_sum(total: Total) -> None:
    totals = total([100, 100, 300, 300], time_s=[0, 1, 11, 12], idle_w=10.0, floor_w=20.0, limit_w=700.0)
    assert (totals.energy_j, totals.net_energy_j) == (400, 380)
    assert (totals.covered_s, totals.gap_s) == (2, 10)
    assert (totals.bridged_j, totals.gap_low_j, totals.gap_high_j) == (2_000, 200, 7_000)


def test_a_gap_without_a_limit_stays_open_for_good(total: Total, make_series: MakeSeries) -> None:
    assert total([100] * 3).gap_high_j == 0
    state = extend(LedgerState(), make_series([100, 100], time_s=[0, 9]), idle_w=None, longest_step_s=2.5)
    assert _totals(state).gap_high_j is None
    state = extend(state, make_series([100], time_s=[19]), idle_w=None, longest_step_s=2.5, limit_w=700.0)
    assert _totals(state).gap_high_j is None
    assert _totals(state).gap_s == 19


def test_a_reading_above_the_limit_raises_it_and_one_below_the_floor_lowers_it(total: Total) -> None:
    totals = total([900, 5], time_s=[0, 10], floor_w=20.0, limit_w=700.0)
    assert (totals.gap_low_j, totals.gap_high_j) == (50, 9_000)


@pytest.mark.parametrize("missing", [math.nan, math.inf, -1.0])
def test_a_missing_reading_leaves_a_gap(total: Total, missing: float) -> None:
    totals = total([100, 100, missing, 100, 100], limit_w=200.0)
    assert (totals.energy_j, totals.gap_s, totals.gap_high_j) == (200, 2, 400)
    assert (totals.n_readings, totals.n_missing) == (4, 1)


def test_a_missing_reading_at_the_end_of_a_piece_leaves_a_gap(make_series: MakeSeries) -> None:
    readings = make_series([100, 100, math.nan, 100, 100])
    first = replace(readings, utc_ns=readings.utc_ns[:3], value=readings.value[:3])
    second = replace(readings, utc_ns=readings.utc_ns[3:], value=readings.value[3:])
    state = extend(LedgerState(), first, idle_w=None, longest_step_s=2.5)
    assert _totals(extend(state, second, idle_w=None, longest_step_s=2.5)).gap_s == 2


def test_a_piece_that_comes_twice_adds_nothing(make_series: MakeSeries) -> None:
    piece = make_series([100, math.nan, 100])
    once = extend(LedgerState(), piece, idle_w=10.0, longest_step_s=2.5)
    twice = extend(once, piece, idle_w=10.0, longest_step_s=2.5)
    assert replace(_totals(twice), n_ignored=0) == _totals(once)
    assert _totals(twice).n_ignored == 3
    assert [meter.last for meter in twice.meters.values()] == [meter.last for meter in once.meters.values()]


def test_an_overlapping_piece_adds_what_is_new(total: Total, make_series: MakeSeries) -> None:
    state = extend(LedgerState(), make_series([1, 2, 3], time_s=[0, 1, 2]), idle_w=0.0, longest_step_s=2.5)
    state = extend(state, make_series([2, 3, 4, 5], time_s=[1, 2, 3, 4]), idle_w=0.0, longest_step_s=2.5)
    assert replace(_totals(state), n_ignored=0) == total([1, 2, 3, 4, 5])
    assert _totals(state).n_ignored == 2


def test_a_clock_set_back_is_counted(total: Total) -> None:
    totals = total([100] * 6, time_s=[0, 1, 2, 0.5, 1.5, 3])
    assert (totals.energy_j, totals.n_readings, totals.n_ignored) == (300, 4, 2)


def test_utilisation_is_held_from_piece_to_piece(make_series: MakeSeries) -> None:
    state = extend(
        LedgerState(),
        make_series([1, 1], time_s=[0, 1]),
        make_series([90], time_s=[0.5], channel=Channel.UTILISATION_PCT),
        idle_w=None,
        longest_step_s=2.5,
    )
    state = extend(state, make_series([1, 1], time_s=[2, 4]), idle_w=None, longest_step_s=2.5)
    assert _totals(state).used_s == 0.5 + 1 + 1  # at 4 s it has grown old


def test_the_latest_utilisation_is_held_whatever_its_place(make_series: MakeSeries) -> None:
    first = make_series([90, 0], time_s=[0.5, 0.2], channel=Channel.UTILISATION_PCT)
    state = extend(LedgerState(), make_series([1, 1], time_s=[0, 1]), first, idle_w=None, longest_step_s=2.5)
    state = extend(state, make_series([1], time_s=[2]), idle_w=None, longest_step_s=2.5)
    assert _totals(state).used_s == 0.5 + 1


def test_idle_may_be_known_for_a_part_only(make_series: MakeSeries) -> None:
    state = extend(LedgerState(), make_series([50, 50]), idle_w=None, longest_step_s=2.5)
    state = extend(state, make_series([50, 50], time_s=[2, 3]), idle_w=10.0, longest_step_s=2.5)
    totals = _totals(state)
    assert (totals.net_energy_j, totals.unnetted_j, totals.energy_j) == (40, 100, 150)


def test_conversion_factors_apply(make_series: MakeSeries) -> None:
    state = extend(LedgerState(), make_series([100, 100], conversion=0.9), idle_w=40.0, longest_step_s=2.5)
    assert (_totals(state).energy_j, _totals(state).net_energy_j) == (90, 50)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_readings_have_no_sums(total: Total, n: int) -> None:
    totals = total([100.0] * n)
    assert totals == replace(Totals(), n_readings=n)


def test_a_state_is_never_changed(make_series: MakeSeries) -> None:
    state = LedgerState()
    later = extend(state, make_series([1, 1]), idle_w=None, longest_step_s=2.5)
    extend(later, make_series([1, 1], time_s=[2, 3]), idle_w=None, longest_step_s=2.5)
    assert dict(state.meters) == {}
    assert _totals(later).energy_j == 1
    with pytest.raises(TypeError):
        later.meters[MeterKey("x", Channel.POWER_W, Scope.GPU, "")] = None  # type: ignore[index]


def test_unlike_figures_are_kept_apart(make_series: MakeSeries) -> None:
    first = make_series([1, 1])
    state = LedgerState()
    for series in (
        first,
        replace(first, device="gpu_1"),
        replace(first, scope=Scope.NODE),
        replace(first, part="VDD_SOC"),
        replace(first, channel=Channel.POWER_AVERAGE_W),
    ):
        state = extend(state, series, idle_w=None, longest_step_s=2.5)
    assert len(state.meters) == 5
    assert all(meter.totals.energy_j == 1 for meter in state.meters.values())


def test_devices_of_one_scope_are_added(make_series: MakeSeries) -> None:
    first = make_series([10, 110, 110, 10, math.nan, 10, 10, 10], time_s=[0, 1, 2, 13, 14, 15, 16, 15.5])
    utilisation = make_series([90] * 8, channel=Channel.UTILISATION_PCT)
    state = LedgerState()
    for series in (first, replace(first, device="gpu_1")):
        state = extend(
            state, series, utilisation, idle_w=10.0, longest_step_s=2.5, floor_w=5.0, limit_w=200.0
        )
    later = replace(make_series([50, 50], time_s=[60, 61]), device="gpu_1")
    for device in ("gpu_0", "gpu_1"):
        state = extend(state, replace(later, device=device), idle_w=None, longest_step_s=2.5, limit_w=200.0)
    one = state.meters[MeterKey("gpu_1", Channel.POWER_W, Scope.GPU, "")].totals
    both = add_totals(state.meters)
    for item in fields(Totals):
        assert getattr(both, item.name) == 2 * getattr(one, item.name) > 0, item.name
    assert both.working_net_w == one.working_net_w
    assert add_totals({}) == Totals()


def test_an_open_gap_keeps_the_sum_open(make_series: MakeSeries) -> None:
    state = extend(LedgerState(), make_series([1, 1], time_s=[0, 9]), idle_w=None, longest_step_s=2.5)
    state = extend(state, replace(make_series([1, 1]), device="b"), idle_w=None, longest_step_s=2.5)
    assert add_totals(state.meters).gap_high_j is None


@pytest.mark.parametrize(
    "other", [{"scope": Scope.NODE, "device": "b"}, {"part": "VDD_SOC"}, {"channel": Channel.POWER_AVERAGE_W}]
)
def test_what_may_show_the_same_joules_is_never_added(make_series: MakeSeries, other: dict[str, Any]) -> None:
    first = make_series([1, 1])
    state = extend(LedgerState(), first, idle_w=None, longest_step_s=2.5)
    state = extend(state, replace(first, **other), idle_w=None, longest_step_s=2.5)
    with pytest.raises(ValueError, match="never added"):
        add_totals(state.meters)


@pytest.mark.parametrize("channel", [Channel.UTILISATION_PCT, Channel.ENERGY_COUNTER_J])
def test_only_power_is_added_up(make_series: MakeSeries, channel: Channel) -> None:
    with pytest.raises(ValueError, match="not a channel of power"):
        extend(LedgerState(), make_series([1, 1], channel=channel), idle_w=None, longest_step_s=2.5)


def test_many_readings_sum_without_drift(total: Total) -> None:
    power_w = np.full(100_001, 0.1)
    totals = total(power_w.tolist(), time_s=np.arange(100_001).tolist())
    assert totals.energy_j == pytest.approx(10_000, rel=1e-10)
