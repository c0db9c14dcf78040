"""The record of an evaluation: every figure of it, ratios without an end as null, and never a NaN."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.made_runs import Cells

from flopwitness.challenge.evaluation.bound_margins import BoundScore, Margin
from flopwitness.challenge.evaluation.claims import ClaimScore
from flopwitness.challenge.evaluation.evaluation import CurvePoint, Evaluation, LeftOut, Repeats, RunScore
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.units import decode_flop
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Provenance
from flopwitness.present.evaluation_json import render_evaluation
from flopwitness.present.safe_text import encode_answer

INPUT = Provenance(path="a.csv", format="run-table", digest=digest_bytes(b"a"), size_bytes=1)
FINDING = Finding(code="runs-unusable", severity=Severity.WARNING, message="m", count=3)
SCORE = Score(
    n_estimates=48,
    n_missing=2,
    mean_abs_error_pct=4.123456789,
    sd_pct=3.0,
    bias_pct=-0.512345678,
    median_abs_error_pct=3.5,
    p95_abs_error_pct=10.25,
    max_abs_error_pct=1234.5678,
    splits_over_10pct_pct=200 / 3,
    coverage_pct=95.0,
    interval_ratio=1.3,
    refused_pct=0.0,
)


def record_of(evaluation: Evaluation) -> dict[str, Any]:
    return render_evaluation(evaluation, inputs=[INPUT], findings=[FINDING])


@pytest.fixture(scope="module")
def record(evaluation: Evaluation) -> dict[str, Any]:
    return record_of(evaluation)


def six(value: float) -> float:
    return float(f"{value:.6g}")


def leaves(value: object) -> Iterator[object]:
    """Every number and text of a record."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def test_the_promised_keys_are_there(record: dict[str, Any]) -> None:
    assert set(record) == {
        "spec", "runs", "workloads", "workload_columns", "splits", "train", "seed", "level", "estimators",
        "ablations", "not_fitted", "coverage_pct", "leave_one_value_out", "learning_curve", "by_value",
        "by_run", "declared_steps", "upper_bound", "repeats", "findings", "inputs",
    }  # fmt: skip
    assert record["spec"] == "flopwitness/evaluate/v1"


def test_the_plan_is_told(record: dict[str, Any]) -> None:
    assert [record[name] for name in ("runs", "workloads", "splits", "train", "seed")] == [26, 24, 5, 16, 7]
    assert record["level"] == 0.9
    assert {"d_model", "seq_len", "batch_size"} <= set(record["workload_columns"])


def test_a_score_has_all_its_figures_to_six_digits(evaluation: Evaluation) -> None:
    found = record_of(replace(evaluation, scores={"mine": SCORE}, ablations={"less": SCORE}))
    assert found["estimators"] == {
        "mine": {
            "n_estimates": 48,
            "n_missing": 2,
            "mean_abs_error_pct": 4.12346,
            "sd_pct": 3.0,
            "bias_pct": -0.512346,
            "median_abs_error_pct": 3.5,
            "p95_abs_error_pct": 10.25,
            "max_abs_error_pct": 1234.57,
            "splits_over_10pct_pct": 66.6667,
            "coverage_pct": 95.0,
            "interval_ratio": 1.3,
            "refused_pct": 0.0,
        }
    }
    assert found["ablations"] == {"less": found["estimators"]["mine"]}


@pytest.mark.parametrize("ratio", [math.inf, -math.inf, math.nan, 1e9, 1e300])
def test_a_ratio_without_an_end_is_null_wherever_it_stands(evaluation: Evaluation, ratio: float) -> None:
    endless = replace(SCORE, interval_ratio=ratio)
    found = record_of(
        replace(
            evaluation,
            scores={"mine": endless},
            ablations={"less": endless},
            left_out=(LeftOut(column="c", values=("v",), scores={"mine": endless}),),
            curve=(CurvePoint(n_train=3, scores={"mine": endless}),),
        )
    )
    for scores in (
        found["estimators"]["mine"],
        found["ablations"]["less"],
        found["leave_one_value_out"][0]["estimators"]["mine"],
        found["learning_curve"][0]["estimators"]["mine"],
    ):
        assert scores["interval_ratio"] is None
        assert scores["coverage_pct"] == 95
    assert json.loads(encode_answer(found)) == found


