"""The estimate without calibration: wide where little is known, and never above the peak."""

import math
from dataclasses import replace

import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Kind, Precision
from flopwitness.foundation.errors import OutOfRangeError
from flopwitness.measure.estimators.prior import (
    Interval,
    Observation,
    estimate_prior,
    plausible_precisions,
    unit_of,
)
from flopwitness.measure.reference import Load, Quantity, ReferenceTable, Unit, Workload
from flopwitness.measure.samples import Scope

HOUR_S = 3_600.0


def _seen(energy_j: float | None, *, scope: Scope = Scope.GPU, count: int = 8) -> Observation:
    return Observation(count=count, duration_s=HOUR_S, energy_j=energy_j, scope=scope)


@pytest.fixture
def h100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find("h100-sxm")
    return chip


def _limit_w(chip: Chip) -> float:
    assert chip.power_limit_w is not None
    return chip.power_limit_w.value


def test_time_alone_gives_a_share_of_the_peak(h100: Chip, reference: ReferenceTable) -> None:
    prior = estimate_prior([h100], _seen(None), table=reference, precisions=[Precision.BF16])
    assert prior is not None
    spread = reference.find(workload=Workload.ANY, load=Load.UNKNOWN, unit=Unit.MATRIX, quantity=Quantity.MFU)
    low, high = spread.interval(level=0.9)
    most = 8 * HOUR_S * h100.peak(Precision.BF16).value
    assert prior.interval.low_flop == pytest.approx(most * low)
    assert prior.interval.high_flop == pytest.approx(most * min(1, high))
    assert prior.method == "prior-time"
    assert prior.load is Load.UNKNOWN
    assert prior.power_share is None
    assert prior.n_groups == spread.n_groups


def test_energy_gives_operations_through_the_limits_own_ratio(h100: Chip, reference: ReferenceTable) -> None:
    energy_j = 8 * HOUR_S * 0.9 * _limit_w(h100)
    prior = estimate_prior([h100], _seen(energy_j), table=reference, precisions=[Precision.BF16])
    assert prior is not None
    spread = reference.find(
        workload=Workload.ANY, load=Load.NEAR_LIMIT, unit=Unit.MATRIX, quantity=Quantity.RHO
    )
    low, high = spread.interval(level=0.9)
    scale = energy_j * h100.peak(Precision.BF16).value / _limit_w(h100)
    assert prior.interval.low_flop == pytest.approx(scale / high)
    assert prior.interval.high_flop == pytest.approx(min(scale / low, scale / 0.9))
    assert prior.method == "prior-energy"
    assert prior.load is Load.NEAR_LIMIT
    assert prior.power_share == pytest.approx(0.9)


def test_little_power_is_part_load(h100: Chip, reference: ReferenceTable) -> None:
    prior = estimate_prior([h100], _seen(8 * HOUR_S * 0.2 * _limit_w(h100)), table=reference)
    assert prior is not None
    assert prior.load is Load.PART_LOAD


def test_a_nodes_overhead_is_taken_off_and_widens(h100: Chip, reference: ReferenceTable) -> None:
    energy_j = 8 * HOUR_S * 0.6 * _limit_w(h100)
    share = reference.node_share["node-ac"]
    of_gpu = estimate_prior([h100], _seen(energy_j), table=reference)
    of_node = estimate_prior([h100], _seen(energy_j * share.centre, scope=Scope.NODE_AC), table=reference)
    assert of_gpu is not None
    assert of_node is not None
    assert of_node.power_share == pytest.approx(of_gpu.power_share)
    assert of_node.interval.ratio > of_gpu.interval.ratio


def test_more_than_the_limits_is_taken_as_the_limits(h100: Chip, reference: ReferenceTable) -> None:
    at_limit = estimate_prior([h100], _seen(8 * HOUR_S * _limit_w(h100)), table=reference)
    absurd = estimate_prior([h100], _seen(1e15), table=reference)
    assert at_limit is not None
    assert absurd is not None
    assert absurd.interval == at_limit.interval


def test_doubt_about_the_energy_widens(h100: Chip, reference: ReferenceTable) -> None:
    seen = _seen(8 * HOUR_S * 0.5 * _limit_w(h100))
    plain = estimate_prior([h100], seen, table=reference)
    doubtful = estimate_prior([h100], replace(seen, energy_log_sd=0.5), table=reference)
    assert plain is not None
    assert doubtful is not None
    assert doubtful.interval.low_flop < plain.interval.low_flop
    assert doubtful.interval.high_flop >= plain.interval.high_flop


@pytest.mark.parametrize("scope", [Scope.UNKNOWN, Scope.SWITCH])
def test_power_of_no_known_scope_is_not_used(h100: Chip, reference: ReferenceTable, scope: Scope) -> None:
    prior = estimate_prior([h100], _seen(1e6, scope=scope), table=reference)
    assert prior is not None
    assert prior.method == "prior-time"


def test_without_a_limit_or_a_time_energy_is_not_used(h100: Chip, reference: ReferenceTable) -> None:
    unlimited = replace(h100, power_limit_w=None)
    prior = estimate_prior([unlimited], _seen(1e6), table=reference)
    assert prior is not None
    assert prior.method == "prior-time"
    timeless = replace(_seen(1e6), duration_s=None)
    assert estimate_prior([h100], timeless, table=reference) is None
    assert estimate_prior([h100], replace(timeless, energy_j=None), table=reference) is None


