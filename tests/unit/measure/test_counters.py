"""Energy from a counter: known however long a step is, and open where it did not count."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.foundation.verdict import Severity
from flopwitness.measure.counters import (
    assess_counter,
    compare_counter,
    find_counter_events,
    integrate_counter,
)
from flopwitness.measure.energy import Energy, integrate_power
from flopwitness.measure.samples import Channel, RunWindow, Series, Timing

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]


@pytest.fixture
def count(make_series: MakeSeries) -> MakeSeries:
    """How a test makes a counter, read once a second where no times are given."""

    def make(
        value_j: Sequence[float], *, time_s: Sequence[float] | None = None, range_j: float | None = None
    ) -> Series:
        series = make_series(value_j, time_s=time_s, channel=Channel.ENERGY_COUNTER_J)
        return replace(series, counter_range_j=range_j)

    return make


STEADY_J = [1e6 + 300.0 * i for i in range(11)]
FRESH_J = [40 + 300.0 * i for i in range(11)]
RESET_J = [*STEADY_J, *FRESH_J]


def test_the_energy_is_what_was_counted(count: MakeSeries) -> None:
    energy = integrate_counter(count(STEADY_J), limit_w=700.0)
    assert energy.measured_j == energy.shown_j == energy.low_j == energy.high_j == 3_000
    assert energy.gaps == ()
    assert (energy.covered_s, energy.claimed_s, energy.coverage) == (10, 10, 1)
    assert energy.square_w2s == pytest.approx(10 * 300**2)
    assert energy.peak_w == pytest.approx(300)
    assert (energy.n_readings, energy.period_s) == (11, 1)
    flags = (energy.is_slow, energy.is_mixed, energy.is_rounded, energy.is_clock_doubted)
    assert flags == (False, False, False, False)


def test_the_run_cuts_steps_in_proportion(count: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_counter(count([0, 100, 300, 700]), window=make_window(0.5, 2.25))
    assert energy.measured_j == pytest.approx(50 + 200 + 100)
    assert energy.gaps == ()
    assert energy.claimed_s == energy.covered_s == 1.75
    assert energy.square_w2s == pytest.approx(0.5 * 100**2 + 200**2 + 0.25 * 400**2)


def test_a_long_step_is_covered(count: MakeSeries) -> None:
    """The counter went on counting while nobody read it."""
    series = count([*STEADY_J, STEADY_J[-1] + 600_000], time_s=[*range(11), 1_010])
    energy = integrate_counter(series, limit_w=900.0)
    assert energy.measured_j == energy.low_j == energy.high_j == 603_000
    assert energy.coverage == 1
    assert not energy.is_slow


def test_a_long_step_that_the_run_cuts_is_bounded(count: MakeSeries, make_window: MakeWindow) -> None:
    series = count([*STEADY_J, STEADY_J[-1] + 6_000], time_s=[*range(11), 30])
    energy = integrate_counter(series, window=make_window(0, 15), limit_w=500.0)
    (gap,) = energy.gaps
    assert gap.duration_s == 5
    assert (gap.low_j, gap.high_j) == (0, 2_500)  # 15 s at the limit outside could hold all of it
    assert energy.bridged_j == pytest.approx(6_000 * 5 / 20)
    assert (energy.measured_j, energy.bridged_s, energy.covered_s) == (3_000, 5, 10)
    tight = integrate_counter(series, window=make_window(0, 15), limit_w=350.0)
    assert tight.gaps[0].low_j == 6_000 - 15 * 350
    assert tight.gaps[0].high_j == 5 * 350
    open_ended = integrate_counter(series, window=make_window(0, 15))
    assert (open_ended.gaps[0].low_j, open_ended.gaps[0].high_j) == (0, 6_000)


def test_a_floor_bounds_what_is_lost_from_below(count: MakeSeries, make_window: MakeWindow) -> None:
    series = count([*STEADY_J, STEADY_J[-1] + 6_000], time_s=[*range(11), 30])
    energy = integrate_counter(series, window=make_window(0, 15), floor_w=60.0)
    assert energy.gaps[0].low_j == 300


def test_a_reset_leaves_a_floor(count: MakeSeries) -> None:
    energy = integrate_counter(count(RESET_J), limit_w=700.0)
    assert energy.measured_j == 6_000
    (gap,) = energy.gaps
    assert (gap.duration_s, gap.low_j, gap.high_j) == (1, 40, 700)
    assert energy.low_j == 6_040
    assert energy.bridged_j == 300  # as in the steps beside it
    assert energy.coverage == pytest.approx(20 / 21)
    assert integrate_counter(count(RESET_J)).high_j is None
    assert integrate_counter(count(RESET_J), floor_w=60.0).low_j == 6_060


def test_a_reset_is_bridged_with_what_lies_on_either_side(count: MakeSeries) -> None:
    energy = integrate_counter(count([1e6, 1e6 + 300, 40, 140, 240]), limit_w=700.0)
    assert energy.bridged_j == 200
    first = integrate_counter(count([1e6, 40, 140, 240]), limit_w=700.0)
    assert first.bridged_j == 100
    last = integrate_counter(count([1e6, 1e6 + 300, 1e6 + 600, 40]), limit_w=700.0)
    assert last.bridged_j == 300


def test_a_reset_that_shows_more_than_its_neighbours_shows_that(count: MakeSeries) -> None:
    series = count([1e6, 1e6 + 10, 1e6 + 20, 500, 510, 520])
    energy = integrate_counter(series, limit_w=700.0)
    assert energy.bridged_j == 500


def test_a_step_that_may_hide_a_reset_is_shown_as_counted(count: MakeSeries) -> None:
    series = count([i * 50.0 for i in range(10)] + [900.0], time_s=[*range(10), 69])
    energy = integrate_counter(series, limit_w=300.0)
    assert (energy.measured_j, energy.bridged_j) == (450, 450)
    assert (energy.low_j, energy.high_j) == (900, 450 + 60 * 300)
    assert integrate_counter(series).high_j == 900  # without a limit, a rise is taken at its word


def test_a_wrap_is_energy_like_any_other(count: MakeSeries) -> None:
    energy = integrate_counter(count([262_000, 262_100, 56, 156], range_j=262_144.0), limit_w=700.0)
    assert energy.measured_j == 300
    assert energy.gaps == ()


@pytest.mark.parametrize("values_j", [RESET_J, [1e9, 1e9 + 300, 9e8, 9e8 + 300], [5.0, 4.0, 3.0, 2.0, 1.0]])
def test_no_fall_makes_energy_negative_or_huge(count: MakeSeries, values_j: list[float]) -> None:
    energy = integrate_counter(count(values_j), limit_w=700.0)
    assert 0 <= energy.low_j <= energy.shown_j
    assert energy.shown_j <= 700 * len(values_j)


def test_a_stuck_counter_is_a_gap(count: MakeSeries) -> None:
    stuck_j = [1e6 + 300.0 * min(i, 10) for i in range(41)]
    energy = integrate_counter(count(stuck_j), limit_w=700.0)
    assert energy.measured_j == 3_000
    assert (energy.gaps[0].low_j, energy.gaps[0].high_j) == (0, 21_000)
    assert energy.bridged_j == 30 * 300
    assert energy.coverage == 0.25


def test_a_counter_that_never_moved_shows_no_energy(count: MakeSeries) -> None:
    energy = integrate_counter(count([1e6] * 20), limit_w=700.0)
    assert (energy.coverage, energy.shown_j, energy.high_j) == (0, 0, 19 * 700)


def test_edges_that_nobody_read_are_gaps(count: MakeSeries, make_window: MakeWindow) -> None:
    series = count(STEADY_J)
    energy = integrate_counter(series, window=make_window(-5, 20), limit_w=700.0)
    assert [(gap.duration_s, gap.low_j, gap.high_j) for gap in energy.gaps] == [(5, 0, 3_500), (10, 0, 7_000)]
    assert energy.gaps[1].start_utc_ns == int(series.utc_ns[-1])
    assert (energy.claimed_s, energy.measured_j) == (25, 3_000)


def test_a_run_away_from_the_readings_is_one_gap(count: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_counter(count(STEADY_J), window=make_window(60, 70), limit_w=700.0)
    assert (energy.shown_j, energy.coverage, energy.high_j, energy.n_readings) == (0, 0, 7_000, 0)
    assert math.isnan(energy.peak_w)


def test_a_run_without_a_stop_ends_with_the_readings(count: MakeSeries, make_window: MakeWindow) -> None:
    energy = integrate_counter(count(STEADY_J), window=make_window(4, None))
    assert (energy.claimed_s, energy.measured_j) == (6, 1_800)
    assert integrate_counter(count(STEADY_J), window=make_window(40, None)).claimed_s == 0


@pytest.mark.parametrize("values_j", [[], [5.0], [math.nan] * 3])
def test_too_few_readings_show_nothing(
    count: MakeSeries, make_window: MakeWindow, values_j: list[float]
) -> None:
    energy = integrate_counter(count(values_j), limit_w=700.0)
    assert (energy.shown_j, energy.low_j, energy.covered_s, energy.claimed_s) == (0, 0, 0, 0)
    assert energy.gaps == ()
    windowed = integrate_counter(count(values_j), window=make_window(0, 10), limit_w=700.0)
    assert windowed.claimed_s == 10
    assert windowed.high_j == pytest.approx(7_000)


@pytest.mark.parametrize("kind", ["mixed", "stuck clock"])
def test_what_tells_nothing_counts_as_not_measured(count: MakeSeries, kind: str) -> None:
    if kind == "mixed":
        series = count([7e7 + 300 * i if i % 2 else 1e7 + 100 * i for i in range(40)])
    else:
        series = count([100.0 * i for i in range(40)], time_s=[*[0] * 30, *range(10)])
    energy = integrate_counter(series, limit_w=700.0)
    assert energy.is_mixed == (kind == "mixed")
    assert energy.is_clock_doubted == (kind != "mixed")
    assert energy.measured_j == energy.covered_s == 0
    assert energy.claimed_s > 0
    assert energy.high_j == pytest.approx(energy.claimed_s * max(700.0, energy.peak_w))


def test_the_peak_is_no_burst_of_the_counter(count: MakeSeries) -> None:
    values_j = [1e6 + 300.0 * (i // 10) for i in range(100)]
    energy = integrate_counter(count(values_j, time_s=[i / 10 for i in range(100)]), limit_w=700.0)
    assert energy.peak_w == pytest.approx(300)
    assert energy.measured_j == 2_700


@pytest.mark.parametrize("step_s", [0.5, 1.0, 1.5])
def test_the_peak_may_come_late(count: MakeSeries, step_s: float) -> None:
    values_j = np.cumsum([0.0, *[300.0 * step_s] * 20, *[600.0 * step_s] * 5])
    energy = integrate_counter(count((1e6 + values_j).tolist(), time_s=[i * step_s for i in range(26)]))
    assert energy.peak_w == pytest.approx(600)


def _find(count: MakeSeries, values_j: Sequence[float], **settings: float) -> list[tuple[str, Severity]]:
    series = count(values_j, **settings)
    return [(item.code, item.severity) for item in assess_counter(series, find_counter_events(series))]


def test_events_are_told(count: MakeSeries) -> None:
    assert _find(count, STEADY_J) == []
    assert _find(count, RESET_J) == [("counter-reset", Severity.WARNING)]
    assert _find(count, [262_100, 56, 156], range_j=262_144.0) == [("counter-wrapped", Severity.NOTE)]
    assert _find(count, [1e9, 9e8, 9e8 + 300]) == [("counter-implausible", Severity.WARNING)]
    assert _find(count, [1e6, 1e12, 1e12 + 300]) == [("counter-implausible", Severity.WARNING)]
    assert _find(count, [1e6] * 20) == [("counter-stuck", Severity.WARNING)]


def test_a_finding_names_the_time_and_how_often(count: MakeSeries) -> None:
    series = count([*RESET_J, *FRESH_J, *FRESH_J])
    (finding,) = assess_counter(series, find_counter_events(series))
    assert finding.count == 3
    assert finding.where == "gpu_0"
    assert "2023-11-14T22:13:30Z and 2023-11-14T22:13:31Z, and 2 more times" in finding.message
    assert finding.found == "1.003e+06 J, then 40 J"


@pytest.mark.parametrize("utc_ns", [-(2**62), 2**62])
def test_a_time_on_no_calendar_is_told_as_such(count: MakeSeries, utc_ns: int) -> None:
    series = count(RESET_J)
    series = replace(series, utc_ns=series.utc_ns - int(series.utc_ns[0]) + utc_ns)
    (finding,) = assess_counter(series, find_counter_events(series))
    assert finding.code == "counter-reset"


def test_a_recording_without_a_date_tells_seconds(count: MakeSeries) -> None:
    series = count(RESET_J)
    undated = replace(series, utc_ns=np.arange(len(series), dtype=np.int64) * 10**9, timing=Timing.RELATIVE)
    (finding,) = assess_counter(undated, find_counter_events(undated))
    assert "reset between 10 s and 11 s; " in finding.message
    assert finding.count == 1


@pytest.fixture
def compared(count: MakeSeries, make_series: MakeSeries) -> Callable[..., tuple[Energy, Energy]]:
    """How a test makes a counter's energy beside that of power readings."""

    def make(counted_w: float, read_w: float, *, n: int = 101) -> tuple[Energy, Energy]:
        counter = integrate_counter(count([1e6 + counted_w * i for i in range(101)]))
        return counter, integrate_power(make_series([read_w] * n))

    return make


