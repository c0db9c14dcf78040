"""The answer for other programs: the keys that other programs rely on, counts as decimal strings."""

import datetime as dt
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.made_runs import calibrate_cells, make_cells, read_table

from flopwitness.accounting.answers import answer_row, assess_measurement
from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.catalogue.rules import load_rules
from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.units import decode_flop
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.samples import Provenance, RunWindow, Series, Trace
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.present.estimate_json import render_run, render_table

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]

FINDING = Finding(
    code="gap",
    severity=Severity.WARNING,
    message="m",
    where="w",
    expected="e",
    found="f",
    count=3,
    reproduce="r",
)
TODAY = dt.date(2026, 6, 1)
RULES = {rule.id: rule for rule in load_rules().rules}
INPUT = Provenance(path="a.txt", format="mlperf-power", digest=digest_bytes(b"a"), size_bytes=1)


@pytest.fixture(scope="module")
def question(chips: ChipCatalogue) -> Question:
    return Question(chips=chips.find("h100-sxm"), count=1)


@pytest.fixture(scope="module")
def measured(
    question: Question, reference: ReferenceTable, make_series: MakeSeries, make_window: MakeWindow
) -> Measurement:
    series = make_series([300 + i % 9 for i in range(601)])
    return measure_trace(Trace(series=(series,), windows=(make_window(10, 590),)), question, table=reference)


@pytest.fixture
def record(measured: Measurement, question: Question) -> dict[str, Any]:
    rules = assess_measurement(measured, [load_rules().find("eu-ai-act-art51")])
    return render_run(measured, question, rules, rules=RULES, on=TODAY, inputs=[INPUT], findings=[FINDING])


def test_the_promised_keys_are_there(record: dict[str, Any]) -> None:
    assert {"duration_s", "energy_j", "coverage", "estimate", "upper_bound", "rules", "findings"} <= set(
        record
    )
    assert {"flop", "low", "high", "level", "method", "calibration"} <= set(record["estimate"])
    assert {"flop", "by"} <= set(record["upper_bound"])
    (rule,) = record["rules"]
    assert {"id", "threshold_flop", "verdict", "position"} <= set(rule)
    (finding,) = record["findings"]
    assert {"code", "severity", "count", "message", "reproduce"} <= set(finding)


def test_counts_are_decimal_strings(record: dict[str, Any], measured: Measurement) -> None:
    assert measured.estimate is not None
    assert measured.upper is not None
    estimate, upper = record["estimate"], record["upper_bound"]
    assert decode_flop(estimate["flop"]) == measured.estimate.flop
    assert decode_flop(estimate["low"]) == measured.estimate.low_flop
    assert decode_flop(estimate["high"]) == measured.estimate.high_flop
    assert decode_flop(upper["flop"]) == measured.upper.flop
    assert decode_flop(upper["time_flop"]) == measured.upper.time_flop
    assert decode_flop(upper["energy_flop"]) == measured.upper.energy_flop
    assert record["rules"][0]["threshold_flop"] == "1" + "0" * 25
    assert upper["safety"] == "1/2"


def test_everything_can_be_written_as_strict_json(record: dict[str, Any]) -> None:
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text) == record


def test_the_values_are_those_of_the_measurement(record: dict[str, Any], measured: Measurement) -> None:
    assert measured.energy is not None
    assert record["spec"] == "flopwitness/estimate/v1"
    assert record["chips"] == ["h100-sxm"]
    assert record["count"] == 1
    assert record["duration_s"] == 580
    assert record["recorded_s"] == 600
    assert record["coverage"] == 1
    assert record["energy_j"] == pytest.approx(measured.energy.shown_j, abs=0.1)
    assert record["energy_scope"] == "gpu"
    assert record["n_devices"] == 1
    assert re.fullmatch(r"2023-11-14T22:13:30Z", record["run_start"])
    assert record["rules"][0] | {"reason": ""} == {
        "id": "eu-ai-act-art51",
        "status": "law",
        "standing": "in force",
        "level": "",
        "threshold_flop": "1" + "0" * 25,
        "comparison": ">",
        "verdict": "consistent",
        "position": "below",
        "reason": "",
    }
    assert record["findings"] == [
        {
            "code": "gap",
            "severity": "warning",
            "count": 3,
            "message": "m",
            "where": "w",
            "expected": "e",
            "found": "f",
            "reproduce": "r",
        }
    ]
    assert record["inputs"] == [
        {"path": "a.txt", "format": "mlperf-power", "digest": str(digest_bytes(b"a")), "size_bytes": 1}
    ]


