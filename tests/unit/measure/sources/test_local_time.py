"""Local times in UTC, around the hours that come twice or never."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwitness.measure.sources import local_time
from flopwitness.measure.sources.local_time import Placed, place_local_times

BERLIN = ZoneInfo("Europe/Berlin")
HOUR_NS = 3_600 * 10**9


def _ns(text: str) -> int:
    """What a calendar shows, as nanoseconds since 1970 by that calendar."""
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) * 1_000


def _place(day: str, *times: str, zone: ZoneInfo = BERLIN) -> Placed:
    return place_local_times(np.array([_ns(f"{day} {time}") for time in times], dtype=np.int64), zone)


def _shown(placed: Placed) -> list[str]:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    moments = [epoch + dt.timedelta(microseconds=int(ns) // 1_000) for ns in placed.utc_ns]
    return [f"{moment:%H:%M:%S}" for moment in moments]


@pytest.mark.parametrize(
    ("day", "zone", "expected"),
    [
        ("2024-01-15", "Europe/Berlin", "11:00:00"),
        ("2024-07-15", "Europe/Berlin", "10:00:00"),
        ("2024-07-15", "America/New_York", "16:00:00"),
        ("2024-07-15", "Asia/Kathmandu", "06:15:00"),
        ("2024-01-15", "Australia/Lord_Howe", "01:00:00"),
        ("2024-07-15", "Australia/Lord_Howe", "01:30:00"),
        ("2024-07-15", "UTC", "12:00:00"),
        ("2018-12-15", "America/Sao_Paulo", "14:00:00"),
        ("2023-12-15", "America/Sao_Paulo", "15:00:00"),
        ("2024-03-15", "Africa/Casablanca", "12:00:00"),
        ("2024-05-15", "Africa/Casablanca", "11:00:00"),
    ],
)
def test_noon_in_many_places(day: str, zone: str, expected: str) -> None:
    placed = _place(day, "12:00:00", zone=ZoneInfo(zone))
    assert _shown(placed) == [expected]
    assert (placed.n_twice, placed.n_never) == (0, 0)


def test_after_a_step_back_the_second_hour_runs() -> None:
    placed = _place("2024-10-27", "01:30", "02:00", "02:50", "02:00", "02:50", "03:00")
    assert _shown(placed) == ["23:30:00", "00:00:00", "00:50:00", "01:00:00", "01:50:00", "02:00:00"]
    assert (placed.n_twice, placed.n_never) == (4, 0)


def test_the_edges_of_the_doubled_hour_are_exact() -> None:
    placed = _place("2024-10-27", "01:59:59.999999", "02:00:00", "02:59:59.999999", "03:00:00")
    assert placed.n_twice == 2
    assert _shown(placed) == ["23:59:59", "00:00:00", "00:59:59", "02:00:00"]


def test_a_log_that_begins_in_the_doubled_hour_takes_the_first() -> None:
    assert _shown(_place("2024-10-27", "02:30", "02:40")) == ["00:30:00", "00:40:00"]
    assert _shown(_place("2024-10-27", "02:40", "02:10")) == ["00:40:00", "01:10:00"]


def test_an_outage_over_the_change_is_told_by_the_step_back() -> None:
    assert _shown(_place("2024-10-27", "01:59", "02:40", "02:20", "02:30")) == [
        "23:59:00",
        "00:40:00",
        "01:20:00",
        "01:30:00",
    ]


@pytest.mark.parametrize("back_s", [0.001, 1, 59, 60])
def test_a_clock_that_is_set_by_a_little_begins_no_second_hour(back_s: float) -> None:
    """Threads that write out of turn, and time servers, step back by less than a minute."""
    start = _ns("2024-10-27 02:10")
    local_ns = np.array([start, start + 10**9, start + 10**9 - round(back_s * 1e9), start + 2 * 10**9])
    placed = place_local_times(local_ns, BERLIN)
    assert (local_ns - placed.utc_ns == 2 * HOUR_NS).all()
    assert placed.n_twice == 4


def test_a_small_step_before_the_large_one_changes_nothing() -> None:
    placed = _place("2024-10-27", "01:59:59", "02:30:00", "02:29:59", "02:59:59", "02:00:00", "03:00:00")
    assert _shown(placed) == ["23:59:59", "00:30:00", "00:29:59", "00:59:59", "01:00:00", "02:00:00"]


def test_steps_back_outside_a_doubled_hour_do_not_count() -> None:
    placed = _place("2024-10-27", "01:50", "01:10", "02:10", "02:20")
    assert _shown(placed) == ["23:50:00", "23:10:00", "00:10:00", "00:20:00"]


def test_each_doubled_hour_of_a_long_log_stands_for_itself() -> None:
    days = [f"{year}-10-{day}" for year, day in ((2023, 29), (2024, 27))]
    times = [_ns(f"{day} {time}") for day in days for time in ("02:30", "02:10", "12:00")]
    placed = place_local_times(np.array(times, dtype=np.int64), BERLIN)
    assert _shown(placed) == ["00:30:00", "01:10:00", "11:00:00"] * 2


def test_half_an_hour_that_comes_twice() -> None:
    lord_howe = ZoneInfo("Australia/Lord_Howe")
    placed = _place("2024-04-07", "01:20", "01:30", "01:50", "01:30", "01:50", "02:00", zone=lord_howe)
    assert _shown(placed) == ["14:20:00", "14:30:00", "14:50:00", "15:00:00", "15:20:00", "15:30:00"]
    assert placed.n_twice == 4


def test_an_hour_that_never_was_goes_on_as_if_nobody_had_set_the_clock() -> None:
    placed = _place("2024-03-31", "01:59:59", "02:00:00", "02:59:59", "03:00:00")
    assert _shown(placed) == ["00:59:59", "01:00:00", "01:59:59", "01:00:00"]
    assert (placed.n_twice, placed.n_never) == (0, 2)


def test_a_day_that_never_was() -> None:
    """Samoa went over the line of dates: no 30 December 2011."""
    apia = ZoneInfo("Pacific/Apia")
    assert _place("2011-12-30", "00:00", "12:00", "23:59:59", zone=apia).n_never == 3
    assert _place("2011-12-29", "23:59:59", zone=apia).n_never == 0
    assert _place("2011-12-31", "00:00", zone=apia).n_never == 0


def test_a_zone_that_gave_up_its_summer_time_knows_none() -> None:
    sao_paulo = ZoneInfo("America/Sao_Paulo")
    assert _place("2018-02-17", "23:30", zone=sao_paulo).n_twice == 1
    assert _place("2018-11-04", "00:30", zone=sao_paulo).n_never == 1
    assert _place("2020-02-15", "23:30", zone=sao_paulo).n_twice == 0


def test_no_times_are_no_times() -> None:
    placed = place_local_times(np.zeros(0, dtype=np.int64), BERLIN)
    assert (placed.utc_ns.size, placed.n_twice, placed.n_never) == (0, 0, 0)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "Pacific/Apia", "Africa/Monrovia"])
@pytest.mark.parametrize("local_ns", [-(2**62), -1, 0, 1, 2**62])
def test_the_edges_of_time_have_a_place(zone: str, local_ns: int) -> None:
    placed = place_local_times(np.array([local_ns], dtype=np.int64), ZoneInfo(zone))
    assert placed.utc_ns.dtype == np.int64
    assert abs(int(placed.utc_ns[0]) - local_ns) <= 26 * HOUR_NS


def test_no_time_is_lost_below_the_second() -> None:
    local_ns = np.array([_ns("2024-07-01 12:00") + 123_456_789], dtype=np.int64)
    assert int(place_local_times(local_ns, BERLIN).utc_ns[0]) % 10**9 == 123_456_789


def test_a_year_of_readings_asks_the_zone_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of readings, and of columns that share their time."""
    asked = 0
    honest = local_time._offset_ns

    def counted(zone: ZoneInfo, utc_ns: int) -> int:
        nonlocal asked
        asked += 1
        return honest(zone, utc_ns)

    monkeypatch.setattr(local_time, "_offset_ns", counted)
    local_ns = _ns("2021-01-01") + np.arange(365 * 8_640, dtype=np.int64) * 10**10
    zone = ZoneInfo.no_cache("Europe/Berlin")
    placed = place_local_times(local_ns, zone)
    assert asked < 3_000
    assert (placed.n_twice, placed.n_never) == (360, 360)
    asked = 0
    for _ in range(100):
        place_local_times(local_ns[:10], zone)
    assert asked <= 100


def test_a_log_of_two_lonely_times_asks_no_more_than_its_centuries_have_days(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zone = ZoneInfo.no_cache("Europe/Berlin")
    ends = np.array([-(2**62), 2**62], dtype=np.int64)
    place_local_times(ends, zone)
    monkeypatch.setattr(local_time, "_bisect", None)  # a second column finds all changes known
    assert place_local_times(ends, zone).utc_ns.size == 2
