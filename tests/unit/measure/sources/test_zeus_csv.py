"""Zeus' files: milliwatts in local time, and windows that may lie inside each other."""

from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import zeus_csv
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.sources.zeus_csv import decode_zeus_csv, is_zeus_csv

SECOND = 10**9
HEADER = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n"


def decode(text: str, *, options: ReadOptions | None = None) -> Trace:
    return decode_zeus_csv(
        Source(blocks=[text.encode()], where="z.csv", device="log", options=options or ReadOptions())
    )


def test_the_old_monitor_s_log() -> None:
    text = "Time,Power\n2024-07-01 12:00:00.123456789,41250\n2024-07-01 12:00:00.2,N/A\n"
    trace = decode(text, options=ReadOptions(zone=ZoneInfo("Europe/Berlin")))
    (series,) = trace.series
    assert (series.device, series.channel, series.scope) == ("log", Channel.POWER_W, Scope.GPU)
    assert series.utc_ns[0] == 1_719_828_000_123_456_789
    assert series.value[0] == pytest.approx(41.25)
    assert series.value[1] != series.value[1]
    assert (series.averaged_s, trace.n_skipped) == (1.0, 0)


@pytest.mark.parametrize("row", ["2024-07-01 12:00:00Z,1", "12:00:00,1", "2024-07-01 12:00:00", "x", "Time"])
def test_rows_of_the_old_monitor_that_cannot_be_read(row: str) -> None:
    trace = decode(f"Time,Power\n2024-07-01 12:00:00.1,1000\n{row}\nTime,Power\n\n")
    assert (len(trace.series[0]), trace.n_skipped, trace.skipped[0].where) == (1, 1, "z.csv:3")


def test_windows_that_follow_each_other_are_one_counter_that_begins_again() -> None:
    trace = decode(HEADER + "1700000000.25,a,1.5,300,310\n1700000001.75,b,2,40,41\n")
    first, second = trace.series
    assert (first.device, first.part, first.channel) == ("log/gpu0", "", Channel.ENERGY_COUNTER_J)
    assert first.value.tolist() == [0, 300, 0, 40]
    assert second.value.tolist() == [0, 310, 0, 41]
    start = 1_700_000_000 * SECOND
    assert (first.utc_ns - start).tolist() == [
        SECOND // 4,
        7 * SECOND // 4,
        7 * SECOND // 4,
        15 * SECOND // 4,
    ]
    assert trace.findings == ()


def test_windows_inside_others_are_parts_and_never_added() -> None:
    rows = (
        "1700000000,step,1,10,10\n1700000001,step,1,11,11\n1700000000,epoch,3,30,33\n1700000005,late,1,5,5\n"
    )
    trace = decode(HEADER + rows)
    told = {(item.device, item.part): item.value.tolist() for item in trace.series}
    assert told["log/gpu0", ""] == [0, 30, 0, 5]
    assert told["log/gpu0", "step"] == [0, 10, 0, 11]
    (finding,) = trace.findings
    assert (finding.code, finding.count) == ("windows-overlap", 2)


def test_a_window_that_reaches_over_the_end_of_another_is_a_part() -> None:
    trace = decode(HEADER + "1700000000,a,3,30,30\n1700000002,b,3,30,30\n")
    assert {item.part for item in trace.series} == {"", "b"}


def test_names_may_hold_commas_and_be_empty() -> None:
    rows = "1700000000,epoch,9,30,30\n1700000001,a, b,1,3,3\n1700000003,,1,3,3\n"
    assert {item.part for item in decode(HEADER + rows).series} == {"", "a, b", "window"}


def test_energies_of_the_host() -> None:
    trace = decode("start_time,window_name,elapsed_time,cpu0_energy,dram0_energy\n1700000000,w,2,4,5\n")
    assert [(item.device, item.scope) for item in trace.series] == [
        ("log/cpu0", Scope.CPU),
        ("log/dram0", Scope.DRAM),
    ]


@pytest.mark.parametrize(
    "row",
    [
        "1700000000,w,2,4",
        "x,w,2,4,5",
        "1700000000,w,-1,4,5",
        "-5,w,1,4,5",
        "1700000000,w,x,4,5",
        "1700000000",
        "1700000000,w,2,x,5",
        "1e99,w,2,4,5",
        "1700000000,w,2,1e300,5",
        ",,,,",
    ],
)
def test_windows_that_cannot_be_read_are_counted(row: str) -> None:
    trace = decode(HEADER + f"1700000000,w,2,4,5\n{row}\n" + HEADER)
    assert ([len(item) for item in trace.series], trace.n_skipped) == ([2, 2], 1)
    assert trace.skipped[0].where == "z.csv:3"


@pytest.mark.parametrize(
    "text", ["", "x\n", "Time,Power\n", "Time,Power\nx\n", HEADER, HEADER + "x\n", "time,power\n1,2\n"]
)
def test_what_holds_no_reading_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert caught.value.where.startswith("z.csv:")
    assert caught.value.expected


def test_too_many_windows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeus_csv, "_MOST_WINDOWS", 2)
    with pytest.raises(DecodeError):
        decode(HEADER + "1700000000,w,2,4,5\n" * 3)


@pytest.mark.parametrize(
    "head",
    [
        b"Time,Power\n2024-07-01 12:00:00.1,41250\n",
        b"\xef\xbb\xbfTime,Power\r\n2024-07-01 12:00:00.1,41250\r\n",
        HEADER.encode(),
        HEADER.encode("utf-16"),
    ],
)
def test_the_format_is_known(head: bytes) -> None:
    assert is_zeus_csv(head, "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Time,Power\n",
        b"Time,Power\n0.1,920\n",
        b"time,power\n2024-07-01 12:00:00,5\n",
        b"start_time,window_name,elapsed_time\n",
        b"start_time,window_name,elapsed_time,tokens\n",
        b"dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n",
    ],
)
def test_other_files_are_not_taken(head: bytes) -> None:
    assert not is_zeus_csv(head, "zeus.csv")
