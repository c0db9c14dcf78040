"""What must hold of every integral: cutting a run changes nothing, and blindness never lowers the top."""

import math
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flopwitness.measure import reading_blocks
from flopwitness.measure.energy import (
    Energy,
    doubt_clock,
    integrate_for_bound,
    integrate_power,
    recorded_stretch,
)
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series

START_NS = 1_700_000_000 * 10**9
LIMIT_W = 1_050.0

POWERS_W = st.floats(0, 1_000, allow_nan=False, width=32)
STEPS_MS = st.lists(st.integers(1, 5_000), min_size=1, max_size=30)


def _series(power_w: list[float], time_ms: list[int]) -> Series:
    return Series(
        device="gpu_0",
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        utc_ns=START_NS + np.array(time_ms, dtype=np.int64) * 1_000_000,
        value=np.array(power_w, dtype=np.float64),
    )


@st.composite
def recordings(draw: st.DrawFn) -> Series:
    """Readings in order, now and then far apart."""
    steps_ms = draw(STEPS_MS)
    power_w = draw(st.lists(POWERS_W, min_size=len(steps_ms) + 1, max_size=len(steps_ms) + 1))
    return _series(power_w, [0, *np.cumsum(steps_ms).tolist()])


def _window(start_ms: int, stop_ms: int) -> RunWindow:
    return RunWindow(start_utc_ns=START_NS + start_ms * 1_000_000, stop_utc_ns=START_NS + stop_ms * 1_000_000)


def _high_j(energy: Energy) -> float:
    assert energy.high_j is not None
    return energy.high_j


def _is_close(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-6)


CUTS_MS = st.lists(st.integers(-5_000, 160_000), min_size=3, max_size=6, unique=True).map(sorted)


@given(recordings(), CUTS_MS)
def test_pieces_of_a_run_sum_to_the_whole(series: Series, cuts_ms: list[int]) -> None:
    whole = integrate_power(series, window=_window(cuts_ms[0], cuts_ms[-1]), limit_w=LIMIT_W)
    pieces = [
        integrate_power(series, window=_window(start, stop), limit_w=LIMIT_W)
        for start, stop in pairwise(cuts_ms)
    ]
    for name in ("measured_j", "bridged_j", "shown_j", "low_j", "covered_s", "bridged_s", "claimed_s"):
        assert _is_close(sum(getattr(piece, name) for piece in pieces), getattr(whole, name)), name
    assert _is_close(sum(map(_high_j, pieces)), _high_j(whole))


@given(recordings(), st.integers(0, 29), st.floats(0.01, 0.99))
def test_a_reading_on_the_straight_line_changes_nothing(series: Series, place: int, share: float) -> None:
    place %= len(series) - 1
    left_ns, right_ns = int(series.utc_ns[place]), int(series.utc_ns[place + 1])
    middle_ns = left_ns + round((right_ns - left_ns) * share)
    assume(left_ns < middle_ns < right_ns)
    slope = (series.value[place + 1] - series.value[place]) / (right_ns - left_ns)
    middle_w = series.value[place] + slope * (middle_ns - left_ns)
    refined = replace(
        series,
        utc_ns=np.insert(series.utc_ns, place + 1, middle_ns),
        value=np.insert(series.value, place + 1, middle_w),
    )
    coarse, fine = (integrate_power(item, longest_step_s=1e9) for item in (series, refined))
    assert _is_close(coarse.measured_j, fine.measured_j)
    assert coarse.gaps == fine.gaps == ()
    assert _is_close(coarse.covered_s, fine.covered_s)


@given(recordings(), CUTS_MS)
def test_the_figures_are_ordered(series: Series, cuts_ms: list[int]) -> None:
    energy = integrate_power(series, window=_window(cuts_ms[0], cuts_ms[-1]), limit_w=LIMIT_W)
    assert 0 <= energy.measured_j <= energy.low_j + 1e-9
    assert energy.low_j <= energy.shown_j <= _high_j(energy)
    assert energy.bridged_j <= sum(gap.high_j or 0.0 for gap in energy.gaps) + 1e-6
    assert 0 <= energy.coverage <= 1
    assert _is_close(energy.covered_s + sum(gap.duration_s for gap in energy.gaps), energy.claimed_s)


