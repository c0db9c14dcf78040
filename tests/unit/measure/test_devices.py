"""What recordings say of their accelerators, and how many of them ran at one time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.measure import devices as module
from flopwitness.measure.devices import count_accelerators, declare_devices, merge_devices
from flopwitness.measure.samples import Channel, Declaration, Device, Scope, Series, Trace

MakeSeries = Callable[..., Series]


def test_words_of_several_recordings_add_up() -> None:
    merged = merge_devices(
        [
            Device(name="b", chip_name="H100"),
            Device(name="a"),
            Device(name="b", chip_name="A100", host="h1", driver="550"),
            Device(name="a", is_shared=True),
            Device(name="b", host="h2"),
        ]
    )
    assert merged == (
        Device(name="b", chip_name="H100", host="h1", driver="550"),
        Device(name="a", is_shared=True),
    )
    assert merge_devices([]) == ()
    assert merge_devices(merged) == merged


def test_the_names_of_chips_are_declared_each_once() -> None:
    trace = Trace(devices=tuple(Device(name=f"{i}", chip_name=name) for i, name in enumerate("ABAC")))
    assert declare_devices(trace).declaration == Declaration(chip_name="A", other_chip_names=("B", "C"))


def test_what_a_log_declares_stands_before_what_its_devices_say() -> None:
    declared = Declaration(benchmark="bert", nodes=2, chip_name="H100-SXM", differing=("8 and 16 chips",))
    trace = Trace(
        declaration=declared,
        devices=(Device(name="0", chip_name="NVIDIA H100"), Device(name="1", chip_name="H100-SXM")),
    )
    assert declare_devices(trace).declaration == replace(declared, other_chip_names=("NVIDIA H100",))
    assert declare_devices(declare_devices(trace)) == declare_devices(trace)


@pytest.mark.parametrize("devices", [(), (Device(name="0"),), (Device(name="0", host="h"),)])
def test_devices_without_a_chip_declare_nothing(devices: tuple[Device, ...]) -> None:
    trace = Trace(devices=devices)
    assert declare_devices(trace) is trace


def test_no_more_names_are_declared_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NAMES", 3)
    trace = Trace(devices=tuple(Device(name=f"{i}", chip_name=f"chip {i}") for i in range(9)))
    declared = declare_devices(trace).declaration
    assert declared is not None
    assert declared.chip_names == ("chip 0", "chip 1", "chip 2")


def test_devices_that_ran_at_one_time_are_counted(make_series: MakeSeries) -> None:
    series = [make_series([400.0] * 5, device=f"gpu{number}") for number in range(8)]
    assert count_accelerators(Trace(series=tuple(series))) == 8


def test_several_channels_of_one_device_are_one_device(make_series: MakeSeries) -> None:
    channels = (Channel.POWER_W, Channel.UTILISATION_PCT, Channel.POWER_AVERAGE_W)
    series = [make_series([40.0] * 5, channel=channel) for channel in channels]
    assert count_accelerators(Trace(series=tuple(series))) == 1


def test_the_channel_that_shows_most_devices_counts(make_series: MakeSeries) -> None:
    """One GPU may have no power sensor that can be read, and is there all the same."""
    used = [make_series([90.0] * 5, channel=Channel.UTILISATION_PCT, device=f"{i}") for i in range(3)]
    power = [make_series([400.0] * 5, device=f"{i}") for i in range(2)]
    assert count_accelerators(Trace(series=(*power, *used))) == 3


def test_recordings_that_follow_each_other_are_of_one_device(make_series: MakeSeries) -> None:
    weeks = [
        make_series([400.0] * 101, time_s=range(102 * week, 102 * week + 101), device=f"week{week}/gpu0")
        for week in range(4)
    ]
    assert count_accelerators(Trace(series=tuple(weeks))) == 1


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope not in (Scope.GPU, Scope.MODULE)])
def test_what_is_no_accelerator_by_itself_counts_none(make_series: MakeSeries, scope: Scope) -> None:
    assert count_accelerators(Trace(series=(make_series([400.0] * 5, scope=scope),))) is None


def test_parts_and_empty_series_count_none(make_series: MakeSeries) -> None:
    slices = [replace(make_series([50.0] * 5), part=f"mig-{number}") for number in range(7)]
    assert count_accelerators(Trace(series=(*slices, make_series([])))) is None
    assert count_accelerators(Trace(series=(*slices, make_series([400.0])))) == 1
    assert count_accelerators(Trace()) is None


def test_modules_and_gpus_are_counted_apart(make_series: MakeSeries) -> None:
    """A module's figure holds its GPU: the two are the same accelerators twice."""
    gpus = [make_series([400.0] * 5, device=f"gpu{number}") for number in range(4)]
    modules = [make_series([600.0] * 5, device=f"module{number}", scope=Scope.MODULE) for number in range(4)]
    assert count_accelerators(Trace(series=(*gpus, *modules))) == 4
