"""Case h05: `power.draw` trails by a second; a burst that is cut at its own end loses half of its energy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.averaging import assess_averaging
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, RunWindow, Series, Trace
from flopwitness.measure.sources.nvidia_csv import decode_nvidia_csv
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp

BURST = RunWindow(
    start_utc_ns=parse_stamp(b"2025/05/14 09:00:01.000"), stop_utc_ns=parse_stamp(b"2025/05/14 09:00:02.000")
)
IDLE_W = 70.0


def _decode(cases: Path, name: str) -> Trace:
    data = (cases / "h05_average_vs_instant_power" / name).read_bytes()
    return decode_nvidia_csv(Source(blocks=[data], where=name, device="smi"))


def _cut(series: Series) -> float:
    """The trapezoid between the burst's own ends [J], as a tool takes it that knows of no averaging."""
    assert BURST.stop_utc_ns is not None
    inside = (series.utc_ns >= BURST.start_utc_ns) & (series.utc_ns <= BURST.stop_utc_ns)
    return float(np.trapezoid(series.value[inside], series.utc_ns[inside] / NANOSECOND_PER_SECOND))


def test_average_and_instant_are_two_series(cases: Path, expected: dict[str, Any]) -> None:
    trace = _decode(cases, "both_columns.csv")
    series = {item.channel: item for item in trace.series}
    assert set(series) == {Channel.POWER_AVERAGE_W, Channel.POWER_W}
    assert series[Channel.POWER_AVERAGE_W].averaged_s == 1.0
    assert series[Channel.POWER_W].averaged_s == 0.0
    low_j, high_j = expected["expect"]["accept_from_instant_j"]
    assert low_j <= integrate_power(series[Channel.POWER_W], window=BURST).shown_j <= high_j


def test_power_draw_alone_is_taken_as_late(cases: Path, expected: dict[str, Any]) -> None:
    expect = expected["expect"]
    (power,) = _decode(cases, "average_only.csv").series
    assert (power.channel, power.averaged_s, len(power)) == (Channel.POWER_W, 1.0, 41)
    assert _cut(power) == pytest.approx(expect["average_only_same_window_j"], rel=0.01)
    energy = integrate_power(power, window=BURST)
    assert energy.shown_j == pytest.approx(expect["average_only_window_extended_by_1s_j"], rel=0.01)
    late_j = IDLE_W * power.averaged_s
    assert energy.shown_j - late_j == pytest.approx(expect["extended_minus_idle_tail_j"], rel=0.01)
    assert energy.shown_j != pytest.approx(
        expected["wrong_answers"]["average_cut_at_workload_end_j"], rel=0.2
    )


def test_averaged_power_on_a_short_run_is_told(cases: Path) -> None:
    (power,) = _decode(cases, "average_only.csv").series
    assert [finding.code for finding in assess_averaging([power], 1.0)] == ["power-averaged"]
