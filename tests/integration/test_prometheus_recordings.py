"""Scrapes of DCGM's and AMD's exporters and tables of `dcgmi dmon`, as public sources hold them.

The counts are those of `grep -c` for each metric's name, the values those that stand in the files.
"""

from pathlib import Path

import pytest

from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources import dcgm_dmon, exposition, prometheus_reply
from flopwitness.measure.sources.format import Format
from flopwitness.testing.known_decoder import read_format

pytestmark = pytest.mark.shared_data

(TEXT,), (REPLY,), (DMON,) = exposition.FORMATS, prometheus_reply.FORMATS, dcgm_dmon.FORMATS
DMON_TENSOR = "data/dcgm/nvidia_dcgm_userguide_dmon_A100_tensor.txt"
DMON_MIG = "data/dcgm/nvidia_dcgm_userguide_dmon_A100_MIG_3g20gb_x2.txt"


def _read(path: Path, known: Format) -> Trace:
    return read_format(known)(path.read_bytes())


@pytest.mark.parametrize(
    ("path", "known", "series", "readings", "others"),
    [
        ("data/dcgm/exporter_t4_loaded.prom", TEXT, 14, 14, 6),
        ("data/dcgm/exporter_l4.prom", TEXT, 14, 28, 9),
        ("data/amd/amd_device_metrics_exporter_sample.prom", TEXT, 7, 7, 1),
        (DMON_TENSOR, DMON, 3, 45, 0),
        (DMON_MIG, DMON, 6, 60, 0),
    ],
)
def test_every_sample_is_read(
    path: str, known: Format, series: int, readings: int, others: int, shared_data: Path
) -> None:
    trace = _read(shared_data / path, known)
    assert len(trace.series) == series
    assert sum(map(len, trace.series)) == readings
    assert trace.n_skipped == 0
    assert {item.timing for item in trace.series} == {Timing.COUNTED}
    told = {finding.code: finding.count for finding in trace.findings}
    assert told == {"period-assumed": 1, **({"metrics-other": others} if others else {})}


def test_each_file_is_of_one_format(shared_data: Path) -> None:
    known = {
        path.name: [one.name for one in (TEXT, REPLY, DMON) if one.is_it(path.read_bytes(), path.name)]
        for folder in ("dcgm", "amd")
        for path in sorted((shared_data / "data" / folder).iterdir())
    }
    assert known == {
        "exporter_l4.prom": ["prometheus-text"],
        "exporter_t4_loaded.prom": ["prometheus-text"],
        "nvidia_dcgm_userguide_dcgmproftester_A100.txt": [],
        "nvidia_dcgm_userguide_dcgmproftester_A100_MIG.txt": [],
        "nvidia_dcgm_userguide_dmon_A100_MIG_3g20gb_x2.txt": ["dcgmi-dmon"],
        "nvidia_dcgm_userguide_dmon_A100_tensor.txt": ["dcgmi-dmon"],
        "amd_device_metrics_exporter_sample.prom": ["prometheus-text"],
        "rocm_smi_csv_samples.txt": [],
    }


def test_no_other_recording_is_taken_for_one_of_these(shared_data: Path) -> None:
    taken = []
    for path in sorted((shared_data / "data").rglob("*")):
        if path.is_file() and path.parent.name not in ("dcgm", "amd"):
            with path.open("rb") as file:
                head = file.read(1 << 18)
            taken += [path.name for known in (TEXT, REPLY, DMON) if known.is_it(head, path.name)]
    assert taken == []


def test_a_loaded_t4(shared_data: Path) -> None:
    trace = _read(shared_data / "data/dcgm/exporter_t4_loaded.prom", TEXT)
    values = {
        series.channel: float(series.value[0])
        for series in trace.series
        if series.part == "" and series.scope is Scope.GPU
    }
    assert values[Channel.POWER_W] == 68.244
    assert values[Channel.ENERGY_COUNTER_J] == pytest.approx(15_152_422.938)
    assert values[Channel.UTILISATION_PCT] == 91
    assert values[Channel.TENSOR_ACTIVE_PCT] == pytest.approx(0.5822)
    assert values[Channel.CLOCK_HZ] == 660e6
    (device,) = trace.devices
    assert (device.chip_name, device.driver, device.host) == ("Tesla T4", "590.48.01", "node-a")


def test_two_scrapes_of_an_l4_are_two_sweeps(shared_data: Path) -> None:
    trace = _read(shared_data / "data/dcgm/exporter_l4.prom", TEXT)
    assert {tuple(series.utc_ns.tolist()) for series in trace.series} == {(0, 60 * 10**9)}


def test_amd_watts_and_microjoules(shared_data: Path) -> None:
    trace = _read(shared_data / "data/amd/amd_device_metrics_exporter_sample.prom", TEXT)
    power = [float(series.value[0]) for series in trace.series if series.channel is Channel.POWER_W]
    energy = [float(series.value[0]) for series in trace.series if series.channel is Channel.ENERGY_COUNTER_J]
    assert power == [748.0, 751.0]
    assert energy == pytest.approx([1.4e11])


def test_the_tensor_pipe_of_a_whole_a100(shared_data: Path) -> None:
    trace = _read(shared_data / DMON_TENSOR, DMON)
    tensor = next(series for series in trace.series if series.channel is Channel.TENSOR_ACTIVE_PCT)
    assert len(tensor) == 15
    assert tensor.value.max() == pytest.approx(93.2)
    assert (tensor.utc_ns // 10**9).tolist() == list(range(15))


def test_slices_stand_beside_their_board(shared_data: Path) -> None:
    trace = _read(shared_data / DMON_MIG, DMON)
    parts = {(series.scope, series.part): len(series) for series in trace.series}
    assert parts == {(Scope.GPU, ""): 10, (Scope.INSTANCE, "mig-0"): 10, (Scope.INSTANCE, "mig-1"): 10}
    assert trace.devices[0].is_shared
