"""The meter with a calibration: the same run as a log and as a row, and what is left when it is refused."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from tests.made_runs import IDLE_W, calibrate_cells, make_cells, read_table

from flopwitness.catalogue.chips import ChipCatalogue, Precision
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.observed import observe
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.samples import Channel, RunWindow, Series, Trace
from flopwitness.measure.sources.run_table import RunRow

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Measure = Callable[..., Measurement]
LogOf = Callable[..., Trace]

CELLS = make_cells(30)
HELD = read_table(CELLS[24:]).rows
RUN = HELD[0]
RATES = {
    Channel.MEMORY_TRAFFIC_BYTE_PER_S: "memory_traffic_tb",
    Channel.LINK_TRAFFIC_BYTE_PER_S: "link_traffic_tb",
    Channel.HOST_TRAFFIC_BYTE_PER_S: "host_traffic_tb",
}


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS[:24]).calibration


@pytest.fixture(scope="module")
def measure(chips: ChipCatalogue, reference: ReferenceTable, calibration: Calibration) -> Measure:
    def measure_it(trace: Trace, *, chip: str = "v100-sxm2-16gb", **stated: object) -> Measurement:
        options: dict[str, object] = {
            "count": 2,
            "precisions": (Precision.FP16,),
            "power_mode": "300W",
            "calibration": calibration,
        }
        question = Question(chips=chips.find_all(chip), **{**options, **stated})  # type: ignore[arg-type]
        return measure_trace(trace, question, table=reference)

    return measure_it


@pytest.fixture(scope="module")
def log_of(make_series: MakeSeries) -> LogOf:
    """A row of a table as the logs of its run: two devices that share energy and traffic unevenly."""

    def log(
        row: RunRow, *, n_idle: int = 0, factor: float = 1.0, channels: Iterable[Channel] = RATES
    ) -> Trace:
        assert row.duration_s is not None
        assert row.energy_j is not None
        time_s = (row.duration_s / 200 * np.arange(201 + n_idle)).tolist()
        course = 1 + 0.02 * np.sin(np.arange(201) * np.pi / 5)
        at_work = np.concatenate([course[:100], np.zeros(n_idle), course[100:]])
        series = []
        for device, share in (("gpu_0", 0.52), ("gpu_1", 0.48)):
            net_w = factor * (row.energy_j / row.duration_s - IDLE_W) * share
            series.append(make_series(net_w * at_work + IDLE_W / 2, device=device, time_s=time_s))
            for channel in channels:
                rate = 1e12 * getattr(row, RATES[channel]) / row.duration_s * share
                series.append(make_series(rate * at_work, device=device, time_s=time_s, channel=channel))
        return Trace(series=tuple(series))

    return log


def codes(answer: Measurement) -> set[str]:
    return {finding.code for finding in answer.findings}


def not_compared(answer: Measurement) -> str:
    return next(item.found for item in answer.findings if item.code == "fingerprint-unrecorded")


def refusals(answer: Measurement) -> list[str]:
    return [finding.code for finding in answer.refusals]


@pytest.mark.parametrize("row", HELD, ids=lambda row: row.run_id)
def test_a_log_and_a_row_of_one_run_give_one_estimate(
    measure: Measure, log_of: LogOf, calibration: Calibration, row: RunRow
) -> None:
    answer = measure(log_of(row))
    expected = calibration.fitted.predict(Method.EFFICIENCY, observe([row]))
    assert answer.estimate is not None
    assert answer.estimate.flop == pytest.approx(expected.flop[0], rel=2e-3)
    assert answer.estimate.low_flop == pytest.approx(expected.low_flop[0], rel=2e-3)
    assert answer.estimate.high_flop == pytest.approx(expected.high_flop[0], rel=2e-3)
    assert row.true_flop is not None
    assert answer.estimate.flop == pytest.approx(row.true_flop, rel=0.1)


def test_a_calibrated_answer_says_what_it_rests_on(
    measure: Measure, log_of: LogOf, calibration: Calibration
) -> None:
    answer = measure(log_of(RUN), level=0.8)
    assert answer.estimate is not None
    assert answer.estimate.method == "efficiency"
    assert answer.estimate.calibration == str(calibration.digest)
    assert (answer.estimate.n_runs, answer.estimate.level) == (24, 0.8)
    assert answer.estimate.precisions == ("fp16",)
    assert answer.estimate.prior is None
    assert answer.refusals == ()
    assert answer.calibrated is not None
    assert answer.calibrated.bracket is None
    assert answer.upper is not None
    assert answer.estimate.high_flop <= answer.upper.flop
    assert codes(answer) == {"scope", "fingerprint-unrecorded"}
    wide = measure(log_of(RUN), level=0.99).estimate
    assert wide is not None
    assert (wide.flop, wide.level) == (answer.estimate.flop, 0.99)
    assert wide.low_flop < answer.estimate.low_flop < answer.estimate.high_flop < wide.high_flop


def test_the_bound_is_the_same_with_a_calibration(measure: Measure, log_of: LogOf) -> None:
    plain = measure(log_of(RUN), calibration=None)
    assert plain.calibrated is None
    assert plain.refusals == ()
    assert plain.upper == measure(log_of(RUN)).upper
    assert plain.estimate is not None
    assert plain.estimate.method == "prior-energy"
    assert plain.energy == measure(log_of(RUN)).energy


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"chip": "h100-sxm"}, "chips"),
        ({"precisions": (Precision.FP32,)}, "precisions"),
        ({"power_mode": "250W"}, "power_mode"),
    ],
)
def test_another_device_or_mode_is_refused_and_the_prior_stays(
    measure: Measure, log_of: LogOf, stated: dict[str, object], field: str
) -> None:
    answer, plain = measure(log_of(RUN), **stated), measure(log_of(RUN), **stated, calibration=None)
    assert [finding.where for finding in answer.refusals] == [field]
    assert refusals(answer) == ["calibration-mismatch"]
    assert answer.estimate == plain.estimate
    assert answer.upper == plain.upper
    assert codes(answer) == codes(plain) | {"calibration-mismatch", "fingerprint-unrecorded"}
    severities = [list(Severity).index(finding.severity) for finding in answer.findings]
    assert severities == sorted(severities)


def test_two_recorded_devices_are_two_whatever_is_stated(measure: Measure, log_of: LogOf) -> None:
    assert measure(log_of(RUN), count=1).refusals == ()
    more = measure(log_of(RUN), count=4)
    assert refusals(more) == ["calibration-mismatch", "feature-missing"]
    assert (more.refusals[0].where, more.refusals[0].found) == ("count", "4")


def test_a_recorded_power_limit_is_held_against_the_calibration(
    measure: Measure, log_of: LogOf, make_series: MakeSeries
) -> None:
    for limit_w, expected in ((300, []), (250, ["calibration-mismatch"])):
        limits = [
            make_series([limit_w] * 9, device=device, channel=Channel.POWER_LIMIT_W)
            for device in ("gpu_0", "gpu_1")
        ]
        trace = log_of(RUN)
        answer = measure(replace(trace, series=(*trace.series, *limits)), power_mode="")
        assert refusals(answer) == expected
        assert not_compared(answer) == "scope"
    assert not_compared(measure(log_of(RUN), power_mode="")) == "scope, power_mode"


@pytest.mark.parametrize("channel", RATES)
def test_traffic_that_was_not_recorded_is_missing_and_not_zero(
    measure: Measure, log_of: LogOf, channel: Channel
) -> None:
    answer = measure(log_of(RUN, channels=[other for other in RATES if other is not channel]))
    assert refusals(answer) == ["feature-missing"]
    assert answer.refusals[0].found == f"no {RATES[channel].removesuffix('_traffic_tb')}_tb_per_j"
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-energy"
    assert measure(log_of(RUN, channels=()), method=Method.PAPER_EQ2).refusals == ()


@pytest.mark.parametrize("method", Method)
def test_every_estimator_can_be_asked(
    measure: Measure, log_of: LogOf, calibration: Calibration, method: Method
) -> None:
    answer = measure(log_of(RUN), method=method)
    assert answer.estimate is not None
    assert answer.estimate.method == str(method)
    expected = calibration.fitted.predict(method, observe([RUN])).flop[0]
    assert answer.estimate.flop == pytest.approx(expected, rel=2e-3)


def test_a_precision_that_nobody_recorded_gives_a_bracket(measure: Measure, log_of: LogOf) -> None:
    answer, named = measure(log_of(RUN), precisions=()), measure(log_of(RUN))
    assert answer.calibrated is not None
    bracket = answer.calibrated.bracket
    assert bracket is not None
    assert bracket.calibrated is Precision.FP16
    assert Precision.FP32 in bracket.precisions
    assert answer.estimate is not None
    assert answer.estimate == named.estimate
    assert bracket.low_flop < answer.estimate.low_flop
    assert bracket.high_flop >= answer.estimate.flop
    (finding,) = (item for item in answer.findings if item.code == "fingerprint-unrecorded")
    assert finding.found == "scope, precisions"
    assert "precision-assumed" not in codes(answer)


@pytest.mark.parametrize("n_idle", [7, 100, 2_000])
def test_a_pause_moves_the_estimate_by_nothing(measure: Measure, log_of: LogOf, n_idle: int) -> None:
    whole, paused = measure(log_of(RUN)), measure(log_of(RUN, n_idle=n_idle))
    assert whole.estimate is not None
    assert paused.estimate is not None
    assert whole.duration_s is not None
    assert paused.duration_s == pytest.approx(whole.duration_s * (1 + n_idle / 200), rel=1e-6)
    assert paused.estimate.flop == pytest.approx(whole.estimate.flop, rel=1e-3)
    assert paused.estimate.method == "efficiency"


def test_a_run_at_rest_has_no_work_to_estimate(measure: Measure, log_of: LogOf) -> None:
    answer = measure(log_of(RUN, factor=0.02))
    assert "run-at-rest" in refusals(answer)
    assert "feature-missing" not in refusals(answer)


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_power_that_no_calibration_run_drew_is_refused(
    measure: Measure, log_of: LogOf, factor: float
) -> None:
    answer = measure(log_of(RUN, factor=factor))
    assert "feature-outside" in refusals(answer)
    assert "power_w" in {finding.where for finding in answer.refusals}


def test_power_that_the_chips_cannot_draw_gives_nothing(measure: Measure, log_of: LogOf) -> None:
    answer = measure(log_of(RUN, factor=10.0))
    assert (answer.estimate, answer.upper) == (None, None)
    assert "hardware-contradicted" in codes(answer)
    assert refusals(answer) == ["feature-missing"]


def test_power_under_idle_is_not_used_by_the_calibration_either(
    measure: Measure, log_of: LogOf, make_series: MakeSeries
) -> None:
    resting = [make_series([4.0 + number] * 101, device=f"gpu_{number}") for number in range(2)]
    answer = measure(Trace(series=tuple(resting)), method=Method.CONSTANT)
    assert "power-under-idle" in codes(answer)
    assert refusals(answer) == ["feature-missing"]
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"


def test_a_device_at_rest_is_an_anomaly(measure: Measure, make_series: MakeSeries) -> None:
    resting = [make_series([48.0 - number] * 101, device=f"gpu_{number}") for number in range(2)]
    answer = measure(Trace(series=tuple(resting)), method=Method.CONSTANT)
    assert refusals(answer) == ["energy-under-idle"]
    assert answer.refusals[0].found == "-300 J"


def test_readings_over_less_than_four_fifths_of_the_run_are_refused(
    measure: Measure, log_of: LogOf, make_window: MakeWindow
) -> None:
    assert RUN.duration_s is not None
    for factor, expected in ((1.3, ["feature-missing"]), (1.2, [])):
        window = make_window(0, factor * RUN.duration_s)
        answer = measure(replace(log_of(RUN), windows=(window,)))
        assert refusals(answer) == expected
        assert ("coverage-low" in codes(answer)) == bool(expected)


def test_energy_that_is_mostly_a_gap_gives_no_point(measure: Measure, make_series: MakeSeries) -> None:
    time_s = [*range(21), *range(81, 101)]
    power = [
        make_series([150 + number + moment % 3 for moment in time_s], time_s=time_s, device=f"gpu_{number}")
        for number in range(2)
    ]
    answer = measure(Trace(series=tuple(power)), method=Method.CONSTANT)
    (finding,) = (item for item in answer.findings if item.code == "coverage-low")
    assert "the estimate goes by time alone" in finding.message
    assert refusals(answer) == ["feature-missing"]
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-time"


def test_rest_before_a_run_without_a_stop_moves_nothing(
    measure: Measure, make_series: MakeSeries, make_window: MakeWindow
) -> None:
    power = tuple(
        make_series([49.0 + number] * 100 + [150.0 + number] * 101, device=f"gpu_{number}")
        for number in range(2)
    )
    ended, open_end = (
        measure(Trace(series=power, windows=(make_window(100, stop_s),)), method=Method.CONSTANT)
        for stop_s in (200, None)
    )
    assert ended.estimate is not None
    assert open_end.estimate is not None
    assert open_end.estimate.flop == pytest.approx(ended.estimate.flop, rel=1e-3)


def test_an_estimate_over_the_bound_is_refused_as_absurd(
    measure: Measure, log_of: LogOf, calibration: Calibration
) -> None:
    model = calibration.fitted.models[Method.CONSTANT]
    assert isinstance(model, ConstantModel)
    greedy = replace(model, log_flop_per_j=model.log_flop_per_j + 3)
    models = MappingProxyType({Method.CONSTANT: greedy})
    absurd = replace(calibration, fitted=replace(calibration.fitted, models=models))
    answer = measure(log_of(RUN), calibration=absurd, method=Method.CONSTANT)
    assert refusals(answer) == ["estimate-over-bound"]
    assert "estimate-over-bound" in codes(answer)
    assert answer.estimate is not None
    assert answer.estimate.method == "prior-energy"
    assert answer.upper is not None


def test_the_marked_run_is_estimated_and_not_the_rest(
    measure: Measure, log_of: LogOf, make_window: MakeWindow
) -> None:
    assert RUN.duration_s is not None
    whole = measure(log_of(RUN))
    half = measure(replace(log_of(RUN), windows=(make_window(0, RUN.duration_s / 2),)))
    assert half.estimate is not None
    assert whole.estimate is not None
    assert half.estimate.method == "efficiency"
    assert half.estimate.flop == pytest.approx(whole.estimate.flop / 2, rel=0.01)
