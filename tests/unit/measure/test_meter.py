"""The meter as a whole, and a prover who writes whatever makes a run look small."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision
from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.bounds import BoundBy
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable, Workload
from flopwitness.measure.samples import (
    Channel,
    Declaration,
    Mark,
    Provenance,
    RunWindow,
    Scope,
    Series,
    Skipped,
    Trace,
)

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Measure = Callable[..., Measurement]

N_CHIPS = 8
LENGTH_S = 1_800


@pytest.fixture(scope="module")
def h100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find("h100-sxm")
    return chip


@pytest.fixture(scope="module")
def measure(chips: ChipCatalogue, reference: ReferenceTable) -> Measure:
    def measure_it(
        trace: Trace, *, name: str = "h100-sxm", count: int = N_CHIPS, **stated: object
    ) -> Measurement:
        question = Question(chips=chips.find(name), count=count, **stated)  # type: ignore[arg-type]
        return measure_trace(trace, question, table=reference)

    return measure_it


def _wave(n: int, mean_w: float, *, phase: float = 0.0) -> list[float]:
    return [mean_w * (1 + 0.05 * math.sin(i / 7 + phase)) for i in range(n)]


@pytest.fixture(scope="module")
def busy(make_series: MakeSeries) -> tuple[Series, ...]:
    """Eight accelerators at two thirds of their limit for half an hour, once a second."""
    return tuple(
        make_series(_wave(LENGTH_S + 1, 460, phase=number), device=f"gpu_{number}")
        for number in range(N_CHIPS)
    )


@pytest.fixture(scope="module")
def resting(make_series: MakeSeries) -> tuple[Series, ...]:
    """Eight accelerators at a sixth of their limit: energy bounds them."""
    return tuple(
        make_series(_wave(LENGTH_S + 1, 120, phase=number), device=f"gpu_{number}")
        for number in range(N_CHIPS)
    )


def _time_bound(chip: Chip, *, count: int = N_CHIPS, time_s: float = LENGTH_S) -> int:
    return int(count * Fraction(time_s) * Fraction(chip.peak_best[1].value))


def _upper(measurement: Measurement) -> int:
    assert measurement.upper is not None
    return measurement.upper.flop


def _codes(measurement: Measurement) -> set[str]:
    return {finding.code for finding in measurement.findings}


def _check_order(measurement: Measurement) -> None:
    """What must hold of every answer."""
    if measurement.estimate is not None:
        estimate = measurement.estimate
        assert 0 <= estimate.low_flop <= estimate.flop <= estimate.high_flop
        if measurement.upper is not None:
            assert estimate.high_flop <= measurement.upper.flop
    severities = [list(Severity).index(finding.severity) for finding in measurement.findings]
    assert severities == sorted(severities)


def test_a_plain_recording_gives_the_whole_answer(
    measure: Measure, busy: tuple[Series, ...], h100: Chip, reference: ReferenceTable
) -> None:
    answer = measure(Trace(series=busy))
    assert answer.duration_s == answer.recorded_s == LENGTH_S
    assert answer.window is None
    assert answer.energy is not None
    assert answer.energy.scope is Scope.GPU
    assert answer.energy.shown_j == pytest.approx(N_CHIPS * LENGTH_S * 460, rel=0.01)
    assert answer.energy.low_j == answer.energy.high_j == answer.energy.shown_j
    assert answer.energy.coverage == answer.energy.filled == 1
    assert _upper(answer) == _time_bound(h100)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-energy"
    assert answer.estimate.calibration == str(reference.digest)
    assert answer.estimate.level == 0.9
    assert answer.estimate.ratio > 1
    assert _codes(answer) == {"scope", "precision-assumed"}
    _check_order(answer)


def test_little_energy_binds(measure: Measure, resting: tuple[Series, ...], h100: Chip) -> None:
    answer = measure(Trace(series=resting))
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.ENERGY
    assert h100.power_limit_w is not None
    assert answer.energy is not None
    expected = answer.energy.shown_j * h100.peak_best[1].value / (0.5 * h100.power_limit_w.value)
    assert _upper(answer) == pytest.approx(expected, rel=1e-9)
    _check_order(answer)


def test_time_alone_gives_an_estimate(measure: Measure, make_window: MakeWindow, h100: Chip) -> None:
    answer = measure(Trace(windows=(make_window(0, LENGTH_S, "success"),)))
    assert answer.energy is None
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
    assert _upper(answer) == _time_bound(h100)
    _check_order(answer)


@pytest.mark.parametrize("n_readings", [0, 1])
def test_without_time_nothing_is_said(measure: Measure, make_series: MakeSeries, n_readings: int) -> None:
    for trace in (Trace(), Trace(series=(make_series([400] * n_readings),))):
        answer = measure(trace)
        assert answer.duration_s is None
        assert answer.estimate is None
        assert answer.upper is None


def test_a_recording_of_no_length_says_nothing(measure: Measure, make_series: MakeSeries) -> None:
    answer = measure(Trace(series=(make_series([400, 400, 400], time_s=[3, 3, 3]),)))
    assert answer.upper is None
    assert answer.estimate is None


def test_one_reading_inside_a_marked_run_leaves_the_time_bound(
    measure: Measure, make_series: MakeSeries, make_window: MakeWindow, h100: Chip
) -> None:
    trace = Trace(series=(make_series([1], time_s=[5]),), windows=(make_window(0, LENGTH_S),))
    answer = measure(trace)
    assert _upper(answer) == _time_bound(h100)
    assert "clocks-apart" in _codes(answer)
    _check_order(answer)


def test_shorter_marks_estimate_less_and_bound_the_same(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow
) -> None:
    whole = measure(Trace(series=resting))
    short = measure(Trace(series=resting, windows=(make_window(600, 660, "success"),)))
    assert short.duration_s == 60
    assert short.recorded_s == LENGTH_S
    assert _upper(short) == _upper(whole)
    assert short.estimate is not None
    assert whole.estimate is not None
    assert short.estimate.flop < whole.estimate.flop
    _check_order(short)


def test_sixteen_chips_behind_one_meter_are_no_contradiction(
    measure: Measure, make_series: MakeSeries
) -> None:
    series = make_series(_wave(1_001, 9_700), device="node_1", scope=Scope.NODE_AC)
    answer = measure(Trace(series=(series,)), name="a100-sxm-40gb", count=16)
    assert "hardware-contradicted" not in _codes(answer)
    assert "power-over-limit" not in _codes(answer)
    assert answer.upper is not None
    said = Declaration(nodes=1, chips=16)
    declared = measure(Trace(series=(series,), declaration=said), name="a100-sxm-40gb", count=16)
    assert "nodes-differ" not in _codes(declared)
    assert declared.energy is not None
    assert declared.energy.coverage == 1.0


def test_a_copy_with_a_few_changed_readings_is_a_copy(measure: Measure, resting: tuple[Series, ...]) -> None:
    touched = resting[0].value.copy()
    touched[:: len(touched) // 20] += 1.0
    twin = replace(resting[0], device="gpu_1", value=touched)
    answer = measure(Trace(series=(resting[0], twin, *resting[2:])))
    assert "recording-copied" in _codes(answer)
    assert "recording-copied" not in _codes(measure(Trace(series=resting)))


def test_marks_outside_the_readings_lengthen_the_bound(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow
) -> None:
    wide = measure(Trace(series=resting, windows=(make_window(-300, LENGTH_S + 300),)))
    assert wide.recorded_s == LENGTH_S + 600
    assert _upper(wide) > _upper(measure(Trace(series=resting)))
    assert "run-uncovered-edge" in _codes(wide)


def test_a_stop_before_the_start_is_a_contradiction_that_changes_nothing(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow
) -> None:
    plain, reversed_run = (
        measure(Trace(series=resting)),
        measure(Trace(series=resting, windows=(make_window(900, 10),))),
    )
    assert _upper(reversed_run) == _upper(plain)
    assert reversed_run.findings[0].code == "run-reversed"
    alone = measure(Trace(windows=(make_window(900, 10),)))
    assert alone.upper is None


def test_a_run_at_another_time_takes_the_energy_bound_away(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow, h100: Chip
) -> None:
    answer = measure(Trace(series=resting, windows=(make_window(50_000, 50_100),)))
    assert "clocks-apart" in _codes(answer)
    assert answer.upper is not None
    assert answer.upper.energy_flop is None
    assert _upper(answer) == _time_bound(h100, time_s=50_100)
    later = measure(Trace(series=resting, windows=(make_window(200_000, 200_100),)))
    assert _upper(later) == _time_bound(h100, time_s=LENGTH_S + 100)


@pytest.mark.parametrize("shift_s", [-200_000, -3_600, 600, 3_600, 100_000, 5e9])
def test_one_shifted_clock_never_lowers_the_bound(
    measure: Measure, resting: tuple[Series, ...], shift_s: float
) -> None:
    late = replace(resting[3], utc_ns=resting[3].utc_ns + int(shift_s * 1e9))
    answer = measure(Trace(series=(*resting[:3], late, *resting[4:])))
    assert _upper(answer) >= _upper(measure(Trace(series=resting)))
    _check_order(answer)


def test_seven_of_eight_clocks_a_day_off_do_not_hide_their_time(
    measure: Measure, busy: tuple[Series, ...], make_series: MakeSeries, make_window: MakeWindow, h100: Chip
) -> None:
    decoy = make_series([90, 91, 92, 93], device="gpu_0")
    shifted = tuple(replace(item, utc_ns=item.utc_ns + 3 * 86_400 * 10**9) for item in busy[1:])
    answer = measure(Trace(series=(decoy, *shifted), windows=(make_window(0, 3),)))
    assert _upper(answer) >= _time_bound(h100)


def test_a_clock_set_back_does_not_hide_the_first_half(
    measure: Measure, make_series: MakeSeries, h100: Chip
) -> None:
    """Summer time ends inside the recording: two hours pass while the wall clock shows one."""
    ticks = [*range(0, 3_600, 2), *range(0, 3_600, 2)]
    series = tuple(
        make_series(_wave(3_600, 80, phase=number), time_s=ticks, device=f"gpu_{number}")
        for number in range(N_CHIPS)
    )
    answer = measure(Trace(series=series))
    assert answer.recorded_s == pytest.approx(7_198)
    assert answer.energy is not None
    assert answer.energy.recorded_high_j == pytest.approx(N_CHIPS * 7_198 * 80, rel=0.01)
    assert answer.upper is not None
    assert answer.upper.time_flop is not None
    assert answer.upper.time_flop >= _time_bound(h100, time_s=7_198)
    assert "clock-backwards" in _codes(answer)


def test_stamps_that_jump_over_the_calendar_raise_nothing(measure: Measure, make_series: MakeSeries) -> None:
    far_s = 7_400_000_000
    times = [0, 1, far_s, 0, 1, far_s, 0, 1, far_s]
    answer = measure(Trace(series=tuple(make_series(_wave(9, 400), time_s=times, device=d) for d in "ab")))
    assert answer.recorded_s is not None
    assert answer.recorded_s > far_s
    assert "gap" in _codes(answer)
    _check_order(answer)


def test_a_run_that_says_it_started_in_1970_raises_nothing(measure: Measure, make_series: MakeSeries) -> None:
    for late_us in range(0, 2_000, 37):
        series = make_series([400, 410, 420], time_s=[i + late_us / 1e6 for i in range(3)])
        window = RunWindow(start_utc_ns=0, stop_utc_ns=int(series.utc_ns[-1]))
        answer = measure(Trace(series=(series,), windows=(window,)), count=1)
        assert "gap" in _codes(answer)


@pytest.mark.parametrize("factor", [0.01, 1e-9, 1e-300, 5e-324])
def test_a_conversion_factor_never_lowers_the_bound(
    measure: Measure, resting: tuple[Series, ...], factor: float
) -> None:
    with_gap = [_without(item, 300, 400) for item in resting]
    honest = measure(Trace(series=tuple(with_gap)))
    answer = measure(Trace(series=tuple(replace(item, conversion=factor) for item in with_gap)))
    assert _upper(answer) == _upper(honest)
    assert answer.energy is not None
    assert honest.energy is not None
    assert answer.energy.recorded_high_j == honest.energy.recorded_high_j
    assert answer.energy.shown_j == honest.energy.shown_j
    assert "conversion-odd" in _codes(answer)
    assert "conversion" not in _codes(answer)
    _check_order(answer)


@pytest.mark.parametrize("factor", [0.5, 0.97, 1.1])
def test_a_conversion_factor_of_a_power_supply_is_used(
    measure: Measure, resting: tuple[Series, ...], factor: float
) -> None:
    honest = measure(Trace(series=resting))
    answer = measure(Trace(series=tuple(replace(item, conversion=factor) for item in resting)))
    assert answer.energy is not None
    assert honest.energy is not None
    assert answer.energy.shown_j == pytest.approx(factor * honest.energy.shown_j)
    assert "conversion" in _codes(answer)
    assert "conversion-odd" not in _codes(answer)


def _without(series: Series, start: int, stop: int) -> Series:
    keep = np.r_[0:start, stop : len(series)]
    return replace(series, utc_ns=series.utc_ns[keep], value=series.value[keep])


@pytest.mark.parametrize("factor", [1.05, 1e9, 1e300])
def test_a_factor_above_one_raises_the_bound_or_leaves_time(
    measure: Measure, resting: tuple[Series, ...], factor: float
) -> None:
    answer = measure(Trace(series=tuple(replace(item, conversion=factor) for item in resting)))
    assert _upper(answer) > _upper(measure(Trace(series=resting)))
    _check_order(answer)


def test_a_device_kept_back_counts_at_its_limit(measure: Measure, resting: tuple[Series, ...]) -> None:
    whole, part = measure(Trace(series=resting)), measure(Trace(series=resting[:7]))
    assert whole.energy is not None
    assert part.energy is not None
    assert whole.energy.recorded_high_j is not None
    assert part.energy.recorded_high_j is not None
    assert part.energy.recorded_high_j > whole.energy.recorded_high_j
    assert _upper(part) > _upper(whole)
    assert part.energy.coverage == pytest.approx(7 / 8)


@pytest.mark.parametrize("declared", [None, 1, 4, 60])
def test_sixty_of_sixty_four_nodes_bound_no_less_than_all(
    measure: Measure, make_series: MakeSeries, declared: int | None
) -> None:
    nodes = tuple(
        make_series(_wave(301, 2_000, phase=n), device=f"node_{n}", scope=Scope.NODE_AC) for n in range(64)
    )
    whole = measure(Trace(series=nodes, declaration=Declaration(nodes=64)), count=512)
    declaration = None if declared is None else Declaration(nodes=declared)
    part = measure(Trace(series=nodes[:60], declaration=declaration), count=512)
    one = measure(Trace(series=nodes[:1], declaration=declaration), count=512)
    assert _upper(whole) < _upper(part) < _upper(one)
    assert "nodes-differ" in _codes(part)
    assert one.estimate is not None
    assert one.estimate.method == "prior-time"
    assert {"nodes-differ", "coverage-low"} <= _codes(one)


def test_more_devices_than_stated_chips_count_as_chips(
    measure: Measure, busy: tuple[Series, ...], h100: Chip
) -> None:
    answer = measure(Trace(series=busy), count=1)
    assert _upper(answer) == _time_bound(h100, count=N_CHIPS)
    assert "count-differs" in _codes(answer)


def test_copied_recordings_bound_nothing(measure: Measure, resting: tuple[Series, ...], h100: Chip) -> None:
    copies = tuple(replace(resting[0], device=item.device) for item in resting)
    answer = measure(Trace(series=copies))
    assert _upper(answer) == _time_bound(h100)
    assert answer.upper is not None
    assert answer.upper.energy_flop is None
    assert "recording-copied" in _codes(answer)


def test_a_copy_under_another_file_digest_is_still_a_copy(
    measure: Measure, resting: tuple[Series, ...], h100: Chip
) -> None:
    """A space at the end of a line gives a copied log bytes of its own."""
    parts = tuple(
        Provenance(path=name, format="mlperf-power", digest=digest_bytes(name.encode()), size_bytes=1)
        for name in "ab"
    )
    twin = replace(resting[0], device="gpu_1")
    answer = measure(Trace(series=(resting[0], twin, *resting[2:]), provenance=parts))
    assert _upper(answer) == _time_bound(h100)


@pytest.mark.parametrize("shift_s", [1, 7_200])
def test_a_copy_with_shifted_times_is_still_a_copy(
    measure: Measure, resting: tuple[Series, ...], shift_s: int
) -> None:
    twin = replace(resting[0], device="gpu_1", utc_ns=resting[0].utc_ns + shift_s * 10**9)
    answer = measure(Trace(series=(resting[0], twin, *resting[2:])))
    assert "recording-copied" in _codes(answer)


@pytest.mark.parametrize(
    ("name", "scope"), [("jetson-agx-orin-64gb", Scope.RAIL), ("jetson-agx-orin-64gb", Scope.GPU)]
)
def test_a_part_of_a_modules_power_bounds_nothing(
    measure: Measure, make_series: MakeSeries, chips: ChipCatalogue, name: str, scope: Scope
) -> None:
    series = make_series(_wave(1_001, 9), scope=scope)
    part = measure(Trace(series=(series,)), name=name, count=1)
    assert _upper(part) == _time_bound(chips.find(name)[0], count=1, time_s=1_000)
    assert part.upper is not None
    assert part.upper.energy_flop is None
    module = measure(Trace(series=(replace(series, scope=Scope.MODULE),)), name=name, count=1)
    assert module.upper is not None
    assert module.upper.by is BoundBy.ENERGY


def test_an_unrecorded_scope_bounds_and_estimates_nothing(
    measure: Measure, resting: tuple[Series, ...], h100: Chip
) -> None:
    answer = measure(Trace(series=tuple(replace(item, scope=Scope.UNKNOWN) for item in resting)))
    assert _upper(answer) == _time_bound(h100)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"


@pytest.mark.parametrize("value", [0.0, -300.0, math.nan, math.inf, -math.inf, 1.7e308])
def test_blank_sensors_leave_the_time_bound(
    measure: Measure, resting: tuple[Series, ...], h100: Chip, value: float
) -> None:
    blank = tuple(replace(item, value=np.full(len(item), value)) for item in resting)
    answer = measure(Trace(series=blank))
    assert _upper(answer) == _time_bound(h100)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
    assert answer.estimate.low_flop > 0
    assert _codes(answer) & {"reading-missing", "power-over-limit", "gap"}
    _check_order(answer)


@pytest.mark.parametrize("value", [math.nan, math.inf, -500.0])
def test_blanked_readings_never_lower_the_bound(
    measure: Measure, make_series: MakeSeries, value: float
) -> None:
    """The prover blanks the readings of the busy half, one in two so that no stretch is long."""
    power_w = [80.0 if i % 2 else 600.0 for i in range(1_001)]
    series = [make_series(_bump(power_w, n), device=f"gpu_{n}") for n in range(N_CHIPS)]
    blanked = [replace(item, value=np.where(item.value > 500, value, item.value)) for item in series]
    honest, hidden = measure(Trace(series=tuple(series))), measure(Trace(series=tuple(blanked)))
    assert honest.upper is not None
    assert hidden.upper is not None
    assert honest.upper.energy_flop is not None
    assert hidden.upper.energy_flop is not None
    assert hidden.upper.energy_flop >= honest.upper.energy_flop
    assert "reading-missing" in _codes(hidden)


def _bump(power_w: list[float], number: int) -> list[float]:
    return [value + number / 10 for value in power_w]


def test_a_gigawatt_glitch_is_told_and_bounds_by_time(
    measure: Measure, resting: tuple[Series, ...], h100: Chip
) -> None:
    glitch = resting[0].value.copy()
    glitch[3] = 1e9
    answer = measure(Trace(series=(replace(resting[0], value=glitch), *resting[1:])))
    assert _upper(answer) == _time_bound(h100)
    assert "power-over-limit" in _codes(answer)
    _check_order(answer)


def test_chips_that_cannot_draw_what_was_read_are_contradicted(
    measure: Measure, resting: tuple[Series, ...]
) -> None:
    answer = measure(Trace(series=tuple(replace(item, value=item.value + 1e9) for item in resting)))
    assert answer.upper is None
    assert answer.estimate is None
    assert "hardware-contradicted" in _codes(answer)
    assert answer.findings[0].severity is Severity.CONTRADICTION


@pytest.mark.parametrize("factor", [1e-3, 0.02])
def test_less_than_idle_power_bounds_nothing_by_energy(
    measure: Measure, busy: tuple[Series, ...], h100: Chip, factor: float
) -> None:
    answer = measure(Trace(series=tuple(replace(item, value=item.value * factor) for item in busy)))
    assert _upper(answer) == _time_bound(h100)
    assert "power-under-idle" in _codes(answer)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"


def test_hourly_readings_bound_no_energy_between_them(
    measure: Measure, make_series: MakeSeries, h100: Chip
) -> None:
    times = range(0, 86_401, 3_600)
    series = tuple(
        make_series(_wave(25, 70, phase=n), time_s=times, device=f"gpu_{n}") for n in range(N_CHIPS)
    )
    assert _upper(measure(Trace(series=series))) == _time_bound(h100, time_s=86_400)


def test_gaps_widen_the_interval(measure: Measure, busy: tuple[Series, ...]) -> None:
    whole = measure(Trace(series=busy))
    holed = measure(Trace(series=tuple(_without(item, 500, 700) for item in busy)))
    assert whole.estimate is not None
    assert holed.estimate is not None
    assert holed.estimate.ratio > whole.estimate.ratio
    assert holed.estimate.method == "prior-energy"
    assert "gap" in _codes(holed)
    assert _upper(holed) >= _upper(whole)


def test_too_few_readings_leave_the_estimate_to_time(
    measure: Measure, busy: tuple[Series, ...], make_window: MakeWindow
) -> None:
    trace = Trace(series=busy, windows=(make_window(0, 4 * LENGTH_S),))
    answer = measure(trace)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
    (finding,) = [finding for finding in answer.findings if finding.code == "coverage-low"]
    assert finding.found == "25 %"


def test_a_device_with_no_reading_inside_the_run_is_told(
    measure: Measure, busy: tuple[Series, ...], make_window: MakeWindow
) -> None:
    late = replace(busy[0], utc_ns=busy[0].utc_ns + 40_000 * 10**9)
    answer = measure(Trace(series=(late, *busy[1:]), windows=(make_window(0, LENGTH_S),)))
    (finding,) = [finding for finding in answer.findings if finding.code == "device-outside-run"]
    assert finding.where == "gpu_0"
    assert finding.count == 1


def test_a_name_left_open_bounds_by_the_fastest(
    measure: Measure, busy: tuple[Series, ...], chips: ChipCatalogue
) -> None:
    together = measure(Trace(series=busy), name="H100")
    for chip in chips.find("H100"):
        assert _upper(measure(Trace(series=busy), name=chip.id)) <= _upper(together)


def test_an_unknown_power_limit_leaves_time(measure: Measure, busy: tuple[Series, ...]) -> None:
    answer = measure(Trace(series=tuple(_without(item, 5, 50) for item in busy)), name="trainium1")
    assert answer.upper is not None
    assert answer.upper.by is BoundBy.TIME
    assert answer.energy is not None
    assert answer.energy.high_j is None
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"
    absent = measure(Trace(series=busy[:2]), name="trainium1")
    assert absent.energy is not None
    assert absent.energy.high_j is None


def test_a_stated_precision_narrows_the_interval_and_never_the_bound(
    measure: Measure, busy: tuple[Series, ...]
) -> None:
    plain = measure(Trace(series=busy))
    stated = measure(Trace(series=busy), precisions=(Precision.BF16,))
    assert plain.estimate is not None
    assert stated.estimate is not None
    assert stated.estimate.ratio < plain.estimate.ratio
    assert _upper(stated) == _upper(plain)
    assert "precision-assumed" not in _codes(stated)


def test_a_higher_level_is_wider(measure: Measure, busy: tuple[Series, ...]) -> None:
    narrow, wide = measure(Trace(series=busy), level=0.5), measure(Trace(series=busy), level=0.99)
    assert narrow.estimate is not None
    assert wide.estimate is not None
    assert wide.estimate.ratio > narrow.estimate.ratio
    assert _upper(wide) == _upper(narrow)


def test_the_interval_is_cut_at_the_bound(measure: Measure, resting: tuple[Series, ...]) -> None:
    answer = measure(Trace(series=resting), level=0.999, workload=Workload.TRANSFORMER, safety=Fraction(1))
    assert answer.estimate is not None
    assert answer.estimate.high_flop == _upper(answer)
    _check_order(answer)


def test_what_a_log_declares_never_reaches_the_estimate_and_only_raises_the_bound(
    measure: Measure, busy: tuple[Series, ...], make_window: MakeWindow
) -> None:
    window = make_window(0, LENGTH_S, "success")
    plain = measure(Trace(series=busy, windows=(window,)))
    said = Declaration(benchmark="gpt3", platform="512xH200", nodes=64, chips=512, chip_name="H200")
    declared = measure(Trace(series=busy, windows=(window,), declaration=said))
    assert declared.estimate == plain.estimate
    assert _upper(declared) > _upper(plain)
    assert _codes(declared) - _codes(plain) == {"count-differs"}


def test_everything_odd_about_a_log_is_told(
    measure: Measure, busy: tuple[Series, ...], make_series: MakeSeries, make_window: MakeWindow
) -> None:
    switch = make_series([500], device="sw_1", scope=Scope.SWITCH, is_estimate=True)
    start = Mark(name="power_measurement_start", utc_ns=5, where="node_1.txt:1")
    trace = Trace(
        series=(*busy, switch),
        windows=(make_window(0, None, "aborted"),),
        marks=(start, replace(start, name="power_measurement_stop", where="node_1.txt:9")),
        skipped=(Skipped(where="node_1.txt:4", expected="JSON", found="x"),),
        n_skipped=3,
    )
    told = {"lines-skipped", "switch-power", "mark-time", "run-unfinished", "run-status", "scope"}
    assert told <= _codes(measure(trace))


def test_an_early_stop_does_not_lower_the_bound(
    measure: Measure, make_window: MakeWindow, h100: Chip
) -> None:
    """A result log of half an hour, its stop set to one minute after the start: nothing else touched."""
    extent = make_window(-80, LENGTH_S)
    answer = measure(Trace(windows=(make_window(0, 60, "success"),), extent=extent))
    assert _upper(answer) == _time_bound(h100, time_s=LENGTH_S + 80)
    assert (answer.duration_s, answer.recorded_s) == (60, LENGTH_S + 80)
    assert "events-after-stop" in _codes(answer)
    _check_order(answer)


def test_the_logs_extent_is_no_part_of_the_estimate(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow
) -> None:
    """Events before the run lengthen what energy and time bound, and leave the run as it is."""
    window = make_window(0, LENGTH_S, "success")
    plain = measure(Trace(series=resting, windows=(window,)))
    longer = Trace(series=resting, windows=(window,), extent=make_window(-400, LENGTH_S))
    answer = measure(longer)
    bare = measure(replace(longer, windows=()))
    for one in (answer, bare):
        assert one.estimate is not None
        assert plain.estimate is not None
        assert one.estimate.flop == plain.estimate.flop
        assert one.energy is not None
        assert plain.energy is not None
        assert one.energy.shown_j == pytest.approx(plain.energy.shown_j)
        assert one.duration_s == LENGTH_S
        assert one.recorded_s == LENGTH_S + 400
        assert one.upper is not None
        assert one.upper.by is BoundBy.ENERGY
        assert _upper(one) > _upper(plain)


def test_a_run_without_a_stop_and_without_power_takes_its_log_s_time(
    measure: Measure, make_window: MakeWindow, h100: Chip
) -> None:
    trace = Trace(windows=(make_window(0, None, "aborted"),), extent=make_window(-80, LENGTH_S))
    answer = measure(trace)
    assert {"run-unfinished", "run-status"} <= _codes(answer)
    assert answer.recorded_s == answer.duration_s == LENGTH_S + 80
    assert _upper(answer) == _time_bound(h100, time_s=LENGTH_S + 80)
    nothing = measure(replace(trace, extent=None))
    assert "run-unfinished" in _codes(nothing)
    assert nothing.upper is None


@pytest.mark.parametrize("with_marks", [True, False])
def test_seconds_in_place_of_milliseconds_bound_nothing(
    measure: Measure, resting: tuple[Series, ...], make_window: MakeWindow, *, with_marks: bool
) -> None:
    """The recording is a thousand times too short, and by its energy as well as by its time too small."""
    early = tuple(replace(item, utc_ns=item.utc_ns // 1_000) for item in resting)
    window = make_window(0, LENGTH_S)
    windows = (
        (
            RunWindow(
                start_utc_ns=window.start_utc_ns // 1_000, stop_utc_ns=(window.stop_utc_ns or 0) // 1_000
            ),
        )
        if with_marks
        else ()
    )
    for series in (early, (*resting[1:], early[0]), ()):
        if series or windows:
            answer = measure(Trace(series=series, windows=windows))
            assert "clock-implausible" in _codes(answer)
            assert answer.upper is None
            assert answer.recorded_s is None
            _check_order(answer)


def test_a_switch_of_another_time_takes_no_bound_away(
    measure: Measure, busy: tuple[Series, ...], make_series: MakeSeries
) -> None:
    switch = make_series([500], device="sw_1", scope=Scope.SWITCH, is_estimate=True)
    old = replace(switch, utc_ns=switch.utc_ns // 1_000)
    answer = measure(Trace(series=(*busy, old)))
    assert "clock-implausible" not in _codes(answer)
    assert _upper(answer) == _upper(measure(Trace(series=busy)))


def test_other_channels_are_no_power(measure: Measure, busy: tuple[Series, ...]) -> None:
    busy_pct = replace(busy[0], channel=Channel.UTILISATION_PCT)
    answer = measure(Trace(series=(busy_pct,)))
    assert answer.energy is None
    assert answer.duration_s == LENGTH_S


def test_an_energy_that_nobody_measured_estimates_nothing(measure: Measure, make_series: MakeSeries) -> None:
    """Every other reading is missing and one is zero: all of the energy is bridged, none was measured."""
    power_w = [math.nan if i % 2 else 400.0 + i for i in range(201)]
    power_w[100] = 0.0
    whole = measure(Trace(series=(make_series([400.0 + i for i in range(201)]),)), count=1)
    bridged = measure(Trace(series=(make_series(power_w),)), count=1)
    assert bridged.energy is not None
    assert bridged.energy.low_j == 0
    assert bridged.estimate is not None
    assert whole.estimate is not None
    assert (whole.estimate.method, bridged.estimate.method) == ("prior-energy", "prior-time")
    assert "coverage-low" in _codes(bridged)
    _check_order(bridged)


@pytest.mark.parametrize("level", [0.9, 0.999])
def test_a_vanishing_reading_beside_a_gap_raises_nothing(
    measure: Measure, make_series: MakeSeries, level: float
) -> None:
    times = [*range(100), *range(110, 200)]
    answer = measure(
        Trace(series=(make_series([1e-300] * 190, time_s=times),)), count=1, level=level, safety=Fraction(1)
    )
    assert answer.estimate is not None
    _check_order(answer)
