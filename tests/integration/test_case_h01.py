"""Case h01: the input rail of an Orin already holds the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.sources.tegrastats import FORMATS
from flopwitness.testing.known_decoder import read_format

(STATS,) = FORMATS


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    data = (case / "tegrastats.log").read_bytes()
    assert STATS.is_it(data, "tegrastats.log")
    return read_format(STATS)(data)


def _power(trace: Trace, part: str) -> Series:
    (series,) = (item for item in trace.series if item.channel is Channel.POWER_W and item.part == part)
    return series


def _energy_j(series: Series) -> float:
    return float(np.trapezoid(series.value, (series.utc_ns - series.utc_ns[0]) / 1e9))


def test_the_board_is_its_input_rail(trace: Trace, expected: dict[str, Any]) -> None:
    board = _power(trace, "")
    assert board.scope is Scope.MODULE
    assert len(board) == expected["expect"]["samples"]
    assert (board.utc_ns[-1] - board.utc_ns[0]) / 1e9 == expected["expect"]["duration_s"]
    assert _energy_j(board) == pytest.approx(expected["expect"]["board_energy_j"], rel=0.005)
    assert board.value.max() == expected["expect"]["board_power_w_peak"]


def test_every_other_rail_stands_for_itself(trace: Trace, expected: dict[str, Any]) -> None:
    rails = expected["expect"]["rail_energy_j"]
    powers = [item for item in trace.series if item.channel is Channel.POWER_W]
    assert {item.part for item in powers if item.scope is Scope.RAIL} == set(rails)
    assert len(powers) == 1 + len(rails)
    for part, energy_j in rails.items():
        assert _energy_j(_power(trace, part)) == pytest.approx(energy_j, rel=0.005)


def test_memory_in_use_at_the_end(trace: Trace, expected: dict[str, Any]) -> None:
    (used,) = (item for item in trace.series if item.channel is Channel.MEMORY_USED_BYTE)
    assert used.value[-1] == expected["expect"]["ram_used_mb_last"] * 2**20


def test_no_series_is_a_sum_a_running_mean_or_in_milliwatts(trace: Trace, expected: dict[str, Any]) -> None:
    energies_j = [_energy_j(item) for item in trace.series if item.channel is Channel.POWER_W]
    for name, wrong_j in expected["wrong_answers"].items():
        assert all(energy_j != pytest.approx(wrong_j, rel=0.01) for energy_j in energies_j), name
