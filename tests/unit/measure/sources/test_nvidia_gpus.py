"""GPUs told apart by what rows say of them, and what only a whole log shows."""

import math

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import nvidia_gpus, recording
from flopwitness.measure.sources.nvidia_gpus import GpuIdentity, GpuRecording, GpuSnapshots
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.source import Source

NAN = math.nan
UUID = b"GPU-0a1b2c3d-0000-4000-8000-000000000001"


def _recording(device: str = "host") -> GpuRecording:
    return GpuRecording(Source(blocks=[], where="log", device=device), times=Times.UTC)


def _trace(identity: GpuIdentity, readings: dict[str, list[float]]) -> Trace:
    gpus = _recording()
    device = gpus.device(identity)
    for name, values in readings.items():
        gpus.column(device, name).extend(np.arange(len(values)) * 10**9, values)
    return gpus.trace(expected="readings", found=b"")


def _kept(trace: Trace) -> list[tuple[Channel, str, list[float]]]:
    return [(item.channel, item.part, item.value.tolist()) for item in trace.series]


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (GpuIdentity(uuid=UUID, bus_id=b"0:3B:00.0", index=b"1"), UUID.decode()),
        (GpuIdentity(bus_id=b"0:3B:00.0", index=b"1"), "host/0:3B:00.0"),
        (GpuIdentity(index=b"1", host=b"node7"), "node7/gpu1"),
        (GpuIdentity(uuid=b"[N/A]", bus_id=b"ERR!", index=b"[Unknown Error]"), "host"),
        (GpuIdentity(uuid=b"GPU-00000000-0000-0000-0000-000000000000", index=b"0"), "host/gpu0"),
        (GpuIdentity(chip_name=b"NVIDIA L4"), "host"),
        (GpuIdentity(), "host"),
    ],
)
def test_the_best_that_is_said_names_a_gpu(identity: GpuIdentity, name: str) -> None:
    assert _recording().device(identity) == name


def test_a_bus_address_or_number_stands_for_the_uuid_that_it_had() -> None:
    gpus = _recording()
    gpus.device(GpuIdentity(uuid=UUID, bus_id=b"0:3B:00.0", index=b"1"))
    assert gpus.device(GpuIdentity(uuid=b"[N/A]", bus_id=b"0:3B:00.0")) == UUID.decode()
    assert gpus.device(GpuIdentity(index=b"1")) == UUID.decode()
    assert gpus.device(GpuIdentity(index=b"1", host=b"other")) == "other/gpu1"
    assert gpus.device(GpuIdentity(index=b"2")) == "host/gpu2"


def test_a_product_name_that_is_lost_names_no_other_gpu() -> None:
    gpus = _recording()
    names = [gpus.device(GpuIdentity(chip_name=name)) for name in (b"", b"NVIDIA L4", b"[N/A]", b"Tesla T4")]
    assert names == ["host", "host", "host", "host/Tesla T4"]


def test_names_of_any_length_keep_their_readings() -> None:
    gpus = _recording(device="h" * 300)
    for index in (b"0" * 500, "é".encode() * 300, b"\xff" * 300):
        device = gpus.device(GpuIdentity(index=index))
        gpus.column(device, "power.draw").add(0, 5.0)
    trace = gpus.trace(expected="readings", found=b"")
    assert len({item.device for item in trace.series}) == len(trace.series) == 3


@pytest.mark.parametrize(
    ("identity", "is_shared"),
    [
        (GpuIdentity(mig_mode=b"Enabled"), True),
        (GpuIdentity(virtualization=b"Host VGPU"), True),
        (GpuIdentity(virtualization=b"VGPU"), True),
        (GpuIdentity(chip_name=b"NVIDIA A40-48Q"), True),
        (GpuIdentity(mig_mode=b"Disabled"), False),
        (GpuIdentity(mig_mode=b"[N/A]"), False),
        (GpuIdentity(virtualization=b"Pass-Through"), False),
        (GpuIdentity(virtualization=b"None"), False),
        (GpuIdentity(chip_name=b"NVIDIA A100-SXM4-40GB"), False),
        (GpuIdentity(chip_name=b"NVIDIA GeForce RTX 4090"), False),
        (GpuIdentity(), False),
    ],
)
def test_a_partitioned_or_lent_gpu_is_shared(identity: GpuIdentity, is_shared: bool) -> None:
    assert identity.is_shared is is_shared


