"""Epoch AI's notable models against three thresholds, by one command."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flopwitness.cli.group import cli

pytestmark = pytest.mark.shared_data

RULES = {"eu-gpai-indicative": 10**23, "eu-ai-act-art51": 10**25, "us-ca-sb53": 10**26}
TABLE = "data/epoch/notable_ai_models.csv"


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> list[dict[str, Any]]:
    words = ["estimate", str(shared_data / TABLE), "--json"]
    for rule in RULES:
        words += ["--rule", rule]
    answer: list[dict[str, Any]] = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).output)[
        "runs"
    ]
    return answer


@pytest.fixture(scope="module")
def records(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / TABLE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _position(run: dict[str, Any], rule: str) -> str:
    return str(next(item["position"] for item in run["rules"] if item["id"] == rule))


def test_every_model_has_its_answer(runs: list[dict[str, Any]], records: list[dict[str, str]]) -> None:
    assert len(runs) == len(records) == 952
    assert [run["run_id"] for run in runs] == [record["Model"].strip() for record in records]


@pytest.mark.parametrize("rule", RULES)
def test_no_model_published_above_a_threshold_is_called_below(
    rule: str, runs: list[dict[str, Any]], records: list[dict[str, str]]
) -> None:
    published = [float(record["Training compute (FLOP)"] or 0) for record in records]
    above = [run for run, flop in zip(runs, published, strict=True) if flop > RULES[rule]]
    assert len(above) == {"eu-gpai-indicative": 125, "eu-ai-act-art51": 19, "us-ca-sb53": 3}[rule]
    assert [run["run_id"] for run in above if _position(run, rule) == "below"] == []


@pytest.mark.parametrize("rule", RULES)
def test_most_models_whose_own_bound_is_far_under_are_called_below(
    rule: str, runs: list[dict[str, Any]], records: list[dict[str, str]]
) -> None:
    names = ("Training hardware", "Hardware quantity", "Training time (hours)")
    full = [run for run, record in zip(runs, records, strict=True) if all(record[name] for name in names)]
    assert len(full) == 152
    under = [run for run in full if run["upper_bound"] and 3 * int(run["upper_bound"]["flop"]) < RULES[rule]]
    below = [run for run in under if _position(run, rule) == "below"]
    assert len(below) >= 0.6 * len(under)
    assert len(under) >= 60


def test_models_on_a_base_of_unknown_compute_stay_open(
    runs: list[dict[str, Any]], records: list[dict[str, str]]
) -> None:
    known = {record["Model"].strip().casefold() for record in records if record["Training compute (FLOP)"]}
    n_open = 0
    for run, record in zip(runs, records, strict=True):
        base = record["Base model"].strip().casefold()
        if base and base not in known and not all(part.strip() in known for part in base.split(",")):
            n_open += 1
            assert "parent-unrecorded" in {item["code"] for item in run["findings"]}
            assert {item["position"] for item in run["rules"]} <= {"cannot-tell", "likely-above"}
    assert n_open > 20


def test_a_base_model_counts_with_what_builds_on_it(runs: list[dict[str, Any]]) -> None:
    by_name = {run["run_id"]: run for run in runs}
    assert _position(by_name["Flan-PaLM 540B"], "eu-gpai-indicative") == "likely-above"
    assert int(by_name["Flan-PaLM 540B"]["upper_bound"]["flop"]) < 10**23
    assert _position(by_name["Flan-PaLM 540B"], "eu-ai-act-art51") == "below"


def test_the_summary_is_printed_for_people(shared_data: Path) -> None:
    words = ["estimate", str(shared_data / TABLE), "--rule", "us-ca-sb53", "--rows", "3"]
    text = CliRunner().invoke(cli, words, standalone_mode=False).output
    assert "of 3 runs that declare a total over the threshold, 0 are called below" in text
    assert "are called below (90 %)" in text