def test_ignorance_of_the_precision_is_a_union(h100: Chip, reference: ReferenceTable) -> None:
    union = estimate_prior([h100], _seen(1e7), table=reference)
    assert union is not None
    assert len(union.precisions) > 1
    for precision in union.precisions:
        alone = estimate_prior([h100], _seen(1e7), table=reference, precisions=[precision])
        assert alone is not None
        assert union.interval.low_flop <= alone.interval.low_flop
        assert alone.interval.high_flop <= union.interval.high_flop


def test_ignorance_of_the_chip_is_a_union(chips: ChipCatalogue, reference: ReferenceTable) -> None:
    family = chips.find("H100")
    union = estimate_prior(family, _seen(1e7), table=reference)
    assert union is not None
    for chip in family:
        alone = estimate_prior([chip], _seen(1e7), table=reference)
        assert alone is not None
        assert union.interval.low_flop <= alone.interval.low_flop
        assert alone.interval.high_flop <= union.interval.high_flop
        assert union.n_groups <= alone.n_groups


def test_no_interval_reaches_over_its_precisions_peak(
    chips: ChipCatalogue, reference: ReferenceTable
) -> None:
    for chip in chips.chips:
        for energy_j in (None, 1.0, 1e7, 1e12):
            for precision in chip.peak_flop_per_s:
                prior = estimate_prior(
                    [chip], _seen(energy_j), table=reference, precisions=[precision], level=0.99
                )
                assert prior is not None
                most = 8 * HOUR_S * chip.peak(precision).value
                interval = prior.interval
                assert 0 < interval.low_flop <= interval.mid_flop * (1 + 1e-9)
                assert interval.mid_flop <= interval.high_flop * (1 + 1e-9)
                assert interval.high_flop <= most


def test_a_precision_that_the_chip_lacks_is_refused(chips: ChipCatalogue, reference: ReferenceTable) -> None:
    with pytest.raises(OutOfRangeError) as caught:
        estimate_prior(chips.find("v100-sxm2-16gb"), _seen(None), table=reference, precisions=[Precision.FP8])
    assert caught.value.found == "fp8"
    with pytest.raises(OutOfRangeError):
        estimate_prior(chips.find("H100"), _seen(1e6), table=reference, precisions=[Precision.FP4])


@pytest.mark.parametrize(
    ("name", "precisions"),
    [
        ("h100-sxm", {"fp16", "bf16", "fp8"}),
        ("a100-sxm-80gb", {"fp16", "bf16"}),
        ("b200", {"fp16", "bf16", "fp8", "fp4"}),
    ],
)
def test_servers_train_in_few_bits(chips: ChipCatalogue, name: str, precisions: set[str]) -> None:
    (chip,) = chips.find(name)
    assert set(plausible_precisions(chip)) == precisions


@pytest.mark.parametrize("name", ["rtx-4090", "v100-sxm2-16gb", "jetson-orin-nano-8gb"])
def test_cards_modules_and_old_chips_may_train_in_fp32(chips: ChipCatalogue, name: str) -> None:
    (chip,) = chips.find(name)
    assert Precision.FP32 in plausible_precisions(chip)


def test_every_chip_has_a_plausible_precision(chips: ChipCatalogue) -> None:
    for chip in chips.chips:
        precisions = plausible_precisions(chip)
        assert precisions
        assert set(precisions) <= set(chip.peak_flop_per_s)
    only = replace(chips.chips[0], kind=Kind.GPU, peak_flop_per_s={})
    peak = next(iter(chips.chips[0].peak_flop_per_s.values()))
    int8 = replace(only, peak_flop_per_s={Precision.INT8: peak})
    assert plausible_precisions(int8) == (Precision.INT8,)


def test_units_follow_the_chip(chips: ChipCatalogue) -> None:
    (h100,) = chips.find("h100-sxm")
    (p100,) = chips.find("p100-sxm2")
    assert unit_of(h100, Precision.FP16) is Unit.MATRIX
    assert unit_of(h100, Precision.FP32) is Unit.VECTOR
    assert unit_of(h100, Precision.FP64) is Unit.VECTOR
    assert unit_of(h100, Precision.TF32) is Unit.MATRIX
    assert unit_of(p100, Precision.FP16) is Unit.VECTOR


def test_the_ratio_is_upper_over_lower() -> None:
    assert Interval(low_flop=2.0, mid_flop=4.0, high_flop=8.0).ratio == 4
    assert math.isclose(Interval(low_flop=1e20, mid_flop=1e21, high_flop=1e22).ratio, 100)


@pytest.mark.parametrize(
    ("name", "has_fp32"),
    [
        ("mi300x", False),
        ("h100-nvl", False),
        ("tpu-v5p", False),
        ("rtx-4090", True),
        ("v100-sxm2-16gb", True),
    ],
)
def test_server_chips_are_taken_to_train_in_sixteen_bits_or_fewer(
    chips: ChipCatalogue, name: str, has_fp32: bool
) -> None:
    (chip,) = chips.find(name)
    assert (Precision.FP32 in plausible_precisions(chip)) == has_fp32
