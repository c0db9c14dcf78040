"""Case h08: corrupt samples and DCGM's markers for "no value" among good ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.measure.sources.exposition import FORMATS
from flopwitness.testing.known_decoder import read_format

(TEXT,) = FORMATS


@pytest.fixture(scope="module")
def trace(case: Path) -> Trace:
    data = (case / "dcgm.prom").read_bytes()
    assert TEXT.is_it(data, "dcgm.prom")
    return read_format(TEXT)(data)


def _series(trace: Trace, channel: Channel) -> Series:
    (series,) = (series for series in trace.series if series.channel is channel)
    return series


def test_eight_scrapes_of_one_gpu(trace: Trace, expected: dict[str, Any]) -> None:
    assert len(trace.series) == 3
    assert {len(series) for series in trace.series} == {8}
    assert trace.n_skipped == 0
    for series in trace.series:
        assert (series.utc_ns[-1] - series.utc_ns[0]) // 10**9 == expected["expect"]["duration_s"]


def test_utilisation_without_what_is_none(trace: Trace, expected: dict[str, Any]) -> None:
    value = _series(trace, Channel.UTILISATION_PCT).value
    assert np.isfinite(value).sum() == expected["expect"]["valid_util_samples"]
    assert np.nanmean(value) == expected["expect"]["mean_util_percent"]
    wrong = expected["wrong_answers"]["mean_util_unfiltered"]
    assert not np.isclose(np.nanmean(value), wrong, rtol=0.5)


def test_energy_from_power(trace: Trace, expected: dict[str, Any]) -> None:
    series = _series(trace, Channel.POWER_W)
    is_reading = np.isfinite(series.value)
    assert is_reading.sum() == expected["expect"]["valid_power_samples"]
    power_w, time_ns = series.value[is_reading], series.utc_ns[is_reading]
    energy_j = float(((power_w[1:] + power_w[:-1]) / 2 * np.diff(time_ns) / 1e9).sum())
    assert energy_j == pytest.approx(expected["expect"]["energy_from_power_j"], rel=0.01)


def test_energy_from_the_counter(trace: Trace, expected: dict[str, Any]) -> None:
    value = _series(trace, Channel.ENERGY_COUNTER_J).value
    held = value[np.isfinite(value)]
    assert held.size == expected["expect"]["valid_counter_samples"]
    energy_j = held[-1] - held[0]
    assert energy_j == pytest.approx(expected["expect"]["energy_from_counter_j"], rel=1e-9)
    assert energy_j != pytest.approx(expected["wrong_answers"]["counter_read_as_joules"], rel=0.5)


def test_what_is_rejected_is_told(trace: Trace, expected: dict[str, Any]) -> None:
    assert expected["must_flag"] == ["2 utilisation, 1 power and 1 counter sample rejected"]
    (finding,) = trace.findings
    assert (finding.code, finding.count) == ("values-impossible", 4)
    assert "2 of utilisation_pct, 1 of power_w, 1 of energy_counter_j" in finding.message
