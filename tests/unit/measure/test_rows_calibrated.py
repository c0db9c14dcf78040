"""A row of a table with a calibration: a point, a refusal that names its reason, and what is told of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.made_runs import Cells, calibrate_cells, make_cells, read_table

from flopwitness.catalogue.chips import ChipCatalogue, Precision
from flopwitness.foundation.units import scale_count
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.observed import observe
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunRow

Measure = Callable[..., Measurement]

CELLS = make_cells(34)
HELD = CELLS[24:]


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS[:24]).calibration


@pytest.fixture(scope="module")
def measure(chips: ChipCatalogue, reference: ReferenceTable, calibration: Calibration) -> Measure:
    def measure_it(row: RunRow, **stated: object) -> Measurement:
        options: dict[str, object] = {"chips": (), "count": 0, "calibration": calibration}
        question = Question(**{**options, **stated})  # type: ignore[arg-type]
        return measure_row(row, question, catalogue=chips, table=reference)

    return measure_it


def row_of(cells: Mapping[str, str] = HELD[0], *, without: Sequence[str] = (), **changed: str) -> RunRow:
    """One run as the package reads it, some cells changed and some columns left out."""
    (row,) = read_table([{**cells, **changed}], without=without).rows
    return row


def codes(answer: Measurement) -> set[str]:
    return {finding.code for finding in answer.findings}


def refusals(answer: Measurement) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in answer.refusals]


@pytest.mark.parametrize("cells", HELD, ids=lambda cells: cells["run_id"])
def test_a_row_of_the_same_kind_has_the_calibrations_point(
    measure: Measure, calibration: Calibration, cells: Cells
) -> None:
    row = row_of(cells)
    answer = measure(row)
    expected = calibration.fitted.predict(Method.EFFICIENCY, observe([row]), 0.9)
    assert answer.estimate is not None
    assert answer.estimate.flop == scale_count(float(expected.flop[0]))
    assert answer.estimate.low_flop == scale_count(float(expected.low_flop[0]))
    assert answer.estimate.high_flop == scale_count(float(expected.high_flop[0]), up=True)
    assert row.true_flop is not None
    assert answer.estimate.flop == pytest.approx(row.true_flop, rel=0.1)
    assert answer.upper is not None
    assert answer.estimate.high_flop < answer.upper.flop
    assert answer.refusals == ()
    assert {finding.code for finding in answer.findings} <= {"feature-beyond"}


def test_a_calibrated_row_says_what_it_rests_on(measure: Measure, calibration: Calibration) -> None:
    answer = measure(row_of(), level=0.5, method=Method.PAPER_EQ1)
    assert answer.estimate is not None
    assert answer.estimate.method == "paper-eq1"
    assert answer.estimate.calibration == str(calibration.digest)
    assert (answer.estimate.n_runs, answer.estimate.level) == (24, 0.5)
    assert answer.estimate.prior is None
    wide = measure(row_of(), level=0.99, method=Method.PAPER_EQ1).estimate
    assert wide is not None
    assert wide.flop == answer.estimate.flop
    assert wide.ratio > answer.estimate.ratio


def test_without_a_calibration_nothing_is_calibrated(measure: Measure) -> None:
    answer = measure(row_of(), calibration=None)
    assert answer.calibrated is None
    assert answer.refusals == ()
    assert answer.upper == measure(row_of()).upper
    assert answer.estimate is not None
    assert answer.estimate.method.startswith("prior")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"precision": "fp32"}, ("calibration-mismatch", "precisions")),
        ({"power_mode": "250W"}, ("calibration-mismatch", "power_mode")),
        ({"device": "2x-h100-sxm"}, ("calibration-mismatch", "chips")),
        ({"memory_traffic_tb": ""}, ("feature-missing", "")),
        ({"host_traffic_tb": "0"}, ("feature-missing", "")),
        ({"link_traffic_tb": "900"}, ("feature-outside", "link_tb_per_j")),
    ],
)
def test_a_refused_row_keeps_prior_and_bound(
    measure: Measure, changed: dict[str, str], expected: tuple[str, str]
) -> None:
    row = row_of({**HELD[0], **changed})
    answer, plain = measure(row), measure(row, calibration=None)
    assert refusals(answer) == [expected]
    assert answer.estimate == plain.estimate
    assert answer.estimate is not None
    assert answer.upper == plain.upper
    assert answer.upper is not None
    assert codes(answer) == codes(plain) | {expected[0]}
    assert answer.findings[0].severity is Severity.WARNING


def test_what_the_user_states_goes_before_what_the_row_says(measure: Measure, chips: ChipCatalogue) -> None:
    stated = {
        "chips": chips.find_all("v100-sxm2-16gb"),
        "count": 2,
        "precisions": (Precision.FP16,),
        "power_mode": "300 w",
    }
    foreign = row_of(device="8x-h100-sxm", world_size="8", precision="fp32", power_mode="700W")
    assert measure(foreign, **stated).refusals == ()
    assert refusals(measure(row_of(), power_mode="250W")) == [("calibration-mismatch", "power_mode")]
    assert refusals(measure(row_of(), precisions=(Precision.FP32,))) == [
        ("calibration-mismatch", "precisions")
    ]
    h100 = measure(row_of(), chips=chips.find_all("h100-sxm"), count=4)
    assert refusals(h100) == [("calibration-mismatch", "chips"), ("calibration-mismatch", "count")]


@pytest.mark.parametrize("without", [["device"], ["world_size"], ["device", "world_size"]])
def test_a_row_without_chip_or_count_has_an_estimate_and_no_bound(
    measure: Measure, without: list[str]
) -> None:
    cells = {**HELD[0], "device": "v100-sxm2-16gb"}
    answer, whole = measure(row_of(cells, without=[*without, "batch_size"])), measure(row_of())
    assert answer.upper is None
    assert answer.estimate is not None
    assert whole.estimate is not None
    assert answer.estimate == whole.estimate
    assert answer.refusals == ()
    assert codes(answer) == {"row-incomplete", "fingerprint-unrecorded"}


@pytest.mark.parametrize("device", ["v100-sxm2-16gb", "2x-v100-sxm2-16gb"])
def test_a_step_whose_chips_nobody_counted_is_not_doubted(measure: Measure, device: str) -> None:
    honest = row_of(device=device, without=["world_size"])
    assert "declared-steps-low" not in codes(measure(honest, count=2))


def test_a_row_without_a_time_has_neither(measure: Measure) -> None:
    answer = measure(row_of(without=["duration_s"]))
    assert (answer.estimate, answer.upper) == (None, None)
    assert refusals(answer) == [("feature-missing", "")]
    assert answer.refusals[0].found == "no power_w"
    assert codes(answer) == {"row-incomplete", "feature-missing"}


def test_hardware_that_nobody_knows_is_refused_by_its_name(measure: Measure) -> None:
    answer = measure(row_of(device="Abacus 3000"))
    assert (answer.estimate, answer.upper) == (None, None)
    assert refusals(answer) == [("calibration-mismatch", "chips")]
    assert answer.refusals[0].expected == "v100-sxm2-16gb"
    assert {"chip-unknown", "row-incomplete"} < codes(answer)


def test_a_precision_that_nobody_recorded_gives_a_bracket(measure: Measure) -> None:
    answer, named = measure(row_of(without=["precision"])), measure(row_of())
    assert answer.calibrated is not None
    bracket = answer.calibrated.bracket
    assert bracket is not None
    assert answer.estimate is not None
    assert answer.estimate == named.estimate
    assert bracket.calibrated is Precision.FP16
    assert bracket.low_flop < answer.estimate.low_flop
    assert bracket.high_flop >= answer.estimate.flop
    assert codes(answer) == {"fingerprint-unrecorded"}
    assert named.calibrated is not None
    assert named.calibrated.bracket is None
    told = measure(row_of(without=["precision"]), precisions=(Precision.FP16,))
    assert told.calibrated is not None
    assert told.calibrated.bracket is None


def test_a_refused_row_without_precision_assumes_some_and_still_has_a_bracket(measure: Measure) -> None:
    answer = measure(row_of(without=["precision"], link_traffic_tb="900"))
    assert answer.calibrated is not None
    assert answer.calibrated.bracket is not None
    assert answer.calibrated.point is None
    assert codes(answer) == {"feature-outside", "fingerprint-unrecorded", "precision-assumed"}


def test_the_bracket_spans_all_chips_that_a_name_leaves_open(measure: Measure, chips: ChipCatalogue) -> None:
    answer = measure(row_of(without=["precision"], device="2x V100"))
    assert len(chips.find_all("V100")) > 1
    assert answer.refusals == ()
    assert answer.calibrated is not None
    assert answer.calibrated.bracket is not None
    assert "chip-variants" in codes(answer)


def test_understated_tokens_are_told_and_move_nothing(measure: Measure) -> None:
    honest, lying = measure(row_of()), measure(row_of(batch_size=str(int(HELD[0]["batch_size"]) // 4)))
    assert codes(honest) == set()
    assert codes(lying) == {"declared-steps-low"}
    assert lying.estimate == honest.estimate
    assert lying.upper == honest.upper
    assert lying.refusals == ()


def test_names_and_true_sizes_move_no_estimate(measure: Measure) -> None:
    other = row_of(run_id="tiny", true_tflop="1", d_model="8192", optimizer="sgd", steps="1")
    assert measure(other).estimate == measure(row_of()).estimate


@pytest.mark.parametrize("energy_j", [1e7, 1e30])
def test_power_that_the_chips_cannot_draw_gives_nothing(measure: Measure, energy_j: float) -> None:
    answer = measure(replace(row_of(), scope=Scope.GPU, energy_j=energy_j))
    assert (answer.estimate, answer.upper) == (None, None)
    assert "hardware-contradicted" in codes(answer)
    assert [finding.code for finding in answer.refusals] == ["feature-missing"]


@pytest.mark.parametrize("energy_j", [1.0, 3_000.0])
def test_energy_under_the_idle_power_is_an_anomaly(measure: Measure, energy_j: float) -> None:
    answer = measure(replace(row_of(), energy_j=energy_j, net_energy_j=None), method=Method.CONSTANT)
    assert refusals(answer) == [("energy-under-idle", "")]
    assert answer.estimate is not None
    assert answer.estimate.method.startswith("prior")


def test_an_estimate_over_the_bound_is_refused_as_absurd(measure: Measure, calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.CONSTANT]
    assert isinstance(model, ConstantModel)
    greedy = replace(model, log_flop_per_j=model.log_flop_per_j + 3)
    absurd = replace(
        calibration,
        fitted=replace(calibration.fitted, models=MappingProxyType({Method.CONSTANT: greedy})),
    )
    answer = measure(row_of(), calibration=absurd, method=Method.CONSTANT)
    assert refusals(answer) == [("estimate-over-bound", "constant")]
    assert answer.estimate == measure(row_of(), calibration=None).estimate
    unbounded = measure(row_of(without=["device", "batch_size"]), calibration=absurd, method=Method.CONSTANT)
    assert unbounded.refusals == ()
    assert unbounded.estimate is not None


def test_energy_that_is_called_unused_makes_no_point(chips: ChipCatalogue, reference: ReferenceTable) -> None:
    cells = make_cells(24, world_size="8", device="v100-sxm2-16gb")
    question = Question(chips=(), count=0, calibration=calibrate_cells(cells).calibration)
    answer = measure_row(row_of(cells[0]), question, catalogue=chips, table=reference)
    (finding,) = (item for item in answer.findings if item.code == "power-of-one-chip")
    assert finding.message.endswith("energy is not used")
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