def test_a_large_ratio_with_an_end_is_a_number(evaluation: Evaluation) -> None:
    found = record_of(replace(evaluation, scores={"mine": replace(SCORE, interval_ratio=12345.678)}))
    assert found["estimators"]["mine"]["interval_ratio"] == 12345.7


def test_every_run_is_there_with_its_truth_and_errors(
    evaluation: Evaluation, known_cells: list[Cells]
) -> None:
    scores = {
        "mine": (
            RunScore(
                place=1,
                n_estimates=3,
                mean_ratio=1.05,
                least_ratio=0.9,
                most_ratio=1.25,
                coverage_pct=200 / 3,
            ),
        )
    }
    runs = record_of(replace(evaluation, by_run=scores))["by_run"]
    assert [run["run_id"] for run in runs] == [each["run_id"] for each in known_cells] + ["r0", "r1"]
    assert [run["row"] for run in runs] == list(range(2, 28))
    for run, cells in zip(runs, known_cells, strict=False):
        assert decode_flop(run["true_flop"]) == round(float(cells["true_tflop"]) * 1e12)
    assert [run["workload"] for run in runs[24:]] == [runs[0]["workload"], runs[1]["workload"]]
    assert runs[0]["estimators"] == {}
    assert runs[1]["estimators"] == {
        "mine": {
            "n_estimates": 3,
            "mean_error_pct": 5.0,
            "least_error_pct": -10.0,
            "most_error_pct": 25.0,
            "coverage_pct": 66.6667,
        }
    }


def test_runs_make_up_the_scores(record: dict[str, Any]) -> None:
    for name, scores in record["estimators"].items():
        counts = [run["estimators"][name]["n_estimates"] for run in record["by_run"] if run["estimators"]]
        assert sum(counts) == scores["n_estimates"]


def test_values_of_a_column_are_told_one_by_one(record: dict[str, Any], evaluation: Evaluation) -> None:
    assert set(record["by_value"]) == set(record["estimators"])
    for name, items in record["by_value"].items():
        for item, own in zip(items, evaluation.by_value[name], strict=True):
            assert (item["column"], item["value"], item["n_runs"]) == (own.column, own.value, own.n_runs)
            assert item["least_error_pct"] <= item["mean_error_pct"] <= item["most_error_pct"]
            assert item["mean_error_pct"] == six(own.mean_error_pct)


def test_coverage_has_its_levels_as_names(record: dict[str, Any]) -> None:
    for name, shares in record["coverage_pct"].items():
        assert list(shares) == ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95"]
        assert shares["0.9"] == record["estimators"][name]["coverage_pct"]


def test_what_was_left_out_and_what_was_learnt_from(record: dict[str, Any], known_cells: list[Cells]) -> None:
    (left_out,) = record["leave_one_value_out"]
    assert left_out["column"] == "d_model"
    assert set(left_out["values"]) == {each["d_model"] for each in known_cells}
    assert set(left_out["estimators"]) == set(record["estimators"])
    assert [point["train"] for point in record["learning_curve"]] == [5, 12]
    assert "efficiency" not in record["learning_curve"][0]["estimators"]
    assert "efficiency" in record["learning_curve"][1]["estimators"]


