"""Findings about a calibration: each where there is cause for it, and none where there is not."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from tests.made_runs import Cells, calibrate_cells, make_cells, read_table

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.assess import assess_calibration
from flopwitness.measure.calibration.calibrate import Calibrated
from flopwitness.measure.calibration.fitted import Method, Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import NetEnergy, NetKind

FULL = make_cells(24, scope="gpu", driver="550", clock_limit="1380MHz")
ROWS = read_table(FULL).rows


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(FULL).calibration


def with_model(calibration: Calibration, method: Method, model: Model) -> Calibration:
    models = MappingProxyType({**calibration.fitted.models, method: model})
    return replace(calibration, fitted=replace(calibration.fitted, models=models))


def assess(calibration: Calibration, n_left_out: int = 0) -> tuple[Finding, ...]:
    return assess_calibration(calibration, ROWS, workloads=ROWS, n_left_out=n_left_out)


def find(found: Calibrated | tuple[Finding, ...], code: str) -> list[Finding]:
    findings = found.findings if isinstance(found, Calibrated) else found
    return [finding for finding in findings if finding.code == code]


def clean(calibration: Calibration) -> Calibration:
    """The calibration with nothing left to find: constants that are known, and errors that are even."""
    for method in (Method.PAPER_EQ1, Method.PAPER_EQ2):
        traffic = 10.0 if method is Method.PAPER_EQ1 else None
        model = PaperModel(
            energy_per_tflop_j=5.0,
            energy_per_tb_j=traffic,
            overhead_w=1.0,
            condition_number=10.0,
            errors=np.full(24, 0.1),
        )
        calibration = with_model(calibration, method, model)
    return replace(calibration, fitted=replace(calibration.fitted, refused=MappingProxyType({})))


def test_a_calibration_without_fault_has_no_findings(calibration: Calibration) -> None:
    assert assess(clean(calibration)) == ()


@pytest.mark.parametrize("n_left_out", [1, 7])
def test_runs_that_taught_nothing_are_counted(n_left_out: int, calibration: Calibration) -> None:
    (finding,) = assess(clean(calibration), n_left_out)
    assert finding.code == "runs-unusable"
    assert finding.severity is Severity.WARNING
    assert finding.count == n_left_out
    assert str(n_left_out) in finding.message


def test_what_nobody_recorded_is_named(calibration: Calibration) -> None:
    bare = replace(calibration.fingerprint, driver="", clock_limit="", count=None)
    (finding,) = assess(replace(clean(calibration), fingerprint=bare))
    assert finding.code == "fingerprint-unrecorded"
    assert finding.severity is Severity.NOTE
    assert finding.found == "count, clock_limit, driver"
    assert finding.count == 3


def test_several_precisions_are_warned_of(calibration: Calibration) -> None:
    mixed = replace(calibration.fingerprint, precisions=("fp16", "fp32"))
    (finding,) = assess(replace(clean(calibration), fingerprint=mixed))
    assert finding.code == "precisions-mixed"
    assert finding.severity is Severity.WARNING
    assert finding.found == "fp16, fp32"


@pytest.mark.parametrize(
    ("kind", "words"), [(NetKind.RECORDED, "each record"), (NetKind.TOTAL, "idle included")]
)
def test_unknown_idle_power_is_warned_of(kind: NetKind, words: str, calibration: Calibration) -> None:
    known = clean(calibration)
    (finding,) = assess(replace(known, fitted=replace(known.fitted, net=NetEnergy(kind=kind))))
    assert finding.code == "idle-unrecorded"
    assert finding.severity is Severity.WARNING
    assert words in finding.message


def test_a_counter_that_few_runs_read_is_warned_of() -> None:
    cells: list[Cells] = [dict(each) for each in FULL]
    for each in cells[5:]:
        each["host_traffic_tb"] = "0"
    (finding,) = find(calibrate_cells(cells), "traffic-unusable")
    assert "host traffic" in finding.message
    assert finding.found == "5 of 24"


def test_a_counter_that_nobody_read_is_none() -> None:
    assert not find(calibrate_cells(FULL, without=["host_traffic_tb"]), "traffic-unusable")


@pytest.mark.parametrize(("factor", "is_told"), [(1.9, False), (2.1, True), (20.0, True)])
def test_a_range_of_power_that_holds_another_mode_is_warned_of(
    factor: float, is_told: bool, calibration: Calibration
) -> None:
    known = clean(calibration)
    low, high = known.fitted.domain.log_low.copy(), known.fitted.domain.log_high.copy()
    high[0] = low[0] + np.log(factor)
    domain = replace(known.fitted.domain, log_low=low, log_high=high)
    found = assess(replace(known, fitted=replace(known.fitted, domain=domain)))
    assert [finding.code for finding in found] == ["power-range-wide"] * is_told
    assert all(finding.severity is Severity.WARNING for finding in found)


def test_refused_estimators_are_told_with_their_reason(calibration: Calibration) -> None:
    known = clean(calibration)
    refused = MappingProxyType({Method.EFFICIENCY: "too few", Method.PAPER_EQ1: "no traffic"})
    found = assess(replace(known, fitted=replace(known.fitted, refused=refused)))
    assert [(each.code, each.severity, each.where) for each in found] == [
        ("estimator-refused", Severity.WARNING, "efficiency"),
        ("estimator-refused", Severity.NOTE, "paper-eq1"),
    ]
    assert "too few" in found[0].message


@pytest.mark.parametrize(("overhead_w", "is_told"), [(0.0, True), (4.0, True), (0.0125, False), (2.0, False)])
def test_an_overhead_on_the_edge_is_told(overhead_w: float, is_told: bool, calibration: Calibration) -> None:
    known = clean(calibration)
    model = known.fitted.models[Method.PAPER_EQ1]
    assert isinstance(model, PaperModel)
    found = assess(with_model(known, Method.PAPER_EQ1, replace(model, overhead_w=overhead_w)))
    assert [(each.code, each.where) for each in found] == [("overhead-at-edge", "paper-eq1")] * is_told


@pytest.mark.parametrize(("condition", "is_told"), [(29.9, False), (30.1, True), (999.0, True)])
def test_constants_that_trade_off_are_told(condition: float, is_told: bool, calibration: Calibration) -> None:
    known = clean(calibration)
    model = known.fitted.models[Method.PAPER_EQ2]
    assert isinstance(model, PaperModel)
    found = assess(with_model(known, Method.PAPER_EQ2, replace(model, condition_number=condition)))
    assert [(each.code, each.where) for each in found] == [("constants-collinear", "paper-eq2")] * is_told


@pytest.mark.parametrize(
    ("n_workloads", "is_told"), [(3, True), (8, True), (9, True), (18, True), (19, False)]
)
def test_a_small_calibration_is_told(n_workloads: int, is_told: bool, calibration: Calibration) -> None:
    known = clean(calibration)
    found = assess(replace(known, data=replace(known.data, n_workloads=n_workloads)))
    assert [(each.code, each.found) for each in found] == [("calibration-small", str(n_workloads))] * is_told
    for finding in found:
        assert ("rank is not reached" in finding.message) is (n_workloads < 9)


def test_a_poisoned_run_is_named() -> None:
    cells = [dict(each) for each in FULL]
    cells[7]["true_tflop"] = f"{1.6 * float(cells[7]['true_tflop']):.3f}"
    (finding,) = find(calibrate_cells(cells), "run-unlike-others")
    assert finding.where == "r7"
    assert finding.severity is Severity.WARNING
    assert 1.3 < float(finding.found) < 2


def test_a_poisoned_run_without_a_name_is_told_by_its_line() -> None:
    cells = [{**each, "run_id": ""} for each in FULL]
    cells[7]["true_tflop"] = f"{1.6 * float(cells[7]['true_tflop']):.3f}"
    (finding,) = find(calibrate_cells(cells), "run-unlike-others")
    assert finding.where == "line 9"


def test_a_poisoned_run_among_repeats_is_named_by_its_first_run() -> None:
    cells = [dict(each) for each in (*FULL[:8], *FULL[:3], *FULL[8:])]
    changed = f"{1.6 * float(FULL[12]['true_tflop']):.3f}"
    cells[12 + 3]["true_tflop"] = changed
    made = calibrate_cells(cells)
    assert made.calibration.data.n_workloads == 24
    (finding,) = find(made, "run-unlike-others")
    assert finding.where == "r12"


def test_a_calibration_that_fits_closely_has_no_outliers() -> None:
    cells = make_cells(24, noise=0.0001)
    cells[7]["true_tflop"] = f"{1.06 * float(cells[7]['true_tflop']):.3f}"
    assert not find(calibrate_cells(cells), "run-unlike-others")
