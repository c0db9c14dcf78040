"""Real MLPerf Training recordings: every file reads, and the figures are those that their makers give.

Source of the figures: mlcommons/training_results_v4.0 @ 6fe954378 (Sustainable Metal Cloud) and v5.0.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.foundation.units import JOULE_PER_KWH, NANOSECOND_PER_SECOND
from flopwitness.measure.framing import assess_clock, recorded_length_s
from flopwitness.measure.samples import Channel, Declaration, RunWindow, Scope, Series, Trace
from flopwitness.measure.sources.formats import read_evidence

pytestmark = pytest.mark.shared_data

# Readings in each 8-GPU power log, on the AC side as on the DC side.
READINGS = {
    "bert": (192,),
    "dlrm_dcnv2": (178,),
    "llama2_70b_lora": (847, 862),
    "resnet": (360,),
    "ssd": (1083,),
    "unet3d": (355,),
}
# The nodes of the 64 whose log holds 1,701 readings; the others hold 1,702.
SHORT_NODES = (4, 7, 18, 34, 37, 39, 43, 44, 53, 55, 57, 61)

# Start and stop [ms since 1970] of each run, as its log marks them.
RUNS_MS = {
    "h100x8/bert": ((1715341130099, 1715341407147),),
    "h100x8/dlrm_dcnv2": ((1715266092201, 1715266348864),),
    "h100x8/llama2_70b_lora": ((1715257378825, 1715259073345), (1715273828462, 1715275514410)),
    "h100x8/resnet": ((1715904930622, 1715905732799),),
    "h100x8/ssd": ((1715905738923, 1715907911447),),
    "h100x8/unet3d": ((1715267838563, 1715268480293),),
    "h100x512": ((1715960307022, 1715963719692),),
    "time_only/v4.0_8xGaudi2_llama2_70b_lora.txt": ((1715240631570, 1715245747047),),
    "time_only/v4.0_tpu-v5p-1024_gpt3.txt": ((1709183798092, 1709190685725),),
    "time_only/v5.0_8xMI300X_llama2_70b_lora.txt": ((1745906128645, 1745907824256),),
}


@pytest.fixture(scope="module")
def mlperf(shared_data: Path) -> Path:
    return shared_data / "data" / "mlperf"


@pytest.fixture(scope="module")
def gpt3(mlperf: Path) -> Trace:
    return read_evidence([mlperf / "h100x512"])


def _time_s(series: Series) -> NDArray[np.float64]:
    return np.asarray((series.utc_ns - series.utc_ns[0]) / NANOSECOND_PER_SECOND, dtype=np.float64)


def _energy_kwh(trace: Trace, scope: Scope) -> float:
    nodes = [series for series in trace.series if series.scope is scope]
    assert len(nodes) == 64
    return sum(float(np.trapezoid(node.value, _time_s(node))) for node in nodes) / JOULE_PER_KWH


@pytest.mark.parametrize("task", sorted(READINGS))
def test_every_eight_gpu_power_log_reads_whole(mlperf: Path, task: str) -> None:
    trace = read_evidence([mlperf / "h100x8" / task])
    assert trace.n_skipped == 0
    for scope in (Scope.NODE_AC, Scope.NODE_DC):
        series = [one for one in trace.series if one.scope is scope]
        assert tuple(len(one) for one in series) == READINGS[task]
        for one in series:
            assert one.channel is Channel.POWER_W
            assert np.isfinite(one.value).all()
            assert one.conversion == 1.0
            assert 1_000 < one.value.min() < one.value.max() < 12_000
    assert len(trace.series) == 2 * len(READINGS[task])
    assert Counter(mark.name for mark in trace.marks) == {
        "power_measurement_start": len(trace.series),
        "power_measurement_stop": len(trace.series),
    }


@pytest.mark.parametrize("place", sorted(RUNS_MS))
def test_every_result_log_marks_its_runs(mlperf: Path, place: str) -> None:
    assert read_evidence([mlperf / place]).windows == tuple(
        RunWindow(start_utc_ns=start_ms * 10**6, stop_utc_ns=stop_ms * 10**6, status="success")
        for start_ms, stop_ms in RUNS_MS[place]
    )


@pytest.mark.parametrize("place", sorted(RUNS_MS))
def test_every_result_log_begins_before_its_runs_and_ends_with_them(mlperf: Path, place: str) -> None:
    trace = read_evidence([mlperf / place])
    assert trace.extent is not None
    assert trace.extent.stop_utc_ns is not None
    assert trace.extent.start_utc_ns <= trace.windows[0].start_utc_ns
    last_ns = max(window.stop_utc_ns or 0 for window in trace.windows)
    assert 0 <= trace.extent.stop_utc_ns - last_ns < 60 * 10**9
    assert not any(mark.name == "run_stop" for mark in trace.marks)
    assert assess_clock(trace) == []


def test_a_stop_moved_forward_leaves_the_recorded_time_as_it_is(mlperf: Path, tmp_path: Path) -> None:
    """One minute after the start in place of 28: every other event of the log still tells the time."""
    start_ms, stop_ms = RUNS_MS["h100x8/llama2_70b_lora"][0]
    (log,) = (mlperf / "h100x8/llama2_70b_lora").glob("result_*_1.txt")
    honest, moved = read_evidence([log]), tmp_path / "r.txt"
    lines = log.read_bytes().splitlines()
    moved.write_bytes(
        b"\n".join(
            line.replace(str(stop_ms).encode(), str(start_ms + 60_000).encode())
            if b'"run_stop"' in line
            else line
            for line in lines
        )
    )
    cheat = read_evidence([moved])
    assert cheat.windows[0].stop_utc_ns == (start_ms + 60_000) * 10**6
    honest_s, cheat_s = recorded_length_s(None, honest), recorded_length_s(None, cheat)
    assert honest_s is not None
    assert cheat_s is not None
    assert cheat_s >= 0.99 * honest_s


@pytest.mark.parametrize(
    ("place", "declaration"),
    [
        (
            "h100x8/bert",
            Declaration(benchmark="bert", platform="1xSUBMISSION_PLATFORM_PLACEHOLDER", nodes=1),
        ),
        (
            "h100x8/resnet",
            Declaration(
                benchmark="resnet",
                platform="1xSUBMISSION_PLATFORM_PLACEHOLDER",
                nodes=1,
                chips=8,
                chip_name="NVIDIA H100-SXM5-80GB",
            ),
        ),
        (
            "h100x512",
            Declaration(
                benchmark="gpt3",
                platform="64xSUBMISSION_PLATFORM_PLACEHOLDER",
                nodes=64,
                chips=512,
                chip_name="NVIDIA H100-SXM5-80GB",
            ),
        ),
        (
            "time_only/v4.0_8xGaudi2_llama2_70b_lora.txt",
            Declaration(benchmark="llama2_70b_lora", platform="gaudi-8"),
        ),
        ("time_only/v4.0_tpu-v5p-1024_gpt3.txt", Declaration(benchmark="gpt3", platform="tpu-v5p")),
        (
            "time_only/v5.0_8xMI300X_llama2_70b_lora.txt",
            Declaration(benchmark="llama2_70b_lora", platform="1xMI300X", nodes=1),
        ),
    ],
)
def test_every_declaration_stands_as_it_is(mlperf: Path, place: str, declaration: Declaration) -> None:
    assert read_evidence([mlperf / place]).declaration == declaration


def test_sixty_four_nodes_are_read_on_both_sides(gpt3: Trace) -> None:
    expected = [(f"node_{node}", 1701 if node in SHORT_NODES else 1702) for node in range(1, 65)]
    for scope in (Scope.NODE_AC, Scope.NODE_DC):
        nodes = [series for series in gpt3.series if series.scope is scope]
        assert [(node.device, len(node)) for node in nodes] == expected


def test_only_the_files_of_totals_are_skipped(gpt3: Trace) -> None:
    assert gpt3.n_skipped == 2
    assert all(skipped.where.endswith("/total_power.txt:1") for skipped in gpt3.skipped)


def test_the_energy_of_the_512_gpu_run_is_that_of_its_makers(gpt3: Trace) -> None:
    assert _energy_kwh(gpt3, Scope.NODE_AC) == pytest.approx(415.22, rel=1e-3)
    assert _energy_kwh(gpt3, Scope.NODE_DC) == pytest.approx(408.44, rel=1e-3)


def test_the_switch_estimate_stands_apart_and_is_stamped_two_years_earlier(gpt3: Trace) -> None:
    switches = [series for series in gpt3.series if series.scope is Scope.SWITCH]
    assert [series.device for series in switches] == ["power_ac/sw_01", "power_dc/sw_01"]
    for series in switches:
        assert series.is_estimate
        assert series.value.tolist() == [59_570.0]
        assert datetime.fromtimestamp(int(series.utc_ns[0]) / NANOSECOND_PER_SECOND, UTC).year == 2022
    digests = {one.digest for one in gpt3.provenance if "/sw_0.txt" in one.path}
    assert len(digests) == 1


def test_every_member_has_its_provenance(gpt3: Trace) -> None:
    assert Counter(one.format for one in gpt3.provenance) == {
        "mlperf-power": 2 * 64 + 2,
        "mlperf-result": 1,
        "mlperf-system": 1,
    }


@pytest.mark.parametrize("side", ["power_ac", "power_dc"])
def test_sixty_of_the_64_node_logs_are_byte_for_byte_alike_in_pairs(gpt3: Trace, side: str) -> None:
    """Found in the published recording: 30 pairs of nodes share one log. Its digests must show it."""
    digests = Counter(one.digest for one in gpt3.provenance if f"/{side}/nodes_1_to_64" in one.path)
    assert Counter(digests.values()) == {1: 4, 2: 30}
    nodes = {one.path.rpartition("!")[2]: one.digest for one in gpt3.provenance if f"/{side}/" in one.path}
    assert nodes["node_1.txt"] == nodes["node_6.txt"]
    assert nodes["node_2.txt"] == nodes["node_59.txt"]
    assert nodes["node_1.txt"] != nodes["node_2.txt"]


@pytest.mark.parametrize(("run", "gaps"), [("1", 8), ("9", 5)])
@pytest.mark.parametrize("side", ["power_ac", "power_dc"])
def test_the_lora_logs_hold_gaps_and_one_time_twice(mlperf: Path, side: str, run: str, gaps: int) -> None:
    folder = mlperf / "h100x8" / "llama2_70b_lora" / side / f"result_4951-240509201759121728742_{run}"
    (series,) = read_evidence([folder]).series
    steps_s = np.diff(_time_s(series))
    long_s = steps_s[steps_s > 5]
    assert len(long_s) == gaps
    assert long_s.min() > 9
    assert long_s.max() < 20
    assert int((steps_s == 0).sum()) == 1
    assert int((steps_s < 0).sum()) == 0


def test_the_stop_mark_of_some_logs_carries_the_time_of_the_start(mlperf: Path) -> None:
    def length_s(task: str) -> float:
        trace = read_evidence([mlperf / "h100x8" / task / "power_ac"])
        start, stop = trace.marks
        return (stop.utc_ns - start.utc_ns) / NANOSECOND_PER_SECOND

    assert length_s("bert") == 0
    assert length_s("resnet") == pytest.approx(800.234)
