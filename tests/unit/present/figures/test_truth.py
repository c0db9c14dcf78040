"""Estimates against truth: what can be compared stands side by side, and one bad fit spoils no frame."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.truth import draw_estimates

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def test_all_estimators_stand_side_by_side(parts: Parts) -> None:
    shown = parts("estimate_against_truth")
    for part in ("constant", "paper-eq1", "paper-eq2", "efficiency"):
        assert part in shown
    for part in ("estimate [PFLOP]", "truth [PFLOP]", "error [%]"):
        assert part in shown
    assert "beyond the frame" not in shown[-1]


def test_an_equation_that_was_not_fitted_is_left_out(poor_evaluation: Evaluation, words: Words) -> None:
    assert "paper-eq1" not in poor_evaluation.by_run
    parts = words(draw_estimates(poor_evaluation, "made up")).split(" | ")
    assert "paper-eq2" in parts


def test_without_estimates_there_is_no_figure(evaluation: Evaluation) -> None:
    assert draw_estimates(replace(evaluation, by_run={}), "t") is None
    assert draw_estimates(replace(evaluation, by_run={"constant": ()}), "t") is None


def absurd(evaluation: Evaluation) -> Evaluation:
    first, *rest = evaluation.by_run["paper-eq1"]
    wild = replace(first, least_ratio=-40.0, most_ratio=500.0)
    return replace(evaluation, by_run={"paper-eq1": (wild, *rest)})


def test_absurd_estimates_are_cut_and_said_to_be(evaluation: Evaluation, words: Words) -> None:
    assert "what lies beyond the frame is cut" in words(draw_estimates(absurd(evaluation), "t"))


def test_a_wide_range_is_drawn_in_logarithms(evaluation: Evaluation, words: Words) -> None:
    flop = np.logspace(20, 25, num=len(evaluation.runs.rows))
    wide = replace(absurd(evaluation), runs=replace(evaluation.runs, flop=flop))
    text = words(draw_estimates(wide, "made up"))
    assert "truth [FLOP]" in text
    assert "| 1e22 |" in text
    assert "beyond the frame is cut" in text


def test_one_run_can_be_drawn(evaluation: Evaluation, words: Words) -> None:
    by_run = {"efficiency": evaluation.by_run["efficiency"][:1]}
    assert "estimates of 1 held-out run;" in words(draw_estimates(replace(evaluation, by_run=by_run), "t"))
