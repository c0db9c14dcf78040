"""Real tables and AMD samples are read whole; the counts are those of their lines and rows."""

import re
from pathlib import Path

import polars as pl
import pytest

from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import amd_smi, codecarbon_csv, plain_table, rocm_smi, zeus_csv
from flopwitness.measure.sources.parquet_table import read_parquet_table
from flopwitness.measure.sources.plain_table import decode_plain_table, is_plain_table
from flopwitness.measure.sources.rocm_smi import decode_rocm_smi, is_rocm_smi
from flopwitness.measure.sources.source import Source

pytestmark = pytest.mark.shared_data

CPU_READINGS = {
    "mobilenet_v2": 795,
    "nasnet_mobile": 3_099,
    "resnet50": 3_979,
    "vgg16": 6_111,
    "xception": 2_723,
}
SPAR_ROWS = {"bert_sst2": 27, "blender_bmw": 440, "gpt2_wikitext2": 55}
FORMATS = (
    *amd_smi.FORMATS,
    *codecarbon_csv.FORMATS,
    *plain_table.FORMATS,
    *rocm_smi.FORMATS,
    *zeus_csv.FORMATS,
)


def source(path: Path) -> Source:
    return Source(blocks=[path.read_bytes()], where=str(path), device=path.stem)


def one(shared_data: Path, pattern: str) -> Path:
    (path,) = (shared_data / "data").glob(pattern)
    return path


@pytest.mark.parametrize(("run", "count"), CPU_READINGS.items())
def test_processor_logs_are_plain_tables(shared_data: Path, run: str, count: int) -> None:
    path = one(shared_data, f"gaissa_keras/rtx3070/{run}/cpu-mem-usage-*.csv")
    lines = path.read_text().splitlines()
    assert len(lines) - 1 == count
    assert is_plain_table(path.read_bytes(), path.name)
    trace = decode_plain_table(source(path))
    (series,) = trace.series
    assert (series.channel, series.scope, trace.n_skipped) == (Channel.CPU_UTILISATION_PCT, Scope.CPU, 0)
    assert series.value.tolist() == [float(line.split(",")[1]) for line in lines[1:]]
    fractions = [int(line[20:26]) for line in lines[1:]]
    assert (series.utc_ns % 10**9 // 1_000).tolist() == fractions


@pytest.mark.parametrize(("run", "count"), SPAR_ROWS.items())
def test_parquet_telemetry(shared_data: Path, run: str, count: int) -> None:
    path = one(shared_data, f"spar_a100/{run}*.parquet")
    rows = pl.read_parquet(path)
    trace = read_parquet_table(source(path))
    assert (rows.height, trace.n_skipped) == (count, 0)
    assert {item.device for item in trace.series} == {rows["gpu_uuid"][0]}
    assert [len(item) for item in trace.series] == [count] * 7
    assert {item.scope for item in trace.series} == {Scope.GPU}
    (power,) = (item for item in trace.series if item.channel is Channel.POWER_W)
    assert power.value.tolist() == rows["power_draw_w"].to_list()
    assert abs(power.utc_ns / 1e9 - rows["timestamp_epoch"].to_numpy()).max() < 1e-3
    assert trace.devices[0].chip_name == rows["gpu_name"][0]
    assert trace.devices[0].driver == rows["driver_version"][0]


def test_the_duplicates_of_a_gpu_s_power_are_named_and_not_read(shared_data: Path) -> None:
    trace = read_parquet_table(source(one(shared_data, "spar_a100/bert*.parquet")))
    (finding,) = trace.findings
    assert finding.code == "columns-ignored"
    assert "dcgm_power_usage" in finding.found


def test_rocm_smi_samples(shared_data: Path) -> None:
    path = one(shared_data, "amd/rocm_smi_csv_samples.txt")
    assert is_rocm_smi(path.read_bytes(), path.name)
    trace = decode_rocm_smi(source(path))
    assert trace.n_skipped == 0
    assert _by_channel(trace) == {
        (Channel.TEMPERATURE_C, "edge"): 2 + 2 + 1,
        (Channel.TEMPERATURE_C, "junction"): 1,
        (Channel.POWER_W, ""): 2,
        (Channel.POWER_AVERAGE_W, ""): 2 + 1,
        (Channel.UTILISATION_PCT, ""): 2 + 2 + 1,
        (Channel.MEMORY_UTILISATION_PCT, ""): 2,
        (Channel.MEMORY_USED_BYTE, ""): 2 + 1,
    }
    (power,) = (item for item in trace.series if item.channel is Channel.POWER_W and "card0" in item.device)
    text = path.read_text()
    assert power.value.tolist() == [float(re.findall(r"^card0,[^,]*,([0-9.]+),", text, re.MULTILINE)[0])]


def _by_channel(trace: Trace) -> dict[tuple[Channel, str], int]:
    counts: dict[tuple[Channel, str], int] = {}
    for item in trace.series:
        counts[item.channel, item.part] = counts.get((item.channel, item.part), 0) + len(item)
    return counts


def test_no_other_recording_is_taken_for_one_of_these(shared_data: Path) -> None:
    ours = re.compile(r"rocm_smi_csv|cpu-mem-usage")
    taken = {
        path.name: known.name
        for path in sorted((shared_data / "data").rglob("*"))
        if path.is_file() and not ours.search(path.name)
        for known in FORMATS
        if known.is_it(path.read_bytes()[: 4 << 20], path.name)
    }
    assert taken == {}