@given(recordings(), st.sets(st.integers(1, 29)))
def test_dropped_readings_never_lower_the_top(series: Series, dropped: set[int]) -> None:
    """Whoever deletes readings gets the limit for the time, as long as the usual period is known."""
    inner = [i for i in range(len(series)) if i not in dropped or i in (0, len(series) - 1)]
    kept = replace(series, utc_ns=series.utc_ns[inner], value=series.value[inner])
    assert len(kept) >= 2
    full = integrate_power(series, limit_w=LIMIT_W, longest_step_s=0.0)
    holed = integrate_power(kept, limit_w=LIMIT_W, longest_step_s=0.0)
    assert _high_j(holed) >= _high_j(full) - 1e-6
    plain = integrate_power(series, limit_w=LIMIT_W, longest_step_s=1e9)
    assert _high_j(full) >= _high_j(plain) - 1e-6


@given(recordings(), st.sets(st.integers(0, 30), min_size=1), st.sampled_from([math.nan, math.inf, -1.0]))
def test_blanked_readings_never_lower_the_top(series: Series, blanked: set[int], value: float) -> None:
    values = series.value.copy()
    values[[i for i in blanked if i < len(series)]] = value
    span = recorded_stretch(series)
    plain = integrate_power(series, window=span, limit_w=LIMIT_W, longest_step_s=1e9)
    blank = integrate_power(replace(series, value=values), window=span, limit_w=LIMIT_W, longest_step_s=1e9)
    assert _high_j(blank) >= _high_j(plain) - 1e-6
    assert blank.n_readings + blank.n_missing == len(series)


@given(recordings(), CUTS_MS, st.floats(0.0, 100.0))
def test_a_wider_run_never_has_less(series: Series, cuts_ms: list[int], limit_w: float) -> None:
    inner, outer = _window(cuts_ms[1], cuts_ms[1] + 10), _window(cuts_ms[0], cuts_ms[-1] + 10)
    small, large = (integrate_power(series, window=window, limit_w=limit_w) for window in (inner, outer))
    for name in ("measured_j", "shown_j", "low_j", "covered_s", "claimed_s", "n_readings"):
        assert getattr(large, name) >= getattr(small, name) - 1e-6
    assert _high_j(large) >= _high_j(small) - 1e-6


@given(recordings(), CUTS_MS)
def test_the_bound_never_trusts_readings_more_than_the_estimate(series: Series, cuts_ms: list[int]) -> None:
    window = _window(cuts_ms[0], cuts_ms[-1])
    shown = integrate_power(series, window=window, limit_w=LIMIT_W)
    bound = integrate_for_bound(series, window=window, limit_w=LIMIT_W)
    assert _high_j(bound) >= _high_j(shown) - 1e-6
    assert bound.covered_s <= shown.covered_s


@given(series=recordings(), first=st.integers(0, 30), n_stuck=st.integers(1, 30), recovers=st.booleans())
def test_a_clock_that_stands_still_lowers_no_top(
    series: Series, first: int, n_stuck: int, *, recovers: bool
) -> None:
    """Readings once a second; the clock stops at one of them, for some or for good."""
    honest = replace(series, utc_ns=START_NS + np.arange(len(series)) * 10**9)
    first = min(first, len(series) - 1)
    stuck_ns = honest.utc_ns.copy()
    stop = first + n_stuck if recovers else len(series)
    stuck_ns[first:stop] = stuck_ns[first]
    stuck = replace(honest, utc_ns=stuck_ns)
    assert bool(doubt_clock(stuck)) is (stop - first > 20 and len(series) - first > 20)
    window = recorded_stretch(honest)
    truth = integrate_power(honest, limit_w=LIMIT_W)
    bound = integrate_for_bound(stuck, window=window, limit_w=LIMIT_W)
    if bound.is_clock_doubted or not recovers:
        assert _high_j(bound) >= _high_j(truth) - 1_000  # W for the one second in which the clock stopped


