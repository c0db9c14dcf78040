"""What estimators may see of a run, and how energy above idle is made of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.made_runs import observed

from flopwitness.measure.observed import (
    Feature,
    NetEnergy,
    NetKind,
    ObservedRuns,
    log_features,
    observe,
    pool_means,
    settle_net_energy,
)
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunRow

NAN = float("nan")

ROW = RunRow(
    row=2,
    cells={"d_model": "512"},
    run_id="a",
    chip_name="v100-sxm2-16gb",
    count=2,
    duration_s=10.0,
    energy_j=1_000.0,
    net_energy_j=700.0,
    idle_power_w=30.0,
    mean_power_w=100.0,
    utilisation_pct=90.0,
    memory_traffic_tb=3.0,
    link_traffic_tb=2.0,
    host_traffic_tb=1.0,
    true_flop=10**15,
)


def columns(runs: ObservedRuns) -> dict[str, list[float]]:
    return {name: getattr(runs, name).tolist() for name in ObservedRuns.__slots__}


def test_what_sensors_saw_is_taken_over() -> None:
    seen = columns(observe([ROW]))
    assert (
        seen.items()
        >= {
            "duration_s": [10.0],
            "energy_j": [1_000.0],
            "net_energy_j": [700.0],
            "idle_w": [30.0],
            "memory_tb": [3.0],
            "link_tb": [2.0],
            "host_tb": [1.0],
        }.items()
    )
    assert all(len(values) == 1 for values in seen.values())


def test_nothing_else_of_a_record_is_seen() -> None:
    other = replace(
        ROW,
        row=99,
        cells={"d_model": "8192", "steps": "7"},
        run_id="huge",
        chip_name="h100-sxm",
        count=8,
        scope=Scope.NODE_AC,
        mean_power_w=7.0,
        power_mode="1W",
        clock_limit="x",
        driver="y",
        precisions=("fp8",),
        utilisation_pct=1.0,
        true_flop=10**30,
        declared_flop=10**31,
        finetune_flop=10**29,
        base_model="b",
    )
    assert columns(observe([other])) == columns(observe([ROW]))


@pytest.mark.parametrize(
    "field",
    [
        "duration_s",
        "energy_j",
        "net_energy_j",
        "idle_power_w",
        "memory_traffic_tb",
        "link_traffic_tb",
        "host_traffic_tb",
    ],
)
def test_every_sensor_matters(field: str) -> None:
    changed: dict[str, Any] = {field: 55.0}
    assert columns(observe([replace(ROW, **changed)])) != columns(observe([ROW]))


def test_what_was_not_recorded_is_missing_and_never_zero() -> None:
    runs = observe([RunRow(row=2, cells={})])
    assert all(np.isnan(values).all() for values in columns(runs).values())
    assert len(observe([])) == 0


def test_runs_are_taken_in_the_order_asked_for() -> None:
    runs = observe([replace(ROW, duration_s=float(n)) for n in range(1, 5)])
    assert len(runs) == 4
    assert runs.take(np.array([3, 0], dtype=np.intp)).duration_s.tolist() == [4, 1]
    assert runs.take(runs.duration_s > 2).duration_s.tolist() == [3, 4]
    assert runs.take(slice(1, 3)).duration_s.tolist() == [2, 3]
    assert all(len(values) == 2 for values in columns(runs.take(slice(1, 3))).values())


def test_each_feature_has_its_traffic_and_power_has_none() -> None:
    runs = observe([ROW])
    traffic = {feature: runs.traffic_tb(feature).tolist() for feature in Feature if feature.is_traffic}
    assert traffic == {Feature.MEMORY: [3.0], Feature.LINK: [2.0], Feature.HOST: [1.0]}
    with pytest.raises(KeyError):
        runs.traffic_tb(Feature.POWER)


def test_units_are_those_of_the_names() -> None:
    assert {feature: feature.unit for feature in Feature} == {
        Feature.POWER: "W",
        Feature.MEMORY: "TB/J",
        Feature.LINK: "TB/J",
        Feature.HOST: "TB/J",
    }


def test_pooled_idle_is_taken_off_for_the_whole_time() -> None:
    runs = observed(duration_s=[10, 20], energy_j=[1_000, 1_000], net_energy_j=[1, 2], idle_w=[5, 6])
    assert NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=30).of(runs).tolist() == [700, 400]


def test_a_run_under_idle_has_negative_energy_above_it() -> None:
    runs = observed(duration_s=[10], energy_j=[100])
    assert NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=30).of(runs).tolist() == [-200]


def test_a_run_without_total_energy_keeps_its_own_record() -> None:
    runs = observed(duration_s=[10, NAN, 10], energy_j=[NAN, 500, NAN], net_energy_j=[7, 8, NAN])
    np.testing.assert_array_equal(NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=30).of(runs), [7, 8, NAN])


def test_recorded_and_total_energy_stand_as_they_are() -> None:
    runs = observed(duration_s=[10], energy_j=[100], net_energy_j=[60], idle_w=[4])
    assert NetEnergy(kind=NetKind.RECORDED).of(runs).tolist() == [60]
    assert NetEnergy(kind=NetKind.TOTAL).of(runs).tolist() == [100]


def test_idle_power_is_the_median_over_runs_that_have_one() -> None:
    runs = observed(duration_s=[1] * 5, net_energy_j=[1] * 5, idle_w=[3, NAN, 1, 100, NAN])
    assert settle_net_energy(runs) == NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=3.0)
    lonely = observed(duration_s=[1] * 5, net_energy_j=[1] * 5, idle_w=[NAN, NAN, 9, NAN, NAN])
    assert settle_net_energy(lonely) == NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=9.0)


@pytest.mark.parametrize(
    ("net_energy_j", "kind"),
    [
        ([1, 1, 1, 1], NetKind.RECORDED),
        ([1, 1, NAN, NAN], NetKind.RECORDED),
        ([1, NAN, NAN, NAN], NetKind.TOTAL),
        ([NAN, NAN, NAN, NAN], NetKind.TOTAL),
    ],
)
def test_without_idle_power_the_record_of_half_the_runs_decides(
    net_energy_j: list[float], kind: NetKind
) -> None:
    runs = observed(duration_s=[1] * 4, energy_j=[2] * 4, net_energy_j=net_energy_j)
    assert settle_net_energy(runs) == NetEnergy(kind=kind, idle_w=0.0)


def test_features_are_power_and_traffic_by_the_joule() -> None:
    runs = observed(
        duration_s=[10, 20], energy_j=[1_000, 4_000], memory_tb=[3, 4], link_tb=[7, 5], host_tb=[2, 9]
    )
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    net_j = np.array([900.0, 3_800.0])
    found = log_features(runs, net, list(Feature))
    expected = [net_j / [10, 20], [3, 4] / net_j, [7, 5] / net_j, [2, 9] / net_j]
    np.testing.assert_allclose(np.exp(found).T, expected, rtol=1e-12)
    np.testing.assert_array_equal(log_features(runs, net, [Feature.HOST, Feature.POWER]), found[:, [3, 0]])
    assert log_features(runs, net, []).shape == (2, 0)


def test_features_do_not_grow_with_a_runs_length() -> None:
    one = observed(duration_s=[10], energy_j=[1_000], memory_tb=[3], link_tb=[7], host_tb=[2])
    ten = observed(duration_s=[100], energy_j=[10_000], memory_tb=[30], link_tb=[70], host_tb=[20])
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    np.testing.assert_allclose(
        log_features(one, net, list(Feature)), log_features(ten, net, list(Feature)), rtol=1e-14
    )


def test_pauses_do_not_move_the_power() -> None:
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    whole = observed(duration_s=[100], energy_j=[10_000])
    paused = observed(duration_s=[150], busy_s=[100], energy_j=[10_000 + 50 * 10])
    np.testing.assert_allclose(
        log_features(whole, net, [Feature.POWER]), log_features(paused, net, [Feature.POWER]), rtol=1e-14
    )


def test_a_table_that_tells_no_pauses_has_none() -> None:
    assert observe([ROW]).busy_s.tolist() == [10.0]


def test_repeats_are_pooled_by_their_mean() -> None:
    runs = observed(duration_s=[10, 20, 30], energy_j=[1, 2, 6], idle_w=[NAN, 1, 2])
    pooled = runs.pooled(np.array([1, 0, 1], dtype=np.intp))
    assert len(pooled) == 2
    assert pooled.duration_s.tolist() == [20, 20]
    assert pooled.energy_j.tolist() == [2, 3.5]
    np.testing.assert_array_equal(pooled.idle_w, [1, NAN])
    np.testing.assert_array_equal(pooled.memory_tb, [NAN, NAN])
    assert pool_means(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1], dtype=np.intp)).tolist() == [2, 5]


def test_one_energy_gives_the_other() -> None:
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    runs = observed(duration_s=[10] * 3, energy_j=[500, NAN, NAN], net_energy_j=[NAN, 300, NAN])
    filled = runs.filled(net)
    np.testing.assert_array_equal(filled.energy_j, [500, 400, NAN])
    np.testing.assert_array_equal(filled.net_energy_j, [400, 300, NAN])
    np.testing.assert_array_equal(net.of(filled), net.of(runs))


@pytest.mark.parametrize(("memory_tb", "is_known"), [(1e-95, True), (1e-105, False), (1e105, False)])
def test_a_ratio_that_no_unit_makes_is_missing(memory_tb: float, is_known: bool) -> None:
    runs = observed(duration_s=10, energy_j=1_000, memory_tb=memory_tb)
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    assert np.isfinite(log_features(runs, net, [Feature.MEMORY])).all() == is_known


@pytest.mark.parametrize(
    "run",
    [
        {"memory_tb": 0},
        {"memory_tb": NAN},
        {"energy_j": NAN},
        {"energy_j": 50},  # under idle
        {"energy_j": 100},  # exactly idle
    ],
)
def test_a_feature_that_is_not_above_zero_is_missing(run: dict[str, float]) -> None:
    runs = observed(**{"duration_s": 10, "energy_j": 1_000, "memory_tb": 3, **run})
    net = NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=10)
    assert np.isnan(log_features(runs, net, [Feature.MEMORY])).all()
