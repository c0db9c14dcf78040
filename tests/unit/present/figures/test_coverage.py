"""Coverage: all estimators by level, and one estimator run by run."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.coverage import draw_coverage

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def test_estimators_and_units_are_named(evaluation: Evaluation, parts: Parts) -> None:
    shown = parts("coverage")
    for part in ("constant", "paper-eq1", "paper-eq2", "efficiency", "as stated"):
        assert part in shown
    n_runs = len(evaluation.by_run["efficiency"])
    for part in (
        "nominal level [%]",
        "measured coverage [%]",
        "efficiency, run by run",
        f"{n_runs} runs, the least covered first",
    ):
        assert part in shown


def test_another_estimator_is_shown_run_by_run(poor_evaluation: Evaluation, words: Words) -> None:
    one = {"paper-eq2": poor_evaluation.by_run["paper-eq2"], "constant": poor_evaluation.by_run["constant"]}
    assert "paper-eq2, run by run" in words(draw_coverage(replace(poor_evaluation, by_run=one), "t"))


def test_without_runs_the_levels_remain(evaluation: Evaluation, words: Words) -> None:
    text = words(draw_coverage(replace(evaluation, by_run={}), "t"))
    assert "measured coverage [%]" in text
    assert "run by run" not in text


def test_without_intervals_there_is_no_figure(evaluation: Evaluation) -> None:
    unknown = {"efficiency": {0.9: math.nan}}
    for coverage in ({}, unknown):
        assert draw_coverage(replace(evaluation, coverage=coverage), "t") is None
    some = {**unknown, "constant": {0.5: math.nan, 0.9: 80.0}}
    assert draw_coverage(replace(evaluation, coverage=some, by_run={}), "t") is not None


def test_intervals_that_hold_nothing_can_be_drawn(evaluation: Evaluation) -> None:
    nothing = {"efficiency": dict.fromkeys(evaluation.coverage["efficiency"], 0.0)}
    assert draw_coverage(replace(evaluation, coverage=nothing), "t") is not None
