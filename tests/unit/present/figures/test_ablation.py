"""Ablations stand under their estimator, with both errors in figures."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.ablation import draw_ablation

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def test_every_estimator_and_ablation_is_named_in_order(evaluation: Evaluation, parts: Parts) -> None:
    shown = parts("ablation")
    order = [
        "constant, energy alone",
        "paper-eq1, with memory traffic",
        "paper-eq2, without memory traffic",
        "efficiency, with all recorded traffic",
        *evaluation.ablations,
    ]
    assert len(evaluation.ablations) > 1
    places = [shown.index(name) for name in order]
    assert places == sorted(places)
    assert "absolute error [%]" in shown
    assert "95 % quantile" in shown


def test_the_errors_are_written_beside_their_marks(evaluation: Evaluation, parts: Parts) -> None:
    shown = parts("ablation")
    score = evaluation.scores["efficiency"]
    assert f"{score.mean_abs_error_pct:.1f}" in shown
    assert f"{score.p95_abs_error_pct:.1f}" in shown


def test_an_unknown_estimator_comes_last(evaluation: Evaluation, words: Words) -> None:
    scores = {"another": evaluation.scores["constant"], **evaluation.scores}
    text = words(draw_ablation(replace(evaluation, scores=scores), "t"))
    assert text.index("another") > text.index("efficiency")


def test_one_bad_fit_turns_the_axis_to_logarithms(evaluation: Evaluation, words: Words) -> None:
    bad = replace(evaluation.scores["paper-eq1"], mean_abs_error_pct=4e3, p95_abs_error_pct=2e4)
    text = words(draw_ablation(replace(evaluation, scores={**evaluation.scores, "paper-eq1": bad}), "t"))
    assert "4,000.0" in text
    assert "mathdefault" not in text


def test_errors_of_nothing_can_be_drawn(evaluation: Evaluation) -> None:
    exact = replace(evaluation.scores["constant"], mean_abs_error_pct=0.0, p95_abs_error_pct=0.0)
    assert draw_ablation(replace(evaluation, scores={"constant": exact}, ablations={}), "t") is not None


def test_without_scores_there_is_no_figure(evaluation: Evaluation) -> None:
    assert draw_ablation(replace(evaluation, scores={}, ablations={}), "t") is None
