"""What must hold of every zone: a regular log, shown in its local time, comes back as it was."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from flopwitness.measure.sources.local_time import place_local_times

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SECOND_NS = 10**9
ZONES = st.sampled_from(
    [
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "America/Sao_Paulo",
        "UTC",
        "Africa/Casablanca",
    ]
)
CHANGES_S = st.sampled_from(
    [
        1_729_990_800,  # Berlin, 27 October 2024, back
        1_711_846_800,  # Berlin, 31 March 2024, ahead
        1_730_613_600,  # New York, 3 November 2024, back
        1_712_415_600,  # Lord Howe, 7 April 2024, back by half an hour
        1_518_919_200,  # Sao Paulo, 18 February 2018, back
        1_541_300_400,  # Sao Paulo, 4 November 2018, ahead
        1_710_036_000,  # Casablanca, 10 March 2024, back for Ramadan
        1_713_060_000,  # Casablanca, 14 April 2024, ahead
    ]
)
STARTS_S = st.one_of(
    st.integers(0, 4_000_000_000), st.builds(int.__add__, CHANGES_S, st.integers(-20_000, 10_000))
)


def _local_ns(utc_s: int, zone: ZoneInfo) -> int:
    """What the clock on the wall shows, by the standard library."""
    shown = (EPOCH + dt.timedelta(seconds=utc_s)).astimezone(zone).replace(tzinfo=dt.UTC)
    return (shown - EPOCH) // dt.timedelta(seconds=1) * SECOND_NS


def _offsets_s(local_ns: int, zone: ZoneInfo) -> tuple[int, int]:
    """The offsets of a local time with fold 0 and with fold 1, by the standard library."""
    naive = (EPOCH + dt.timedelta(seconds=local_ns // SECOND_NS)).replace(tzinfo=None)
    first, second = (naive.replace(tzinfo=zone, fold=fold).utcoffset() or dt.timedelta(0) for fold in (0, 1))
    return first // dt.timedelta(seconds=1), second // dt.timedelta(seconds=1)


def _shown(start_s: int, step_s: int, count: int, zone: ZoneInfo) -> NDArray[np.int64]:
    return np.array([_local_ns(start_s + step_s * i, zone) for i in range(count)], dtype=np.int64)


@example("Europe/Berlin", 1_729_985_400, 600, 19)
@example("Australia/Lord_Howe", 1_712_411_000, 60, 120)
@settings(deadline=None)
@given(ZONES, STARTS_S, st.integers(1, 1_700), st.integers(1, 60))
def test_a_regular_log_comes_back_exactly(name: str, start_s: int, step_s: int, count: int) -> None:
    zone = ZoneInfo(name)
    local_ns = _shown(start_s, step_s, count, zone)
    first, second = _offsets_s(int(local_ns[0]), zone)
    assume(first <= second)  # not in an hour that comes twice
    placed = place_local_times(local_ns, zone)
    assert placed.utc_ns.tolist() == [(start_s + step_s * i) * SECOND_NS for i in range(count)]
    assert placed.n_never == 0


@settings(deadline=None)
@given(ZONES, st.lists(STARTS_S, min_size=1, max_size=20))
def test_every_single_time_is_placed_as_the_standard_library_does(name: str, local_s: list[int]) -> None:
    """In any order: with one of the two offsets that it allows, and counted where they differ."""
    zone = ZoneInfo(name)
    local_ns = np.array(local_s, dtype=np.int64) * SECOND_NS
    placed = place_local_times(local_ns, zone)
    offsets = [_offsets_s(int(time), zone) for time in local_ns]
    for time, utc_ns, (first, second) in zip(local_ns.tolist(), placed.utc_ns.tolist(), offsets, strict=True):
        offset_s = (time - utc_ns) // SECOND_NS
        assert offset_s in ((first, second) if first > second else (first,))
    assert placed.n_twice == sum(first > second for first, second in offsets)
    assert placed.n_never == sum(first < second for first, second in offsets)


@settings(deadline=None)
@given(ZONES, STARTS_S, st.integers(1, 4_000), st.integers(2, 40))
def test_a_log_in_order_of_its_labels_stays_in_order(
    name: str, start_s: int, step_s: int, count: int
) -> None:
    """Labels that never step back never come out later than their hour's first pass."""
    zone = ZoneInfo(name)
    local_ns = (start_s + step_s * np.arange(count, dtype=np.int64)) * SECOND_NS
    placed = place_local_times(local_ns, zone)
    firsts = [(int(time) // SECOND_NS - _offsets_s(int(time), zone)[0]) * SECOND_NS for time in local_ns]
    assert placed.utc_ns.tolist() == firsts
