"""rocm-smi: three forms, one sweep after the other, ticks as joules, and one counter once."""

import json
import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.rocm_smi import TICK_UJ, decode_rocm_smi, is_rocm_smi
from flopwitness.measure.sources.source import ReadOptions, Source

POWER = "device,Current Socket Graphics Package Power (W)\n"
AVERAGE = "device,Average Graphics Package Power (W)\n"


def decode(text: str, *, period_s: float | None = None) -> Trace:
    options = ReadOptions(period_s=period_s)
    return decode_rocm_smi(Source(blocks=[text.encode()], where="r.csv", device="log", options=options))


def told(trace: Trace) -> dict[tuple[str, Channel, str], list[float]]:
    return {(item.device, item.channel, item.part): item.value.tolist() for item in trace.series}


def test_tables_by_the_names_of_their_columns() -> None:
    trace = decode(
        "WARNING: low power\n\n"
        "device,GPU use (%),Card Series,"
        "Current Socket Graphics Package Power (W),Temperature (Sensor edge) (C)\n"
        "card0,97,Example,120.5,51.0\ncard1,3,Other,20.25,41.0\n"
    )
    assert told(trace)["log/card0", Channel.POWER_W, ""] == [120.5]
    assert told(trace)["log/card1", Channel.UTILISATION_PCT, ""] == [3.0]
    assert told(trace)["log/card1", Channel.TEMPERATURE_C, "edge"] == [41.0]
    assert [(device.name, device.chip_name) for device in trace.devices] == [
        ("log/card0", "Example"),
        ("log/card1", "Other"),
    ]
    assert (trace.n_skipped, {item.scope for item in trace.series}) == (0, {Scope.GPU})
    assert {item.timing for item in trace.series} == {Timing.COUNTED}


