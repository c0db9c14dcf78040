"""How good each reading is, before anything is estimated from it."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.energy import integrate_power
from flopwitness.measure.inventory import Grade, Group, Reading, group_readings, list_readings
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace

MakeSeries = Callable[..., Series]


def _read(series: Series) -> Reading:
    (reading,) = list_readings(Trace(series=(series,)))
    return reading


def test_a_sound_recording_is_good(make_series: MakeSeries) -> None:
    series = make_series([400.0 + i % 7 for i in range(101)], device="gpu0")
    reading = _read(series)
    assert reading == Reading(
        device="gpu0",
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        part="",
        n_readings=101,
        n_missing=0,
        start_utc_ns=int(series.utc_ns[0]),
        duration_s=100.0,
        period_s=1.0,
        coverage=1.0,
        low=400.0,
        high=406.0,
        grade=Grade.GOOD,
        doubts=(),
    )


@pytest.mark.parametrize(
    ("values", "doubt"),
    [([], "no reading"), ([5.0], "a single reading"), ([math.nan] * 5, "no reading has a value")],
)
def test_what_has_no_length_or_no_value_is_poor(
    make_series: MakeSeries, values: list[float], doubt: str
) -> None:
    reading = _read(make_series(values))
    assert (reading.grade, reading.doubts[0]) == (Grade.POOR, doubt)
    assert reading.n_readings == len(values)


def test_no_reading_has_no_numbers(make_series: MakeSeries) -> None:
    reading = _read(make_series([]))
    assert (reading.start_utc_ns, reading.duration_s, reading.coverage) == (None, 0.0, 0.0)
    assert all(map(math.isnan, (reading.period_s, reading.low, reading.high)))


def test_missing_values_are_counted_and_have_no_extremes(make_series: MakeSeries) -> None:
    reading = _read(make_series([400.0, math.nan, 300.0, math.inf, *[350.0] * 996]))
    assert (reading.n_missing, reading.low, reading.high) == (2, 300.0, 400.0)
    assert (reading.grade, reading.doubts) == (Grade.FAIR, ("2 without a value",))


@pytest.mark.parametrize(
    ("n_lost", "grade", "doubts"),
    [
        (0, Grade.GOOD, ()),
        (5, Grade.GOOD, ()),
        (100, Grade.FAIR, ("89.9 % of the time covered",)),
        (198, Grade.FAIR, ("80.1 % of the time covered",)),
        (500, Grade.POOR, ("50 % of the time covered",)),
    ],
)
def test_gaps_lower_the_grade(
    make_series: MakeSeries, n_lost: int, grade: Grade, doubts: tuple[str, ...]
) -> None:
    time_s = [*range(500 - n_lost // 2), *range(500 + n_lost - n_lost // 2, 1_001)]
    reading = _read(make_series([400.0] * len(time_s), time_s=time_s))
    assert (reading.grade, reading.doubts) == (grade, doubts)
    assert reading.duration_s == 1_000


@pytest.mark.parametrize(
    "time_s",
    [
        range(100),
        [*range(50), *range(80, 130)],
        range(0, 6_000, 60),
        range(0, 20_000, 200),
        [*range(0, 1_000, 10), *range(1_000, 11_000, 100)],
    ],
)
@pytest.mark.parametrize("n_missing", [0, 1, 50])
def test_power_is_covered_where_its_energy_is(
    make_series: MakeSeries, time_s: list[float], n_missing: int
) -> None:
    """`doctor` must not call good what `estimate` takes as not measured."""
    power_w = [400.0] * len(time_s)
    power_w[1 : 2 * n_missing : 2] = [math.nan] * n_missing
    series = make_series(power_w, time_s=time_s)
    reading, energy = _read(series), integrate_power(series)
    assert reading.coverage * reading.duration_s == pytest.approx(energy.covered_s)


def test_another_channel_may_be_read_as_rarely_as_it_likes(make_series: MakeSeries) -> None:
    rare = make_series([40.0] * 50, time_s=range(0, 30_000, 600), channel=Channel.TEMPERATURE_C)
    assert (_read(rare).coverage, _read(rare).grade) == (1.0, Grade.GOOD)
    power = _read(replace(rare, channel=Channel.POWER_W))
    assert (power.coverage, power.grade) == (0.0, Grade.POOR)


@pytest.mark.parametrize(
    ("step_s", "averaged_s", "grade", "doubts"),
    [
        (10, 0.0, Grade.GOOD, ()),
        (11, 0.0, Grade.FAIR, ("too rare to bound what lies between",)),
        (11, 1.0, Grade.FAIR, ("may be a mean over 1 s",)),
        (1, 0.025, Grade.FAIR, ("may be a mean over 0.025 s",)),
    ],
)
def test_power_that_is_rare_or_averaged_is_fair(
    make_series: MakeSeries, step_s: int, averaged_s: float, grade: Grade, doubts: tuple[str, ...]
) -> None:
    series = make_series([400.0] * 20, time_s=range(0, 20 * step_s, step_s))
    reading = _read(replace(series, averaged_s=averaged_s))
    assert (reading.grade, reading.doubts) == (grade, doubts)


@pytest.mark.parametrize(
    ("scope", "doubt"),
    [
        (Scope.UNKNOWN, "what it covers is not recorded"),
        (Scope.RAIL, "one rail, not the whole device"),
    ],
)
def test_power_of_who_knows_what_is_fair(make_series: MakeSeries, scope: Scope, doubt: str) -> None:
    assert _read(make_series([5.0] * 20, scope=scope)).doubts == (doubt,)
    use = make_series([5.0] * 20, scope=scope, channel=Channel.UTILISATION_PCT)
    assert _read(use).grade is Grade.GOOD


def test_times_without_a_date_or_without_any_are_doubted(make_series: MakeSeries) -> None:
    series = make_series([400.0] * 20)
    relative = _read(replace(series, timing=Timing.RELATIVE))
    assert (relative.grade, relative.doubts, relative.start_utc_ns) == (Grade.FAIR, ("no dates",), None)
    counted = _read(replace(series, timing=Timing.COUNTED))
    assert (counted.grade, counted.start_utc_ns) == (Grade.POOR, None)
    assert counted.doubts == ("no times: lengths are assumed",)


@pytest.mark.parametrize("time_s", [[0.0] * 30, [*range(10)] * 5])
def test_a_clock_that_tells_no_length_is_poor(make_series: MakeSeries, time_s: list[float]) -> None:
    reading = _read(make_series([400.0] * len(time_s), time_s=time_s))
    assert reading.grade is Grade.POOR
    assert "a clock that stands still or steps back" in reading.doubts


def test_a_steady_clock_counts_before_the_calendars(make_series: MakeSeries) -> None:
    series = make_series([400.0] * 100, time_s=[0.0] * 100, monotonic_s=range(100))
    reading = _read(series)
    assert (reading.duration_s, reading.period_s, reading.grade) == (99.0, 1.0, Grade.GOOD)
    assert reading.start_utc_ns == int(series.utc_ns[0])


def test_the_start_is_the_earliest_time(make_series: MakeSeries) -> None:
    series = make_series([1.0, 2.0, 3.0], time_s=[10, 5, 6])
    assert _read(series).start_utc_ns == int(series.utc_ns[1])


def test_times_at_the_edges_do_not_wrap() -> None:
    edges = np.array([-(2**62) + 1, 2**62 - 1], dtype=np.int64)
    series = Series(
        device="x", channel=Channel.POWER_W, scope=Scope.GPU, utc_ns=edges, value=np.array([1.0, 2.0])
    )
    assert _read(series).duration_s == pytest.approx(2**63 / 1e9)


def test_readings_are_grouped_by_channel_scope_and_part(make_series: MakeSeries) -> None:
    series = [
        make_series([400.0] * 20, device="gpu0"),
        make_series([90.0] * 20, device="gpu0", channel=Channel.UTILISATION_PCT),
        make_series([math.nan] * 20, device="gpu1"),
        make_series([4_000.0] * 20, device="node", scope=Scope.NODE),
        replace(make_series([5.0] * 20, device="gpu0"), part="rail"),
        make_series([400.0, math.nan] * 10, device="gpu2"),
    ]
    groups = group_readings(list_readings(Trace(series=tuple(series))))
    assert [[reading.device for reading in group.readings] for group in groups] == [
        ["gpu0", "gpu1", "gpu2"],
        ["gpu0"],
        ["node"],
        ["gpu0"],
    ]
    assert groups[0].worst.device == "gpu1"
    assert group_readings([]) == ()


def test_the_worst_of_equals_is_the_first(make_series: MakeSeries) -> None:
    readings = list_readings(Trace(series=tuple(make_series([400.0] * 9, device=name) for name in "ab")))
    assert Group(readings=readings).worst.device == "a"
