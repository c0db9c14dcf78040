"""A run's logs as an estimator sees them: what was put in comes out, however the run is cut."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.made_runs import IDLE_W, calibrate_cells, catalogue, make_cells

from flopwitness.catalogue.chips import Precision
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.framing import Frame, frame_run
from flopwitness.measure.observed import Feature, ObservedRuns
from flopwitness.measure.observed_trace import fingerprint_trace, observe_frame
from flopwitness.measure.question import Question
from flopwitness.measure.run_energy import measure_energy
from flopwitness.measure.samples import Channel, Device, RunWindow, Scope, Series, Trace

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Observe = Callable[..., ObservedRuns]

LENGTH_S = 100
ONE_IDLE_W = IDLE_W / 2
GPUS = ("gpu_0", "gpu_1")
MEMORY = Channel.MEMORY_TRAFFIC_BYTE_PER_S
LINK = Channel.LINK_TRAFFIC_BYTE_PER_S
HOST = Channel.HOST_TRAFFIC_BYTE_PER_S
RATES = pytest.mark.parametrize(
    ("channel", "name"), [(MEMORY, "memory_tb"), (LINK, "link_tb"), (HOST, "host_tb")]
)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(make_cells(24)).calibration


def frame_of(trace: Trace, *, count: int = 2, chip: str = "v100-sxm2-16gb", **stated: object) -> Frame:
    question = Question(chips=catalogue().find_all(chip), count=count, **stated)  # type: ignore[arg-type]
    return frame_run(trace, question, [])


@pytest.fixture(scope="module")
def observe(calibration: Calibration) -> Observe:
    def observe_it(*series: Series, count: int = 2, windows: Sequence[RunWindow] = ()) -> ObservedRuns:
        frame = frame_of(Trace(series=series, windows=tuple(windows)), count=count)
        return observe_frame(frame, measure_energy(frame, []), calibration)

    return observe_it


@pytest.fixture(scope="module")
def power(make_series: MakeSeries) -> tuple[Series, ...]:
    """Two devices at 150 W and 130 W for 100 s."""
    return tuple(
        make_series([watts] * (LENGTH_S + 1), device=gpu) for gpu, watts in zip(GPUS, (150, 130), strict=True)
    )


@pytest.fixture(scope="module")
def both(make_series: MakeSeries) -> Callable[..., tuple[Series, ...]]:
    """The same readings of both devices."""

    def make(value: Sequence[float], **options: object) -> tuple[Series, ...]:
        return tuple(make_series(value, device=gpu, **options) for gpu in GPUS)

    return make


Both = Callable[..., tuple[Series, ...]]


def test_what_was_put_in_comes_out(
    observe: Observe, power: tuple[Series, ...], both: Both, make_series: MakeSeries
) -> None:
    n = LENGTH_S + 1
    traffic = [
        make_series([2e11] * n, device="gpu_0", channel=MEMORY),
        make_series([3e11] * n, device="gpu_1", channel=MEMORY),
        *both([1e9] * n, channel=HOST),
    ]
    seen = observe(*power, *traffic)
    assert len(seen) == 1
    assert seen.duration_s.tolist() == seen.busy_s.tolist() == [LENGTH_S]
    assert seen.energy_j.tolist() == [pytest.approx(28_000)]
    assert seen.memory_tb.tolist() == [pytest.approx(50)]
    assert seen.host_tb.tolist() == [pytest.approx(0.2)]
    assert np.isnan([seen.link_tb, seen.net_energy_j, seen.idle_w]).all()


def test_both_directions_of_a_link_are_counted(
    observe: Observe, power: tuple[Series, ...], make_series: MakeSeries
) -> None:
    n = LENGTH_S + 1
    link = [
        replace(make_series([rate] * n, device=gpu, channel=LINK), part=part)
        for gpu in GPUS
        for part, rate in (("tx", 1e9), ("rx", 4e9))
    ]
    assert observe(*power, *link).link_tb[0] == pytest.approx(2 * (1e9 + 4e9) * LENGTH_S / 1e12)


@RATES
def test_each_traffic_goes_to_its_own_field(
    observe: Observe, power: tuple[Series, ...], both: Both, channel: Channel, name: str
) -> None:
    seen = observe(*power, *both([5e9] * (LENGTH_S + 1), channel=channel))
    known = {field for field in ("memory_tb", "link_tb", "host_tb") if np.isfinite(getattr(seen, field)[0])}
    assert known == {name}
    assert getattr(seen, name)[0] == pytest.approx(1.0)


def test_a_changing_rate_is_integrated_over_uneven_steps(
    observe: Observe, power: tuple[Series, ...], both: Both
) -> None:
    time_s = [*range(0, 50, 2), *range(50, LENGTH_S + 1)]
    ramp = [1e10 * moment for moment in time_s]
    expected = 2 * 1e10 * LENGTH_S**2 / 2 / 1e12
    assert observe(*power, *both(ramp, time_s=time_s, channel=MEMORY)).memory_tb[0] == pytest.approx(expected)


@RATES
@pytest.mark.parametrize(
    ("begin_s", "end_s", "is_known"), [(0, 79, False), (0, 81, True), (21, 100, False), (19, 100, True)]
)
def test_traffic_over_less_than_four_fifths_of_the_run_is_not_known(
    observe: Observe,
    power: tuple[Series, ...],
    both: Both,
    channel: Channel,
    name: str,
    begin_s: int,
    end_s: int,
    is_known: bool,
) -> None:
    time_s = range(begin_s, end_s + 1)
    moved_tb = getattr(observe(*power, *both([5e9] * len(time_s), time_s=time_s, channel=channel)), name)[0]
    if is_known:
        assert moved_tb == pytest.approx(1.0)  # brought up to the whole run
    else:
        assert np.isnan(moved_tb)


@pytest.mark.parametrize(("n_missing", "is_known"), [(10, True), (30, False)])
@pytest.mark.parametrize("missing", [float("nan"), -1.0, float("inf")])
def test_readings_without_a_value_are_a_gap_and_never_zero(
    observe: Observe, power: tuple[Series, ...], both: Both, n_missing: int, is_known: bool, missing: float
) -> None:
    rate = [5e9] * 40 + [missing] * n_missing + [5e9] * (LENGTH_S - 39 - n_missing)
    moved_tb = observe(*power, *both(rate, channel=MEMORY)).memory_tb[0]
    assert np.isfinite(moved_tb) == is_known
    assert not is_known or moved_tb == pytest.approx(1.0)


@pytest.mark.parametrize("value", [[], [5e9], [float("nan")] * 101])
def test_traffic_without_readings_is_not_known(
    observe: Observe, power: tuple[Series, ...], both: Both, value: list[float]
) -> None:
    assert np.isnan(observe(*power, *both(value, channel=MEMORY)).memory_tb[0])


def test_traffic_in_two_recordings_that_follow_each_other_is_one(
    observe: Observe, power: tuple[Series, ...], both: Both
) -> None:
    first = both([5e9] * 51, channel=MEMORY)
    second = both([5e9] * 50, time_s=range(51, 101), channel=MEMORY)
    assert observe(*power, *first, *second).memory_tb[0] == pytest.approx(1.0)


def test_one_device_whose_traffic_is_not_known_leaves_the_whole_unknown(
    observe: Observe, power: tuple[Series, ...], make_series: MakeSeries
) -> None:
    known = make_series([5e9] * 101, device="gpu_0", channel=MEMORY)
    for value in ([float("nan")] * 101, [5e9] * 70):
        other = make_series(value, device="gpu_1", channel=MEMORY)
        assert np.isnan(observe(*power, known, other).memory_tb[0])


@pytest.mark.parametrize("other", [None, [], [5e9] * 31])
def test_traffic_of_one_device_of_two_is_not_that_of_both(
    observe: Observe,
    power: tuple[Series, ...],
    make_series: MakeSeries,
    make_window: MakeWindow,
    other: list[float] | None,
) -> None:
    known = make_series([5e9] * 101, device="gpu_0", channel=MEMORY)
    rest = [] if other is None else [make_series(other, device="gpu_1", channel=MEMORY)]
    seen = observe(*power, known, *rest, windows=[make_window(40, 100)])
    assert np.isnan(seen.memory_tb[0])


def test_traffic_that_is_zero_is_zero(observe: Observe, power: tuple[Series, ...], both: Both) -> None:
    assert observe(*power, *both([0.0] * 101, channel=LINK)).link_tb.tolist() == [0.0]


def test_steps_back_in_time_count_once(
    observe: Observe, power: tuple[Series, ...], both: Both, make_window: MakeWindow
) -> None:
    time_s = [*range(61), *range(40, 61), *range(61, 101)]
    rate = [5e9] * 61 + [9e12] * 21 + [5e9] * 40
    seen = observe(*power, *both(rate, time_s=time_s, channel=MEMORY), windows=[make_window(0, LENGTH_S)])
    assert seen.memory_tb[0] == pytest.approx(1.0)


def test_only_the_marked_run_counts(observe: Observe, both: Both, make_window: MakeWindow) -> None:
    before, inside, after = 40, 60, 30
    watts = [60.0] * before + [150.0] * (inside + 1) + [ONE_IDLE_W] * after
    rate = [1e12] * before + [5e9] * (inside + 1) + [7e12] * after
    window = make_window(before, before + inside)
    seen = observe(*both(watts), *both(rate, channel=MEMORY), windows=[window])
    assert seen.duration_s.tolist() == seen.busy_s.tolist() == [inside]
    assert seen.energy_j[0] == pytest.approx(2 * 150 * inside)
    assert seen.memory_tb[0] == pytest.approx(2 * 5e9 * inside / 1e12)


def test_a_run_without_a_stop_ends_with_the_readings(
    observe: Observe, both: Both, make_window: MakeWindow
) -> None:
    readings = (*both([ONE_IDLE_W] * 40 + [150.0] * 61), *both([0.0] * 40 + [5e9] * 61, channel=MEMORY))
    ended = observe(*readings, windows=[make_window(40, 100)])
    open_end = observe(*readings, windows=[make_window(40, None)])
    for name in ("duration_s", "busy_s", "energy_j", "memory_tb"):
        assert getattr(open_end, name).tolist() == pytest.approx(getattr(ended, name).tolist())


def test_marks_beyond_the_readings_bring_everything_up_to_the_run(
    observe: Observe, both: Both, make_window: MakeWindow
) -> None:
    readings = (*both([150.0] * 101), *both([5e9] * 101, channel=MEMORY))
    wide = observe(*readings, windows=[make_window(-10, 110)])
    assert wide.duration_s.tolist() == [120]
    assert wide.energy_j[0] == pytest.approx(2 * 150 * 120)
    assert wide.busy_s[0] == pytest.approx(120)
    assert wide.memory_tb[0] == pytest.approx(2 * 5e9 * 120 / 1e12)
    wider = observe(*readings, windows=[make_window(-100, 110)])
    assert np.isnan([wider.energy_j, wider.memory_tb]).all()


def test_a_gap_is_brought_up_like_everything_else(observe: Observe, both: Both) -> None:
    time_s = [moment for moment in range(101) if not 50 <= moment < 60]
    seen = observe(*both([150.0] * 91, time_s=time_s), *both([5e9] * 91, time_s=time_s, channel=MEMORY))
    assert seen.energy_j[0] == pytest.approx(2 * 150 * LENGTH_S)
    assert seen.busy_s[0] == pytest.approx(LENGTH_S)
    assert seen.memory_tb[0] == pytest.approx(1.0)


def test_energy_of_half_the_devices_is_not_brought_up(
    observe: Observe, power: tuple[Series, ...], make_series: MakeSeries
) -> None:
    assert np.isnan(observe(*power, count=4).energy_j[0])
    assert np.isnan(observe(power[0]).energy_j[0])


def test_busy_time_is_the_devices_mean(observe: Observe, make_series: MakeSeries) -> None:
    half = make_series([ONE_IDLE_W] * 50 + [150.0] * 51, device="gpu_1")
    seen = observe(make_series([150.0] * 101, device="gpu_0"), half)
    assert seen.busy_s[0] == pytest.approx((100 + 50.5) / 2)
    assert seen.duration_s.tolist() == [LENGTH_S]


@pytest.mark.parametrize(("net_w", "busy_s"), [(4.0, 50.5), (6.0, LENGTH_S)])
def test_a_device_is_busy_above_a_twentieth_of_what_work_draws(
    observe: Observe, both: Both, calibration: Calibration, net_w: float, busy_s: float
) -> None:
    domain = calibration.fitted.domain
    usual_w = float(np.exp((domain.log_low[0] + domain.log_high[0]) / 2)) / 2
    assert 4.0 < 0.05 * usual_w < 6.0
    seen = observe(*both([ONE_IDLE_W + net_w] * 50 + [150.0] * 51))
    assert seen.busy_s[0] == pytest.approx(busy_s)


def test_the_order_of_a_calibrations_features_changes_no_busy_time(
    power: tuple[Series, ...], calibration: Calibration
) -> None:
    known = calibration.fitted.domain
    turned = replace(
        known, features=known.features[::-1], log_low=known.log_low[::-1], log_high=known.log_high[::-1]
    )
    other = replace(calibration, fitted=replace(calibration.fitted, domain=turned))
    assert known.features[0] is Feature.POWER is not turned.features[0]
    half = replace(power[0], value=np.where(np.arange(LENGTH_S + 1) < 50, ONE_IDLE_W + 2, 150.0))
    frame = frame_of(Trace(series=(half, power[1])))
    seen, again = (observe_frame(frame, measure_energy(frame, []), item) for item in (calibration, other))
    assert again.busy_s.tolist() == seen.busy_s.tolist()
    assert 0 < seen.busy_s[0] < LENGTH_S


def test_a_run_at_rest_is_busy_for_no_time(observe: Observe, both: Both) -> None:
    assert observe(*both([ONE_IDLE_W + 1] * 101)).busy_s.tolist() == [0.0]


def test_a_waiting_chip_that_calls_itself_used_is_not_busy(observe: Observe, both: Both) -> None:
    watts = [150.0] * 60 + [ONE_IDLE_W] * 41
    seen = observe(*both(watts), *both([100.0] * 101, channel=Channel.UTILISATION_PCT))
    assert seen.busy_s[0] == pytest.approx(59.5)


def test_a_counter_alone_has_the_duration_for_busy_time(observe: Observe, both: Both) -> None:
    counted = [150.0 * moment for moment in range(101)]
    seen = observe(*both(counted, channel=Channel.ENERGY_COUNTER_J))
    assert seen.busy_s.tolist() == seen.duration_s.tolist() == [LENGTH_S]
    assert seen.energy_j[0] == pytest.approx(2 * 150 * LENGTH_S)


def test_where_one_device_has_a_counter_the_other_tells_busy_time(
    observe: Observe, make_series: MakeSeries
) -> None:
    counted = make_series([150.0 * moment for moment in range(101)], channel=Channel.ENERGY_COUNTER_J)
    seen = observe(counted, make_series([150.0] * 60 + [ONE_IDLE_W] * 41, device="gpu_1"))
    assert seen.busy_s[0] == pytest.approx(59.5)


def test_a_device_without_any_covered_time_says_nothing_of_busy_time(
    observe: Observe, make_series: MakeSeries
) -> None:
    alone = make_series([150.0], device="gpu_1")
    seen = observe(make_series([150.0] * 60 + [ONE_IDLE_W] * 41), alone)
    assert seen.busy_s[0] == pytest.approx(59.5)
    assert np.isnan(seen.energy_j[0])


def test_nothing_recorded_is_nothing_seen(observe: Observe, make_window: MakeWindow) -> None:
    seen = observe(windows=[make_window(0, 60)])
    assert seen.duration_s.tolist() == seen.busy_s.tolist() == [60]
    assert np.isnan([seen.energy_j, seen.memory_tb, seen.link_tb, seen.host_tb]).all()
    assert np.isnan(observe().duration_s[0])


def cut_open(
    both: Both, *, places: Sequence[int], pause: Callable[[int], int], step_s: float
) -> list[Series]:
    """A working run of 600 readings with idle put in at some places, alike on both devices."""
    generator = np.random.default_rng(3)
    work_w = 150 + 20 * np.sin(np.arange(600) / 9) + generator.normal(0, 3, 600)
    rate = 3e11 * (1 + 0.2 * np.cos(np.arange(600) / 5))
    watts, moved = np.split(work_w, list(places)), np.split(rate, list(places))
    for number in range(len(places)):
        n_idle = pause(number)
        watts[number] = np.concatenate([watts[number], np.full(n_idle, ONE_IDLE_W)])
        moved[number] = np.concatenate([moved[number], np.zeros(n_idle)])
    all_w, all_rate = np.concatenate(watts), np.concatenate(moved)
    time_s = (step_s * np.arange(all_w.size)).tolist()
    return [*both(all_w, time_s=time_s), *both(all_rate, time_s=time_s, channel=MEMORY)]


@pytest.mark.parametrize("step_s", [0.5, 1.0, 10.0])
@pytest.mark.parametrize(
    ("places", "pause"),
    [
        ([300], 60),
        ([300], 3_000),
        ([100, 101, 102], 7),
        (list(range(10, 600, 10)), 20),
        (list(range(2, 600, 2)), 1),
    ],
    ids=["once", "for-long", "close-together", "often", "every-second-reading"],
)
def test_pauses_move_busy_time_power_and_estimate_not_at_all(
    observe: Observe, both: Both, calibration: Calibration, step_s: float, places: list[int], pause: int
) -> None:
    whole = observe(*cut_open(both, places=[], pause=lambda _: 0, step_s=step_s))
    cut = observe(*cut_open(both, places=places, pause=lambda _: pause, step_s=step_s))
    assert cut.duration_s[0] == pytest.approx(whole.duration_s[0] + len(places) * pause * step_s)
    assert cut.busy_s[0] == pytest.approx(whole.busy_s[0], rel=1e-9)
    assert cut.memory_tb[0] == pytest.approx(whole.memory_tb[0], rel=1e-9)
    net = calibration.fitted.net
    power_w, cut_w = (float(net.of(each)[0] / each.busy_s[0]) for each in (whole, cut))
    assert cut_w == pytest.approx(power_w, rel=1e-9)
    assert power_w == pytest.approx(2 * (150 - ONE_IDLE_W), rel=0.02)
    for method in (Method.PAPER_EQ1, Method.PAPER_EQ2, Method.CONSTANT):
        before, after = (calibration.fitted.predict(method, each).flop[0] for each in (whole, cut))
        assert after == pytest.approx(before, rel=1e-3)
    seen, other = (calibration.fitted.log_features(each) for each in (whole, cut))
    place = [calibration.fitted.features.index(name) for name in (Feature.POWER, Feature.MEMORY)]
    np.testing.assert_allclose(other[0, place], seen[0, place], atol=1e-9)


def test_a_wrong_idle_power_moves_the_estimate_with_the_pauses(observe: Observe, both: Both) -> None:
    whole = observe(*cut_open(both, places=[], pause=lambda _: 0, step_s=1.0))
    paused = observe(*cut_open(both, places=[300], pause=lambda _: 600, step_s=1.0))
    wrong_w = 0.9 * IDLE_W
    before, after = (float(each.energy_j[0] - wrong_w * each.duration_s[0]) for each in (whole, paused))
    assert after - before == pytest.approx(0.1 * IDLE_W * 600)


def with_limit(make_series: MakeSeries, limits_w: Sequence[Sequence[float]]) -> list[Series]:
    """Two devices at work, with the power limits that each reports."""
    return [
        make_series(value, device=gpu, channel=channel)
        for gpu, limit_w in zip(GPUS, limits_w, strict=True)
        for channel, value in ((Channel.POWER_W, [150.0] * 11), (Channel.POWER_LIMIT_W, limit_w))
    ]


@pytest.mark.parametrize(
    ("limits_w", "expected"),
    [
        (([300] * 11, [300] * 11), "300W"),
        (([162.5] * 11, [162.5] * 11), "162.5W"),
        (([300] * 11, [250] * 11), ""),
        (([300] * 10 + [250], [300] * 11), ""),
        (([300] * 10 + [float("nan")], [300] * 11), "300W"),
        (([float("nan")] * 11, [float("nan")] * 11), ""),
        (([], []), ""),
    ],
)
def test_a_power_limit_is_the_mode_only_where_it_is_one_all_the_time(
    make_series: MakeSeries, limits_w: tuple[list[float], list[float]], expected: str
) -> None:
    frame = frame_of(Trace(series=tuple(with_limit(make_series, limits_w))))
    assert fingerprint_trace(frame).power_mode == expected


def test_the_limit_of_a_device_that_does_not_count_is_not_looked_at(make_series: MakeSeries) -> None:
    series = [*with_limit(make_series, ([300] * 11, [300] * 11))]
    other = make_series([100] * 11, device="gpu_9", channel=Channel.POWER_LIMIT_W)
    assert fingerprint_trace(frame_of(Trace(series=(*series, other)))).power_mode == "300W"


def test_a_stated_mode_goes_before_a_recorded_limit(make_series: MakeSeries) -> None:
    trace = Trace(series=tuple(with_limit(make_series, ([300] * 11, [300] * 11))))
    assert fingerprint_trace(frame_of(trace, power_mode="25W")).power_mode == "25W"


@pytest.mark.parametrize(
    ("drivers", "expected"),
    [(("550.1", "550.1"), "550.1"), (("550.1", "551"), ""), (("", ""), ""), (("550.1", ""), "550.1")],
)
def test_a_driver_is_told_only_where_all_that_name_one_agree(
    power: tuple[Series, ...], drivers: tuple[str, str], expected: str
) -> None:
    devices = [Device(name=gpu, driver=driver) for gpu, driver in zip(GPUS, drivers, strict=True)]
    stranger = Device(name="gpu_9", driver="1.0")
    frame = frame_of(Trace(series=power, devices=(*devices, stranger)))
    assert fingerprint_trace(frame).driver == expected


def test_the_fingerprint_is_what_call_and_logs_tell(power: tuple[Series, ...]) -> None:
    frame = frame_of(Trace(series=power), precisions=(Precision.FP16, Precision.BF16))
    assert fingerprint_trace(frame) == Fingerprint(
        chips=("v100-sxm2-16gb",), count=2, scope="gpu", precisions=("bf16", "fp16")
    )


def test_a_name_left_open_is_told_as_all_its_chips_in_order(power: tuple[Series, ...]) -> None:
    found = fingerprint_trace(frame_of(Trace(series=power), chip="V100")).chips
    assert len(found) > 1
    assert list(found) == sorted(found)
    assert "v100-sxm2-16gb" in found


def test_an_unknown_scope_is_left_empty(make_series: MakeSeries) -> None:
    for scope, expected in ((Scope.UNKNOWN, ""), (Scope.RAIL, "rail"), (Scope.NODE_AC, "node-ac")):
        frame = frame_of(Trace(series=(make_series([150] * 11, scope=scope),)))
        assert fingerprint_trace(frame).scope == expected


def test_recorded_devices_raise_the_count(make_series: MakeSeries) -> None:
    series = tuple(make_series([150] * 11, device=f"gpu_{number}") for number in range(3))
    assert fingerprint_trace(frame_of(Trace(series=series), count=2)).count == 3
