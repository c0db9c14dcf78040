"""Rows on their way into a recording: devices by what the cells say, and doubts that are told."""

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Device, Trace
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.table_columns import plan_table
from flopwitness.measure.sources.table_rows import DeviceCells, TableRows
from flopwitness.measure.sources.table_times import TimeForm

FORM = TimeForm(times=Times.RELATIVE, unit_ns=1)


def fill(
    names: tuple[str, ...],
    values: list[list[float]],
    cells: list[DeviceCells] | None = None,
    *,
    form: TimeForm = FORM,
) -> Trace:
    source = Source(blocks=(), where="t.csv", device="log")
    plan = plan_table(names)
    assert plan is not None
    rows = TableRows(source, plan, Recording(source, times=Times.RELATIVE))
    rows.add(np.arange(len(values[0]), dtype=np.int64), [np.array(value) for value in values], cells)
    return rows.finish(form)


def test_a_table_of_one_device_is_the_file_s() -> None:
    (series,) = fill(("time_s", "power_w"), [[1.0, 2.0]]).series
    assert (series.device, series.value.tolist(), series.utc_ns.tolist()) == ("log", [1, 2], [0, 1])


def test_rows_go_to_the_devices_that_they_name() -> None:
    trace = fill(("time_s", "gpu", "power_w"), [[1.0, 2.0, 3.0, 4.0]], [(b"0",), (b"1",), (b" 0 ",), (b"0",)])
    assert [(item.device, item.value.tolist()) for item in trace.series] == [
        ("log/gpu0", [1.0, 3.0, 4.0]),
        ("log/gpu1", [2.0]),
    ]


@pytest.mark.parametrize(
    ("names", "cells", "device"),
    [
        (("gpu_uuid", "gpu", "hostname"), (b"GPU-1", b"3", b"n1"), "GPU-1"),
        (("gpu", "hostname"), (b"3", b"n1"), "n1/gpu3"),
        (("gpu",), (b"GPU-xyz",), "log/GPU-xyz"),
        (("device",), (b"meter a",), "log/meter a"),
        (("device",), (b"2",), "log/2"),
        (("hostname",), (b"n1",), "n1"),
        (("gpu",), (b"",), "log"),
        (("gpu",), (b"\xff",), "log/\\xff"),
    ],
)
def test_the_name_of_a_device(names: tuple[str, ...], cells: DeviceCells, device: str) -> None:
    plan = plan_table(("time_s", *names, "power_w"))
    assert plan is not None
    by_place = dict(zip(range(1, 1 + len(names)), cells, strict=True))
    told = tuple(by_place[index] for index in plan.device.indexes)
    trace = fill(("time_s", *names, "power_w"), [[1.0]], [told])
    assert [item.device for item in trace.series] == [device]


@pytest.mark.parametrize("column", ["rail", "sensor", "zone", "name"])
def test_rows_of_parts_are_parts_and_not_devices(column: str) -> None:
    trace = fill(("time_s", column, "power_w"), [[1.0, 2.0, 3.0]], [(b"VIN",), (b"SOC",), (b"VIN",)])
    assert [(item.device, item.part, item.value.tolist()) for item in trace.series] == [
        ("log", "VIN", [1.0, 3.0]),
        ("log", "SOC", [2.0]),
    ]


def test_a_name_beside_a_gpu_s_number_is_its_chip() -> None:
    names = ("time_s", "gpu", "name", "power_w")
    (device,) = fill(names, [[1.0]], [(b"0", b"Example A100")]).devices
    assert (device.name, device.chip_name) == ("log/gpu0", "Example A100")


def test_a_number_beside_a_gpu_s_power_is_a_gpu_s() -> None:
    assert [item.device for item in fill(("time_s", "index", "gpu_power_w"), [[1.0]], [(b"2",)]).series] == [
        "log/gpu2"
    ]


def test_what_the_cells_say_of_a_device_is_kept() -> None:
    names = ("time_s", "gpu_uuid", "hostname", "gpu_name", "driver_version", "power_w")
    trace = fill(names, [[1.0]], [(b"GPU-1", b"n1", b"Example A100", b"550")])
    assert trace.devices == (Device(name="GPU-1", host="n1", chip_name="Example A100", driver="550"),)


def test_a_row_of_several_devices_fills_each() -> None:
    trace = fill(("time_s", "gpu0_power_w", "gpu1_power_w", "node_power_w"), [[1.0], [2.0], [3.0]])
    assert [(item.device, item.value.tolist()) for item in trace.series] == [
        ("log/gpu0", [1.0]),
        ("log/gpu1", [2.0]),
        ("log", [3.0]),
    ]


def test_columns_that_are_not_read_are_told() -> None:
    (finding,) = [f for f in fill(("time_s", "power_w", "power", "note"), [[1.0]]).findings if f.count == 2]
    assert (finding.code, finding.found) == ("columns-ignored", "power, note")


@pytest.mark.parametrize("is_weak", [True, False])
def test_what_is_assumed_of_times_is_told(is_weak: bool) -> None:
    form = TimeForm(times=Times.RELATIVE, unit_ns=1, assumed="seconds", is_weak=is_weak)
    finding = fill(("time_s", "power_w"), [[1.0]], form=form).findings[0]
    assert finding.code == "time-unit-assumed"
    assert finding.severity == ("warning" if is_weak else "note")


def test_bare_shares_of_one_are_left_out_and_told() -> None:
    trace = fill(("time_s", "power_w", "gpu_util"), [[1.0, 2.0, 3.0], [0.0, 0.97, 1.0]])
    assert [item.channel for item in trace.series] == [Channel.POWER_W]
    assert "share-unit-unclear" in {finding.code for finding in trace.findings}


@pytest.mark.parametrize("values", [[0.0, 0.0, 1.0], [0.0, 0.97, 2.0], [np.nan, np.nan, np.nan]])
def test_bare_percentages_stay(values: list[float]) -> None:
    trace = fill(("time_s", "power_w", "gpu_util"), [[1.0, 2.0, 3.0], values])
    assert [item.channel for item in trace.series] == [Channel.POWER_W, Channel.UTILISATION_PCT]


def test_shares_with_their_unit_stay_whatever_they_are() -> None:
    trace = fill(("time_s", "gpu_util_pct"), [[0.0, 0.97, 1.0]])
    assert trace.series[0].value.tolist() == [0.0, 0.97, 1.0]


def test_an_energy_that_falls_often_is_no_counter() -> None:
    trace = fill(("time_s", "power_w", "energy_j"), [[1.0] * 20, [5.0, 4.0] * 10])
    assert [item.channel for item in trace.series] == [Channel.POWER_W]
    assert "energy-not-counted-up" in {finding.code for finding in trace.findings}


@pytest.mark.parametrize("values", [[float(i % 15) for i in range(30)], [5.0, 4.0], [7.0] * 30])
def test_a_counter_may_begin_again(values: list[float]) -> None:
    trace = fill(("time_s", "energy_j"), [values])
    assert trace.series[0].value.tolist() == values
