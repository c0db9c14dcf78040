"""Real logs of nvidia-smi: not one reading lost, and the same GPUs whatever the form of the log.

Sources: utkuozdemir/nvidia_gpu_exporter @ e656cd81 (captures, MIT), GAISSA-UPC/seaa2023_ect @ 6fa5af6f (CC BY
4.0), eobo0530/vlm_optimization @ 5a97db93.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.nvidia_csv import FORMATS as CSV
from flopwitness.measure.sources.nvidia_dmon import FORMATS as DMON
from flopwitness.measure.sources.nvidia_query import FORMATS as QUERY
from flopwitness.measure.sources.nvidia_xml import FORMATS as XML
from flopwitness.measure.sources.source import Source

pytestmark = pytest.mark.shared_data

ALL = (*CSV, *QUERY, *XML, *DMON)
# Rows below the header, by `grep -c '^20'`.
ROWS = {
    "nvidia_smi/rtx4090_inference_1hz.csv": 2_619,
    "gaissa_keras/rtx3070/mobilenet_v2/gpu-power-20230121T103916.csv": 809,
    "gaissa_keras/rtx3070/nasnet_mobile/gpu-power-20230220T083816.csv": 3_132,
    "gaissa_keras/rtx3070/resnet50/gpu-power-20230305T164523.csv": 4_019,
    "gaissa_keras/rtx3070/vgg16/gpu-power-20230302T090030.csv": 6_169,
    "gaissa_keras/rtx3070/xception/gpu-power-20230225T113936.csv": 2_753,
}
# In each capture: average and instant power [W] of the idle and the loaded GPU as `-q` prints them.
CAPTURES = {
    "h100_driver590": ((69.85, 69.62), (629.45, 588.39)),
    "h100_mig_driver590": ((71.27, 72.63), (432.21, 444.72)),
    "rtx2080s_linux_driver595": ((None, 37.62), (None, 98.55)),
    "rtx2080s_windows_driver591": ((None, 38.92), (None, 97.49)),
}
# The same of `--query-gpu`.
ASKED = {
    "h100_driver590": ((69.85, 69.62), (631.95, 625.68)),
    "h100_mig_driver590": ((71.15, 70.72), (433.78, 447.35)),
    "rtx2080s_linux_driver595": ((None, 39.32), (None, 111.50)),
    "rtx2080s_windows_driver591": ((None, 38.92), (None, 97.43)),
}


def _read(known: Format, data: bytes) -> Trace:
    assert [each.name for each in ALL if each.is_it(data, "log")] == [known.name]
    return known.decode(Source(blocks=[data], where="log", device="host"))


def _sections(shared_data: Path, capture: str, title: str) -> list[bytes]:
    """The sections of a capture whose titles begin so, idle and loaded, without the lines around them."""
    text = (shared_data / "data" / "nvidia_smi" / f"{capture}.txt").read_bytes()
    parts = re.split(rb"#{80}\n((?:# .*\n)+)#{80}\n", text)
    return [
        body for head, body in zip(parts[1::2], parts[2::2], strict=True) if f":: {title}".encode() in head
    ]


def _power(trace: Trace) -> tuple[float | None, float | None]:
    found: dict[Channel, Series] = {
        item.channel: item
        for item in trace.series
        if item.scope is Scope.GPU and item.channel in (Channel.POWER_W, Channel.POWER_AVERAGE_W)
    }
    average, instant = found.get(Channel.POWER_AVERAGE_W), found.get(Channel.POWER_W)
    return (
        None if average is None else float(average.value[0]),
        None if instant is None else float(instant.value[0]),
    )


@pytest.mark.parametrize("name", sorted(ROWS))
def test_no_reading_of_a_log_is_lost(shared_data: Path, name: str) -> None:
    data = (shared_data / "data" / name).read_bytes()
    trace = _read(CSV[0], data)
    assert {len(item) for item in trace.series} == {ROWS[name]}
    assert not any(np.isnan(item.value).any() for item in trace.series)
    assert trace.n_skipped == 0
    (power,) = (item for item in trace.series if item.channel is Channel.POWER_AVERAGE_W)
    watts = [float(text) for text in re.findall(rb", ?([0-9.]+) W", data)]
    n_watts = len(watts) // ROWS[name]
    assert power.value.tolist() == watts[::n_watts]
    assert power.averaged_s == 1.0
    assert len(trace.devices) == 1


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.parametrize("size_bytes", [4_096, 65_537])
def test_blocks_make_no_difference(shared_data: Path, name: str, size_bytes: int) -> None:
    data = (shared_data / "data" / name).read_bytes()
    blocks = [data[start : start + size_bytes] for start in range(0, len(data), size_bytes)]
    whole = _read(CSV[0], data)
    parted = CSV[0].decode(Source(blocks=blocks, where="log", device="host"))
    for one, other in zip(whole.series, parted.series, strict=True):
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("capture", sorted(CAPTURES))
def test_snapshots_as_text_are_read(shared_data: Path, capture: str) -> None:
    sections = _sections(shared_data, capture, "query (-q)")
    traces = [_read(QUERY[0], section) for section in sections]
    assert tuple(map(_power, traces)) == CAPTURES[capture]
    assert [trace.n_skipped for trace in traces] == [0, 0]
    both = QUERY[0].decode(Source(blocks=sections, where="log", device="host"))
    assert {len(item) for item in both.series} == {2}


@pytest.mark.parametrize("capture", sorted(ASKED))
def test_every_column_that_there_is_may_be_asked_for(shared_data: Path, capture: str) -> None:
    traces = [_read(CSV[0], section) for section in _sections(shared_data, capture, "query-gpu (csv")]
    assert tuple(map(_power, traces)) == ASKED[capture]
    assert [trace.n_skipped for trace in traces] == [0, 0]
    assert all(len(item) == 1 for trace in traces for item in trace.series)
    is_averaging = "h100" in capture
    assert {item.averaged_s for trace in traces for item in trace.series} == ({0, 1} if is_averaging else {0})


@pytest.mark.parametrize("capture", sorted(CAPTURES))
def test_text_and_csv_of_one_machine_agree(shared_data: Path, capture: str) -> None:
    (_, loaded) = (_read(QUERY[0], section) for section in _sections(shared_data, capture, "query (-q)"))
    (_, asked) = (_read(CSV[0], section) for section in _sections(shared_data, capture, "query-gpu (csv"))
    assert [device.chip_name for device in loaded.devices] == [device.chip_name for device in asked.devices]
    assert [device.name for device in loaded.devices] == [device.name for device in asked.devices]
    of_text = {(item.channel, item.scope, item.part) for item in loaded.series}
    of_csv = {(item.channel, item.scope, item.part) for item in asked.series}
    assert of_text - {key for key in of_text if key[1] is Scope.RAIL} == of_csv


@pytest.mark.parametrize("capture", sorted(CAPTURES))
def test_a_partitioned_gpu_is_shared_and_others_are_not(shared_data: Path, capture: str) -> None:
    for known, title in ((QUERY[0], "query (-q)"), (CSV[0], "query-gpu (csv")):
        for section in _sections(shared_data, capture, title):
            assert [device.is_shared for device in _read(known, section).devices] == ["_mig_" in capture]


@pytest.mark.parametrize(
    ("capture", "watts"),
    [
        ("h100_driver590", ([69] * 5, [631, 634, 633, 634, 636])),
        ("h100_mig_driver590", ([70] * 5, [438, 440, 437, 439, 439])),
        ("rtx2080s_linux_driver595", ([36] * 5, [98] * 5)),
        ("rtx2080s_windows_driver591", ([38] * 5, [97] * 5)),
    ],
)
def test_the_device_monitor_is_read(shared_data: Path, capture: str, watts: tuple[list[int], ...]) -> None:
    for section, expected in zip(_sections(shared_data, capture, "dmon"), watts, strict=True):
        trace = _read(DMON[0], section)
        (power,) = (item for item in trace.series if item.channel is Channel.POWER_W)
        assert power.value.tolist() == expected
        assert power.timing is Timing.COUNTED
        assert power.device == "host/gpu0"
        assert trace.n_skipped == 0


@pytest.mark.parametrize("capture", sorted(CAPTURES))
def test_other_sections_and_whole_captures_are_no_logs(shared_data: Path, capture: str) -> None:
    titles = (
        "help",
        "list",
        "topo",
        "nvlink",
        "query-compute-apps",
        "query-accounted",
        "pmon",
        "nvidia-smi (",
    )
    for title in titles:
        for section in _sections(shared_data, capture, title):
            assert [each.name for each in ALL if each.is_it(section, "log")] == []
    assert not CSV[0].is_it((shared_data / "data" / "nvidia_smi" / f"{capture}.txt").read_bytes(), "log")


@pytest.mark.parametrize("capture", sorted(CAPTURES))
def test_a_whole_capture_gives_its_snapshots(shared_data: Path, capture: str) -> None:
    data = (shared_data / "data" / "nvidia_smi" / f"{capture}.txt").read_bytes()
    trace = _read(QUERY[0], data)
    idle, loaded = CAPTURES[capture]
    series = {item.channel: item for item in trace.series if item.scope is Scope.GPU}
    assert series[Channel.POWER_W].value.tolist() == [idle[1], loaded[1]]
    assert trace.n_skipped > 900


@pytest.mark.parametrize(
    ("case", "rows"),
    [
        ("h06_dst_fall_back/smi.csv", 19),
        ("h07_sampling_gap/smi.csv", 122),
        ("h10_nccl_spin_full_util/smi.csv", 163),
        ("h35_idle_baseline/started_under_load.csv", 151),
        ("h35_idle_baseline/with_idle.csv", 261),
    ],
)
def test_logs_of_other_cases_are_read(shared_data: Path, case: str, rows: int) -> None:
    trace = _read(CSV[0], (shared_data / "cases" / case).read_bytes())
    assert {len(item) for item in trace.series} == {rows}
    assert trace.n_skipped == 0
