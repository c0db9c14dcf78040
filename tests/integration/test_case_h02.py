"""Case h02: five spellings of the GPU's load, one of which says nothing of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.measure.samples import Channel, Trace
from flopwitness.measure.sources.tegrastats import FORMATS
from flopwitness.testing.known_decoder import read_format

(STATS,) = FORMATS


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    return read_format(STATS)((case / "tegrastats.log").read_bytes())


def _load_pct(trace: Trace) -> NDArray[np.float64]:
    (series,) = (item for item in trace.series if item.channel is Channel.UTILISATION_PCT)
    return series.value


def test_the_load_of_every_line(trace: Trace, expected: dict[str, Any]) -> None:
    loads = [None if np.isnan(load) else load for load in _load_pct(trace).tolist()]
    assert loads == expected["expect"]["gpu_load_percent"]
    assert trace.n_skipped == 0


def test_the_clocks_of_every_line(trace: Trace, expected: dict[str, Any]) -> None:
    clusters = [item for item in trace.series if item.channel is Channel.CLOCK_HZ]
    assert [item.part for item in clusters] == ["gpc0", "gpc1", "gpc2"]
    clocks_mhz = [
        [value / 1e6 for item in clusters if np.isfinite(value := item.value[line])] or None
        for line in range(5)
    ]
    assert clocks_mhz == expected["expect"]["gpu_clock_mhz"]


def test_an_unknown_load_is_not_in_the_mean(trace: Trace, expected: dict[str, Any]) -> None:
    load_pct = _load_pct(trace)
    assert np.isnan(load_pct).sum() == expected["expect"]["unknown_load_lines"]
    assert np.nanmean(load_pct) == expected["expect"]["mean_load_of_known_percent"]


def test_the_wrong_answers_are_not_given(trace: Trace, expected: dict[str, Any]) -> None:
    load_pct, wrong = _load_pct(trace), expected["wrong_answers"]
    assert np.nanmean(load_pct) != wrong["mean_with_unknown_as_zero"]
    assert load_pct[3] != wrong["line4_load"]
