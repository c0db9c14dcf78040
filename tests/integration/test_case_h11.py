"""Case h11: an energy counter that restarts when its driver reloads; its end minus its start is negative."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.counters import assess_counter, find_counter_events, integrate_counter
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Timing

UP_TO_THE_RESET = RunWindow(start_utc_ns=0, stop_utc_ns=590 * NANOSECOND_PER_SECOND)
FROM_THE_RESET = RunWindow(
    start_utc_ns=620 * NANOSECOND_PER_SECOND, stop_utc_ns=1_000 * NANOSECOND_PER_SECOND
)


@pytest.fixture(scope="module")
def counter(case: Path) -> Series:
    with (case / "nvml_energy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Series(
        device=rows[0]["gpu_uuid"],
        channel=Channel.ENERGY_COUNTER_J,
        scope=Scope.GPU,
        utc_ns=np.array([int(row["t_s"]) * NANOSECOND_PER_SECOND for row in rows]),
        value=np.array([int(row["total_energy_consumption_mj"]) / 1_000 for row in rows]),
        timing=Timing.RELATIVE,
    )


def test_the_energy_is_a_floor_with_the_lost_stretch_open(counter: Series, expected: dict[str, Any]) -> None:
    energy = integrate_counter(counter)
    assert energy.low_j == pytest.approx(expected["expect"]["energy_j_lower_bound"], rel=1e-9)
    assert energy.high_j is None
    assert (energy.coverage == 1) is expected["expect"]["energy_j_complete"]
    (gap,) = energy.gaps
    stretch_s = [gap.start_utc_ns / NANOSECOND_PER_SECOND, gap.start_utc_ns / 1e9 + gap.duration_s]
    assert stretch_s == expected["expect"]["unobserved_s"]


def test_what_was_counted_before_and_after_is_told_apart(counter: Series, expected: dict[str, Any]) -> None:
    events = find_counter_events(counter)
    assert len(events.resets) == expected["expect"]["resets"]
    before = integrate_counter(counter, window=UP_TO_THE_RESET)
    assert before.measured_j == pytest.approx(expected["expect"]["before_reset_j"], rel=1e-9)
    assert before.coverage == 1
    after = integrate_counter(counter, window=FROM_THE_RESET)
    counted_j = events.resets[0].after_j + after.measured_j
    assert counted_j == pytest.approx(expected["expect"]["after_reset_j"], rel=1e-9)


def test_a_limit_closes_the_lost_stretch_from_above(counter: Series, expected: dict[str, Any]) -> None:
    energy = integrate_counter(counter, limit_w=700)
    assert energy.low_j == pytest.approx(expected["expect"]["energy_j_lower_bound"], rel=1e-9)
    assert energy.high_j == pytest.approx(206_500 + 133_000 + 30 * 700, rel=1e-9)


def test_the_reset_is_flagged(counter: Series) -> None:
    (finding,) = assess_counter(counter, find_counter_events(counter))
    assert finding.code == "counter-reset"
    assert "reset between 590 s and 620 s" in finding.message


@pytest.mark.parametrize(
    "name", ["end_minus_start_j", "clamped_to_zero_j", "as_microjoules_j", "wrapped_at_2^64_j"]
)
def test_the_wrong_answers_are_not_given(counter: Series, expected: dict[str, Any], name: str) -> None:
    wrong_j = expected["wrong_answers"][name]
    energy = integrate_counter(counter)
    for given_j in (energy.measured_j, energy.shown_j, energy.low_j):
        assert given_j != pytest.approx(wrong_j, rel=1e-3, abs=1.0)