def test_the_bound_names_the_chips_and_the_time_that_it_counts(
    record: dict[str, Any], measured: Measurement
) -> None:
    assert measured.upper is not None
    assert record["upper_bound"]["count"] == measured.upper.count
    assert record["upper_bound"]["duration_s"] == pytest.approx(measured.upper.duration_s, abs=1e-3)


@pytest.mark.parametrize(
    ("rule_id", "status", "standing"),
    [
        ("us-ca-sb1047", "vetoed", "vetoed, never law"),
        ("us-eo14110-model", "rescinded", "no longer in force"),
        ("us-ny-raise", "law", "not yet in force"),
        ("miri-draft-treaty", "proposal", "a proposal, not law"),
        ("eu-gpai-indicative", "guidance", "guidance, not law"),
    ],
)
def test_no_program_can_take_for_law_what_is_none(
    measured: Measurement, question: Question, rule_id: str, status: str, standing: str
) -> None:
    items = assess_measurement(measured, [RULES[rule_id]])
    record = render_run(measured, question, items, rules=RULES, on=TODAY, inputs=[], findings=[])
    assert record["on"] == "2026-06-01"
    assert {(rule["status"], rule["standing"]) for rule in record["rules"]} == {(status, standing)}


def test_what_is_missing_is_null(measured: Measurement, question: Question) -> None:
    empty = replace(
        measured, duration_s=None, recorded_s=None, window=None, energy=None, estimate=None, upper=None
    )
    record = render_run(empty, question, [], rules=RULES, on=TODAY, inputs=[], findings=[])
    for key in ("duration_s", "recorded_s", "run_start", "energy_j", "coverage", "estimate", "upper_bound"):
        assert record[key] is None
    assert record["energy_high_j"] is None
    assert (record["rules"], record["findings"], record["inputs"]) == ([], [], [])


def test_an_open_end_is_null(measured: Measurement, question: Question) -> None:
    assert measured.energy is not None
    assert measured.upper is not None
    opened = replace(
        measured,
        energy=replace(measured.energy, high_j=None, coverage=None),
        upper=replace(measured.upper, time_flop=None, energy_flop=None),
    )
    record = render_run(opened, question, [], rules=RULES, on=TODAY, inputs=[], findings=[])
    assert record["energy_high_j"] is None
    assert record["coverage"] is None
    assert record["upper_bound"]["time_flop"] is None
    assert record["upper_bound"]["energy_flop"] is None


def test_a_table_gives_a_record_a_row(chips: ChipCatalogue, reference: ReferenceTable) -> None:
    rule = load_rules().find("eu-ai-act-art51")
    rows = [
        RunRow(row=2, cells={}, run_id="one", chip_name="h100-sxm", count=8, duration_s=3_600.0),
        RunRow(row=3, cells={}, run_id="two", base_model="nobody"),
    ]
    stated = Question(chips=(), count=0)
    answers = [
        answer_row(
            row, lambda row: measure_row(row, stated, catalogue=chips, table=reference), [rule], index={}
        )
        for row in rows
    ]
    record = render_table(iter(answers), rules=RULES, on=TODAY, inputs=[INPUT], findings=[FINDING])
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    one, two = record["runs"]
    assert (one["row"], one["run_id"], one["estimate"]["method"]) == (2, "one", "prior-time")
    assert one["rules"][0]["position"] == "below"
    assert one["energy_j"] is None
    assert (two["row"], two["estimate"], two["upper_bound"]) == (3, None, None)
    assert two["rules"][0]["position"] == "cannot-tell"
    assert [item["code"] for item in two["findings"]] == ["parent-unrecorded", "row-incomplete"]
    assert record["findings"][0]["code"] == "gap"
    assert record["inputs"][0]["path"] == "a.txt"


