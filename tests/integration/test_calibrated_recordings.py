"""A calibration from recorded runs meets recorded logs: one point however the run is cut, or a refusal.

The pauses are a simulation, made of the recording's own idle: see `flopwitness.simulation.splicing`.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.catalogue.chips import ChipCatalogue, Precision, load_chips
from flopwitness.cli.main import _main
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, decode_flop
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.calibrate import calibrate
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import load_reference
from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.measure.sources.formats import read_evidence
from flopwitness.measure.sources.run_table import decode_run_table
from flopwitness.measure.sources.selection import parse_where, select
from flopwitness.simulation.splicing import splice_idle

pytestmark = pytest.mark.shared_data

Call = Callable[..., tuple[int, str, str]]

RUNS = "data/jetson_orin_nano/runs_25w_trial1.csv"
RUN = "data/jetson_orin_nano/timeseries_25w.json"
JETSON = "jetson-orin-nano-8gb"
MOST_MOVED = {
    Method.EFFICIENCY: 0.005,
    Method.CONSTANT: 0.005,
    Method.PAPER_EQ1: 0.007,  # overhead x busy time leaves half of the energy: what idle adds weighs double
    Method.PAPER_EQ2: 0.007,
}
IDLE_S = 60  # before anything was launched
GAP_S, STEP_S = 6.0, 0.50186
TASKS = ("bert", "dlrm_dcnv2", "resnet", "ssd", "unet3d")


@cache
def calibration_of(shared_data: Path) -> Calibration:
    table = decode_run_table((shared_data / RUNS).read_bytes(), where=RUNS)
    rows = select(table.rows, [parse_where("precision=fp32")], 80).rows
    return calibrate([(table, rows)], catalogue=load_chips(), gate_pct=80).calibration


@cache
def trace_of(shared_data: Path) -> Trace:
    return read_evidence([shared_data / RUN])


def one(trace: Trace, channel: Channel) -> Series:
    (series,) = (item for item in trace.series if item.channel is channel)
    return series


def cut_open(trace: Trace, n_pauses: int) -> Trace:
    """The recording with pauses at evenly spaced places of the run, at rest as it was before it."""
    (window,) = trace.windows
    assert window.stop_utc_ns is not None
    power, traffic = one(trace, Channel.POWER_W), one(trace, Channel.MEMORY_TRAFFIC_BYTE_PER_S)
    places = np.linspace(window.start_utc_ns, window.stop_utc_ns, n_pauses + 2)[1:-1]

    def splice(beside: Series) -> tuple[Series, Series]:
        cut = splice_idle(
            power,
            beside,
            places_ns=places.round().astype(np.int64).tolist(),
            idle_w=at_rest(power),
            gap_s=GAP_S,
            step_s=STEP_S,
        )
        return cut.power, cut.utilisation

    cut_power, used = splice(one(trace, Channel.UTILISATION_PCT))
    cut_traffic = splice(replace(traffic, value=traffic.value + 1))[1]  # so that 0 is only what was put in
    rest = np.resize(at_rest(traffic), len(cut_traffic))
    moved = np.where(cut_traffic.value == 0, rest, cut_traffic.value - 1)
    longer_ns = int(cut_power.utc_ns[-1] - power.utc_ns[-1])
    longer = replace(window, stop_utc_ns=window.stop_utc_ns + longer_ns)
    return replace(trace, series=(cut_power, used, replace(cut_traffic, value=moved)), windows=(longer,))


def at_rest(series: Series) -> NDArray[np.float64]:
    """The readings of the first minute."""
    return series.value[series.utc_ns < IDLE_S * NANOSECOND_PER_SECOND]


@pytest.fixture(scope="module")
def chips() -> ChipCatalogue:
    return load_chips()


@pytest.fixture
def ask(shared_data: Path, chips: ChipCatalogue) -> Callable[..., Measurement]:
    def ask_it(trace: Trace, **stated: Any) -> Measurement:  # noqa: ANN401 (the fields of a question)
        question = Question(
            chips=chips.find_all(JETSON), count=1, calibration=calibration_of(shared_data), **stated
        )
        return measure_trace(trace, question, table=load_reference())

    return ask_it


Ask = Callable[..., Measurement]


def flop_of(answer: Measurement, method: Method) -> int:
    assert answer.refusals == ()
    assert answer.estimate is not None
    assert answer.estimate.method == str(method)
    return answer.estimate.flop


def above_idle(shared_data: Path, idle_w: float) -> tuple[float, float]:
    """The run's energy above idle [J] and its length [s], straight from the file."""
    record = json.loads((shared_data / RUN).read_text())
    time_s, power_mw = np.array(record["power_mw"]).T
    (window,) = trace_of(shared_data).windows
    assert window.stop_utc_ns is not None
    start_s, stop_s = window.start_utc_ns / 1e9, window.stop_utc_ns / 1e9
    moments = np.concatenate([[start_s], time_s[(time_s > start_s) & (time_s < stop_s)], [stop_s]])
    net_w = np.interp(moments, time_s, power_mw / 1e3) - idle_w
    return float(np.trapezoid(net_w, moments)), stop_s - start_s


