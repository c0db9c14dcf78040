"""A run whose local-time log spans the end of summer time: the doubled hour counts, and is told."""

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwitness.foundation.clock import parse_utc
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.daylight import assess_daylight
from flopwitness.measure.energy import Energy, integrate_power
from flopwitness.measure.inventory import list_readings
from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.measure.sources.nvidia_csv import FORMATS
from flopwitness.measure.sources.source import ReadOptions, Source


@pytest.fixture(scope="module")
def meta(case: Path) -> Any:  # noqa: ANN401 (JSON)
    return json.loads((case / "meta.json").read_text())


def _read(case: Path, zone: str | None) -> Trace:
    path = case / "smi.csv"
    options = ReadOptions(zone=None if zone is None else ZoneInfo(zone))
    data = path.read_bytes()
    assert FORMATS[0].is_it(data, path.name)
    return FORMATS[0].decode(Source(blocks=[data], where=str(path), device="smi", options=options))


def _power(trace: Trace) -> Series:
    (series,) = (item for item in trace.series if item.channel is Channel.POWER_W)
    return series


def _integrate(series: Series, period_s: float) -> Energy:
    return integrate_power(series, longest_step_s=2.5 * period_s)


def test_the_doubled_hour_is_placed_by_order_and_zone(case: Path, meta: Any, expected: Any) -> None:  # noqa: ANN401
    series, expect = _power(_read(case, meta["timezone"])), expected["expect"]
    assert len(series) == expect["rows"]
    assert int(series.utc_ns[0]) == parse_utc(expect["utc_start"])
    assert int(series.utc_ns[-1]) == parse_utc(expect["utc_end"])
    assert np.diff(series.utc_ns).tolist() == [meta["nominal_period_s"] * NANOSECOND_PER_SECOND] * 18


@pytest.mark.parametrize("is_zone_named", [True, False])
def test_energy_and_duration_are_those_of_three_hours(
    case: Path,
    meta: Any,  # noqa: ANN401
    expected: Any,  # noqa: ANN401
    is_zone_named: bool,
) -> None:
    """Without the zone as well: a step back is laid out as one usual period."""
    series, expect = _power(_read(case, meta["timezone"] if is_zone_named else None)), expected["expect"]
    energy = _integrate(series, meta["nominal_period_s"])
    assert energy.claimed_s == energy.covered_s == expect["duration_s"]
    assert energy.measured_j == pytest.approx(expect["energy_j"], rel=1e-12)
    assert energy.n_backwards == (0 if is_zone_named else expect["backward_local_steps"])
    assert integrate_power(series).shown_j == pytest.approx(expect["energy_j"], rel=1e-12)
    for wrong_j in expected["wrong_answers"].values():
        for found_j in (energy.measured_j, energy.shown_j, energy.low_j, integrate_power(series).shown_j):
            assert found_j != pytest.approx(wrong_j, rel=0.01)


def test_no_row_is_dropped_as_a_duplicate(case: Path, meta: Any, expected: Any) -> None:  # noqa: ANN401
    """The test can fail: without the six rows whose labels come again, the wrong answer comes out."""
    series = _power(_read(case, None))
    _, kept = np.unique(series.utc_ns, return_index=True)
    assert len(series) - kept.size == 6
    power_w = float(series.value[0])
    dropped_s = (kept.size - 1) * meta["nominal_period_s"]
    assert power_w * dropped_s == expected["wrong_answers"]["rows_dropped_as_duplicates_j"]


def test_what_was_ambiguous_is_told(case: Path, meta: Any, expected: Any) -> None:  # noqa: ANN401
    (finding,) = _read(case, meta["timezone"]).findings
    assert expected["must_flag"] == ["ambiguous local times resolved by order and zone"]
    assert finding.code == "times-ambiguous"
    assert finding.message.startswith("ambiguous local times")
    assert "resolved by the order of the readings and the time zone" in finding.message
    assert assess_daylight(_read(case, meta["timezone"])) == []


def test_without_the_zone_the_change_is_suspected(case: Path) -> None:
    trace = _read(case, None)
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]
    (finding,) = assess_daylight(trace)
    assert (finding.code, finding.found) == ("daylight-suspected", "step back by 1 h")
    assert "after 2024-10-27 02:50:00" in finding.message


def test_another_zone_gives_the_same_energy_and_says_what_it_saw(case: Path, expected: Any) -> None:  # noqa: ANN401
    """New York's clocks went back a week later: the labels step back, and nothing makes them ambiguous."""
    trace = _read(case, "America/New_York")
    energy = _integrate(_power(trace), 600)
    assert energy.measured_j == pytest.approx(expected["expect"]["energy_j"], rel=1e-12)
    assert (energy.n_backwards, trace.findings) == (1, ())


def test_the_inventory_counts_three_hours(case: Path, meta: Any, expected: Any) -> None:  # noqa: ANN401
    reading = next(
        each for each in list_readings(_read(case, meta["timezone"])) if each.channel is Channel.POWER_W
    )
    assert (reading.n_readings, reading.n_missing) == (expected["expect"]["rows"], 0)
    assert (reading.duration_s, reading.period_s) == (
        expected["expect"]["duration_s"],
        meta["nominal_period_s"],
    )
