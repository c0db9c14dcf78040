"""One row of a table of runs: what it tells is used, what it does not tell stays open."""

from collections.abc import Callable
from typing import Any

import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision
from flopwitness.measure.answer import Measurement
from flopwitness.measure.bounds import BoundBy
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import chip_left_open, measure_row
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunRow

Measure = Callable[..., Measurement]

OPEN = Question(chips=(), count=0)
HOUR_S = 3_600.0


@pytest.fixture
def measure(chips: ChipCatalogue, reference: ReferenceTable) -> Measure:
    def measure_it(stated: Question = OPEN, **fields: Any) -> Measurement:  # noqa: ANN401 (the fields of a row)
        row = RunRow(row=2, cells={}, run_id="run-1", **fields)
        return measure_row(row, stated, catalogue=chips, table=reference)

    return measure_it


def _codes(answer: Measurement) -> set[str]:
    return {finding.code for finding in answer.findings}


@pytest.fixture
def h100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find("h100-sxm")
    return chip


def test_a_whole_row_gives_a_whole_answer(measure: Measure, h100: Chip) -> None:
    answer = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S, energy_j=1.3e7, scope=Scope.GPU)
    assert answer.upper is not None
    assert answer.upper.time_flop == 8 * 3_600 * int(h100.peak_best[1].value)
    assert answer.upper.energy_flop is not None
    assert answer.energy is not None
    assert answer.energy.shown_j == answer.energy.recorded_high_j == 1.3e7
    assert answer.energy.coverage is None
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-energy"
    assert answer.estimate.low_flop <= answer.estimate.flop <= answer.estimate.high_flop <= answer.upper.flop
    assert _codes(answer) == {"precision-assumed"}


def test_time_alone_is_enough(measure: Measure) -> None:
    answer = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    assert answer.energy is None
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.TIME
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"


@pytest.mark.parametrize("energy_j", [1_000.0, 1.3e7])
def test_energy_without_a_count_or_a_time_bounds_nothing(measure: Measure, energy_j: float) -> None:
    without_count = measure(chip_name="h100-sxm", duration_s=HOUR_S, energy_j=energy_j, scope=Scope.GPU)
    without_time = measure(chip_name="h100-sxm", count=100_000, energy_j=energy_j, scope=Scope.GPU)
    for answer in (without_count, without_time):
        assert (answer.upper, answer.estimate) == (None, None)
        assert _codes(answer) == {"row-incomplete"}


def test_the_power_of_one_chip_for_many_is_told(measure: Measure) -> None:
    answer = measure(
        chip_name="h100-sxm", count=10, duration_s=HOUR_S, energy_j=750 * HOUR_S, scope=Scope.GPU
    )
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.TIME
    assert "power-of-one-chip" in _codes(answer)
    pair = measure(chip_name="h100-sxm", count=2, duration_s=HOUR_S, energy_j=700 * HOUR_S, scope=Scope.GPU)
    assert "power-of-one-chip" not in _codes(pair)


def test_one_chip_used_in_a_whole_node_is_no_contradiction(measure: Measure) -> None:
    answer = measure(
        chip_name="h100-sxm", count=1, duration_s=HOUR_S, energy_j=1_900 * HOUR_S, scope=Scope.NODE_AC
    )
    assert "hardware-contradicted" not in _codes(answer)
    assert answer.upper is not None


@pytest.mark.parametrize("scope", [Scope.UNKNOWN, Scope.RAIL, Scope.SWITCH])
def test_energy_of_a_part_bounds_nothing(measure: Measure, scope: Scope) -> None:
    answer = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S, energy_j=1.0, scope=scope)
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.TIME
    assert answer.upper.energy_flop is None


@pytest.mark.parametrize(
    ("fields", "wanting"),
    [
        ({}, "hardware, number of chips, time"),
        ({"chip_name": "h100-sxm"}, "number of chips, time"),
        ({"chip_name": "h100-sxm", "count": 8}, "time"),
        ({"count": 8, "duration_s": HOUR_S}, "hardware"),
        ({"chip_name": "h100-sxm", "energy_j": 1.0, "count": None}, "number of chips, time"),
    ],
)
def test_what_is_missing_is_named(measure: Measure, fields: dict[str, Any], wanting: str) -> None:
    answer = measure(**fields)
    assert answer.upper is None
    assert answer.estimate is None
    (finding,) = answer.findings
    assert finding.code == "row-incomplete"
    assert f"{wanting};" in finding.message
    assert finding.where == "run-1"


