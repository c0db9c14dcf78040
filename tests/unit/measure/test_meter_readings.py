"""The meter against readings that hide time, power or devices: none of it makes a run look smaller."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue
from flopwitness.measure.answer import Measurement
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Trace

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Measure = Callable[..., Measurement]

HOUR_S = 3_600


@pytest.fixture(scope="module")
def h100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find("h100-sxm")
    return chip


@pytest.fixture(scope="module")
def measure(h100: Chip, reference: ReferenceTable) -> Measure:
    """Eight H100 unless another number is stated."""

    def measure_it(*series: Series, count: int = 8, windows: tuple[RunWindow, ...] = ()) -> Measurement:
        question = Question(chips=(h100,), count=count)
        return measure_trace(Trace(series=series, windows=windows), question, table=reference)

    return measure_it


def _time_flop(chip: Chip, *, count: int, time_s: float) -> int:
    return int(count * Fraction(time_s) * Fraction(chip.peak_best[1].value))


def _wave(n: int, mean_w: float, *, phase: float = 0.0) -> list[float]:
    return [mean_w * (1 + 0.05 * math.sin(i / 7 + phase)) for i in range(n)]


def _codes(answer: Measurement) -> set[str]:
    return {finding.code for finding in answer.findings}


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_clock_that_sticks_after_an_hour_bounds_nothing(
    measure: Measure, make_series: MakeSeries, make_window: MakeWindow, *, is_marked: bool
) -> None:
    times = [min(i, HOUR_S) for i in range(0, 12 * HOUR_S, 10)]
    node = make_series([3_000.0] * len(times), time_s=times, device="node_0", scope=Scope.NODE_AC)
    windows = (make_window(0, 600),) if is_marked else ()
    answer = measure(node, windows=windows)
    assert answer.recorded_s is None
    assert answer.upper is None
    assert "clock-stuck" in _codes(answer)
    assert "time-repeated" not in _codes(answer)


def test_six_power_supplies_in_one_log_bound_by_time_alone(
    measure: Measure, make_series: MakeSeries, h100: Chip
) -> None:
    times = [moment for moment in range(HOUR_S) for _ in range(6)]
    supplies = make_series(_wave(len(times), 1_200), time_s=times, device="node_0", scope=Scope.NODE_AC)
    answer = measure(supplies)
    assert answer.upper is not None
    assert answer.upper.energy_flop is None
    assert answer.upper.flop >= _time_flop(h100, count=8, time_s=HOUR_S - 1)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
    assert answer.energy is None  # not known, and not 0 J
    assert {"sensors-mixed", "coverage-low"} <= _codes(answer)
    assert "device-outside-run" not in _codes(answer)


def test_one_mixed_log_among_eight_takes_the_energy_bound_away(
    measure: Measure, make_series: MakeSeries
) -> None:
    plain = [make_series(_wave(601, 100, phase=n), device=f"gpu_{n}") for n in range(8)]
    twice = [moment for moment in range(601) for _ in range(2)]
    mixed = make_series(_wave(1_202, 100), time_s=twice, device="gpu_7")
    assert (sound := measure(*plain).upper) is not None
    assert sound.energy_flop is not None
    assert (upper := measure(*plain[:7], mixed).upper) is not None
    assert upper.energy_flop is None
    assert upper.flop >= sound.flop


@pytest.mark.parametrize("dummy_w", [20.0, 900.0])
def test_logs_of_other_things_do_not_dilute_a_node(
    measure: Measure, make_series: MakeSeries, make_window: MakeWindow, h100: Chip, dummy_w: float
) -> None:
    """An hour of idle readings of a ten-hour run, and seven whole logs of a storage rack."""
    window = make_window(0, 10 * HOUR_S)
    node = make_series(
        _wave(361, 2_059), time_s=range(0, HOUR_S + 1, 10), device="node_0", scope=Scope.NODE_AC
    )
    others = [
        make_series(
            _wave(HOUR_S + 1, dummy_w, phase=n),
            time_s=range(0, 10 * HOUR_S + 1, 10),
            device=f"rack_{n}",
            scope=Scope.NODE_AC,
        )
        for n in range(7)
    ]
    alone, diluted = measure(node, windows=(window,)), measure(node, *others, windows=(window,))
    for answer in (alone, diluted):
        assert answer.energy is not None
        assert answer.energy.coverage == pytest.approx(0.1, abs=0.001)
        assert answer.energy.filled == answer.energy.coverage
        assert answer.estimate is not None
        assert answer.estimate.method == "prior-time"
    assert h100.reference_node is not None
    assert diluted.energy is not None
    assert diluted.energy.recorded_high_j is not None
    assert diluted.energy.recorded_high_j >= 9 * HOUR_S * h100.reference_node.power_limit_w.value
    assert diluted.upper is not None
    assert alone.upper is not None
    assert diluted.upper.flop >= alone.upper.flop
    assert not _codes(diluted) & {"power-over-limit", "hardware-contradicted"}


def test_surplus_nodes_do_not_make_a_busy_node_impossible(measure: Measure, make_series: MakeSeries) -> None:
    busy = make_series(_wave(601, 7_000), device="node_0", scope=Scope.NODE_AC)
    others = [
        make_series(_wave(601, 20, phase=n), device=f"rack_{n}", scope=Scope.NODE_AC) for n in range(1, 8)
    ]
    answer = measure(busy, *others)
    assert not _codes(answer) & {"power-over-limit", "hardware-contradicted"}
    assert answer.energy is not None
    assert answer.energy.working_w == pytest.approx(7_000 + 7 * 20, rel=0.01)


def test_far_more_busy_nodes_than_stated_chips_can_be_are_still_a_contradiction(
    measure: Measure, make_series: MakeSeries
) -> None:
    nodes = [
        make_series(_wave(61, 7_378, phase=n), device=f"node_{n}", scope=Scope.NODE_AC) for n in range(64)
    ]
    assert "hardware-contradicted" in _codes(measure(*nodes, count=8))
    assert "hardware-contradicted" not in _codes(measure(*nodes, count=512))


@pytest.mark.parametrize(("step_s", "bounds_little"), [(1, True), (10, True), (30, False), (149, False)])
def test_readings_at_the_dips_do_not_bound_the_peaks(
    measure: Measure, make_series: MakeSeries, step_s: int, *, bounds_little: bool
) -> None:
    times = range(0, 200 * step_s, step_s)
    dips = [make_series(_wave(200, 100, phase=n), time_s=times, device=f"gpu_{n}") for n in range(8)]
    answer = measure(*dips)
    assert answer.upper is not None
    assert answer.upper.energy_flop is not None
    assert answer.upper.time_flop is not None
    assert (answer.upper.energy_flop < answer.upper.time_flop) is bounds_little
    assert ("cadence-slow" in _codes(answer)) is not bounds_little
    assert answer.energy is not None
    assert answer.energy.coverage == 1
    assert answer.energy.high_j == answer.energy.shown_j
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-energy"


def test_averages_bound_what_lies_between_them(measure: Measure, make_series: MakeSeries) -> None:
    averages = [
        make_series(
            _wave(200, 100, phase=n),
            time_s=range(0, 12_000, 60),
            device=f"gpu_{n}",
            channel=Channel.POWER_AVERAGE_W,
        )
        for n in range(8)
    ]
    assert "cadence-slow" in _codes(measure(*averages))  # averages over nobody knows how long
    answer = measure(*(replace(item, averaged_s=60.0) for item in averages))
    assert answer.upper is not None
    assert answer.upper.energy_flop == answer.upper.flop
    assert "cadence-slow" not in _codes(answer)


def test_the_energy_lies_between_its_ends_where_readings_start_late(
    measure: Measure, make_series: MakeSeries, make_window: MakeWindow
) -> None:
    series = [make_series(_wave(1_801, 460, phase=n), device=f"gpu_{n}") for n in range(8)]
    energy = measure(*series, windows=(make_window(-5, 1_805),)).energy
    assert energy is not None
    assert energy.high_j is not None
    assert energy.low_j == energy.shown_j < energy.high_j


def test_a_counter_that_stands_still_shows_no_energy(
    measure: Measure, make_series: MakeSeries, h100: Chip
) -> None:
    """What it counted is not known: neither 0 J nor little."""
    stuck = make_series([5e6] * 601, channel=Channel.ENERGY_COUNTER_J, device="gpu_0")
    answer = measure(stuck, count=1)
    assert answer.energy is None
    assert "counter-stuck" in _codes(answer)
    assert answer.upper is not None
    assert answer.upper.flop == _time_flop(h100, count=1, time_s=600)
