"""Case h11, its reading: NVML's counter in a plain table is millijoules, and its fall is kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope, Timing
from flopwitness.measure.sources.plain_table import decode_plain_table, is_plain_table
from flopwitness.measure.sources.source import Source


def test_the_counter_is_read_in_joules_and_its_fall_is_kept(cases: Path) -> None:
    path = cases / "h11_energy_counter_reset" / "nvml_energy.csv"
    data = path.read_bytes()
    expect = json.loads((path.parent / "expected.json").read_text())["expect"]
    assert is_plain_table(data, path.name)
    trace = decode_plain_table(Source(blocks=[data], where=path.name, device="log"))
    (series,) = trace.series
    assert (series.channel, series.scope, series.timing) == (
        Channel.ENERGY_COUNTER_J,
        Scope.GPU,
        Timing.RELATIVE,
    )
    assert (len(series), trace.n_skipped) == (len(data.splitlines()) - 1, 0)
    assert series.device.startswith("GPU-")
    steps = np.diff(series.value)
    (fall,) = np.flatnonzero(steps < 0)
    assert [int(time) // 10**9 for time in series.utc_ns[fall : fall + 2]] == expect["unobserved_s"]
    assert steps[:fall].sum() == pytest.approx(expect["before_reset_j"])
    assert series.value[-1] == pytest.approx(expect["after_reset_j"])