def test_sweeps_are_counted_whether_in_one_table_or_in_many() -> None:
    one = "device,GPU use (%),Energy counter\ncard0,1,10\ncard1,2,20\n"
    many = "device,GPU use (%)\ncard0,1\ncard1,2\n\ndevice,Energy counter\ncard0,10\ncard1,20\n"
    for text in (one, many):
        trace = decode(text * 3, period_s=2.0)
        assert {tuple((item.utc_ns // 10**9).tolist()) for item in trace.series} == {(0, 2, 4)}


def test_an_average_says_so_and_an_instant_does() -> None:
    assert decode(AVERAGE + "card0,1\n").series[0].channel is Channel.POWER_AVERAGE_W
    assert decode(AVERAGE + "card0,1\n").series[0].averaged_s == 1.0
    assert decode(POWER + "card0,1\n").series[0].averaged_s == 0.0


def test_ticks_become_joules_and_microjoules_go_before_them() -> None:
    ticks = decode("device,Energy counter\ncard0,1000000\n")
    assert ticks.series[0].value.tolist() == [pytest.approx(TICK_UJ)]
    both = decode("device,Energy counter,Accumulated Energy (uJ)\ncard0,1000000,15300001.0\n")
    assert both.series[0].value.tolist() == [pytest.approx(15.300001)]


@pytest.mark.parametrize("cell", ["N/A", "N/A (Secondary die)", "n/a", ""])
def test_a_marker_is_missing_and_no_skip(cell: str) -> None:
    trace = decode(POWER + f"card0,5\ncard1,{cell}\n")
    assert math.isnan(told(trace)["log/card1", Channel.POWER_W, ""][0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line", ["card0", "card0,1,2", "host: x", "cardx,1", "card12345,1", 'card0,"1', "\x00"]
)
def test_rows_that_cannot_be_read_are_counted(line: str) -> None:
    trace = decode(POWER + f"card0,5\n{line}\n")
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "r.csv:3")
    assert told(trace)["log/card0", Channel.POWER_W, ""] == [5.0]


def test_a_cell_that_is_no_number_is_missing_and_counted() -> None:
    trace = decode(POWER + "card0,5\ncard0,five\n")
    assert trace.n_skipped == 1
    assert math.isnan(told(trace)["log/card0", Channel.POWER_W, ""][1])


def test_units_in_cells() -> None:
    trace = decode("device,sclk clock speed:,mclk clock speed:\ncard0,(1700Mhz),(1600Mhz)\n")
    assert [item.value.tolist() for item in trace.series] == [[1.7e9], [1.6e9]]


@pytest.mark.parametrize(
    "table", ['name, value\n"Driver version", "6.2.4"\n', "system,Driver version\nsystem,6.2.4\n"]
)
def test_the_driver_is_kept(table: str) -> None:
    trace = decode(POWER + "card0,5\n" + table)
    assert (trace.devices[0].driver, trace.n_skipped) == ("6.2.4", 0)


def test_one_counter_of_several_partitions_counts_once() -> None:
    sweep = "device,Energy counter\ncard0,{0}\ncard1,{0}\ncard2,{1}\n"
    trace = decode(sweep.format(1000, 2000) + sweep.format(1100, 2300))
    assert [item.device for item in trace.series] == ["log/card0", "log/card2"]
    assert [(device.name, device.is_shared) for device in trace.devices] == [
        ("log/card0", True),
        ("log/card1", True),
        ("log/card2", False),
    ]
    (finding,) = [finding for finding in trace.findings if finding.code == "counter-repeated"]
    assert (finding.count, finding.found) == (1, "log/card1")


def test_counters_at_zero_are_not_one_counter() -> None:
    assert len(decode("device,Energy counter\ncard0,0\ncard1,0\n").series) == 2


# JSON


def test_json_documents_one_after_the_other() -> None:
    first = {"card0": {"GPU use (%)": "42", "Card series": "Example"}, "system": {"Driver version": "6.1"}}
    second = {"card0": {"GPU use (%)": 43}}
    trace = decode(f"{json.dumps(first)}\nWARNING: x\n{json.dumps(second, indent=2)}\n")
    assert told(trace) == {("log/card0", Channel.UTILISATION_PCT, ""): [42.0, 43.0]}
    assert (trace.devices[0].chip_name, trace.devices[0].driver) == ("Example", "6.1")


def test_a_cut_document_is_counted() -> None:
    whole = '{"card0": {"GPU use (%)": "42"}}'
    trace = decode(f"{whole}\n{whole[:20]}\n[1]\n{whole}\n")
    assert (trace.n_skipped, trace.skipped[0].where) == (2, "r.csv:2")
    assert told(trace)["log/card0", Channel.UTILISATION_PCT, ""] == [42.0, 42.0]


# The console


def test_lines_of_the_console() -> None:
    trace = decode(
        "=== ROCm System Management Interface ===\n====\n"
        "GPU[0]\t\t: Average Graphics Package Power (W): 237.0\n"
        "GPU[1]\t\t: Average Graphics Package Power (W): N/A (Secondary die)\n"
        "GPU[0]\t\t: Voltage point 0: 0Mhz 0mV\nERROR: GPU[1] : x\n==== End of ROCm SMI Log ====\n"
    )
    assert told(trace)["log/card0", Channel.POWER_AVERAGE_W, ""] == [237.0]
    assert math.isnan(told(trace)["log/card1", Channel.POWER_AVERAGE_W, ""][0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    ("kind", "channel"), [("(Avg)", Channel.POWER_AVERAGE_W), ("(Socket)", Channel.POWER_W)]
)
def test_the_console_s_table(kind: str, channel: Channel) -> None:
    trace = decode(
        "==== ROCm System Management Interface ====\n"
        "Device  Node  IDs              Temp    Power     SCLK    PwrCap  GPU%\n"
        f"              (DID,     GUID)  (Edge)  {kind}                          \n"
        "==========\n"
        "0       1     0x74a1,   28851  43.0°C  142.0W    133Mhz  750.0W  7%\n"
        "        Example name\n"
        "1       1     0x74a1,   28852  43.0°C  N/A\n"
        "==========\n==== End of ROCm SMI Log ====\n"
    )
    assert told(trace)["log/card0", channel, ""] == [142.0]
    assert told(trace)["log/card0", Channel.CLOCK_HZ, ""] == [133e6]
    assert told(trace)["log/card0", Channel.UTILISATION_PCT, ""] == [7.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "r.csv:7")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing\n",
        POWER,
        "device,Card Series\ncard0,x\n",
        "ROCm System Management Interface\n",
        '{"card0": 1}\n',
    ],
)
def test_what_holds_no_reading_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert caught.value.where == "r.csv:1"


@pytest.mark.parametrize(
    "head",
    [
        b"WARNING: x\n\n" + POWER.encode(),
        POWER.encode("utf-16"),
        b'{"card0": {"GPU use (%)": "1"}}',
        b"====== ROCm System Management Interface ======\n",
        b"### sample\ndevice,GPU use (%)\n",
    ],
)
def test_the_format_is_known(head: bytes) -> None:
    assert is_rocm_smi(head, "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"device,power_w\n",
        b"device,timestamp,GPU use (%)\n",
        b'{"card0": {"name": "Example"}}',
        b'{"gpu": 0, "GPU use (%)": 1}',
        b"gpu,socket_power\n",
        b"x" * 100_000,
    ],
)
def test_other_files_are_not_taken(head: bytes) -> None:
    assert not is_rocm_smi(head, "rocm-smi.csv")
