"""Case h03: memory load that nobody could read, and cores that are switched off."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.tegrastats import FORMATS
from flopwitness.testing.known_decoder import read_format

(STATS,) = FORMATS


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    return read_format(STATS)((case / "tegrastats.log").read_bytes())


def _values(trace: Trace, channel: Channel) -> list[float | None]:
    (series,) = (item for item in trace.series if item.channel is channel and item.scope is not Scope.RAIL)
    return [None if np.isnan(value) else value for value in series.value.tolist()]


@pytest.mark.parametrize(
    ("name", "channel", "unit"),
    [
        ("emc_load_percent", Channel.MEMORY_UTILISATION_PCT, 1),
        ("emc_clock_mhz", Channel.MEMORY_CLOCK_HZ, 1e6),
        ("gpu_load_percent", Channel.UTILISATION_PCT, 1),
        ("cpu_online", Channel.CPU_CORES_ON, 1),
        ("cpu_mean_load_online_percent", Channel.CPU_UTILISATION_PCT, 1),
        ("board_power_w", Channel.POWER_W, 1),
    ],
)
def test_every_line_as_expected(
    name: str, channel: Channel, unit: float, trace: Trace, expected: dict[str, Any]
) -> None:
    values = [None if value is None else value / unit for value in _values(trace, channel)]
    assert values == expected["expect"][name]


def test_unmeasured_memory_traffic_is_flagged(trace: Trace, expected: dict[str, Any]) -> None:
    (flag,) = expected["must_flag"]
    (finding,) = (finding for finding in trace.findings if finding.code == "memory-traffic-unread")
    assert flag in finding.message
    assert finding.count == 2
    assert trace.n_skipped == 0


def test_the_wrong_answers_are_not_given(trace: Trace, expected: dict[str, Any]) -> None:
    wrong = expected["wrong_answers"]
    assert _values(trace, Channel.MEMORY_UTILISATION_PCT) != wrong["emc_load_percent"]
    cores_pct = _values(trace, Channel.CPU_UTILISATION_PCT)
    assert all(load != pytest.approx(wrong["cpu_mean_with_off_as_zero"], abs=0.01) for load in cores_pct)
