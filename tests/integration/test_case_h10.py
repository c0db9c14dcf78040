"""Case h10: chips that wait in a collective report full utilisation; that alone calls it training."""

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.sessions import SessionRule, find_sessions
from flopwitness.measure.waiting import Waiting, assess_waiting, find_waiting


@pytest.fixture(scope="module")
def params(case: Path) -> dict[str, float]:
    loaded: dict[str, float] = json.loads((case / "params.json").read_text())
    return loaded


def _column(path: Path, name: str, channel: Channel) -> Series:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    stamps = [datetime.strptime(f"{row['timestamp']} +0000", "%Y/%m/%d %H:%M:%S.%f %z") for row in rows]
    return Series(
        device="gpu0",
        channel=channel,
        scope=Scope.GPU,
        utc_ns=np.array([round(stamp.timestamp()) * NANOSECOND_PER_SECOND for stamp in stamps]),
        value=np.array([float(row[name].split()[0]) for row in rows]),
    )


@pytest.fixture(scope="module")
def utilisation(case: Path) -> Series:
    return _column(case / "smi.csv", "utilization.gpu [%]", Channel.UTILISATION_PCT)


@pytest.fixture(scope="module")
def waiting(case: Path, params: dict[str, float], utilisation: Series) -> Waiting:
    power = _column(case / "smi.csv", "power.draw [W]", Channel.POWER_W)
    return find_waiting(power, utilisation, idle_w=params["idle_w"])


def test_work_and_waiting_are_told_apart(waiting: Waiting, expected: dict[str, Any]) -> None:
    assert waiting.compute_s == pytest.approx(expected["expect"]["compute_s"], abs=20)
    assert waiting.waiting_s == pytest.approx(expected["expect"]["waiting_s"], abs=20)
    assert len(waiting.stretches) == 1


def test_the_energy_of_work_gives_its_operations(
    waiting: Waiting, params: dict[str, float], expected: dict[str, Any]
) -> None:
    flop_per_j = 1e12 / params["joules_per_tflop"]
    flop = waiting.compute_net_j * flop_per_j
    most_flop = (waiting.compute_net_j + waiting.waiting_net_j) * flop_per_j
    assert flop == pytest.approx(expected["expect"]["flops_compute_phase"], rel=1e-9)
    assert most_flop == pytest.approx(expected["expect"]["flops_upper_bound_if_wait_is_counted"], rel=1e-9)
    low_flop, high_flop = expected["expect"]["accept_range_flops"]
    assert low_flop <= flop <= most_flop <= high_flop


def test_the_waiting_is_flagged(waiting: Waiting) -> None:
    finding = assess_waiting(waiting)
    assert finding is not None
    assert finding.code == "busy-at-idle-power"
    assert finding.severity is Severity.WARNING
    assert "15 min of full utilisation at near-idle power" in finding.message


def test_the_wrong_answers_are_not_given(
    waiting: Waiting, params: dict[str, float], utilisation: Series, expected: dict[str, Any]
) -> None:
    wrong = expected["wrong_answers"]
    assert wrong["one_1500_s_training_phase"]
    (session,) = find_sessions(utilisation, SessionRule(poll_s=10.0))
    by_utilisation_s = (session.stop_utc_ns - session.start_utc_ns) / NANOSECOND_PER_SECOND
    assert by_utilisation_s == pytest.approx(1_500, abs=30)  # what utilisation alone would call training
    assert waiting.compute_s < 0.5 * by_utilisation_s
    flop = waiting.compute_net_j / params["joules_per_tflop"] * 1e12
    assert flop < 0.2 * wrong["utilisation_times_peak_flops"]
