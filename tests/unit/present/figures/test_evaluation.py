"""The whole set: every figure in both forms, the same bytes each time, and none without its records."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.measure.samples import Channel, RunWindow, Series, Trace
from flopwitness.present.figures.evaluation import draw_evaluation

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]

ALWAYS = ("calibration_and_use", "estimate_against_truth", "ablation", "coverage")
OF_TRACE = ("power_trace", "traffic_trace")
IF_RECORDED = ("error_by_hyperparameter", "learning_curve", "declared_steps")


@pytest.fixture(scope="module")
def trace(make_series: MakeSeries, make_window: MakeWindow) -> Trace:
    traffic = make_series([1e9] * 20, channel=Channel.MEMORY_TRAFFIC_BYTE_PER_S)
    return Trace(series=(make_series(range(20)), traffic), windows=(make_window(3, 15),))


@pytest.fixture(scope="module")
def drawn(evaluation: Evaluation, trace: Trace) -> dict[str, bytes]:
    return draw_evaluation(evaluation, trace=trace, title="made-up runs")


def names(*stems: str) -> set[str]:
    return {f"{stem}.{form}" for stem in stems for form in ("svg", "png")}


def test_every_figure_is_there_in_both_forms(drawn: dict[str, bytes]) -> None:
    assert set(drawn) == names(*ALWAYS, *OF_TRACE, *IF_RECORDED)


def test_a_png_is_a_png_and_an_svg_is_an_svg(drawn: dict[str, bytes]) -> None:
    for name, data in drawn.items():
        if name.endswith("png"):
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
            assert data.endswith(b"IEND\xaeB`\x82")
        else:
            assert ET.fromstring(data.decode()).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
            assert b"<text" in data
            assert b"<dc:date>" not in data


def test_every_figure_has_the_title(drawn: dict[str, bytes]) -> None:
    assert [
        name for name, data in drawn.items() if name.endswith("svg") and b"made-up runs" not in data
    ] == []


def test_the_same_input_gives_the_same_bytes(
    drawn: dict[str, bytes], evaluation: Evaluation, trace: Trace
) -> None:
    assert draw_evaluation(evaluation, trace=trace, title="made-up runs") == drawn


def test_what_is_not_recorded_is_not_drawn(poor_evaluation: Evaluation) -> None:
    assert set(draw_evaluation(poor_evaluation, trace=None, title="t")) == names(*ALWAYS)
    assert set(draw_evaluation(poor_evaluation, trace=Trace(), title="t")) == names(*ALWAYS)


def test_a_trace_of_power_alone_gives_one_figure(
    poor_evaluation: Evaluation, make_series: MakeSeries
) -> None:
    trace = Trace(series=(make_series([300, 310]),))
    found = set(draw_evaluation(poor_evaluation, trace=trace, title="t"))
    assert found == names(*ALWAYS, "power_trace")


def test_without_any_estimate_the_flow_remains(poor_evaluation: Evaluation) -> None:
    empty = replace(poor_evaluation, scores={}, ablations={}, by_run={}, by_value={}, coverage={})
    assert set(draw_evaluation(empty, trace=None, title="t")) == names("calibration_and_use")


@pytest.mark.parametrize("title", ["", "$x^2$ & <b>", "tab\tand\x1b[2J", "模型 ☃", "W" * 500])
def test_any_title_can_be_drawn(poor_evaluation: Evaluation, title: str) -> None:
    empty = replace(poor_evaluation, scores={}, ablations={}, by_run={}, by_value={}, coverage={})
    (name,) = (name for name in draw_evaluation(empty, trace=None, title=title) if name.endswith("svg"))
    assert name == "calibration_and_use.svg"
