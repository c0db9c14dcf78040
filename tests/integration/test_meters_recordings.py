"""Real recordings of wall meters and of perf: every sample is read, and their makers' own means come out.

Source of the recordings: mlcommons/inference_results_v1.0 @ f7759baf; quoted output of `perf stat`.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from flopwitness.measure.power_choice import choose_power
from flopwitness.measure.samples import Channel, RunWindow, Scope, Trace
from flopwitness.measure.sources import (
    ipmi,
    loadgen_log,
    pdu_csv,
    perf_stat,
    powercap,
    ptd_log,
    redfish,
    spl_log,
    turbostat,
)
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.formats import read_evidence
from flopwitness.measure.sources.source import Source

if TYPE_CHECKING:
    from flopwitness.foundation.verdict import Finding

pytestmark = pytest.mark.shared_data

BERT, RESNET = "mlperf_dgx_a100_bert", "mlperf_xavier_nx_resnet50"
MODULES = (spl_log, ptd_log, loadgen_log, ipmi, redfish, pdu_csv, perf_stat, powercap, turbostat)
FORMATS: tuple[Format, ...] = tuple(known for module in MODULES for known in module.FORMATS)

# Lines of each file of samples.
SAMPLES = {BERT: 893, RESNET: 739}

# Of each daemon's log: when each of two measurements was completed, and its mean [W].
MEANS = {
    BERT: (("2021-03-17T12:55:52.096", 3369.509615), ("2021-03-17T13:11:06.799", 3366.051736)),
    RESNET: (("2021-03-17T07:12:35.694", 19.339358), ("2021-03-17T07:25:07.913", 19.107720)),
}
DOUBTS = {BERT: (2670, 6), RESNET: (748, 0)}  # samples of unknown uncertainty, and in error

# When the load generator says that power was measured.
RUNS = {
    BERT: ("2021-03-17T12:56:42.537", "2021-03-17T13:10:48.490"),
    RESNET: ("2021-03-17T07:13:14.039", "2021-03-17T07:24:56.711"),
}

# The energies of perf's samples [J], by the sample's number.
ENERGIES = {
    1: {
        (Scope.CPU_PART, "cores"): 3.59,
        (Scope.DRAM, ""): 8.18,
        (Scope.CPU_PART, "igpu"): 1.63,
        (Scope.CPU, ""): 12.74,
        (Scope.PLATFORM, ""): 51.10,
    },
    2: {(Scope.CPU, ""): 0.05},
    3: {(Scope.CPU_PART, "cores"): 52.67, (Scope.CPU, ""): 85.09},
    4: {(Scope.CPU, "package-0"): 3.73},
    5: {(Scope.CPU, ""): 2306.32},
}
ELAPSED_NS = {1: 5_001_965_465, 2: 869_161, 3: 34_922_801_000, 4: 1_001_404_046, 5: 277_955_355_190}


def _ns(text: str) -> int:
    return int(np.datetime64(text, "ns").astype(np.int64))


def _read(known: Format, data: bytes, path: Path) -> Trace:
    assert known.is_it(data, path.name)
    return known.decode(Source(blocks=[data], where=str(path), device=path.stem))


def _load(shared_data: Path, module: str, *names: str) -> Trace:
    path = shared_data.joinpath("data", *names)
    return _read(next(known for known in FORMATS if known.name == module), path.read_bytes(), path)


@pytest.mark.parametrize("system", SAMPLES)
def test_every_sample_of_the_wall_meter_is_read(shared_data: Path, system: str) -> None:
    path = shared_data / "data" / "inference" / system / "run_1" / "spl.txt"
    lines = path.read_bytes().splitlines()
    assert len(lines) == SAMPLES[system]
    trace = _load(shared_data, "spec-ptd", "inference", system, "run_1", "spl.txt")
    (series,) = trace.series
    assert (len(series), trace.n_skipped) == (SAMPLES[system], 0)
    assert (series.device, series.scope, series.channel) == ("ptdaemon", Scope.NODE_AC, Channel.POWER_W)
    totals = [float(re.search(rb",Watts,([0-9.]+),", line)[1]) for line in lines]  # type: ignore[index]
    assert series.value.tolist() == totals
    assert int(np.diff(series.utc_ns).min()) > 0
    assert [mark.utc_ns for mark in trace.marks] == [int(series.utc_ns[0]), int(series.utc_ns[-1])]


@pytest.mark.parametrize("system", SAMPLES)
def test_the_daemon_gives_the_mean_of_the_samples(shared_data: Path, system: str) -> None:
    log = _load(shared_data, "ptd-log", "inference", system, "power", "ptd_logs.txt")
    (means,) = log.series
    assert (means.device, means.channel, means.scope) == (
        "ptdaemon",
        Channel.POWER_AVERAGE_W,
        Scope.NODE,
    )
    assert list(zip(means.utc_ns.tolist(), means.value.tolist(), strict=True)) == [
        (_ns(time), mean_w) for time, mean_w in MEANS[system]
    ]
    assert log.n_skipped == 0
    assert [mark.name.rpartition("_")[2] for mark in log.marks] == ["ranging"] * 2 + ["testing"] * 2
    (samples,) = _load(shared_data, "spec-ptd", "inference", system, "run_1", "spl.txt").series
    assert float(samples.value.mean()) == pytest.approx(MEANS[system][1][1], abs=1e-6)
    told = {finding.code: finding.count for finding in log.findings}
    assert (told.get("meter-uncertain", 0), told.get("meter-errors", 0)) == DOUBTS[system]


@pytest.mark.parametrize("system", RUNS)
def test_the_run_lies_over_the_samples(shared_data: Path, system: str) -> None:
    trace = _load(shared_data, "loadgen-log", "inference", system, "run_1", "mlperf_log_detail.txt")
    start, stop = map(_ns, RUNS[system])
    assert trace.windows == (RunWindow(start_utc_ns=start, stop_utc_ns=stop, status="VALID"),)
    assert (trace.series, trace.n_skipped) == ((), 0)
    (samples,) = _load(shared_data, "spec-ptd", "inference", system, "run_1", "spl.txt").series
    assert samples.utc_ns[0] < start < stop < samples.utc_ns[-1]


@pytest.mark.parametrize("number", ENERGIES)
def test_each_sample_of_perf_is_a_counter_from_zero(shared_data: Path, number: int) -> None:
    path = shared_data / "data" / "rapl_perf" / "perf_stat_samples.txt"
    sample = path.read_bytes().split(b"### ")[number]
    trace = _read(perf_stat.FORMATS[0], sample, path)
    assert {(one.scope, one.part): one.value.tolist() for one in trace.series} == {
        key: [0.0, energy_j] for key, energy_j in ENERGIES[number].items()
    }
    assert {tuple(one.utc_ns.tolist()) for one in trace.series} == {(0, ELAPSED_NS[number])}
    assert trace.n_skipped == 0
    assert ("mean-of-runs" in {finding.code for finding in trace.findings}) is (number == 3)


def test_the_samples_of_perf_together_lose_none(shared_data: Path) -> None:
    trace = _load(shared_data, "perf-energy", "rapl_perf", "perf_stat_samples.txt")
    rises = {(one.scope, one.part): float(np.clip(np.diff(one.value), 0, None).sum()) for one in trace.series}
    expected: dict[tuple[Scope, str], float] = {}
    for energies in ENERGIES.values():
        for key, energy_j in energies.items():
            expected[key] = expected.get(key, 0.0) + energy_j
    assert rises == pytest.approx(expected)
    assert trace.n_skipped == 0
    told = {finding.code: finding.count for finding in trace.findings}
    assert (told["mean-of-runs"], told["summaries-end-to-end"]) == (10, 5)


def test_no_other_recording_is_taken_for_a_meters(shared_data: Path) -> None:
    known = {
        **{f"inference/{system}/run_1/spl.txt": "spec-ptd" for system in SAMPLES},
        **{f"inference/{system}/power/ptd_logs.txt": "ptd-log" for system in SAMPLES},
        **{f"inference/{system}/run_1/mlperf_log_detail.txt": "loadgen-log" for system in SAMPLES},
        "rapl_perf/perf_stat_samples.txt": "perf-energy",
    }
    root = shared_data / "data"
    taken = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(4 << 20)
            for one in FORMATS:
                if one.is_it(head, path.name):
                    taken[path.relative_to(root).as_posix()] = one.name
    assert taken == known


@pytest.mark.parametrize("folder", [f"inference/{BERT}", f"inference/{RESNET}", "inference"])
def test_the_daemons_means_are_never_added_to_the_samples(shared_data: Path, folder: str) -> None:
    """Of one system or of two in one folder, where devices of one name are told apart by their folders."""
    findings: list[Finding] = []
    choice = choose_power(read_evidence([shared_data / "data" / folder]), findings)
    assert choice.scope is Scope.NODE_AC
    assert {one.channel for one in choice.series} == {Channel.POWER_W}
    assert len(choice.series) == (2 if folder == "inference" else 1)
    assert [finding.code for finding in findings] == ["scopes-overlap"]
