"""What the readers of Jetson logs share."""

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import jetson
from flopwitness.measure.sources.jetson import (
    GPU_LOAD,
    MEMORY_LOAD,
    STAMP,
    Quantity,
    SampleTable,
    StampReader,
    rail_power,
    tell_unread_memory,
)
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source

DAY_NS = 86_400 * 10**9
SOURCE = Source(blocks=(), where="log", device="orin")


def _table() -> tuple[SampleTable, Recording]:
    recording = Recording(SOURCE, times=Times.UTC)
    return SampleTable(SOURCE, recording), recording


def _add(table: SampleTable, first: int, **values: list[float]) -> None:
    known = {"memory": MEMORY_LOAD, "gpu": GPU_LOAD}
    size = len(next(iter(values.values())))
    table.add(
        np.arange(first, first + size, dtype=np.int64),
        {known[name]: np.array(value) for name, value in values.items()},
    )


@pytest.mark.parametrize(
    ("rail", "scope", "part"),
    [
        ("VDD_IN", Scope.MODULE, ""),
        ("POM_5V_IN", Scope.MODULE, ""),
        ("VIN", Scope.NODE_DC, ""),
        ("VDD_MUX", Scope.NODE_DC, ""),
        ("VIN_SYS_5V0", Scope.RAIL, "VIN_SYS_5V0"),
        ("VDD_GPU_SOC", Scope.RAIL, "VDD_GPU_SOC"),
        ("SYS5V", Scope.RAIL, "SYS5V"),
        ("VDD_INX", Scope.RAIL, "VDD_INX"),
        ("GPU", Scope.RAIL, "GPU"),
    ],
)
def test_only_whole_inputs_are_more_than_a_rail(rail: str, scope: Scope, part: str) -> None:
    assert rail_power(rail) == Quantity(Channel.POWER_W, scope, part)


@pytest.mark.parametrize(
    ("stamp", "time_ns"),
    [
        (b"01-01-1970 00:00:00", 0),
        (b"01-02-1970 00:00:01", DAY_NS + 10**9),
        (b"1970-01-02 00:01:00", DAY_NS + 60 * 10**9),
        (b"1970-01-01T23:59:59.5", DAY_NS - 5 * 10**8),
        (b"1970-01-01 00:00:00.000000001", 1),
        (b"03-01-2024 00:00:00", 19_783 * DAY_NS),
        (b"12-31-2099 23:59:59", 47_482 * DAY_NS - 10**9),
    ],
)
def test_stamps_count_from_1970_by_their_own_calendar(stamp: bytes, time_ns: int) -> None:
    assert STAMP.fullmatch(stamp)
    assert StampReader().read(stamp) == time_ns


@pytest.mark.parametrize(
    "stamp",
    [
        b"13-01-2025 00:00:00",
        b"02-29-2025 00:00:00",
        b"00-10-2025 00:00:00",
        b"01-01-0000 00:00:00",
        b"01-01-1969 00:00:00",
        b"01-01-2100 00:00:00",
        b"9999-01-01 00:00:00",
        b"01-01-2025 24:00:00",
        b"01-01-2025 00:60:00",
        b"01-01-2025 00:00:60",
    ],
)
def test_what_no_calendar_and_no_set_clock_shows_is_no_time(stamp: bytes) -> None:
    assert STAMP.fullmatch(stamp)
    reader = StampReader()
    assert reader.read(stamp) is None
    assert reader.read_all([b"01-01-2025 00:00:00", stamp]) is None


@pytest.mark.parametrize(
    "text",
    [
        b"1-1-2025 00:00:00",
        b"01-01-2025  00:00:00",
        b"01-01-2025 0:00:00",
        b"01-01-2025 00:00:00Z",
        b"2025-01-01T00:00:00+02:00",
        b"01/01/2025 00:00:00",
        b"Wed May 14 09:00:00 UTC 2025",
    ],
)
def test_other_dates_are_no_stamps(text: bytes) -> None:
    assert STAMP.match(text) is None


