"""The record of a calibration: figures that can be worked out from the table, and null for what is absent."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.made_runs import FLOP_PER_TB_TOKEN, IDLE_W, Cells, calibrate_cells, make_cells

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.calibrate import Calibrated
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Method, Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.present.calibration_json import render_calibration
from flopwitness.present.safe_text import encode_answer

FINDINGS = (
    Finding(code="calibration-small", severity=Severity.NOTE, message="few", found="4", count=2),
    Finding(code="overhead-at-edge", severity=Severity.NOTE, message="edge", where="paper-eq1"),
)


def record_of(calibration: Calibration, findings: tuple[Finding, ...] = ()) -> dict[str, Any]:
    return render_calibration(calibration, out="cal.json", findings=findings)


@pytest.fixture(scope="module")
def record(calibrated: Calibrated) -> dict[str, Any]:
    return record_of(calibrated.calibration)


def six(value: float) -> float:
    return float(f"{value:.6g}")


def columns(cells: list[Cells], *names: str) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    return [np.array([float(each[name]) for each in cells]) for name in names]


def with_models(calibration: Calibration, models: Mapping[Method, Model]) -> Calibration:
    return replace(calibration, fitted=replace(calibration.fitted, models=MappingProxyType(dict(models))))


def test_the_promised_keys_are_there(record: dict[str, Any], calibrated: Calibrated) -> None:
    assert set(record) == {
        "spec", "out", "digest", "runs", "workloads", "fingerprint", "net_energy", "features", "estimators",
        "not_fitted", "link_operations", "findings",
    }  # fmt: skip
    assert record["spec"] == "flopwitness/calibrate/v1"
    assert record["out"] == "cal.json"
    assert record["digest"] == str(digest_bytes(calibrated.data))
    assert record["runs"] == 24
    assert record["net_energy"] == {"kind": "pooled-idle", "idle_w": IDLE_W}
    assert record["not_fitted"] == {}


def test_features_are_those_of_the_table(record: dict[str, Any], known_cells: list[Cells]) -> None:
    net_j, time_s, *traffic = columns(
        known_cells,
        "net_energy_j",
        "duration_s",
        "memory_traffic_tb",
        "link_traffic_tb",
        "host_traffic_tb",
    )
    expected = {"power_w": net_j / time_s}
    names = ("memory_tb_per_j", "link_tb_per_j", "host_tb_per_j")
    expected |= {name: each / net_j for name, each in zip(names, traffic, strict=True)}
    assert [item["name"] for item in record["features"]] == list(expected)
    for item in record["features"]:
        values = expected[item["name"]]
        assert item["unit"] == ("W" if item["name"] == "power_w" else "TB/J")
        assert item["low"] == pytest.approx(values.min(), rel=1e-5)
        assert item["high"] == pytest.approx(values.max(), rel=1e-5)
        assert (item["low"], item["high"]) == (six(item["low"]), six(item["high"]))


def test_the_constant_is_the_tables_mean(record: dict[str, Any], known_cells: list[Cells]) -> None:
    net_j, tflop = columns(known_cells, "net_energy_j", "true_tflop")
    expected = math.exp(np.mean(np.log(net_j / tflop)))
    assert record["estimators"]["constant"] == {"j_per_tflop": pytest.approx(expected, rel=1e-5)}


def test_constants_of_the_published_equations_have_six_digits(calibrated: Calibrated) -> None:
    first = PaperModel(
        energy_per_tflop_j=5.61234567,
        energy_per_tb_j=4621.70001,
        overhead_w=1.4625,
        condition_number=12.3456789,
        errors=np.full(24, 0.1),
    )
    second = replace(first, energy_per_tb_j=None, overhead_w=4.0)
    models = {Method.PAPER_EQ1: first, Method.PAPER_EQ2: second}
    found = record_of(with_models(calibrated.calibration, models))["estimators"]
    assert found == {
        "paper-eq1": {
            "energy_per_tflop_j": 5.61235,
            "energy_per_tb_j": 4621.7,
            "overhead_w": 1.4625,
            "is_overhead_at_edge": False,
            "condition_number": 12.3457,
        },
        "paper-eq2": {
            "energy_per_tflop_j": 5.61235,
            "energy_per_tb_j": None,
            "overhead_w": 4.0,
            "is_overhead_at_edge": True,
            "condition_number": 12.3457,
        },
    }


def test_the_efficiency_says_what_it_looks_at_and_how_far_off_it_was(
    record: dict[str, Any], calibrated: Calibrated
) -> None:
    model = calibrated.calibration.fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    found = record["estimators"]["efficiency"]
    assert found["features"] == [item["name"] for item in record["features"]]
    worst, least = 100 * math.expm1(model.errors.max()), 100 * math.expm1(model.errors.min())
    assert least < found["left_out_error_pct"] < worst
    assert 1 < found["left_out_error_pct"] < 5


def test_what_a_link_moves_for_a_token_comes_back(record: dict[str, Any], calibrated: Calibrated) -> None:
    found = record["link_operations"]
    assert found["flop_per_tb_token"] == pytest.approx(FLOP_PER_TB_TOKEN, rel=0.03)
    assert calibrated.calibration.link_gate is not None
    assert found["log_gate"] == six(calibrated.calibration.link_gate)
    assert found["log_gate"] < 0


def test_what_could_not_be_fitted_is_told_with_its_reason() -> None:
    found = record_of(calibrate_cells(make_cells(4), without=["memory_traffic_tb"]).calibration)
    assert set(found["estimators"]) == {"constant", "paper-eq2"}
    assert set(found["not_fitted"]) == {"efficiency", "paper-eq1"}
    assert "no memory traffic was recorded" in found["not_fitted"]["paper-eq1"]
    assert "at least 8" in found["not_fitted"]["efficiency"]
    assert found["link_operations"] is None


def test_a_link_without_an_efficiency_has_no_gate(calibrated: Calibrated) -> None:
    found = record_of(with_models(calibrated.calibration, {}))
    assert found["estimators"] == {}
    assert found["link_operations"]["log_gate"] is None
    assert found["link_operations"]["flop_per_tb_token"] > 0


def test_a_whole_fingerprint_is_there(calibrated: Calibrated) -> None:
    fingerprint = Fingerprint(
        chips=("a", "b"),
        count=2,
        scope="gpu",
        power_mode="25W",
        clock_limit="1200MHz",
        driver="550.1",
        precisions=("fp16", "fp32"),
    )
    found = record_of(replace(calibrated.calibration, fingerprint=fingerprint))["fingerprint"]
    assert found == {
        "chips": ["a", "b"],
        "count": 2,
        "scope": "gpu",
        "power_mode": "25W",
        "clock_limit": "1200MHz",
        "driver": "550.1",
        "precisions": ["fp16", "fp32"],
    }


def test_what_nobody_recorded_is_null(calibrated: Calibrated) -> None:
    found = record_of(replace(calibrated.calibration, fingerprint=Fingerprint()))["fingerprint"]
    assert found == {
        "chips": [],
        "count": None,
        "scope": None,
        "power_mode": None,
        "clock_limit": None,
        "driver": None,
        "precisions": [],
    }


@pytest.mark.parametrize(
    ("without", "kind"), [(["idle_power_w"], "recorded"), (["idle_power_w", "net_energy_j"], "total")]
)
def test_energy_without_an_idle_power_says_what_it_is(without: list[str], kind: str) -> None:
    cells = make_cells(5, energy_j="30000")
    assert record_of(calibrate_cells(cells, without=without).calibration)["net_energy"] == {
        "kind": kind,
        "idle_w": 0,
    }


def test_findings_are_told_whole_and_in_order(calibrated: Calibrated) -> None:
    found = record_of(calibrated.calibration, FINDINGS)["findings"]
    assert [(item["code"], item["where"], item["count"]) for item in found] == [
        ("calibration-small", "", 2),
        ("overhead-at-edge", "paper-eq1", 1),
    ]


def test_errors_without_an_end_leave_strict_json(calibrated: Calibrated) -> None:
    models = dict(calibrated.calibration.fitted.models)
    model = models[Method.PAPER_EQ1]
    assert isinstance(model, PaperModel)
    models[Method.PAPER_EQ1] = replace(model, errors=np.full(24, np.inf))
    found = record_of(with_models(calibrated.calibration, models), calibrated.findings)
    assert json.loads(encode_answer(found)) == found