@pytest.mark.parametrize(
    ("readings", "kept"),
    [
        (
            {"power.draw": [1.0], "power.draw.average": [2.0], "power.draw.instant": [3.0]},
            [(Channel.POWER_AVERAGE_W, "", [2.0]), (Channel.POWER_W, "", [3.0])],
        ),
        ({"power.draw": [1.0], "power.draw.average": [NAN]}, [(Channel.POWER_W, "", [1.0])]),
        ({"power.draw.average": [2.0], "power.draw.instant": [NAN]}, [(Channel.POWER_AVERAGE_W, "", [2.0])]),
        ({"power.draw": [1.0]}, [(Channel.POWER_W, "", [1.0])]),
        ({"power.draw": [0.0]}, [(Channel.POWER_W, "", [0.0])]),
    ],
)
def test_of_power_figures_that_repeat_each_other_one_is_kept(
    readings: dict[str, list[float]], kept: list[tuple[Channel, str, list[float]]]
) -> None:
    assert _kept(_trace(GpuIdentity(), readings)) == kept


@pytest.mark.parametrize(
    "names", [["power.draw"], ["power.draw.instant"], ["power.draw", "power.draw.instant"]]
)
def test_a_gpu_without_power_keeps_one_series_that_shows_it(names: list[str]) -> None:
    trace = _trace(GpuIdentity(), {name: [NAN, NAN] for name in names})
    (power,) = trace.series
    assert (power.channel, power.part, len(power)) == (Channel.POWER_W, "", 2)


def test_figures_that_few_gpus_have_are_left_out_where_they_are_empty() -> None:
    trace = _trace(
        GpuIdentity(),
        {
            "power.draw": [1.0],
            "utilization.gpu": [NAN],
            "module.power.draw.average": [NAN],
            "memory.power.draw.instant": [NAN],
            "temperature.memory": [NAN],
        },
    )
    assert {(item.channel, item.scope) for item in trace.series} == {
        (Channel.POWER_W, Scope.GPU),
        (Channel.UTILISATION_PCT, Scope.GPU),
    }


@pytest.mark.parametrize(
    ("power", "used", "is_told"),
    [
        ([NAN] * 4, [98.0] * 4, True),
        ([NAN] * 4, [98.0, 98.0, 98.0, 0.0], True),
        ([NAN] * 4, [98.0, NAN, NAN, NAN], True),
        ([NAN] * 4, [98.0, 98.0, 0.0, 0.0], False),
        ([NAN] * 4, [50.0] * 4, False),
        ([NAN] * 4, [NAN] * 4, False),
        ([NAN, NAN, NAN, 5.0], [98.0] * 4, False),
        ([0.0] * 4, [98.0] * 4, False),
    ],
)
def test_only_a_busy_gpu_of_which_no_power_was_read_is_told(
    power: list[float], used: list[float], is_told: bool
) -> None:
    trace = _trace(GpuIdentity(index=b"3"), {"power.draw": power, "utilization.gpu": used})
    assert [finding.code for finding in trace.findings] == ["power-not-read"] * is_told
    assert all("host/gpu3" in finding.message for finding in trace.findings)


def test_snapshots_need_whole_readings_and_say_where_they_are_not() -> None:
    snapshots = GpuSnapshots(Source(blocks=[], where="log", device="host"))
    fields = {"chip_name": b"NVIDIA L4", "power.draw": b"70.25", "utilization.gpu": b"9 %"}
    snapshots.add(12, 0, fields, bus_id=b"0:3B:00.0", driver=b"550")
    snapshots.add(24, 10**9, {**fields, "power.draw": b"70.25 W"}, bus_id=b"0:3B:00.0", driver=b"550")
    trace = snapshots.trace(b"")
    assert [skip.where for skip in trace.skipped] == ["log:12"]
    power = next(item for item in trace.series if item.channel is Channel.POWER_AVERAGE_W)
    assert power.value.tolist() == pytest.approx([NAN, 70.25], nan_ok=True)


@pytest.mark.parametrize("fields", [{}, {"uuid": UUID}, {"chip_name": b"NVIDIA L4"}])
def test_a_snapshot_without_a_reading_is_none(fields: dict[str, bytes]) -> None:
    snapshots = GpuSnapshots(Source(blocks=[], where="log", device="host"))
    snapshots.add(1, 0, fields, bus_id=b"0:3B:00.0", driver=b"550")
    with pytest.raises(DecodeError, match="no reading"):
        snapshots.trace(b"beginning")


def test_identities_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_gpus, "_MOST_IDENTITIES", 10)
    gpus = _recording()
    names = [gpus.device(GpuIdentity(index=b"%d" % (number % 40))) for number in range(80)]
    assert names[:40] == names[40:]
    assert len(set(names)) == 40


def _name_gpus(count: int) -> None:
    gpus = _recording()
    for number in range(1, count + 1):
        gpus.column(gpus.device(GpuIdentity(uuid=b"GPU-%d" % number)), "power.draw")


def test_more_gpus_than_any_machine_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_SERIES", 10)
    _name_gpus(10)
    with pytest.raises(DecodeError, match="too many"):
        _name_gpus(11)
