"""Case h09: slices of two partitioned GPUs, each with the whole board's power and a utilisation of 0."""

from pathlib import Path
from typing import Any

import pytest

from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.exposition import FORMATS
from flopwitness.testing.known_decoder import read_format

(TEXT,) = FORMATS


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    data = (case / "dcgm.prom").read_bytes()
    assert TEXT.is_it(data, "dcgm.prom")
    return read_format(TEXT)(data)


def test_each_board_has_its_power_once(trace: Trace, expected: dict[str, Any]) -> None:
    power = [series for series in trace.series if series.channel is Channel.POWER_W]
    assert len(power) == expected["expect"]["physical_gpus"]
    assert {series.scope for series in power} == {Scope.GPU}
    by_index = {series.device[-1]: float(series.value[0]) for series in power}
    (low, high), second = (expected["expect"]["per_gpu_power_w"][index] for index in "01")
    assert low <= by_index["0"] <= high
    assert by_index["1"] == second
    low, high = expected["expect"]["node_power_w"]
    total_w = sum(by_index.values())
    assert low <= total_w <= high
    assert total_w != pytest.approx(expected["wrong_answers"]["all_series_summed_w"], rel=0.5)


def test_nobody_is_called_idle_by_a_sensor_that_does_not_work(trace: Trace, expected: dict[str, Any]) -> None:
    assert expected["wrong_answers"]["idle"] is not expected["expect"]["idle"]
    assert not any(series.channel is Channel.UTILISATION_PCT for series in trace.series)
    busiest: dict[str, float] = {}
    for series in trace.series:
        if series.channel is Channel.ENGINE_ACTIVE_PCT:
            assert series.scope is Scope.INSTANCE
            busiest[series.device] = max(busiest.get(series.device, 0.0), float(series.value[0]))
    assert {device[-1]: value for device, value in busiest.items()} == {"0": 97.0, "1": 99.0}


def test_what_slices_repeat_and_what_they_cannot_say_is_told(trace: Trace) -> None:
    told = {finding.code: finding.count for finding in trace.findings}
    assert told == {"mig-power-repeated": 6, "mig-utilisation": 8, "period-assumed": 1}
    assert [device.is_shared for device in trace.devices] == [True, True]
    assert trace.n_skipped == 0