def test_many_stamps_are_read_as_each_alone() -> None:
    lines = [b"05-%02d-2025 09:%02d:%02d rest" % (1 + n % 28, n % 60, n * 7 % 60) for n in range(200)]
    reader = StampReader()
    together = reader.read_all(lines)
    assert together is not None
    assert together.tolist() == [StampReader().read(line[:19]) for line in lines]


def test_minutes_are_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetson, "_MOST_KEPT_MINUTES", 3)
    reader = StampReader()
    times = [reader.read(b"01-01-1970 00:%02d:00" % minute) for minute in range(10)]
    assert times == [minute * 60 * 10**9 for minute in range(10)]
    assert len(reader._minutes) <= 3


def test_every_series_has_every_sample() -> None:
    table, recording = _table()
    _add(table, 0, gpu=[1.0, 2.0])
    _add(table, 2, memory=[3.0])
    _add(table, 3, gpu=[4.0], memory=[5.0])
    gpu, memory = recording.trace().series
    assert gpu.utc_ns.tolist() == memory.utc_ns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(gpu.value, [1, 2, np.nan, 4])
    np.testing.assert_array_equal(memory.value, [np.nan, np.nan, 3, 5])
    assert len(table) == 4


def test_a_board_has_so_many_series_and_no_more() -> None:
    table, _ = _table()
    one = np.zeros(1)
    rails = [rail_power(f"RAIL_{number}") for number in range(jetson.LARGEST_BOARD_SERIES)]
    table.add(np.zeros(1, dtype=np.int64), dict.fromkeys(rails, one))
    table.add(np.zeros(1, dtype=np.int64), {rails[0]: one})
    with pytest.raises(DecodeError, match="too many rails"):
        table.add(np.zeros(1, dtype=np.int64), {rail_power("ONE_MORE"): one})


def _told(load_pct: list[float] | None, gpu_pct: list[float]) -> Trace:
    table, recording = _table()
    _add(table, 0, gpu=gpu_pct, **({} if load_pct is None else {"memory": load_pct}))
    tell_unread_memory(table, recording, where="log")
    return recording.trace()


def test_memory_loads_that_were_read_are_nothing_to_tell() -> None:
    assert not _told([0.0, 3.0], [99.0, 99.0]).findings


def test_lines_without_a_memory_load_are_counted() -> None:
    (finding,) = _told([np.nan, 3.0, np.nan], [99.0, 99.0, 99.0]).findings
    assert (finding.code, finding.count) == ("memory-traffic-unread", 2)
    assert "memory traffic not measured on 2 of 3 lines" in finding.message


def test_a_log_without_any_memory_load_is_told_whole() -> None:
    trace = _told(None, [99.0, 99.0])
    assert [finding.count for finding in trace.findings] == [2]
    assert [series.channel for series in trace.series] == [Channel.UTILISATION_PCT]


def test_a_load_of_nothing_but_zero_beside_a_busy_gpu_is_unread() -> None:
    gpu, memory = _told([0.0] * 12, [99.0] * 10 + [0.0] * 2).series
    assert np.isnan(memory.value).all()
    assert gpu.value.tolist() == [99.0] * 10 + [0.0] * 2


@pytest.mark.parametrize(
    ("load_pct", "gpu_pct"),
    [
        ([0.0] * 12, [99.0] * 9 + [0.0] * 3),
        ([0.0] * 12, [49.0] * 12),
        ([0.0] * 11 + [1.0], [99.0] * 12),
    ],
)
def test_a_load_of_zero_may_be_read_where_the_gpu_idles_or_memory_once_moved(
    load_pct: list[float], gpu_pct: list[float]
) -> None:
    trace = _told(load_pct, gpu_pct)
    assert trace.series[1].value.tolist() == load_pct
    assert not trace.findings
