"""nvidia-smi's device monitor: columns by their names, times of three kinds, `-` for no reading."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources import nvidia_dmon
from flopwitness.measure.sources.nvidia_dmon import decode_nvidia_dmon, is_nvidia_dmon
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp

NAMES = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb "
UNITS = "# Idx      W      C      C      %      %    MHz    MHz     MB "
DATED = ("#Date       Time        gpu    pwr     sm ", "#YYYYMMDD   HH:MM:SS    Idx      W      % ")
OF_DAY = ("#Time        gpu    pwr     sm ", "#HH:MM:SS    Idx      W      % ")
OF_DATE = ("#Date       gpu    pwr     sm ", "#YYYYMMDD   Idx      W      % ")


def _decode(*lines: str, end: str = "\n", size_bytes: int = 1_000) -> Trace:
    data = ("\n".join(lines) + end).encode()
    blocks = [data[start : start + size_bytes] for start in range(0, len(data), size_bytes)]
    return decode_nvidia_dmon(Source(blocks=blocks, where="dmon.txt", device="host"))


def _one(trace: Trace, channel: Channel, gpu: int = 0, part: str = "") -> Series:
    (found,) = (
        item
        for item in trace.series
        if (item.channel, item.device, item.part) == (channel, f"host/gpu{gpu}", part)
    )
    return found


def test_every_column_comes_in_its_channels_unit() -> None:
    trace = _decode(NAMES, UNITS, "    0    631     63     57    100     10   2619   1980      3 ")
    assert {(item.channel, item.part): item.value.tolist() for item in trace.series} == {
        (Channel.POWER_W, ""): [631],
        (Channel.TEMPERATURE_C, ""): [63],
        (Channel.TEMPERATURE_C, "memory"): [57],
        (Channel.UTILISATION_PCT, ""): [100],
        (Channel.MEMORY_UTILISATION_PCT, ""): [10],
        (Channel.MEMORY_CLOCK_HZ, ""): [2.619e9],
        (Channel.CLOCK_HZ, ""): [1.98e9],
        (Channel.MEMORY_USED_BYTE, ""): [3 * 2**20],
    }
    assert {item.scope for item in trace.series} == {Scope.GPU}
    assert _one(trace, Channel.POWER_W).averaged_s == 1.0


def test_gpus_of_one_sweep_share_a_number() -> None:
    rows = [
        f"    {gpu}    {100 * gpu + sweep}     50      -      7      9    405    300      1 "
        for sweep in range(3)
        for gpu in (0, 1, 3)
    ]
    trace = _decode(NAMES, UNITS, *rows[:4], NAMES, UNITS, *rows[4:])
    for gpu in (0, 1, 3):
        power = _one(trace, Channel.POWER_W, gpu)
        assert power.timing is Timing.COUNTED
        assert power.utc_ns.tolist() == [0, 10**9, 2 * 10**9]
        assert power.value.tolist() == [100 * gpu + sweep for sweep in range(3)]
    assert [finding.code for finding in trace.findings] == ["period-assumed"]
    assert trace.n_skipped == 0


def test_a_gpu_that_misses_a_sweep_keeps_its_place() -> None:
    rows = [
        "0 10 50 - 7 9 405 300 1",
        "1 11 50 - 7 9 405 300 1",
        "0 20 50 - 7 9 405 300 1",
        "0 30 50 - 7 9 405 300 1",
    ]
    trace = _decode(NAMES, UNITS, *rows, "1 31 50 - 7 9 405 300 1")
    assert _one(trace, Channel.POWER_W, 1).utc_ns.tolist() == [0, 2 * 10**9]


def test_dated_rows_have_local_times() -> None:
    trace = _decode(
        *DATED, " 20250514   23:59:59      0    301     97 ", " 20250515   00:00:00      0    302     98 "
    )
    power = _one(trace, Channel.POWER_W)
    assert power.timing is Timing.DATED
    assert power.utc_ns.tolist() == [parse_stamp(b"2025-05-14 23:59:59"), parse_stamp(b"2025-05-15 00:00:00")]


def test_times_of_day_go_on_over_midnight_and_may_step_back() -> None:
    times = ("23:59:58", "23:59:59", "00:00:01", "00:00:00", "12:00:00")
    trace = _decode(*OF_DAY, *(f" {time}      0    301     97 " for time in times))
    power = _one(trace, Channel.POWER_W)
    assert power.timing is Timing.RELATIVE
    assert power.utc_ns.tolist() == [second * 10**9 for second in (0, 1, 3, 2, 12 * 3_600 + 2)]


def test_dates_alone_are_no_times() -> None:
    trace = _decode(*OF_DATE, " 20250514      0    301     97 ", " 20250514      0    302     97 ")
    assert _one(trace, Channel.POWER_W).timing is Timing.COUNTED


@pytest.mark.parametrize("sign", [", ", ",", "\t", "     "])
def test_columns_may_be_parted_otherwise(sign: str) -> None:
    lines = ("#gpu pwr temp sm", "#Idx W C %", "0 301 60 97", "0 302 60 -")
    trace = _decode(*(line.replace(" ", sign) for line in lines))
    assert _one(trace, Channel.POWER_W).value.tolist() == [301, 302]
    assert math.isnan(_one(trace, Channel.UTILISATION_PCT).value[1])
    assert trace.n_skipped == 0


def test_another_header_sets_other_columns() -> None:
    trace = _decode("# gpu pwr sm", "0 301 97", "# gpu sm pwr", "0 98 302")
    assert _one(trace, Channel.POWER_W).value.tolist() == [301, 302]


@pytest.mark.parametrize(("first", "second"), [(DATED, OF_DAY), (OF_DAY, OF_DATE), (OF_DATE, DATED)])
def test_times_of_different_kinds_are_not_mixed(first: tuple[str, str], second: tuple[str, str]) -> None:
    rows = {
        DATED: "20250514 09:00:00 0 301 97",
        OF_DAY: "09:00:00 0 301 97",
        OF_DATE: "20250514 0 301 97",
    }
    trace = _decode(*first, rows[first], *second, rows[second], *first, rows[first])
    assert len(_one(trace, Channel.POWER_W)) == 2
    assert trace.n_skipped == 2


@pytest.mark.parametrize(
    "line",
    [
        "    0    631     63     57    100     10   2619   1980 ",
        "    0    631     63     57    100     10   2619   1980      3      4 ",
        "    x    631     63     57    100     10   2619   1980      3 ",
        "12345    631     63     57    100     10   2619   1980      3 ",
        "\u0663 631 63 57 100 10 2619 1980 3",
        "Failed to query power",
        "\x00",
        "1" * 100_000,
    ],
    ids=lambda line: repr(line)[:30],
)
def test_a_line_that_is_no_row_is_skipped_and_located(line: str) -> None:
    good = "    0    631     63     57    100     10   2619   1980      3 "
    trace = _decode(NAMES, UNITS, good, line, good, size_bytes=1 << 20)
    assert _one(trace, Channel.POWER_W).value.tolist() == [631, 631]
    assert [skip.where for skip in trace.skipped] == ["dmon.txt:4"]


@pytest.mark.parametrize(
    "time", ["20250532 09:00:00", "20250514 24:00:00", "00000000 00:00:00", "x y", "2025051 09:00:00"]
)
def test_a_row_without_a_time_is_skipped(time: str) -> None:
    trace = _decode(*DATED, "20250514 09:00:00 0 301 97", f"{time} 0 302 97")
    assert _one(trace, Channel.POWER_W).value.tolist() == [301]
    assert trace.n_skipped == 1


def test_a_cell_that_cannot_be_read_is_missing_and_located() -> None:
    trace = _decode("# gpu pwr sm", "0 301 97", "0 3O2 97", "0 303 1e999")
    assert [math.isnan(value) for value in _one(trace, Channel.POWER_W).value] == [False, True, False]
    assert [math.isnan(value) for value in _one(trace, Channel.UTILISATION_PCT).value] == [False, False, True]
    assert [skip.where for skip in trace.skipped] == ["dmon.txt:3", "dmon.txt:4"]


@pytest.mark.parametrize(
    ("last", "found"), [("0 301 9", math.nan), ("0 301 97", math.nan), ("0 301 -", math.nan)]
)
def test_a_last_row_without_its_end_gives_no_number_that_may_be_cut_off(last: str, found: float) -> None:
    trace = _decode("# gpu pwr sm", "0 300 97", last, end="")
    assert _one(trace, Channel.POWER_W).value.tolist() == [300, 301]
    assert _one(trace, Channel.UTILISATION_PCT).value.tolist() == pytest.approx([97, found], nan_ok=True)
    assert trace.n_skipped == (0 if last.endswith("-") else 1)


def test_a_column_with_a_foreign_unit_is_left_out_and_told() -> None:
    trace = _decode("# gpu pwr sm", "# Idx mW %", "0 301000 97")
    assert {item.channel for item in trace.series} == {Channel.UTILISATION_PCT}
    assert trace.n_skipped == 1


def test_comments_and_blank_lines_are_no_skips() -> None:
    trace = _decode("# a comment", "# gpu pwr sm", "", "# Idx W %", "#", "0 301 97", "   ", "# end")
    assert _one(trace, Channel.POWER_W).value.tolist() == [301]
    assert trace.n_skipped == 0


def test_what_is_memorised_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_dmon, "_MOST_MEMORISED", 5)
    trace = _decode("# gpu pwr sm", *(f"0 {watt} 97" for watt in range(40)))
    assert _one(trace, Channel.POWER_W).value.tolist() == list(range(40))


@pytest.mark.parametrize(
    "lines",
    [
        [""],
        ["# gpu pwr sm"],
        ["0 301 97"],
        ["# gpu pwr sm", "0"],
        ["# gpu pid type sm mem", "0 5 C 97 40"],
        ["# gpu enc dec", "0 1 2"],
    ],
    ids=lambda lines: lines[0][:20],
)
def test_a_log_without_a_reading_is_refused(lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "dmon.txt:1"
    assert "header" in caught.value.expected


@pytest.mark.parametrize("head", [NAMES, DATED[0], OF_DAY[0], "#gpu, pwr, gtemp", "chatter\n" + NAMES])
def test_its_logs_are_known_by_their_header(head: str) -> None:
    assert is_nvidia_dmon(head.encode(), "x")
    assert is_nvidia_dmon(b"\xff\xfe" + head.encode("utf-16-le"), "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ",
        b"#Entity   GPUTL  MCUTL  POWER",
        b"# Idx      W      C",
        b" gpu pwr sm",
        b"# the power of a gpu, pwr, is read",
        b"# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature",
        b"timestamp, power.draw [W]",
        b"# gpu fan enc dec",
        b"#" * 100_000,
    ],
    ids=lambda head: repr(head)[:30],
)
def test_other_files_are_not_taken_for_its_logs(head: bytes) -> None:
    assert not is_nvidia_dmon(head, "dmon.txt")
