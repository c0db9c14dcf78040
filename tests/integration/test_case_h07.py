"""A log with a hole: measured, bridged and possible energy stay apart, and the hole is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from flopwitness.measure.energy import Energy, integrate_for_bound, integrate_power
from flopwitness.measure.inventory import Grade, list_readings
from flopwitness.measure.quality import assess_gaps
from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.measure.sources.nvidia_csv import FORMATS
from flopwitness.measure.sources.source import Source


@pytest.fixture(scope="module")
def meta(case: Path) -> Any:  # noqa: ANN401 (JSON)
    return json.loads((case / "meta.json").read_text())


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    path = case / "smi.csv"
    data = path.read_bytes()
    assert FORMATS[0].is_it(data, path.name)
    return FORMATS[0].decode(Source(blocks=[data], where=str(path), device="smi"))


@pytest.fixture(scope="module")
def series(trace: Trace) -> Series:
    (power,) = (item for item in trace.series if item.channel is Channel.POWER_W)
    return power


@pytest.fixture(scope="module")
def energy(series: Series, meta: Any) -> Energy:  # noqa: ANN401
    return integrate_power(series, limit_w=meta["power_limit_w"], floor_w=meta["idle_w"])


def test_every_row_is_a_reading(case: Path, series: Series) -> None:
    n_rows = len((case / "smi.csv").read_text().splitlines()) - 1
    assert len(series) == n_rows == 122


def test_only_what_was_observed_is_measured(energy: Energy, expected: Any) -> None:  # noqa: ANN401
    expect, wrong = expected["expect"], expected["wrong_answers"]
    assert energy.measured_j == pytest.approx(expect["measured_energy_j"], rel=1e-12)
    assert energy.covered_s == expect["measured_s"]
    assert energy.coverage == pytest.approx(expect["coverage"], rel=1e-12)
    assert energy.measured_j != pytest.approx(wrong["bridged_as_measured_j"], rel=0.01)
    assert energy.bridged_j == pytest.approx(
        wrong["bridged_as_measured_j"] - expect["measured_energy_j"], rel=1e-12
    )


def test_the_hole_is_bounded_from_both_sides(energy: Energy, expected: Any) -> None:  # noqa: ANN401
    expect = expected["expect"]
    (gap,) = energy.gaps
    assert gap.duration_s == energy.bridged_s == expect["gap_s"]
    assert [gap.low_j, gap.high_j] == pytest.approx(expect["gap_energy_bounds_j"], rel=1e-12)
    assert [energy.low_j, energy.high_j] == pytest.approx(expect["total_bounds_j"], rel=1e-12)


def test_a_bound_trusts_no_idle_power(series: Series, meta: Any, expected: Any) -> None:  # noqa: ANN401
    energy = integrate_for_bound(series, limit_w=meta["power_limit_w"])
    assert energy.high_j == pytest.approx(expected["expect"]["total_bounds_j"][1], rel=1e-12)
    assert energy.low_j == pytest.approx(expected["expect"]["measured_energy_j"], rel=1e-12)


def test_the_hole_is_never_ignored_without_a_word(energy: Energy, trace: Trace, expected: Any) -> None:  # noqa: ANN401
    assert expected["must_flag"] == ["gap 900 s, coverage 40%"]
    assert energy.measured_j == expected["wrong_answers"]["gap_ignored_without_a_word_j"]
    (finding,) = assess_gaps([energy])
    assert finding.code == "gap"
    assert "no reading for 15 min from 09:05:00 UTC" in finding.message
    assert "its energy lies between" in finding.message
    power = next(each for each in list_readings(trace) if each.channel is Channel.POWER_W)
    assert power.coverage == pytest.approx(expected["expect"]["coverage"], rel=1e-12)
    assert (power.grade, power.doubts[0]) == (Grade.POOR, "40 % of the time covered")
