"""Plain tables: read fast where they are regular, row by row where they are not, with the same result."""

import math
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.plain_table import FORMATS, decode_plain_table, is_plain_table
from flopwitness.measure.sources.source import ColumnMap, ReadOptions, Source

SECOND = 10**9


def decode(text: str | bytes, *, options: ReadOptions | None = None, block_bytes: int = 1 << 20) -> Trace:
    data = text.encode() if isinstance(text, str) else text
    blocks = [data[start : start + block_bytes] for start in range(0, len(data), block_bytes)]
    return decode_plain_table(
        Source(blocks=blocks, where="t.csv", device="log", options=options or ReadOptions())
    )


def values(trace: Trace) -> list[float]:
    return [float(value) for value in trace.series[0].value]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_and_line_ends(delimiter: str, end: str) -> None:
    rows = [["time_s", "power_w", "x"], ["0", "10.5", ""], ["1", "11", "a"]]
    trace = decode(end.join(delimiter.join(row) for row in rows))
    (series,) = trace.series
    assert (series.value.tolist(), series.utc_ns.tolist()) == ([10.5, 11.0], [0, SECOND])
    assert (series.scope, series.timing, trace.n_skipped) == (Scope.UNKNOWN, Timing.RELATIVE, 0)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks(encoding: str) -> None:
    text = "time_s,power_w\n0,1\n".encode(encoding)
    assert is_plain_table(text, "t.csv")
    assert values(decode(text)) == [1.0]


def test_calendar_times_stand_in_the_zone_that_the_user_names() -> None:
    options = ReadOptions(zone=ZoneInfo("Europe/Berlin"))
    (series,) = decode("timestamp,power_w\n2024-07-01T12:00:00.5,1\n", options=options).series
    assert series.utc_ns.tolist() == [1_719_828_000 * SECOND + SECOND // 2]


def test_power_of_no_scope_takes_the_user_s_word() -> None:
    (series,) = decode("time_s,power_w\n0,1\n", options=ReadOptions(scope=Scope.NODE_AC)).series
    assert series.scope is Scope.NODE_AC


def test_the_user_s_columns() -> None:
    columns = ColumnMap(time="a", channels=(("b", "power_mw"),))
    trace = decode("a,b\n1,2500\n", options=ReadOptions(columns=columns))
    assert values(trace) == [2.5]


@pytest.mark.parametrize("columns", [ColumnMap(time="z"), ColumnMap(channels=(("b", "power"),))])
def test_columns_that_do_not_fit_are_refused_at_the_header(columns: ColumnMap) -> None:
    with pytest.raises(DecodeError) as caught:
        decode("a,b\n1,2500\n", options=ReadOptions(columns=columns))
    assert caught.value.where == "t.csv:1"


@pytest.mark.parametrize("marker", ["", "nan", "N/A", "[N/A]", "ERR!", "null", "-"])
def test_a_marker_for_none_is_missing_and_no_skip(marker: str) -> None:
    trace = decode(f"time_s,power_w,n\n0,1,\n1,{marker},\n2,3,\n")
    assert [math.isnan(value) for value in values(trace)] == [False, True, False]
    assert trace.n_skipped == 0


@pytest.mark.parametrize("cell", ["twelve", "1e999", "1e-99999", "9" * 70, "1_000", "0x10", "1 2", "inf"])
def test_a_cell_that_is_no_number_is_missing_and_counted(cell: str) -> None:
    trace = decode(f"time_s,power_w\n0,1\n1,{cell}\n2,3\n")
    assert [math.isnan(value) for value in values(trace)] == [False, True, False]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "t.csv:3")


@pytest.mark.parametrize("row", ["1", "1,2,3", '1,"2', "1;2", "x,2", ",2", "1e99,2", "99999-01-01,2", "\x00"])
def test_a_row_that_cannot_be_read_is_counted_and_its_neighbours_kept(row: str) -> None:
    trace = decode(f"time_s,power_w\n0,1\n{row}\n2,3\n")
    assert values(trace) == [1.0, 3.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "t.csv:3")


def test_blank_lines_comments_and_the_header_again_are_no_skips() -> None:
    trace = decode("# by a logger\n\ntime_s,power_w\n0,1\n\n# pause\ntime_s,power_w\n1,2\n   \n")
    assert (values(trace), trace.n_skipped) == ([1.0, 2.0], 0)


