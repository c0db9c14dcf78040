"""Estimates against truth: what can be compared stands side by side, and one bad fit spoils no frame."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.truth import draw_estimates

Words = Callable[[Mapping[str, bytes] | None], str]


def test_three_estimators_stand_side_by_side(evaluation: Evaluation, words: Words) -> None:
    parts = words(draw_estimates(evaluation, "made up")).split(" | ")
    for part in ("constant", "paper-eq1", "efficiency", "estimate [PFLOP]", "truth [PFLOP]", "error [%]"):
        assert part in parts
    assert "paper-eq2" not in parts


def test_another_equation_stands_in(poor_evaluation: Evaluation, words: Words) -> None:
    parts = words(draw_estimates(poor_evaluation, "made up")).split(" | ")
    assert "paper-eq2" in parts
    assert "paper-eq1" not in parts


def test_without_estimates_there_is_no_figure(evaluation: Evaluation) -> None:
    assert draw_estimates(replace(evaluation, by_run={}), "t") is None
    assert draw_estimates(replace(evaluation, by_run={"constant": ()}), "t") is None


def test_a_wide_range_is_drawn_in_logarithms(evaluation: Evaluation, words: Words) -> None:
    flop = np.logspace(20, 25, num=len(evaluation.runs.rows))
    wide = replace(evaluation, runs=replace(evaluation.runs, flop=flop))
    parts = words(draw_estimates(wide, "made up")).split(" | ")
    assert "truth [FLOP]" in parts
    assert "1e22" in parts


def test_absurd_estimates_are_cut_and_said_to_be(evaluation: Evaluation, words: Words) -> None:
    assert "beyond the frame" not in words(draw_estimates(evaluation, "t"))
    first, *rest = evaluation.by_run["paper-eq1"]
    absurd = replace(first, least_ratio=-40.0, most_ratio=500.0)
    for flop in (evaluation.runs.flop, np.logspace(20, 25, num=len(evaluation.runs.rows))):
        runs = replace(evaluation.runs, flop=flop)
        by_run = {**evaluation.by_run, "paper-eq1": (absurd, *rest)}
        text = words(draw_estimates(replace(evaluation, runs=runs, by_run=by_run), "t"))
        assert "what lies beyond the frame is cut" in text


def test_one_run_can_be_drawn(evaluation: Evaluation, words: Words) -> None:
    by_run = {"efficiency": evaluation.by_run["efficiency"][:1]}
    assert "estimates of 1 held-out run;" in words(draw_estimates(replace(evaluation, by_run=by_run), "t"))