CELLS = make_cells(21)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS[:20]).calibration


@pytest.fixture(scope="module")
def record_row(
    chips: ChipCatalogue, reference: ReferenceTable, calibration: Calibration
) -> Callable[..., tuple[Measurement, dict[str, Any]]]:
    def record_it(*, without: tuple[str, ...] = (), **changed: str) -> tuple[Measurement, dict[str, Any]]:
        (row,) = read_table([{**CELLS[20], **changed}], without=without).rows
        stated = Question(chips=(), count=0, calibration=calibration)
        measurement = measure_row(row, stated, catalogue=chips, table=reference)
        answer = answer_row(row, lambda _: measurement, [RULES["eu-ai-act-art51"]], index={})
        record = render_table([answer], rules=RULES, on=TODAY, inputs=[INPUT], findings=[])
        assert json.loads(json.dumps(record, allow_nan=False)) == record
        (run,) = record["runs"]
        return measurement, run

    return record_it


RecordRow = Callable[..., tuple[Measurement, dict[str, Any]]]


def test_a_calibrated_estimate_names_its_calibration(record_row: RecordRow, calibration: Calibration) -> None:
    measurement, run = record_row()
    assert measurement.estimate is not None
    assert run["estimate"] == {
        "flop": str(measurement.estimate.flop),
        "low": str(measurement.estimate.low_flop),
        "high": str(measurement.estimate.high_flop),
        "level": 0.9,
        "method": "efficiency",
        "calibration": str(calibration.digest),
        "calibration_runs": 20,
        "precisions": ["fp16"],
        "load": None,
        "power_share": None,
        "reference_groups": None,
    }
    assert (run["bracket"], run["refused"]) == (None, [])


def test_a_bracket_has_its_ends_and_precisions(record_row: RecordRow) -> None:
    measurement, run = record_row(without=("precision",))
    assert measurement.calibrated is not None
    bracket = measurement.calibrated.bracket
    assert bracket is not None
    found = run["bracket"]
    assert set(found) == {"low", "high", "level", "calibrated_precision", "precisions"}
    assert found["calibrated_precision"] == "fp16"
    assert found["precisions"] == [str(name) for name in bracket.precisions]
    assert found["level"] == bracket.level == 0.9
    assert decode_flop(found["low"]) <= bracket.low_flop < decode_flop(found["low"]) + 1
    assert decode_flop(found["high"]) - 1 < bracket.high_flop <= decode_flop(found["high"])
    assert decode_flop(found["low"]) < decode_flop(run["estimate"]["low"])


def test_a_refusal_is_told_whole_beside_prior_and_bound(record_row: RecordRow) -> None:
    _, run = record_row(precision="fp32", power_mode="250W", memory_traffic_tb="")
    assert [
        (item["code"], item["where"], item["expected"], item["found"]) for item in run["refused"][:2]
    ] == [
        ("calibration-mismatch", "power_mode", "300W", "250W"),
        ("calibration-mismatch", "precisions", "fp16", "fp32"),
    ]
    assert run["refused"][2]["code"] == "feature-missing"
    assert all(item in run["findings"] for item in run["refused"])
    assert run["estimate"]["method"].startswith("prior")
    assert run["estimate"]["calibration_runs"] is None
    assert run["estimate"]["reference_groups"] is not None
    assert decode_flop(run["upper_bound"]["flop"]) > 0


def test_an_estimate_without_a_bound_stands_alone(record_row: RecordRow) -> None:
    _, run = record_row(without=("device", "batch_size"))
    assert run["upper_bound"] is None
    assert run["estimate"]["method"] == "efficiency"
    assert run["rules"][0]["position"] == "cannot-tell"


def test_without_a_calibration_nothing_was_refused(record: dict[str, Any]) -> None:
    assert (record["bracket"], record["refused"]) == (None, [])
    assert record["estimate"]["calibration_runs"] is None


def test_a_run_from_logs_has_the_same_keys(record: dict[str, Any], record_row: RecordRow) -> None:
    _, run = record_row()
    assert set(run) - {"row", "run_id"} <= set(record)
    assert set(run["estimate"]) == set(record["estimate"])
