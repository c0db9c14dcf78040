"""Tables of jtop: columns by name, a total whose scope its rows show, times of a local calendar."""

from collections.abc import Sequence

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources.jtop_csv import FORMATS, decode_jtop_csv
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.testing.decoders.jetson import decoders

(FORMAT,) = FORMATS
SECOND_NS = 10**9
SEEDS = decoders()[1].seeds


def _time(second: int) -> str:
    return f"2025-05-14 09:00:{second:02}.500000"


def _decode(*lines: str, blocks: Sequence[bytes] = (), options: ReadOptions | None = None) -> Trace:
    data = "\r\n".join(lines).encode()
    return decode_jtop_csv(
        Source(blocks=blocks or [data], where="j.csv", device="orin", options=options or ReadOptions())
    )


def _table(names: str, *rows: str, options: ReadOptions | None = None) -> Trace:
    """A table of the named columns beside time and uptime."""
    lines = [f"{_time(second)},0:00:{second:02},{row}" for second, row in enumerate(rows)]
    return _decode(f"time,uptime,{names}", *lines, options=options)


def _one(trace: Trace, channel: Channel, *, part: str = "") -> Series:
    (series,) = (item for item in trace.series if item.channel is channel and item.part == part)
    return series


def _codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.findings if finding.code != "zone-assumed"]


def test_columns_are_known_by_name_in_any_order() -> None:
    trace = _table(
        "Power VDD_SOC,nvp model,EMC,CPU2,Temp gpu,GPU,CPU1,Fan pwmfan0,Power VDD_CPU_GPU_CV,RAM,Power TOT",
        "2716,25W,12,OFF,51.5,97,41,30.1,8216,0.4,14632",
        "2790,25W,14,9,52,98,11,30.1,8604,0.4,15104",
    )
    found = {(item.channel, item.scope, item.part): item.value.tolist() for item in trace.series}
    assert found == {
        (Channel.POWER_W, Scope.RAIL, "VDD_SOC"): [2.716, 2.79],
        (Channel.POWER_W, Scope.RAIL, "VDD_CPU_GPU_CV"): [8.216, 8.604],
        (Channel.POWER_W, Scope.MODULE, ""): [14.632, 15.104],
        (Channel.MEMORY_UTILISATION_PCT, Scope.MODULE, ""): [12, 14],
        (Channel.UTILISATION_PCT, Scope.GPU, ""): [97, 98],
        (Channel.TEMPERATURE_C, Scope.GPU, ""): [51.5, 52],
        (Channel.CPU_UTILISATION_PCT, Scope.CPU, ""): [41, 10],
        (Channel.CPU_CORES_ON, Scope.CPU, ""): [1, 2],
    }
    assert {item.device for item in trace.series} == {"orin"}
    assert (trace.n_skipped, _codes(trace)) == (0, [])


def test_times_are_local_to_the_microsecond() -> None:
    trace = _decode(
        "time,uptime,GPU",
        "2025-05-14 09:00:00.250001,0:10:46,5",
        '2025-05-14 09:00:01,"33 days, 0:10:47.370000",6',
    )
    series = _one(trace, Channel.UTILISATION_PCT)
    assert np.diff(series.utc_ns).tolist() == [749_999_000]
    assert str(np.datetime64(int(series.utc_ns[0]), "ns")) == "2025-05-14T09:00:00.250001000"
    assert series.timing is Timing.DATED
    assert "zone-assumed" in [finding.code for finding in trace.findings]


@pytest.mark.parametrize(
    "time",
    ["", "1700000000", "14.05.2025 09:00", "2025-05-14", "2025-13-14 09:00:00", "2025-05-14 09:00:00+02:00"],
)
def test_a_row_without_a_time_is_skipped(time: str) -> None:
    trace = _decode("time,uptime,GPU", f"{_time(0)},0,5", f"{time},0,6", f"{_time(2)},0,7")
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [5, 7]
    assert [skipped.where for skipped in trace.skipped] == ["j.csv:3"]


@pytest.mark.parametrize("rails", ["9001,1520,3020", "9001,1521,3020"])
def test_a_total_that_is_the_sum_of_its_rails_has_no_known_scope(rails: str) -> None:
    trace = _table("Power GPU,Power CPU,Power SYS5V,Power TOT", f"{rails},13541", f"{rails},13541")
    total = _one(trace, Channel.POWER_W)
    assert (total.scope, total.value.tolist()) == (Scope.UNKNOWN, [13.541, 13.541])
    assert _codes(trace)[:1] == ["power-total-unclear"]
    assert "sum of rails" in trace.findings[0].message