def test_unknown_hardware_is_told_and_bounds_nothing(measure: Measure) -> None:
    answer = measure(chip_name="Abacus 3000", count=8, duration_s=HOUR_S)
    assert answer.upper is None
    assert _codes(answer) == {"chip-unknown", "row-incomplete"}


def test_several_chips_take_the_fastest(measure: Measure, chips: ChipCatalogue) -> None:
    answer = measure(chip_name="h100-sxm, a100-sxm-80gb", count=8, duration_s=HOUR_S)
    alone = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    assert answer.upper is not None
    assert alone.upper is not None
    assert answer.upper.flop == alone.upper.flop
    assert "chip-variants" in _codes(answer)
    finding = chip_left_open("x", chips.chips[:9])
    assert "or 3 others" in finding.message
    assert finding.count == 9
    assert "others" not in chip_left_open("x", chips.chips[:6]).message


def test_the_call_overrides_the_row(measure: Measure, h100: Chip) -> None:
    stated = Question(chips=(h100,), count=16, precisions=(Precision.BF16,))
    answer = measure(stated, chip_name="a100-sxm-80gb", count=8, duration_s=HOUR_S, precisions=("fp32",))
    assert answer.upper is not None
    assert answer.upper.flop == 16 * 3_600 * int(h100.peak_best[1].value)
    assert answer.estimate is not None
    assert answer.estimate.precisions == ("bf16",)


def test_a_rows_precision_narrows_the_interval_and_never_the_bound(measure: Measure) -> None:
    plain = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    bf16 = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S, precisions=("bf16", "odd"))
    assert plain.estimate is not None
    assert bf16.estimate is not None
    assert bf16.estimate.ratio < plain.estimate.ratio
    assert bf16.upper == plain.upper
    assert _codes(bf16) == set()


@pytest.mark.parametrize("name", ["fp3", "fp4", "fp64-tensor,x"])
def test_a_precision_that_helps_nobody_is_told(measure: Measure, name: str) -> None:
    answer = measure(
        chip_name="v100-sxm2-16gb", count=8, duration_s=HOUR_S, precisions=tuple(name.split(","))
    )
    assert "precision-unknown" in _codes(answer)
    assert answer.estimate is not None


def test_a_power_mode_narrows_the_interval_and_never_the_bound(
    measure: Measure, chips: ChipCatalogue
) -> None:
    (orin,) = chips.find("jetson-orin-nano-8gb")
    mode = next(
        name
        for name, mode in orin.power_modes.items()
        if mode.power_limit_w is not None and mode.power_limit_w.value < 15
    )
    fields = {"chip_name": orin.id, "count": 1, "duration_s": HOUR_S}
    plain, slow = measure(**fields), measure(**fields, power_mode=mode)
    assert slow.upper == plain.upper
    assert slow.estimate is not None
    assert plain.estimate is not None
    assert slow.estimate.high_flop <= plain.estimate.high_flop
    unknown = measure(**fields, power_mode="LUDICROUS")
    assert unknown.estimate == plain.estimate
    assert "power-mode-unknown" in _codes(unknown)
    assert "power-mode-unknown" not in _codes(
        measure(chip_name="h100-sxm", count=1, duration_s=HOUR_S, power_mode="LUDICROUS")
    )


@pytest.mark.parametrize("energy_j", [5e-324, 1.0, 1e30, 1.7e308])
def test_absurd_energies_raise_nothing(measure: Measure, energy_j: float) -> None:
    answer = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S, energy_j=energy_j, scope=Scope.NODE)
    if energy_j > 1:
        assert (answer.upper, answer.estimate) == (None, None)
        assert "hardware-contradicted" in {item.code for item in answer.findings}
        return
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.TIME
    assert "power-under-idle" in {item.code for item in answer.findings}
    assert answer.estimate is not None
    assert answer.estimate.low_flop <= answer.estimate.flop <= answer.estimate.high_flop <= answer.upper.flop


def test_what_a_row_declares_never_reaches_the_figures(measure: Measure) -> None:
    plain = measure(chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    declared = measure(
        chip_name="h100-sxm", count=8, duration_s=HOUR_S, declared_flop=1, true_flop=2, base_model="x"
    )
    assert declared == plain
