"""The learning curve: every size named, and estimators that need more runs begin later."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import CurvePoint, Evaluation
from flopwitness.present.figures.learning import draw_learning_curve

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def test_sizes_estimators_and_units_are_named(parts: Parts) -> None:
    shown = parts("learning_curve")
    for part in ("8", "14", "constant", "efficiency", "calibration workloads"):
        assert part in shown
    assert "mean absolute error [%]" in shown
    assert "95 % quantile of the absolute error [%]" in shown


def test_an_estimator_may_begin_later(evaluation: Evaluation, words: Words) -> None:
    small = CurvePoint(n_train=5, scores={"constant": evaluation.scores["constant"]})
    curve = (*evaluation.curve, small, CurvePoint(n_train=3, scores={}))
    parts = words(draw_learning_curve(replace(evaluation, curve=curve), "t")).split(" | ")
    assert "5" in parts
    assert "3" not in parts


def test_one_size_can_be_drawn(evaluation: Evaluation) -> None:
    assert draw_learning_curve(replace(evaluation, curve=evaluation.curve[:1]), "t") is not None


def test_a_wild_start_turns_the_axis_to_logarithms(evaluation: Evaluation, words: Words) -> None:
    wild = replace(evaluation.scores["paper-eq1"], mean_abs_error_pct=4e3, p95_abs_error_pct=2e4)
    curve = (CurvePoint(n_train=5, scores={"paper-eq1": wild}), *evaluation.curve)
    text = words(draw_learning_curve(replace(evaluation, curve=curve), "t"))
    assert "1000" in text
    assert "mathdefault" not in text


def test_without_a_curve_there_is_no_figure(evaluation: Evaluation) -> None:
    assert draw_learning_curve(replace(evaluation, curve=()), "t") is None
    assert draw_learning_curve(replace(evaluation, curve=(CurvePoint(n_train=5, scores={}),)), "t") is None
