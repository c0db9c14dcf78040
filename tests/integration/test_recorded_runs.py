"""MLPerf runs of known size with measured node power: energy, interval and bound hold (docs/results.md)."""

import json
from pathlib import Path

import pytest
from campaigns.recorded_runs import Recorded, measure, recorded_runs
from click.testing import CliRunner

from flopwitness.cli.group import cli
from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.reference import Workload

pytestmark = pytest.mark.shared_data

GPT3 = "data/mlperf/h100x512/gpt3"
RESULT = "result_5848-240517221859825376616_2.mllog_only.txt"
WIDEST_UNKNOWN, WIDEST_NAMED = 9.0, 4.5


@pytest.mark.parametrize("run", recorded_runs(), ids=lambda run: run.name)
@pytest.mark.parametrize("is_named", [False, True], ids=["logs-alone", "named"])
def test_truth_lies_inside_the_interval_and_under_the_bound(
    run: Recorded, is_named: bool, shared_data: Path
) -> None:
    answer = measure(run, shared_data, is_named=is_named)
    assert answer.estimate is not None
    assert answer.upper is not None
    middle_flop = (run.low_flop + run.high_flop) / 2
    assert answer.estimate.low_flop <= middle_flop <= answer.estimate.high_flop
    assert run.high_flop < answer.upper.flop
    is_narrow = is_named and run.workload is Workload.TRANSFORMER
    assert answer.estimate.ratio <= (WIDEST_NAMED if is_narrow else WIDEST_UNKNOWN)


def test_gpt3_integrates_to_the_submitters_own_sum_and_the_switches_stand_apart(shared_data: Path) -> None:
    folder = shared_data / GPT3
    logs = [folder / "power_ac" / "nodes_1_to_64.tar.gz", folder / "power_ac" / "sw_0.txt", folder / RESULT]
    words = ["estimate", *map(str, logs), "--chip", "NVIDIA H100-SXM5-80GB", "--count", "512", "--json"]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    answer = json.loads(done.output)
    assert answer["energy_j"] / JOULE_PER_KWH == pytest.approx(415.22, rel=1e-3)
    assert answer["coverage"] > 0.999
    findings = {item["code"]: item for item in answer["findings"]}
    assert "56.5 kWh" in findings["switch-power"]["message"]
    assert "stamped 2022, the run 2024" in findings["switch-power"]["message"]
    assert findings["switch-power"]["severity"] == "warning"
    assert findings["recording-copied"]["count"] == 30


def test_gaps_of_the_lora_logs_are_told_with_both_ends(shared_data: Path) -> None:
    run = next(run for run in recorded_runs() if run.name.startswith("llama2_70b_lora 1 ac"))
    answer = measure(run, shared_data, is_named=True)
    assert answer.energy is not None
    assert answer.energy.coverage == pytest.approx(0.934, abs=0.002)
    gap = next(item for item in answer.findings if item.code == "gap")
    assert gap.count == 6
    assert answer.energy.low_j < answer.energy.shown_j < (answer.energy.high_j or 0)
    assert "time-repeated" in {item.code for item in answer.findings}
    assert "mark-time" in {item.code for item in answer.findings}


@pytest.mark.parametrize("alias", ["h100-sxm", "H100 SXM5", "nvidia h100-sxm5-80gb", "NVIDIA H100 80GB HBM3"])
def test_any_name_of_the_chip_gives_the_same_answer(alias: str, shared_data: Path) -> None:
    folder = shared_data / "data/mlperf/h100x8/bert"
    name = "result_5119-240510190348838227199_06"
    logs = [str(folder / "power_dc" / name), str(folder / f"{name}.txt")]
    done = CliRunner().invoke(
        cli, ["estimate", *logs, "--chip", alias, "--count", "8", "--json"], standalone_mode=False
    )
    answer = json.loads(done.output)
    assert answer["chips"] == ["h100-sxm"]
    assert answer["upper_bound"]["by"] == "time"


def test_time_alone_still_gives_an_interval_and_a_bound(shared_data: Path) -> None:
    log = shared_data / "data/mlperf/time_only/v5.0_8xMI300X_llama2_70b_lora.txt"
    words = ["estimate", str(log), "--chip", "mi300x", "--count", "8", "--workload", "transformer", "--json"]
    answer = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).output)
    assert answer["energy_j"] is None
    assert answer["estimate"]["method"] == "prior-time"
    assert int(answer["estimate"]["low"]) < 7.74e18 < int(answer["estimate"]["high"])
    assert int(answer["upper_bound"]["flop"]) > 7.76e18
