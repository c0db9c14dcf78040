"""Case h35: which idle power to subtract; a board that has just worked is not idle, one under load never."""

import csv
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.baseline import assess_idle, dynamic_energy, find_idle
from flopwitness.measure.samples import Channel, Scope, Series


def _read(path: Path) -> tuple[Series, Series]:
    """Power and utilisation of a log."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    stamps = [datetime.strptime(f"{row['timestamp']} +0000", "%Y/%m/%d %H:%M:%S.%f %z") for row in rows]
    utc_ns = np.array([round(stamp.timestamp()) * NANOSECOND_PER_SECOND for stamp in stamps])
    power_w, utilisation_pct = (
        np.array([float(row[name].split()[0]) for row in rows])
        for name in ("power.draw [W]", "utilization.gpu [%]")
    )
    power = Series(device=path.name, channel=Channel.POWER_W, scope=Scope.GPU, utc_ns=utc_ns, value=power_w)
    utilisation = Series(
        device=path.name,
        channel=Channel.UTILISATION_PCT,
        scope=Scope.GPU,
        utc_ns=utc_ns,
        value=utilisation_pct,
    )
    return power, utilisation


def test_idle_on_both_sides(case: Path, expected: dict[str, Any]) -> None:
    expect = expected["expect"]["with_idle"]
    power, utilisation = _read(case / "with_idle.csv")
    baseline = find_idle(power, utilisation)
    assert baseline is not None
    assert baseline.idle_w == expect["baseline_w"]
    assert assess_idle(power.device, baseline) is None
    dynamic = dynamic_energy(power, utilisation, idle_w=baseline.idle_w)
    assert dynamic.busy_s == expect["busy_s"]
    assert dynamic.total_j == pytest.approx(expect["total_busy_energy_j"], rel=1e-9)
    assert dynamic.energy_j == pytest.approx(expect["dynamic_energy_j"], rel=1e-9)


def test_a_log_that_starts_under_load(case: Path, expected: dict[str, Any]) -> None:
    expect = expected["expect"]["started_under_load"]
    power, utilisation = _read(case / "started_under_load.csv")
    assert find_idle(power, utilisation) is expect["baseline_w"] is None
    dynamic = dynamic_energy(power, utilisation, idle_w=None)
    assert dynamic.total_j == pytest.approx(expect["total_busy_energy_j"], rel=0.01)
    assert dynamic.energy_j is expect["dynamic_energy_j"] is None
    assert [dynamic.low_j, dynamic.high_j] == pytest.approx(expect["dynamic_energy_bounds_j"], rel=1e-9)


def test_the_missing_idle_is_flagged(case: Path) -> None:
    power, utilisation = _read(case / "started_under_load.csv")
    finding = assess_idle(power.device, find_idle(power, utilisation))
    assert finding is not None
    assert finding.code == "idle-unseen"
    assert finding.where == "started_under_load.csv"
    assert "no idle observed" in finding.message


@pytest.mark.parametrize("settle_s", [0.0, 10.0, 30.0, 45.0])
def test_the_tail_after_work_is_never_the_baseline(
    case: Path, expected: dict[str, Any], settle_s: float
) -> None:
    """Not even where the time to settle is chosen too short for it."""
    power, utilisation = _read(case / "with_idle.csv")
    baseline = find_idle(power, utilisation, settle_s=settle_s)
    assert baseline is not None
    assert baseline.idle_w != pytest.approx(expected["wrong_answers"]["mean_of_all_zero_util_samples_w"])
    dynamic = dynamic_energy(power, utilisation, idle_w=baseline.idle_w)
    assert dynamic.energy_j == pytest.approx(62_100)
    assert dynamic.energy_j != pytest.approx(expected["wrong_answers"]["tail_used_as_baseline_j"])


def test_the_lowest_power_under_load_is_no_baseline(case: Path, expected: dict[str, Any]) -> None:
    power, utilisation = _read(case / "started_under_load.csv")
    dynamic = dynamic_energy(power, utilisation, idle_w=None)
    assert expected["wrong_answers"]["minimum_under_load_as_baseline_j"] == 0
    assert dynamic.energy_j is None
    assert dynamic.high_j > 0