def test_claims_are_told_by_the_share_that_was_declared(evaluation: Evaluation) -> None:
    claims = ClaimScore(
        n_estimates=40,
        mean_abs_error_pct=2.345678912,
        p95_abs_error_pct=5.5,
        max_abs_error_pct=7.0,
        gate=-0.0754321987,
        false_alarm_pct=1.0,
        caught_pct={0.8: 43.2109876, 0.5: 100.0},
    )
    assert record_of(replace(evaluation, claims=claims))["declared_steps"] == {
        "n_estimates": 40,
        "mean_abs_error_pct": 2.34568,
        "p95_abs_error_pct": 5.5,
        "max_abs_error_pct": 7.0,
        "gate": -0.0754322,
        "false_alarm_pct": 1.0,
        "caught_pct": {"0.8": 43.211, "0.5": 100.0},
    }


def test_margins_are_told_and_those_that_nothing_tells_are_null(evaluation: Evaluation) -> None:
    margin = Margin(n_runs=24, n_violated=1, least=0.987654321, median=4.0)
    bounds = BoundScore(safety=Fraction(3, 10), total_energy=margin, net_energy=None, time=None)
    assert record_of(replace(evaluation, bounds=bounds))["upper_bound"] == {
        "safety": "3/10",
        "total_energy": {"n_runs": 24, "n_violated": 1, "least": 0.987654, "median": 4.0},
        "net_energy": None,
        "time": None,
    }


def test_repeats_are_told(record: dict[str, Any], evaluation: Evaluation) -> None:
    assert record["repeats"]["n_workloads"] == 2
    assert record["repeats"]["n_runs"] == 4
    assert record["repeats"]["spread_pct"] > 0
    exact = replace(evaluation, repeats=Repeats(n_workloads=3, n_runs=7, spread_pct=0.38123456))
    assert record_of(exact)["repeats"] == {"n_workloads": 3, "n_runs": 7, "spread_pct": 0.381235}


def test_who_could_not_be_fitted_is_told_with_the_reason(evaluation: Evaluation) -> None:
    found = record_of(replace(evaluation, refusals={"paper-eq1": (5, "no memory traffic")}))
    assert found["not_fitted"] == {"paper-eq1": {"splits": 5, "reason": "no memory traffic"}}
    assert record_of(replace(evaluation, refusals={}))["not_fitted"] == {}


def test_findings_and_inputs_are_told(record: dict[str, Any]) -> None:
    (finding,) = record["findings"]
    assert (finding["code"], finding["count"]) == ("runs-unusable", 3)
    assert record["inputs"] == [{"path": "a.csv", "format": "run-table", "digest": str(digest_bytes(b"a"))}]


def test_everything_is_strict_json(record: dict[str, Any], poor_evaluation: Evaluation) -> None:
    for found in (record, record_of(poor_evaluation)):
        assert json.loads(encode_answer(found)) == found
        assert all(isinstance(leaf, str | int | float | None) for leaf in leaves(found))
        assert all(math.isfinite(leaf) for leaf in leaves(found) if isinstance(leaf, float))


def test_a_poor_table_has_nulls_and_empty_lists(poor_evaluation: Evaluation) -> None:
    found = record_of(poor_evaluation)
    assert (found["declared_steps"], found["repeats"]) == (None, None)
    assert found["upper_bound"] == {
        "safety": "1/2",
        "total_energy": None,
        "net_energy": None,
        "time": None,
    }
    assert (found["ablations"], found["leave_one_value_out"], found["learning_curve"]) == ({}, [], [])
    assert set(found["not_fitted"]) >= {"efficiency", "paper-eq1"}


def test_names_are_written_as_they_are_and_escaped_in_the_answer(evaluation: Evaluation) -> None:
    hostile = "r\x1b[2J\x9b\u202e"
    rows = (replace(evaluation.runs.rows[0], run_id=hostile), *evaluation.runs.rows[1:])
    found = record_of(replace(evaluation, runs=replace(evaluation.runs, rows=rows)))
    assert found["by_run"][0]["run_id"] == hostile
    text = encode_answer(found)
    assert json.loads(text) == found
    assert all(line.isprintable() for line in text.split("\n"))