def test_the_recording_has_a_point(shared_data: Path, ask: Ask) -> None:
    calibration = calibration_of(shared_data)
    answer = ask(trace_of(shared_data), precisions=(Precision.FP32,), power_mode="25W")
    assert answer.estimate is not None
    assert answer.estimate.calibration == str(calibration.digest)
    assert (answer.estimate.n_runs, answer.estimate.precisions) == (21, ("fp32",))
    assert answer.estimate.low_flop < flop_of(answer, Method.EFFICIENCY) < answer.estimate.high_flop
    assert answer.estimate.ratio < 1.32
    assert answer.upper is not None
    assert answer.estimate.high_flop < answer.upper.flop
    assert answer.calibrated is not None
    assert answer.calibrated.bracket is None


def test_the_published_constants_give_the_same_by_hand(shared_data: Path, ask: Ask) -> None:
    net_j, time_s = above_idle(shared_data, calibration_of(shared_data).fitted.net.idle_w)
    by_hand = (net_j - 3.75 * time_s) / 5.71 * 1e12
    for method in Method:
        flop = flop_of(ask(trace_of(shared_data), method=method), method)
        assert flop == pytest.approx(by_hand, rel=0.002 if method is Method.PAPER_EQ2 else 0.05)


@pytest.mark.parametrize("method", MOST_MOVED)
def test_pauses_hardly_move_the_estimate(shared_data: Path, ask: Ask, method: Method) -> None:
    trace = trace_of(shared_data)
    whole = ask(trace, method=method)
    assert whole.duration_s is not None
    for n_pauses in (0, 3, 10, 60):
        cut = ask(cut_open(trace, n_pauses), method=method)
        assert cut.duration_s == pytest.approx(whole.duration_s + n_pauses * GAP_S, abs=n_pauses * STEP_S)
        assert flop_of(cut, method) == pytest.approx(flop_of(whole, method), rel=MOST_MOVED[method])


def test_mean_power_falls_with_every_pause_though_the_estimate_does_not(shared_data: Path, ask: Ask) -> None:
    trace = trace_of(shared_data)
    energies = []
    for each in (trace, cut_open(trace, 60)):
        answer = ask(each)
        assert answer.energy is not None
        assert answer.duration_s is not None
        energies.append(answer.energy.shown_j / answer.duration_s)
    assert energies[1] < 0.7 * energies[0]


@pytest.mark.parametrize(
    ("stated", "field"),
    [({"power_mode": "15W"}, "power_mode"), ({"precisions": (Precision.FP16,)}, "precisions")],
)
def test_another_mode_than_the_calibrations_is_refused(
    shared_data: Path, ask: Ask, stated: dict[str, Any], field: str
) -> None:
    answer = ask(trace_of(shared_data), **stated)
    assert [finding.where for finding in answer.refusals] == [field]
    assert answer.estimate is not None
    assert answer.estimate.method.startswith("prior")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """The command with its arguments: status, standard output, standard error; from an empty folder."""
    empty = tmp_path / "cwd"
    empty.mkdir()
    monkeypatch.chdir(empty)

    def call_it(*arguments: object) -> tuple[int, str, str]:
        status = _main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call_it


@pytest.fixture
def calibration_file(call: Call, shared_data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "jetson.json"
    words = ("--where", "precision=fp32", "--gate", 80, "--out", path)
    assert call("calibrate", shared_data / RUNS, *words)[0] == 0
    return path


def test_the_command_gives_the_point_of_the_library(
    call: Call, calibration_file: Path, shared_data: Path, ask: Ask
) -> None:
    status, out, err = call(
        "estimate",
        shared_data / RUN,
        "--chip",
        JETSON,
        "--count",
        1,
        "--calibration",
        calibration_file,
        "--json",
    )
    assert (status, err) == (0, "")
    record = json.loads(out)
    expected = flop_of(ask(trace_of(shared_data)), Method.EFFICIENCY)
    assert decode_flop(record["estimate"]["flop"]) == pytest.approx(expected, rel=1e-9)
    assert record["refused"] == []
    assert record["bracket"]["calibrated_precision"] == "fp32"
    assert decode_flop(record["bracket"]["low"]) <= expected <= decode_flop(record["bracket"]["high"])


@pytest.mark.parametrize("task", TASKS)
def test_logs_of_other_chips_are_refused_and_keep_prior_and_bound(
    call: Call, calibration_file: Path, shared_data: Path, task: str
) -> None:
    run = (shared_data / "data" / "mlperf" / "h100x8" / task, "--chip", "h100-sxm", "--count", 8)
    plain = json.loads(call("estimate", *run, "--json")[1])
    status, out, err = call("estimate", *run, "--calibration", calibration_file, "--json")
    record = json.loads(out)
    assert status == 2
    assert err.startswith("flopwitness: ")
    assert "calibration refused" in err
    assert err.count("\n") == 1
    refused = {item["where"]: item for item in record["refused"]}
    assert (refused["chips"]["expected"], refused["chips"]["found"]) == (JETSON, "h100-sxm")
    assert record["estimate"] == plain["estimate"]
    assert record["estimate"]["method"] == "prior-energy"
    assert record["upper_bound"] == plain["upper_bound"]
    assert decode_flop(record["upper_bound"]["flop"]) >= decode_flop(record["estimate"]["high"])
    assert record["bracket"] is None
    text = " ".join(call("estimate", *run, "--calibration", calibration_file)[1].split())
    assert "calibration refused)" in text
    assert "at most" in text