@pytest.mark.parametrize(("counted_w", "read_w"), [(300, 300), (300, 271), (271, 300), (0.1, 0.1)])
def test_what_agrees_is_not_told(
    compared: Callable[..., tuple[Energy, Energy]], counted_w: float, read_w: float
) -> None:
    assert compare_counter(*compared(counted_w, read_w)) is None


@pytest.mark.parametrize(("counted_w", "read_w"), [(300, 269), (269, 300), (187, 327), (300, 0)])
def test_what_differs_is_told(
    compared: Callable[..., tuple[Energy, Energy]], counted_w: float, read_w: float
) -> None:
    finding = compare_counter(*compared(counted_w, read_w))
    assert finding is not None
    assert (finding.code, finding.severity) == ("counter-differs", Severity.WARNING)
    assert finding.where == "gpu_0"


def test_the_time_that_both_cover_is_compared(compared: Callable[..., tuple[Energy, Energy]]) -> None:
    assert compare_counter(*compared(300, 300, n=96)) is None
    finding = compare_counter(*compared(300, 200, n=96))
    assert finding is not None
    assert (finding.expected, finding.found) == ("28.50 kJ", "19.00 kJ")


@pytest.mark.parametrize("n", [0, 1, 50, 200])
def test_unlike_times_are_not_compared(compared: Callable[..., tuple[Energy, Energy]], n: int) -> None:
    assert compare_counter(*compared(300, 100, n=n)) is None


def test_a_power_series_is_no_counter(make_series: MakeSeries) -> None:
    with pytest.raises(ValueError, match="not a counter"):
        integrate_counter(make_series([1, 2, 3]))
    with pytest.raises(ValueError, match="not a counter"):
        find_counter_events(make_series([1, 2, 3]))
