"""amd-smi: CSV and JSON, with epochs and without, partitions, and fields by name."""

import json
import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.amd_smi import decode_amd_smi, is_amd_smi
from flopwitness.measure.sources.source import Source

SECOND = 10**9
WATCH = "timestamp,gpu,socket_power\n"
ONCE = "gpu,socket_power\n"


def decode(text: str) -> Trace:
    return decode_amd_smi(Source(blocks=[text.encode()], where="a.csv", device="log"))


def told(trace: Trace) -> dict[tuple[str, Channel, str], list[float]]:
    return {(item.device, item.channel, item.part): item.value.tolist() for item in trace.series}


def test_a_watch_has_times_and_repeats_its_header() -> None:
    trace = decode(
        "'CTRL' + 'C' to stop watching output:\n"
        f"{WATCH}1700000000,0,400\n1700000000,1,140\n\n{WATCH}1700000001,0,410\n1700000001,1,N/A\n"
    )
    first, second = trace.series
    assert (first.device, first.value.tolist(), first.averaged_s) == ("log/gpu0", [400, 410], 1.0)
    assert (first.utc_ns // SECOND).tolist() == [1_700_000_000, 1_700_000_001]
    assert (first.timing, first.scope) == (Timing.DATED, Scope.GPU)
    assert math.isnan(second.value[1])
    assert trace.n_skipped == 0


def test_without_times_sweeps_are_counted() -> None:
    trace = decode(f"{ONCE}0,1\n1,2\n{ONCE}0,3\n1,4\n")
    assert [(item.value.tolist(), (item.utc_ns // SECOND).tolist()) for item in trace.series] == [
        ([1, 3], [0, 1]),
        ([2, 4], [0, 1]),
    ]
    assert {item.timing for item in trace.series} == {Timing.COUNTED}


def test_fields_by_name_and_lists_in_cells() -> None:
    trace = decode(
        "gpu,gfx_activity,umc_activity,vcn_activity,average_socket_power,gfx_0_clk,edge,hotspot,mem,used_vram\n"
        '0,97,40,"[0, 0, N/A]",512,2100,N/A,71,60,2\n'
    )
    values = told(trace)
    assert values["log/gpu0", Channel.UTILISATION_PCT, ""] == [97]
    assert values["log/gpu0", Channel.MEMORY_UTILISATION_PCT, ""] == [40]
    assert values["log/gpu0", Channel.POWER_AVERAGE_W, ""] == [512]
    assert values["log/gpu0", Channel.CLOCK_HZ, ""] == [2.1e9]
    assert values["log/gpu0", Channel.TEMPERATURE_C, "memory"] == [60]
    assert values["log/gpu0", Channel.MEMORY_USED_BYTE, ""] == [2.0**21]


def test_mem_is_a_share_in_a_monitor() -> None:
    trace = decode("gpu,power_usage,hotspot_temperature,gfx,mem\n0,300,70,99,30\n")
    assert told(trace)["log/gpu0", Channel.MEMORY_UTILISATION_PCT, ""] == [30]


def test_energy_in_joules_and_in_ticks() -> None:
    assert decode("gpu,total_energy_consumption\n0,1234.5\n").series[0].value.tolist() == [1234.5]
    assert decode("gpu,energy_accumulator\n0,1000000\n").series[0].value.tolist() == [pytest.approx(15.3)]
    trace = decode("gpu,energy_accumulator,counter_resolution\n0,1000000,15.259\n")
    assert trace.series[0].value.tolist() == [pytest.approx(15.259)]
    both = decode("gpu,total_energy_consumption,energy_accumulator\n0,7,1000000\n")
    assert [item.value.tolist() for item in both.series] == [[7.0]]


def test_partitions_do_not_repeat_their_board_s_power() -> None:
    trace = decode("timestamp,gpu,xcp,gfx_util,power_usage\n1700000000,0,0,80,400\n1700000000,0,1,70,400\n")
    assert [(item.channel, item.scope, item.part, item.value.tolist()) for item in trace.series] == [
        (Channel.UTILISATION_PCT, Scope.GPU, "", [80.0]),
        (Channel.POWER_W, Scope.GPU, "", [400.0]),
        (Channel.UTILISATION_PCT, Scope.INSTANCE, "xcp-1", [70.0]),
    ]
    assert [(device.name, device.is_shared) for device in trace.devices] == [("log/gpu0", True)]


@pytest.mark.parametrize(
    "line", ["1700000001,0", "1700000001,x,5", "soon,0,5", "1e99,0,5", "1700000001,12345,5", '1,"0', "\x00"]
)
def test_rows_that_cannot_be_read_are_counted(line: str) -> None:
    trace = decode(f"{WATCH}1700000000,0,5\n{line}\n")
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "a.csv:3")
    assert told(trace)["log/gpu0", Channel.POWER_W, ""] == [5.0]


@pytest.mark.parametrize("cell", ["five", "5 C", "1e999", "[1]"])
def test_a_cell_that_is_no_such_quantity_is_missing_and_counted(cell: str) -> None:
    trace = decode(f"{WATCH}1700000000,0,5\n1700000001,0,{cell}\n")
    assert trace.n_skipped == 1
    assert math.isnan(told(trace)["log/gpu0", Channel.POWER_W, ""][1])


def test_rows_with_times_and_rows_without_are_not_mixed() -> None:
    trace = decode(f"{WATCH}1700000000,0,5\n{ONCE}0,6\n")
    assert (told(trace)["log/gpu0", Channel.POWER_W, ""], trace.n_skipped) == ([5.0], 1)
    trace = decode(f"{ONCE}0,6\n{WATCH}1700000000,0,5\n")
    assert (told(trace)["log/gpu0", Channel.POWER_W, ""], trace.n_skipped) == ([6.0], 1)


def test_times_of_wrappers_are_read_too() -> None:
    assert decode("timestamp,gpu,socket_power\n2024-01-01T00:00:00Z,0,5\n").series[0].utc_ns[0] == (
        1_704_067_200 * SECOND
    )
    assert decode("timestamp,gpu,socket_power\n1700000000123,0,5\n").series[0].utc_ns[0] == (
        1_700_000_000_123_000_000
    )


def test_rows_of_other_commands_are_passed_over() -> None:
    assert decode(f"gpu,pid,name\n0,1,python\n{ONCE}0,6\n").n_skipped == 0


# JSON


RECORD = {
    "gpu": 0,
    "usage": {"gfx_activity": {"value": 42, "unit": "%"}, "vcn_activity": ["N/A"]},
    "power": {"socket_power": {"value": 20_500, "unit": "mW"}, "throttle_status": "N/A"},
    "clock": {"gfx_0": {"clk": {"value": 1_400, "unit": "MHz"}, "max_clk": {"value": 1, "unit": "MHz"}}},
    "temperature": {"edge": "N/A", "mem": {"value": 60, "unit": "C"}},
    "energy": {"total_energy_consumption": {"value": 1234.5, "unit": "J"}},
}


@pytest.mark.parametrize("value", [[RECORD], {"gpu_data": [RECORD]}, RECORD, [[RECORD]]])
def test_nested_records_with_units(value: object) -> None:
    values = told(decode(json.dumps(value, indent=4)))
    assert values["log/gpu0", Channel.UTILISATION_PCT, ""] == [42]
    assert values["log/gpu0", Channel.POWER_W, ""] == [20.5]
    assert values["log/gpu0", Channel.CLOCK_HZ, ""] == [1.4e9]
    assert values["log/gpu0", Channel.TEMPERATURE_C, "memory"] == [60]
    assert values["log/gpu0", Channel.ENERGY_COUNTER_J, ""] == [1234.5]
    assert math.isnan(values["log/gpu0", Channel.TEMPERATURE_C, "edge"][0])


def test_documents_of_a_watch() -> None:
    sweeps = [[{"gpu": 0, "timestamp": 1_700_000_000 + n, "power_usage": f"{300 + n} W"}] for n in range(3)]
    text = "'CTRL' + 'C' to stop watching output:\n" + "\n".join(map(json.dumps, sweeps))
    trace = decode(text)
    assert trace.series[0].value.tolist() == [300, 301, 302]
    assert (trace.series[0].timing, trace.n_skipped) == (Timing.DATED, 0)


def test_documents_that_cannot_be_read_are_counted() -> None:
    good = json.dumps([{"gpu": 0, "power_usage": 1}])
    trace = decode(
        f'{good}\n[{{"gpu": 0,\n{good}\n[1, {{"cpu": 0}}, {{"gpu": "x", "power_usage": 2}}]\n"x"\n'
    )
    assert trace.series[0].value.tolist() == [1.0, 1.0]
    assert trace.n_skipped == 4


@pytest.mark.parametrize(
    "text", ["", "x\n", WATCH, "gpu,pid\n0,1\n", "[]", '[{"gpu": 0, "x": 1}]', "[" * 5_000]
)
def test_what_holds_no_reading_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert caught.value.where == "a.csv:1"


@pytest.mark.parametrize(
    "head",
    [
        WATCH.encode(),
        ONCE.encode("utf-16"),
        b"'CTRL' + 'C' to stop watching output:\n" + WATCH.encode(),
        b"gpu,energy_accumulator\n",
        json.dumps([RECORD], indent=4).encode(),
        b"'CTRL' + 'C' to stop watching output:\n" + json.dumps([RECORD]).encode(),
    ],
)
def test_the_format_is_known(head: bytes) -> None:
    assert is_amd_smi(head, "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"gpu,power_w,timestamp\n",
        b"timestamp,gpu,socket_power_w\n",
        b"gpu,gfx,mem\n",
        b'{"gpu": "a", "socket_power": 1}',
        b'[{"gpu": 0, "name": "x"}]',
        b"x" * 100_000,
    ],
)
def test_other_files_are_not_taken(head: bytes) -> None:
    assert not is_amd_smi(head, "amd-smi.csv")