def test_lines_before_the_header_are_counted() -> None:
    trace = decode("Logger 3\n12,13\ntime_s,power_w\n0,1\n")
    assert (values(trace), trace.n_skipped) == ([1.0], 2)


def test_a_header_behind_a_comment_sign() -> None:
    assert values(decode("# time_s,power_w\n0,1\n")) == [1.0]


def test_quoted_cells() -> None:
    trace = decode('time_s,gpu_uuid,power_w,note\n0,"GPU-1",1,"a, b"\n1,GPU-1,2,c\n')
    assert [(item.device, item.value.tolist()) for item in trace.series] == [("GPU-1", [1.0, 2.0])]


def test_times_of_one_kind_only() -> None:
    trace = decode("timestamp,power_w\n2024-01-01 00:00:00,1\n1700000000,2\n2024-01-01T00:00:01Z,3\n")
    assert (values(trace), trace.n_skipped) == ([1.0], 2)


def test_the_first_readable_time_settles_the_kind() -> None:
    trace = decode("timestamp,power_w\nstart,0\n2024-01-01 00:00:00,1\n")
    assert (values(trace), trace.n_skipped) == ([1.0], 1)


def test_a_line_that_never_ends_is_one_skip() -> None:
    trace = decode("time_s,power_w\n0,1\n1," + "2" * (2 << 20) + "\n2,3\n")
    assert (values(trace), trace.n_skipped) == ([1.0, 3.0], 1)


def test_epochs_are_exact() -> None:
    (series,) = decode("epoch_s,power_w\n1773080608.630477,1\n").series
    assert series.utc_ns.tolist() == [1_773_080_608_630_477_000]
    assert series.timing is Timing.DATED


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
def test_an_odd_row_changes_nothing_of_its_batch(block_bytes: int) -> None:
    rows = [f"{i},{i % 3},{i * 1.5},{i % 100}" for i in range(200)]
    regular = decode("time_s,gpu,gpu_power_w,gpu_util_pct\n" + "\n".join(rows))
    odd = decode(
        "time_s,gpu,gpu_power_w,gpu_util_pct\n" + "\n".join([*rows[:100], "odd", *rows[100:]]),
        block_bytes=block_bytes,
    )
    assert odd.n_skipped == 1
    for one, other in zip(regular.series, odd.series, strict=True):
        assert (one.device, one.channel) == (other.device, other.channel)
        assert one.value.tolist() == other.value.tolist()
        assert one.utc_ns.tolist() == other.utc_ns.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "power_w\n1\n",
        "time,power\n1,2\n",
        "Time,03-17-2021 12:56:13.954,Watts,1578.9\n",
        "a,b\n" * 50,
        "\x00\xff" * 500,
        "time_s," + "x" * 70_000 + ",power_w\n0,1,2\n",
    ],
)
def test_what_is_no_plain_table_is_refused(text: str) -> None:
    assert not is_plain_table(text.encode(), "t.csv")
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert caught.value.where == "t.csv:1"
    assert "power_w" in caught.value.expected


@pytest.mark.parametrize("rows", ["", "x,y\n", "1\n2\n", "# 0,1\n"])
def test_a_table_without_a_reading_is_refused_where_the_rows_begin(rows: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode("time_s,power_w\n" + rows)
    assert caught.value.where == "t.csv:2"


@pytest.mark.parametrize(
    "head",
    [
        b"timestamp, index, power.draw [W], utilization.gpu [%]\n",
        b'{"timestamp": 1, "power_w": 2}',
        b"[1]",
        b"PAR1",
        b"\x00\x01",
        b"chip,duration_s,energy_j\n",
        b"dataset,network,time_per_epoch,average_power\n",
        b"timestamp,run_id,duration,emissions,gpu_energy\n",
        b"Timestamp,Outlet,Power (W)\n",
        b"time_s,name,energy_uj\n0,package-0,5\n",
    ],
)
def test_other_files_are_not_taken(head: bytes) -> None:
    assert not is_plain_table(head, "x.csv")


def test_the_format_is_named() -> None:
    assert [known.name for known in FORMATS] == ["plain-table"]
    assert FORMATS[0].is_it(b"timestamp,cpu usage (%)\n", "x")
    assert (
        decode("timestamp,cpu usage (%)\n2024-01-01 00:00:00,5\n").series[0].channel
        is Channel.CPU_UTILISATION_PCT
    )
