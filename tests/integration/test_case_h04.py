"""Case h04: markers for a missing reading are missing, not zero, and a busy GPU without power is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.verdict import Severity
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.measure.sources.nvidia_csv import decode_nvidia_csv, is_nvidia_csv
from flopwitness.measure.sources.source import Source

UUID = "GPU-00000000-0000-4000-8000-00000000000{}"
ONE_STEP_S = 1.5  # readings come every second: a longer step has one missing in it


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    data = (case / "smi.csv").read_bytes()
    assert is_nvidia_csv(data, "smi.csv")
    return decode_nvidia_csv(Source(blocks=[data], where="smi.csv", device="smi"))


def _power(trace: Trace, gpu: int) -> Series:
    (power,) = (
        item
        for item in trace.series
        if item.device == UUID.format(gpu) and item.channel in (Channel.POWER_W, Channel.POWER_AVERAGE_W)
    )
    return power


@pytest.mark.parametrize("gpu", [0, 1, 2])
def test_missing_readings_are_missing_at_their_time(trace: Trace, expected: dict[str, Any], gpu: int) -> None:
    power = _power(trace, gpu)
    assert len(power) == 7
    assert np.isnan(power.value).sum() == expected["expect"][f"gpu{gpu}"]["missing_samples"]
    assert not (power.value == 0).any()
    assert np.diff(power.utc_ns).tolist() == [10**9] * 6
    assert trace.n_skipped == 0


@pytest.mark.parametrize("gpu", [0, 2])
def test_energy_is_bridged_or_the_covered_part(trace: Trace, expected: dict[str, Any], gpu: int) -> None:
    expect = expected["expect"][f"gpu{gpu}"]
    power = _power(trace, gpu)
    observed = integrate_power(power, longest_step_s=ONE_STEP_S)
    assert integrate_power(power).shown_j == pytest.approx(expect["energy_j_if_single_gaps_bridged"])
    assert observed.shown_j == pytest.approx(expect["energy_j_if_single_gaps_bridged"])
    assert observed.measured_j == pytest.approx(expect["energy_j_observed_only"])
    assert sum(gap.duration_s for gap in observed.gaps) == pytest.approx(expect["uncovered_s_if_not_bridged"])
    wrong = expected["wrong_answers"][f"gpu{gpu}_zero_filled_j"]
    assert wrong not in (pytest.approx(observed.measured_j), pytest.approx(observed.shown_j))


def test_a_gpu_without_power_has_no_energy_and_is_told(trace: Trace, expected: dict[str, Any]) -> None:
    energy = integrate_power(_power(trace, 1))
    assert (energy.n_readings, energy.coverage) == (0, 0)
    assert expected["expect"]["gpu1"]["energy_j"] is None
    (finding,) = (finding for finding in trace.findings if finding.code == "power-not-read")
    assert finding.severity is Severity.WARNING
    assert UUID.format(1) in finding.message
    assert "less than all" in finding.message
    assert expected["expect"]["node_energy_complete"] is False
