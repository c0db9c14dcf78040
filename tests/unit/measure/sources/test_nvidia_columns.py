"""What nvidia-smi's columns mean, and which chips average their power."""

import math

import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.nvidia_columns import (
    POWER_DRAW,
    QUANTITIES,
    canonical_name,
    choose_fields,
    is_averaging,
    parse_cell,
    parse_whole_cell,
)
from flopwitness.measure.sources.values import Unreadable


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("power.draw", "power.draw"),
        ("gpu.power.draw.average", "power.draw.average"),
        ("clocks.sm", "clocks.current.sm"),
        ("clocks.mem", "clocks.current.memory"),
        ("gpu_bus_id", "pci.bus_id"),
        (" Index ", "index"),
    ],
)
def test_the_tools_spellings_have_one_name(name: str, canonical: str) -> None:
    assert canonical_name(name) == canonical


@pytest.mark.parametrize(
    "name", ["power.max_limit", "clocks.max.sm", "temperature.gpu.tlimit", "pcie.link.gen.max"]
)
def test_what_is_no_reading_is_no_quantity(name: str) -> None:
    assert canonical_name(name) not in QUANTITIES


def test_of_two_names_for_one_figure_one_is_read() -> None:
    assert choose_fields(["power.limit", "enforced.power.limit"]) == ("enforced.power.limit",)
    assert choose_fields(["clocks.current.graphics", "clocks.current.sm"]) == ("clocks.current.sm",)
    assert choose_fields(["clocks.current.graphics"]) == ("clocks.current.graphics",)


def test_figures_of_unlike_scope_or_kind_stand_beside_each_other() -> None:
    names = ["power.draw", "power.draw.average", "power.draw.instant", "module.power.draw.instant"]
    assert set(choose_fields(names)) == set(names)
    assert QUANTITIES["module.power.draw.instant"].scope is Scope.MODULE
    assert QUANTITIES["power.draw.average"].channel is Channel.POWER_AVERAGE_W
    assert QUANTITIES["power.draw.average"].averaged_s == 1.0
    assert QUANTITIES["power.draw.instant"].averaged_s == 0.0


def test_nothing_that_is_not_named_is_chosen() -> None:
    assert choose_fields(["timestamp", "name", "fan.speed"]) == ()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("power.draw", b"33.09 W", 33.09),
        ("power.draw", b"33.09", 33.09),
        ("power.draw", b" 33W ", 33.0),
        ("utilization.gpu", b"99 %", 99.0),
        ("clocks.current.sm", b"1980 MHz", 1.98e9),
        ("memory.used", b"3 MiB", 3 * 1024 * 1024),
        ("temperature.gpu", b"41", 41.0),
        ("temperature.gpu", b"41 C", 41.0),
        ("pstate", b"P8", 8.0),
        ("total_energy_consumption", b"1500 mJ", 1.5),
    ],
)
def test_a_cell_comes_in_its_channels_unit(name: str, text: bytes, value: float) -> None:
    assert parse_cell(text, QUANTITIES[name]) == value


@pytest.mark.parametrize(
    "text",
    [
        b"[N/A]",
        b"N/A",
        b"[Not Supported]",
        b"ERR!",
        b"[Unknown Error]",
        b"[GPU is lost]",
        b"Requested functionality has been deprecated",
        b"",
    ],
)
def test_a_marker_is_a_missing_reading(text: bytes) -> None:
    assert math.isnan(parse_cell(text, QUANTITIES[POWER_DRAW]))
    assert math.isnan(parse_whole_cell(text, QUANTITIES[POWER_DRAW]))


@pytest.mark.parametrize(
    "text", [b"33.09 mW", b"33,09 W", b"1e999 W", b"W W", b"0x10", b"\xff", b"9" * 400, b"33.09 V"]
)
def test_what_is_neither_is_refused(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_cell(text, QUANTITIES[POWER_DRAW])


@pytest.mark.parametrize("text", [b"33.0", b"33.09", b"33.09 ", b"3", b"33.09 w"])
def test_a_whole_cell_has_its_unit(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_whole_cell(text, QUANTITIES[POWER_DRAW])
    assert parse_whole_cell(b"33.09 W", QUANTITIES[POWER_DRAW]) == 33.09


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H100 PCIe",
        "NVIDIA H200",
        "NVIDIA GH200 480GB",
        "NVIDIA B200",
        "NVIDIA GB200",
        "NVIDIA A10",
        "NVIDIA A10G",
        "NVIDIA A40",
        "NVIDIA A2",
        "NVIDIA A16-4Q",
        "NVIDIA RTX A6000",
        "NVIDIA L4",
        "NVIDIA L40S",
        "NVIDIA GeForce RTX 3070",
        "NVIDIA GeForce RTX 3050",
        "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4070 Laptop GPU",
        "NVIDIA GeForce RTX 5090",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ],
)
def test_ampere_and_later_average(name: str) -> None:
    assert is_averaging(name) is True


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA A100 80GB PCIe",
        "GRID A100D-20C",
        "NVIDIA A100X",
        "NVIDIA A800-SXM4-80GB",
        "NVIDIA A30",
        "Tesla V100-SXM2-16GB",
        "Tesla V100S-PCIE-32GB",
        "Quadro GV100",
        "Tesla P100-PCIE-16GB",
        "Tesla P40",
        "Tesla K80",
        "Tesla M60",
        "Tesla T4",
        "NVIDIA T1000 8GB",
        "NVIDIA TITAN V",
        "TITAN RTX",
        "GeForce GTX 1080 Ti",
        "NVIDIA GeForce RTX 2080 SUPER",
        "Quadro RTX 6000",
        "Quadro P2000",
    ],
)
def test_ga100_and_older_chips_read_an_instant(name: str) -> None:
    assert is_averaging(name) is False


@pytest.mark.parametrize(
    "name", ["", "[N/A]", "Orin (nvgpu)", "NVIDIA Thor", "NVIDIA X9000", "AMD MI300X", "A1000000"]
)
def test_of_another_name_nothing_is_known(name: str) -> None:
    assert is_averaging(name) is None
