"""Case h33: rows of several GPUs interleaved; each row belongs to its own GPU."""

from pathlib import Path
from typing import Any

import pytest

from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Trace
from flopwitness.measure.sources.nvidia_csv import decode_nvidia_csv
from flopwitness.measure.sources.source import Source


@pytest.fixture(scope="module")
def trace(cases: Path) -> Trace:
    data = (cases / "h33_several_gpus_one_file" / "smi.csv").read_bytes()
    return decode_nvidia_csv(Source(blocks=[data[:500], data[500:]], where="smi.csv", device="smi"))


@pytest.fixture(scope="module")
def energy_j(trace: Trace) -> dict[str, float]:
    return {
        item.device[-1]: integrate_power(item).shown_j
        for item in trace.series
        if item.channel is Channel.POWER_W
    }


def test_each_gpu_has_its_energy(energy_j: dict[str, float], expected: dict[str, Any]) -> None:
    expect = expected["expect"]
    assert len(energy_j) == expect["gpus"]
    assert energy_j == pytest.approx(expect["energy_j"])
    assert sum(energy_j.values()) == pytest.approx(expect["node_energy_j"])


def test_no_gpu_stands_for_the_others(
    energy_j: dict[str, float], trace: Trace, expected: dict[str, Any]
) -> None:
    wrong = expected["wrong_answers"]
    assert sum(energy_j.values()) != pytest.approx(wrong["first_row_times_4_j"])
    assert sum(energy_j.values()) != pytest.approx(wrong["gpu0_times_4_j"])
    assert wrong["one_time_series_of_44_rows"] is True
    assert {len(item) for item in trace.series} == {11}
    assert trace.n_skipped == 0
