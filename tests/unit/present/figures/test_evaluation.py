"""The whole set: every figure in both forms, the same bytes each time, and none without its records."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.measure.samples import Series, Trace
from flopwitness.present.figures.evaluation import draw_evaluation

MakeSeries = Callable[..., Series]

ALWAYS = ("calibration_and_use", "estimate_against_truth", "ablation", "coverage")
OF_TRACE = ("power_trace", "traffic_trace")
IF_RECORDED = ("error_by_hyperparameter", "learning_curve", "declared_steps")


@pytest.fixture(scope="module")
def nothing(poor_evaluation: Evaluation) -> Evaluation:
    return replace(poor_evaluation, scores={}, ablations={}, by_run={}, by_value={}, coverage={})


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
    of_table = [name for name in drawn if name.endswith("svg") and not name.endswith("_trace.svg")]
    assert [name for name in of_table if b"made up" not in drawn[name]] == []
    assert all(b"made up" not in drawn[name] for name in ("power_trace.svg", "traffic_trace.svg"))


def test_the_same_input_gives_the_same_bytes(
    drawn: dict[str, bytes], evaluation: Evaluation, trace: Trace
) -> None:
    assert draw_evaluation(evaluation, trace=trace, title="made up") == drawn


def test_what_is_not_recorded_is_not_drawn(poor_evaluation: Evaluation) -> None:
    assert set(draw_evaluation(poor_evaluation, trace=None, title="t")) == names(*ALWAYS)


def test_without_any_estimate_the_flow_remains(nothing: Evaluation) -> None:
    assert set(draw_evaluation(nothing, trace=Trace(), title="t")) == names("calibration_and_use")


def test_a_trace_of_power_alone_gives_one_figure(nothing: Evaluation, make_series: MakeSeries) -> None:
    trace = Trace(series=(make_series([300, 310]),))
    found = set(draw_evaluation(nothing, trace=trace, title="t"))
    assert found == names("calibration_and_use", "power_trace")