def test_the_user_may_say_what_a_total_covers() -> None:
    options = ReadOptions(scope=Scope.MODULE)
    trace = _table("Power GPU,Power CPU,Power TOT", "9000,1000,10000", options=options)
    assert _one(trace, Channel.POWER_W).scope is Scope.MODULE


def test_a_total_of_many_rails_may_be_less_than_their_sum_and_is_a_meter_then() -> None:
    trace = _table("Power VDD_MUX,Power VDD_SYS_GPU,Power TOT", "19000,4000,9000", "20000,5000,9500")
    whole, carrier = (
        next(item for item in trace.series if item.scope is scope) for scope in (Scope.MODULE, Scope.NODE_DC)
    )
    assert (whole.value.tolist(), carrier.value.tolist()) == ([9, 9.5], [19, 20])
    assert "power-total-unclear" not in _codes(trace)


def test_on_thor_the_meter_of_the_input_sits_on_the_carrier_board() -> None:
    trace = _table("Power VDD_GPU,Power VIN_SYS_5V0,Power TOT", "37900,15400,124400")
    assert _one(trace, Channel.POWER_W).scope is Scope.NODE_DC


@pytest.mark.parametrize(
    ("total", "codes"), [("9120", []), ("17340", ["power-total-unclear"])], ids=["meter", "sum"]
)
def test_beside_the_meter_of_the_input_a_total_is_nothing_new(total: str, codes: list[str]) -> None:
    trace = _table("Power VDD_IN,Power VDD_CPU_GPU_CV,Power TOT", f"9120,8220,{total}")
    assert _one(trace, Channel.POWER_W).value.tolist() == [9.12]
    assert _one(trace, Channel.POWER_W).scope is Scope.MODULE
    assert _one(trace, Channel.POWER_W, part="TOT").scope is Scope.UNKNOWN
    assert [code for code in _codes(trace) if code.startswith("power")] == codes


def test_release_3_has_a_total_and_no_rails_and_memory_where_a_load_should_be() -> None:
    trace = _decode(SEEDS[2].decode())
    total = _one(trace, Channel.POWER_W)
    assert (total.scope, total.value.tolist()) == (Scope.UNKNOWN, [4.664])
    assert {item.channel for item in trace.series} == {
        Channel.POWER_W,
        Channel.UTILISATION_PCT,
        Channel.TEMPERATURE_C,
        Channel.CPU_UTILISATION_PCT,
        Channel.CPU_CORES_ON,
    }
    assert _codes(trace) == ["power-total-unclear", "memory-traffic-unread"]
    assert "stands alone" in trace.findings[0].message


def test_rails_that_are_not_connected_are_left_out() -> None:
    trace = _table("Power NC,Power VDD_IN,GPU", "5,9120,97")
    assert [item.part for item in trace.series if item.channel is Channel.POWER_W] == [""]


@pytest.mark.parametrize("cell", ["", "OFF", "None", "nan", "N/A"])
def test_a_marker_for_no_reading_is_missing_and_no_skip(cell: str) -> None:
    trace = _table("CPU1,GPU,Temp GPU", f"5,{cell},{cell}", "6,7,8")
    for channel in (Channel.UTILISATION_PCT, Channel.TEMPERATURE_C):
        assert np.isnan(_one(trace, channel).value).tolist() == [True, False]
    assert trace.n_skipped == 0


def test_a_zone_that_is_switched_off_has_no_temperature() -> None:
    trace = _table("GPU,Temp GPU", "5,-256", "6,-25.5")
    np.testing.assert_array_equal(_one(trace, Channel.TEMPERATURE_C).value, [np.nan, -25.5])


@pytest.mark.parametrize("cell", ["x", "5 W", "0x10", "1e999", "True", "9" * 80])
def test_a_cell_that_is_no_number_is_missing_and_its_row_is_told(cell: str) -> None:
    trace = _table("CPU1,GPU,Power VDD_IN", f"5,{cell},9120", "6,7,9130")
    np.testing.assert_array_equal(_one(trace, Channel.UTILISATION_PCT).value, [np.nan, 7])
    assert _one(trace, Channel.POWER_W).value.tolist() == [9.12, 9.13]
    assert _one(trace, Channel.CPU_UTILISATION_PCT).value.tolist() == [5, 6]
    assert [skipped.where for skipped in trace.skipped] == ["j.csv:2"]