ODD_STEPS_MS = st.lists(st.sampled_from([1_000, 1_000, 1_000, 2_000, 0, -1_500, 60_000]), max_size=60)
ODD_POWERS_W = st.sampled_from([0.0, 90.0, 400.0, 700.0, math.nan, math.inf, -1.0, 1e13])


@given(
    steps_ms=ODD_STEPS_MS,
    powers_w=st.lists(ODD_POWERS_W, min_size=61, max_size=61),
    cuts_ms=CUTS_MS,
    size=st.integers(1, 9),
    averaged_s=st.sampled_from([0.0, 1.0, 25.0]),
)
def test_it_does_not_matter_where_one_block_ends(
    steps_ms: list[int], powers_w: list[float], cuts_ms: list[int], size: int, averaged_s: float
) -> None:
    series = _series(powers_w[: len(steps_ms) + 1], [0, *np.cumsum(steps_ms, dtype=np.int64).tolist()])
    series = replace(series, averaged_s=averaged_s)
    whole = _all_figures(series, _window(cuts_ms[0], cuts_ms[-1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading_blocks, "BLOCK", size)
        patch.setattr(reading_blocks, "_MOST_EDGES", size % 4)
        pieces = _all_figures(series, _window(cuts_ms[0], cuts_ms[-1]))
    assert pieces == pytest.approx(whole, rel=1e-9, abs=1e-6, nan_ok=True)


def _all_figures(series: Series, window: RunWindow) -> list[float]:
    """Every figure of every integral, and what the clock tells."""
    stretch = recorded_stretch(series)
    assert stretch.stop_utc_ns is not None
    figures: list[float] = [("", "clock-stuck", "clock-backwards").index(doubt_clock(series))]
    figures += [(stretch.stop_utc_ns - stretch.start_utc_ns) / 1e9]
    for integrate in (integrate_power, integrate_for_bound):
        for run in (None, window):
            energy = integrate(series, window=run, limit_w=LIMIT_W)
            numbers = asdict(energy)
            del numbers["device"], numbers["gaps"]
            figures += [*numbers.values(), energy.low_j, _high_j(energy)]
            figures += [sum(gap.duration_s for gap in energy.gaps)]
    return figures


ANY_NS = st.integers(0, 9_223_372_036 * 10**9 - 1)
ANY_W = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(ANY_NS, ANY_W), max_size=12),
    ANY_NS,
    st.none() | ANY_NS,
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
def test_nothing_that_a_log_can_hold_gives_nonsense(
    readings: list[tuple[int, float]], start_ns: int, stop_ns: int | None, conversion: float
) -> None:
    series = Series(
        device="gpu_0",
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        utc_ns=np.array([time_ns for time_ns, _ in readings], dtype=np.int64),
        value=np.array([power_w for _, power_w in readings], dtype=np.float64),
        conversion=conversion,
    )
    for window in (None, RunWindow(start_utc_ns=start_ns, stop_utc_ns=stop_ns)):
        energy = integrate_power(series, window=window, limit_w=LIMIT_W)
        for name in ("measured_j", "bridged_j", "low_j", "covered_s", "bridged_s", "claimed_s"):
            assert math.isfinite(getattr(energy, name))
            assert getattr(energy, name) >= 0
        assert math.isfinite(_high_j(energy))
        assert energy.low_j <= energy.shown_j <= _high_j(energy)
        bound = integrate_for_bound(series, window=window, limit_w=LIMIT_W)
        assert _high_j(energy) * (1 - 1e-9) <= _high_j(bound) < math.inf
        assert all(gap.start_utc_ns >= 0 and gap.duration_s > 0 for gap in energy.gaps)
    if readings:
        stretch = recorded_stretch(series)
        assert stretch.stop_utc_ns is not None
        assert stretch.start_utc_ns == min(time_ns for time_ns, _ in readings)
        assert stretch.stop_utc_ns >= max(time_ns for time_ns, _ in readings)
