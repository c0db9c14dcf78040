"""nvidia-smi's CSV: every form that it and its users write, and not one reading lost or made up."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources import nvidia_csv
from flopwitness.measure.sources.nvidia_csv import decode_nvidia_csv, is_nvidia_csv
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp

UUIDS = ("GPU-0a1b2c3d-0000-4000-8000-000000000000", "GPU-0a1b2c3d-0000-4000-8000-000000000001")
HEADER = "timestamp, index, power.draw [W], utilization.gpu [%]"


def _decode(*lines: str, end: str = "\n", blocks: Sequence[bytes] = (), device: str = "host") -> Trace:
    data = list(blocks) or [("\n".join(lines) + end).encode()]
    return decode_nvidia_csv(Source(blocks=data, where="smi.csv", device=device))


def _stamp(second: int) -> str:
    return f"2025/05/14 09:{second // 60:02d}:{second % 60:02d}.000"


def _ns(second: int) -> int:
    return parse_stamp(_stamp(second).encode())


def _one(trace: Trace, channel: Channel, device: str = "host/gpu0", scope: Scope = Scope.GPU) -> Series:
    (found,) = (
        item
        for item in trace.series
        if (item.channel, item.device, item.scope, item.part) == (channel, device, scope, "")
    )
    return found


def _codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.findings if finding.code != "zone-assumed"]


def test_each_gpu_has_its_own_series() -> None:
    trace = _decode(
        HEADER,
        f"{_stamp(0)}, 1, 200.50 W, 97 %",
        f"{_stamp(0)}, 0, 100.25 W, 3 %",
        f"{_stamp(1)}, 1, 201.50 W, 98 %",
        f"{_stamp(1)}, 0, 101.25 W, 4 %",
    )
    power = _one(trace, Channel.POWER_W, "host/gpu1")
    assert power.value.tolist() == [200.5, 201.5]
    assert power.utc_ns.tolist() == [_ns(0), _ns(1)]
    assert power.timing is Timing.DATED
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [3, 4]
    assert len(trace.series) == 4
    assert trace.n_skipped == 0


def test_columns_come_in_their_channels_units() -> None:
    trace = _decode(
        "pstate, memory.used [MiB], clocks.current.sm [MHz], clocks.mem [MHz], temperature.gpu, "
        "utilization.memory [%], enforced.power.limit [W], power.limit [W], fan.speed [%], timestamp",
        f"P2, 3 MiB, 1980 MHz, 2619 MHz, 61, 40 %, 650.00 W, 700.00 W, 30 %, {_stamp(0)}",
    )
    values = {item.channel: item.value.tolist() for item in trace.series}
    assert values == {
        Channel.PERFORMANCE_STATE: [2],
        Channel.MEMORY_USED_BYTE: [3 * 2**20],
        Channel.CLOCK_HZ: [1.98e9],
        Channel.MEMORY_CLOCK_HZ: [2.619e9],
        Channel.TEMPERATURE_C: [61],
        Channel.MEMORY_UTILISATION_PCT: [40],
        Channel.POWER_LIMIT_W: [650],
    }
    assert {item.device for item in trace.series} == {"host"}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("timestamp, power.draw [W], utilization.gpu [%]", "{}, 33.09 W, 99 %"),
        ("timestamp, power.draw [W], utilization.gpu [%]", "{}, 33.09, 99"),
        ("timestamp,power.draw,utilization.gpu", "{},33.09,99"),
        (" timestamp ,  power.draw [W] , utilization.gpu [%]", "  {} ,  33.09 W , 99 % "),
        ("power.draw [W], timestamp, fan.speed [%], utilization.gpu [%]", "33.09 W, {}, [N/A], 99 %"),
        ("timestamp,gpu_power_draw,gpu_usage", "{},33.09 W,99 %"),
    ],
)
def test_units_spaces_and_order_may_differ(header: str, row: str) -> None:
    trace = _decode(header, *(row.format(_stamp(second)) for second in range(3)))
    assert _one(trace, Channel.POWER_W, "host").value.tolist() == [33.09] * 3
    assert _one(trace, Channel.UTILISATION_PCT, "host").value.tolist() == [99] * 3
    assert trace.n_skipped == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_shells_write_is_read(encoding: str, end: str) -> None:
    text = end.join((HEADER, *(f"{_stamp(second)}, 0, {second}.50 W, 9 %" for second in range(5)), ""))
    data = text.encode(encoding)
    trace = _decode(blocks=[data[:37], data[37:38], data[38:]])
    assert _one(trace, Channel.POWER_W).value.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "marker", ["[N/A]", "[Not Supported]", "ERR!", "[Unknown Error]", "[GPU requires reset]", ""]
)
def test_a_marker_is_missing_at_its_time_never_zero(marker: str) -> None:
    trace = _decode(
        HEADER,
        f"{_stamp(0)}, 0, 100.00 W, 9 %",
        f"{_stamp(1)}, 0, {marker}, 9 %",
        f"{_stamp(2)}, 0, 102.00 W, 9 %",
    )
    power = _one(trace, Channel.POWER_W)
    assert power.utc_ns.tolist() == [_ns(0), _ns(1), _ns(2)]
    assert np.isnan(power.value).tolist() == [False, True, False]
    assert trace.n_skipped == 0


def test_numbers_of_another_form_are_read_one_by_one() -> None:
    cells = ["100.00 W", "7 W", "1e2 W", "101.5", "+3.00 W", ".50 W", "00102.25W"]
    trace = _decode(HEADER, *(f"{_stamp(i)}, 0, {cell}, 9 %" for i, cell in enumerate(cells)))
    assert _one(trace, Channel.POWER_W).value.tolist() == [100, 7, 100, 101.5, 3, 0.5, 102.25]
    assert trace.n_skipped == 0


@pytest.mark.parametrize("cell", ["100.00 mW", "1OO.00 W", "100,00 W"[:3] + ";00 W", "1e999 W", "0x40", "W"])
def test_a_cell_that_cannot_be_read_is_missing_and_located(cell: str) -> None:
    trace = _decode(HEADER, f"{_stamp(0)}, 0, 99.00 W, 9 %", f"{_stamp(1)}, 0, {cell}, 8 %")
    power = _one(trace, Channel.POWER_W)
    assert power.value[0] == 99
    assert math.isnan(power.value[1])
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [9, 8]
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "smi.csv:3"


def test_an_impossible_reading_is_missing_and_told() -> None:
    trace = _decode(HEADER, f"{_stamp(0)}, 0, 9.00 W, 9 %", f"{_stamp(1)}, 0, -5.00 W, 255 %")
    assert np.isnan(_one(trace, Channel.POWER_W).value).tolist() == [False, True]
    assert "values-impossible" in _codes(trace)


@pytest.mark.parametrize(
    "line",
    [
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
        "\x1b[31mERROR\x1b[0m: something",
        "2025/05/14 09:00:0",
        f"{_stamp(1)}, 0",
        f"{_stamp(1)}, 0, 100.00 W, 9 %, 5",
        "2025/05/32 09:00:01.000, 0, 100.00 W, 9 %",
        "0000/00/00 00:00:00.000, 0, 100.00 W, 9 %",
        "99999/01/01 09:00:01.000, 0, 100.00 W, 9 %",
        ", , , ",
        "\x00\x00\x00",
        "{" * 100_000,
    ],
    ids=lambda line: repr(line)[:30],
)
def test_a_line_that_is_no_row_is_skipped_counted_and_located(line: str) -> None:
    rows = [f"{_stamp(second)}, 0, {second}.00 W, 9 %" for second in range(200)]
    trace = _decode(HEADER, *rows[:100], line, *rows[100:])
    assert _one(trace, Channel.POWER_W).value.tolist() == list(range(200))
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "smi.csv:102"


def test_blank_lines_and_repeated_headers_are_no_skips() -> None:
    rows = [f"{_stamp(second)}, 0, {second}.00 W, 9 %" for second in range(4)]
    trace = _decode(
        "", HEADER, rows[0], HEADER, "", rows[1], "  ", rows[2], "", "", HEADER, HEADER, rows[3], HEADER
    )
    assert _one(trace, Channel.POWER_W).value.tolist() == [0, 1, 2, 3]
    assert trace.n_skipped == 0


def test_a_log_of_a_loop_repeats_its_header_above_each_row() -> None:
    lines = [line for second in range(50) for line in (HEADER, f"{_stamp(second)}, 0, {second}.00 W, 9 %")]
    trace = _decode(*lines)
    assert _one(trace, Channel.POWER_W).value.tolist() == list(range(50))
    assert trace.n_skipped == 0


def test_another_header_in_the_middle_sets_other_columns() -> None:
    trace = _decode(
        "timestamp, uuid, index, power.draw [W]",
        f"{_stamp(0)}, {UUIDS[0]}, 0, 100.00 W",
        "timestamp, index, utilization.gpu [%], power.draw [W]",
        f"{_stamp(1)}, 0, 50 %, 101.00 W",
    )
    assert _one(trace, Channel.POWER_W, UUIDS[0]).value.tolist() == [100, 101]
    assert _one(trace, Channel.UTILISATION_PCT, UUIDS[0]).utc_ns.tolist() == [_ns(1)]
    assert trace.n_skipped == 0


def test_a_header_that_a_torn_row_ran_into_still_counts() -> None:
    trace = _decode(
        "timestamp, power.draw [W], utilization.gpu [%]",
        f"{_stamp(0)}, 100, 7",
        f"{_stamp(1)}, 10timestamp, utilization.gpu [%], power.draw [W]",
        f"{_stamp(2)}, 8, 102",
    )
    assert _one(trace, Channel.POWER_W, "host").value.tolist() == [100, 102]
    assert _one(trace, Channel.UTILISATION_PCT, "host").value.tolist() == [7, 8]
    assert [skip.where for skip in trace.skipped] == ["smi.csv:3"]


@pytest.mark.parametrize(
    ("last", "power_w"),
    [
        ("0, 9 %, 400.00 W", 400.0),
        ("0, 9 %, [N/A]", math.nan),
    ],
)
def test_a_last_row_that_shows_its_end_needs_no_newline(last: str, power_w: float) -> None:
    trace = _decode("timestamp, index, utilization.gpu [%], power.draw [W]", f"{_stamp(0)}, {last}", end="")
    assert _one(trace, Channel.POWER_W).value.tolist() == pytest.approx([power_w], nan_ok=True)
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "last", ["0, 9 %, 40", "0, 9 %, 400.0", "0, 9 %, 400.00 ", "0, 9 %, ", "0, 9 %, [N/"]
)
def test_a_last_row_that_is_cut_off_gives_no_wrong_number(last: str) -> None:
    header = "timestamp, index, utilization.gpu [%], power.draw [W]"
    trace = _decode(header, f"{_stamp(0)}, 0, 9 %, 400.00 W", f"{_stamp(1)}, {last}", end="")
    assert _one(trace, Channel.POWER_W).value.tolist() == pytest.approx([400, math.nan], nan_ok=True)
    assert [skip.where for skip in trace.skipped] == ["smi.csv:3"]


@pytest.mark.parametrize("last", [f"{_stamp(1)}, 0, 9", "2025/05/14 09:0", "20"])
def test_a_torn_last_row_is_skipped(last: str) -> None:
    trace = _decode(HEADER, f"{_stamp(0)}, 0, 400.00 W, 9 %", last, end="")
    assert _one(trace, Channel.POWER_W).value.tolist() == [400]
    assert [skip.where for skip in trace.skipped] == ["smi.csv:3"]


def test_a_temperature_without_the_end_of_its_line_may_be_cut_off() -> None:
    trace = _decode("timestamp, power.draw [W], temperature.gpu", f"{_stamp(0)}, 400.00 W, 6", end="")
    assert _one(trace, Channel.POWER_W, "host").value.tolist() == [400]
    assert math.isnan(_one(trace, Channel.TEMPERATURE_C, "host").value[0])
    assert trace.n_skipped == 1


def test_without_times_readings_are_counted_gpu_by_gpu() -> None:
    rows = [f"{gpu}, {10 * gpu + sweep}.00 W" for sweep in range(3) for gpu in range(2)]
    trace = _decode("index, power.draw [W]", *rows)
    for gpu in range(2):
        power = _one(trace, Channel.POWER_W, f"host/gpu{gpu}")
        assert power.timing is Timing.COUNTED
        assert power.utc_ns.tolist() == [0, 10**9, 2 * 10**9]
        assert power.value.tolist() == [10 * gpu, 10 * gpu + 1, 10 * gpu + 2]
    assert _codes(trace) == ["period-assumed"]


def test_a_column_alone_is_enough_and_a_blank_line_no_reading() -> None:
    trace = _decode("power.draw [W]", "1.00 W", "", "2.00 W", "power.draw [W]", "3.00 W")
    assert _one(trace, Channel.POWER_W, "host").value.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("timestamp, power.draw [W]", "index, power.draw [W]"),
        ("index, power.draw [W]", "timestamp, power.draw [W]"),
    ],
)
def test_rows_with_and_without_times_are_not_mixed(first: str, second: str) -> None:
    cells = {"timestamp, power.draw [W]": f"{_stamp(0)}, 5.00 W", "index, power.draw [W]": "0, 5.00 W"}
    trace = _decode(first, cells[first], second, cells[second], cells[second])
    assert sum(map(len, trace.series)) == 1
    assert trace.n_skipped == 3


@pytest.mark.parametrize(
    ("name", "channel", "averaged_s"),
    [
        ("NVIDIA H100 80GB HBM3", Channel.POWER_AVERAGE_W, 1.0),
        ("NVIDIA A100-SXM4-80GB", Channel.POWER_W, 0.0),
        ("Tesla V100-SXM2-16GB", Channel.POWER_W, 0.0),
        ("Some Board", Channel.POWER_W, 1.0),
    ],
)
def test_what_power_draw_means_depends_on_the_chip(name: str, channel: Channel, averaged_s: float) -> None:
    trace = _decode("timestamp, name, power.draw [W]", f"{_stamp(0)}, {name}, 300.00 W")
    power = _one(trace, channel, "host")
    assert power.averaged_s == averaged_s
    assert len(trace.series) == 1
    assert [device.chip_name for device in trace.devices] == [name]


def test_power_draw_beside_what_it_repeats_is_no_second_series() -> None:
    trace = _decode(
        "timestamp, power.draw [W], power.draw.average [W], power.draw.instant [W]",
        f"{_stamp(0)}, 300.00 W, 300.00 W, 290.00 W",
    )
    assert {(item.channel, item.averaged_s, item.value[0]) for item in trace.series} == {
        (Channel.POWER_AVERAGE_W, 1.0, 300.0),
        (Channel.POWER_W, 0.0, 290.0),
    }


def test_power_draw_stands_in_for_columns_that_are_empty() -> None:
    trace = _decode(
        "timestamp, power.draw, power.draw.average, power.draw.instant, module.power.draw.instant",
        f"{_stamp(0)}, 300.00 W, [N/A], [N/A], [N/A]",
    )
    (power,) = trace.series
    assert (power.channel, power.part, power.value[0]) == (Channel.POWER_W, "", 300.0)


def test_a_modules_power_is_not_its_gpus() -> None:
    trace = _decode(
        "timestamp, index, power.draw.instant [W], module.power.draw.instant [W]",
        f"{_stamp(0)}, 0, 600.00 W, 900.00 W",
    )
    assert _one(trace, Channel.POWER_W).value[0] == 600
    assert _one(trace, Channel.POWER_W, scope=Scope.MODULE).value[0] == 900


@pytest.mark.parametrize(
    ("header", "cells", "device"),
    [
        ("uuid, pci.bus_id, index", f"{UUIDS[1]}, 00000000:3B:00.0, 3", UUIDS[1]),
        ("index, gpu_bus_id", "3, 00000000:3B:00.0", "host/00000000:3B:00.0"),
        ("index", "3", "host/gpu3"),
        ("uuid, index", "[N/A], 3", "host/gpu3"),
        ("uuid, index", "GPU-00000000-0000-0000-0000-000000000000, 3", "host/gpu3"),
        ("hostname, index", "node7, 3", "node7/gpu3"),
        ("name", "NVIDIA L4", "host"),
    ],
)
def test_a_gpu_is_named_by_the_best_that_is_known(header: str, cells: str, device: str) -> None:
    trace = _decode(f"timestamp, {header}, power.draw [W]", f"{_stamp(0)}, {cells}, 70.00 W")
    assert [item.device for item in trace.series] == [device]


def test_gpus_without_a_key_are_of_one_device_unless_their_names_differ() -> None:
    rows = [f"{_stamp(0)}, {name}, {power}.00 W" for name, power in (("NVIDIA L4", 70), ("Tesla T4", 60))]
    trace = _decode("timestamp, name, power.draw [W]", *rows, rows[0])
    assert [(item.device, item.value.tolist()) for item in trace.series] == [
        ("host", [70, 70]),
        ("host/Tesla T4", [60]),
    ]


def test_rows_of_one_gpu_keep_their_order_whatever_else_they_say() -> None:
    rows = [f"{_stamp(s)}, {UUIDS[0]}, driver {s % 3}, {s}.00 W" for s in range(9)]
    trace = _decode("timestamp, uuid, driver_version, power.draw [W]", *rows)
    assert _one(trace, Channel.POWER_W, UUIDS[0]).value.tolist() == list(range(9))


def test_a_uuid_that_is_lost_for_a_row_is_known_by_the_gpus_number() -> None:
    trace = _decode(
        "timestamp, index, uuid, power.draw [W]",
        f"{_stamp(0)}, 0, {UUIDS[0]}, 300.00 W",
        f"{_stamp(1)}, 0, [Unknown Error], [Unknown Error]",
    )
    assert len(_one(trace, Channel.POWER_W, UUIDS[0])) == 2


@pytest.mark.parametrize(
    ("header", "cells", "is_shared"),
    [
        ("mig.mode.current", "Enabled", True),
        ("name", "NVIDIA A40-8Q", True),
        ("name", "GRID V100D-16C", True),
        ("mig.mode.current", "Disabled", False),
        ("mig.mode.current", "[N/A]", False),
        ("name", "NVIDIA A100-SXM4-80GB", False),
        ("name", "NVIDIA H100 PCIe", False),
        ("mig.mode.pending", "Enabled", False),
    ],
)
def test_a_partitioned_gpu_is_known_as_shared(header: str, cells: str, is_shared: bool) -> None:
    trace = _decode(f"timestamp, {header}, power.draw [W]", f"{_stamp(0)}, {cells}, 70.00 W")
    assert [device.is_shared for device in trace.devices] == [is_shared]


def test_a_driver_and_a_host_are_kept() -> None:
    trace = _decode(
        "timestamp, driver_version, hostname, uuid, power.draw [W]",
        f"{_stamp(0)}, 550.54.15, node7, {UUIDS[0]}, 70.00 W",
    )
    (device,) = trace.devices
    assert (device.name, device.driver, device.host) == (UUIDS[0], "550.54.15", "node7")


def test_a_busy_gpu_without_power_readings_is_told() -> None:
    trace = _decode(
        HEADER,
        *(
            f"{_stamp(s)}, {gpu}, {power}, 98 %"
            for s in range(5)
            for gpu, power in ((0, "9.00 W"), (1, "[N/A]"))
        ),
    )
    (finding,) = (finding for finding in trace.findings if finding.code == "power-not-read")
    assert "host/gpu1" in finding.message
    assert len(_one(trace, Channel.POWER_W, "host/gpu1")) == 5


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        (HEADER, "0, [N/A], 20 %"),
        (HEADER, "0, [N/A], [N/A]"),
        (HEADER, "0, 300.00 W, 98 %"),
        ("timestamp, index, utilization.gpu [%]", "0, 98 %"),
    ],
)
def test_an_idle_gpu_or_a_log_that_never_asked_is_not_blamed(header: str, cells: str) -> None:
    trace = _decode(header, *(f"{_stamp(second)}, {cells}" for second in range(5)))
    assert _codes(trace) == []


def _burst(second: int, n_gpus: int, *, spread_ms: int = 4) -> list[str]:
    return [f"2025/05/14 09:00:{second:02d}.{100 + spread_ms * gpu:03d}, 50.00 W" for gpu in range(n_gpus)]


@pytest.mark.parametrize(("n_gpus", "spread_ms"), [(2, 4), (4, 4), (8, 0), (8, 9)])
def test_gpus_that_nothing_tells_apart_are_told(n_gpus: int, spread_ms: int) -> None:
    rows = [row for second in range(10) for row in _burst(second, n_gpus, spread_ms=spread_ms)]
    trace = _decode("timestamp, power.draw [W]", *rows)
    (finding,) = (finding for finding in trace.findings if finding.code == "gpus-not-told-apart")
    assert finding.found == f"{n_gpus} rows at a time"


def test_one_gpu_is_not_taken_for_several() -> None:
    regular = _decode("timestamp, power.draw [W]", *(row for s in range(20) for row in _burst(s, 1)))
    paused = _decode(
        "timestamp, power.draw [W]", *(f"{_stamp(s + 100 * (s // 40))}, 5.00 W" for s in range(400))
    )
    keyed = _decode(HEADER, *(f"{_stamp(s)}, {gpu}, 5.00 W, 9 %" for s in range(20) for gpu in range(2)))
    assert (_codes(regular), _codes(paused), _codes(keyed)) == ([], [], [])


def test_a_column_with_a_foreign_unit_is_left_out_and_told() -> None:
    trace = _decode(
        "timestamp, power.draw [mW], utilization.gpu [%]", f"{_stamp(0)}, 300000, 9 %", f"{_stamp(1)}, 1, 9 %"
    )
    assert {item.channel for item in trace.series} == {Channel.UTILISATION_PCT}
    assert [skip.found for skip in trace.skipped] == ["power.draw [mW]"]


@pytest.mark.parametrize(
    "lines",
    [
        [""],
        [HEADER],
        [f"{_stamp(0)}, 0, 300.00 W, 98 %"] * 3,
        ["timestamp, index, pci.bus_id, name", f"{_stamp(0)}, 0, 00000000:3B:00.0, NVIDIA L4"],
        [HEADER, "No devices were found"],
        ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."],
        [
            "timestamp, gpu_name, pid, process_name, used_gpu_memory [MiB]",
            f"{_stamp(0)}, NVIDIA L4, 5, x, 3 MiB",
        ],
    ],
    ids=lambda lines: lines[0][:30],
)
def test_a_log_without_a_reading_is_refused_with_its_reason(lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "smi.csv:1"
    assert "header row" in caught.value.expected


@pytest.mark.parametrize(
    "head",
    [
        HEADER,
        "power.draw [W]",
        "Wed May 14 09:00:00 UTC 2025\n" + HEADER,
        f"timestamp,gpu_name,gpu_power_draw\n{_stamp(0)},NVIDIA L4,33.09 W",
        f"{_stamp(0)}, 0, 300.00 W, 98 %",
        HEADER.replace(", ", ","),
    ],
)
def test_its_logs_are_known_by_their_content(head: str) -> None:
    assert is_nvidia_csv(head.encode() + b"\n", "x")
    assert is_nvidia_csv(b"\xff\xfe" + head.encode("utf-16-le"), "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"timestamp,power_draw_w,utilization_pct\n2025-05-14 09:00:00,300.0,98\n",
        b"timestamp,gpu_name,gpu_power_draw\n2025-05-14 09:00:00,NVIDIA L4,33.09\n",
        b"timestamp, gpu_name, pid, process_name, used_gpu_memory [MiB]\n",
        b"timestamp, index, name, pstate\n2025/05/14 09:00:00.000, 0, NVIDIA L4, P0\n",
        b'{"power.draw": 5}\n',
        b"# gpu   pwr gtemp mtemp\n    0    31    34     -\n",
        b"==============NVSMI LOG==============\n    Power Readings\n        Power Draw : 5 W\n",
        b"Model,Training hardware,power.draw.of.something\nx,y,z\n",
        b"a,b\n" * 200 + HEADER.encode(),
        b"\x00" * 5_000,
        b"timestamp" * 100_000,
    ],
    ids=lambda head: repr(head)[:30],
)
def test_other_files_are_not_taken_for_its_logs(head: bytes) -> None:
    assert not is_nvidia_csv(head, "nvidia-smi.csv")


@pytest.mark.parametrize("n_rows", [1, 50, 3_000])
def test_rows_in_bulk_and_one_by_one_give_the_same(monkeypatch: pytest.MonkeyPatch, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    lines = ["timestamp, index, name, power.draw [W], utilization.gpu [%], pstate"]
    for second in range(n_rows):
        power = rng.choice(
            [f"{rng.uniform(0, 700):.2f} W", "[N/A]", "7 W", "x", "1e2"], p=[0.96, 0.01, 0.01, 0.01, 0.01]
        )
        lines.append(
            f"{_stamp(second % 3600)}, {second % 4}, NVIDIA L4, {power}, {second % 101} %, P{second % 9}"
        )
    whole = _decode(*lines)
    monkeypatch.setattr(nvidia_csv, "split_rows", lambda text, n_cells: None)
    slow = _decode(*lines)
    assert whole.skipped == slow.skipped
    assert [item.device for item in whole.series] == [item.device for item in slow.series]
    for one, other in zip(whole.series, slow.series, strict=True):
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


def test_cells_and_names_of_any_length_are_read() -> None:
    name = "N" * 300
    trace = _decode("timestamp, name, power.draw [W]", *(f"{_stamp(s)}, {name}, 5.00 W" for s in range(3)))
    assert [len(item) for item in trace.series] == [3]