def test_a_core_that_cannot_be_read_leaves_the_mean_open() -> None:
    trace = _table("CPU1,CPU2,GPU", "x,50,5", "OFF,50,6", "OFF,OFF,7")
    np.testing.assert_array_equal(_one(trace, Channel.CPU_UTILISATION_PCT).value, [np.nan, 50, np.nan])
    np.testing.assert_array_equal(_one(trace, Channel.CPU_CORES_ON).value, [np.nan, 1, 0])
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [5, 6, 7]


@pytest.mark.parametrize("row", ["1,2", "1,2,3,4,5", '"1,2,3', "1", "\x00"])
def test_a_row_of_another_length_is_skipped(row: str) -> None:
    trace = _decode("time,uptime,GPU,Power VDD_IN", f"{_time(0)},0,5,9120", row, f"{_time(1)},0,6,9130")
    assert _one(trace, Channel.POWER_W).value.tolist() == [9.12, 9.13]
    assert [(skipped.where, skipped.expected) for skipped in trace.skipped] == [("j.csv:3", "4 cells")]


def test_blank_lines_and_repeated_headers_are_nothing_to_tell() -> None:
    header = "time,uptime,GPU"
    trace = _decode("", header, f"{_time(0)},0,5", "", header, f"{_time(1)},0,6", "")
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [5, 6]
    assert trace.n_skipped == 0


def test_a_new_header_may_bring_other_columns() -> None:
    trace = _decode(
        "Simple jtop logger",
        "time,uptime,GPU,Power VDD_IN",
        f"{_time(0)},0,5,9120",
        "time,uptime,Power VDD_SOC,GPU,Power VDD_IN",
        f"{_time(1)},0,2790,6,9130",
    )
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == [5, 6]
    np.testing.assert_array_equal(_one(trace, Channel.POWER_W, part="VDD_SOC").value, [np.nan, 2.79])
    assert [skipped.where for skipped in trace.skipped] == ["j.csv:1"]


def test_a_memory_load_of_nothing_but_zero_beside_a_busy_gpu_is_unread() -> None:
    trace = _table("GPU,EMC", *["99,0"] * 12)
    assert np.isnan(_one(trace, Channel.MEMORY_UTILISATION_PCT).value).all()
    assert _codes(trace) == ["memory-traffic-unread"]


def test_numbers_beyond_sense_are_left_out_and_told() -> None:
    trace = _table("CPU1,CPU2,GPU,Power GPU,Power CPU,Power TOT", "1e308,1e308,500,1e308,1e308,1e308")
    assert all(
        np.isnan(item.value).all() for item in trace.series if item.channel is not Channel.CPU_CORES_ON
    )
    assert "values-impossible" in _codes(trace)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
@pytest.mark.parametrize("size_bytes", [1, 13, 200])
def test_blocks_may_end_anywhere(seed: bytes, size_bytes: int) -> None:
    blocks = [seed[start : start + size_bytes] for start in range(0, len(seed), size_bytes)]
    whole, cut = _decode(blocks=[seed]), _decode(blocks=blocks)
    assert (whole.skipped, whole.findings, len(whole.series)) == (cut.skipped, cut.findings, len(cut.series))
    for one, other in zip(whole.series, cut.series, strict=True):
        assert (one.channel, one.scope, one.part) == (other.channel, other.scope, other.part)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["time,uptime,GPU"],
        ["Simple jtop logger", "Saving log on log.csv"],
        ["time,uptime,GPU", "1,2"],
        ["time,GPU", f"{_time(0)},5"],
        [f"{_time(0)},0,5"],
        ["time,uptime," + ",".join(["GPU"] * 2_000), f"{_time(0)},0," + ",".join(["5"] * 2_000)],
    ],
)
def test_a_table_without_a_row_or_a_header_is_refused(lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "j.csv:1"
    assert "header" in caught.value.expected


def test_a_line_longer_than_a_line_may_be_is_skipped() -> None:
    trace = _decode("time,uptime,GPU", f"{_time(0)},0,5", "x," * (1 << 20), f"{_time(1)},0,6")
    assert (len(trace.series[0]), trace.n_skipped) == (2, 1)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_every_release_is_known_by_its_content(seed: bytes) -> None:
    assert FORMAT.is_it(seed, "")
    assert FORMAT.is_it(b"Simple jtop logger\n" + seed, "")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"time,value\n1,2\n",
        b"time,uptime\n1,2\n",
        b"Time,uptime,GPU\n",
        b"a,time,uptime,GPU\n",
        b"time;uptime;GPU\n",
        b"timestamp,uptime,GPU,Power TOT\n",
        b'"time,uptime,GPU\n',
        b"\xff" * 99,
    ],
)
def test_other_tables_are_not_taken_for_it(head: bytes) -> None:
    assert not FORMAT.is_it(head, "jtop.csv")
