"""Errors by hyperparameter: every column and value named, no cause claimed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import Evaluation, ValueScore
from flopwitness.present.figures.by_value import draw_errors_by_value

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def score(column: str, value: str, error_pct: float = 1.0) -> ValueScore:
    return ValueScore(
        column=column,
        value=value,
        n_runs=3,
        mean_error_pct=error_pct,
        least_error_pct=error_pct - 2,
        most_error_pct=error_pct + 2,
    )


def with_scores(evaluation: Evaluation, **scores: tuple[ValueScore, ...]) -> Evaluation:
    return replace(evaluation, by_value={name.replace("_", "-"): own for name, own in scores.items()})


def test_columns_values_and_both_estimators_are_named(evaluation: Evaluation, parts: Parts) -> None:
    shown = parts("error_by_hyperparameter")
    for part in ("d_model", "seq_len", "batch_size", "efficiency", "paper-eq1", "signed error [%]"):
        assert part in shown
    for item in evaluation.by_value["efficiency"]:
        assert f"{item.value} ({item.n_runs})" in shown
    assert any("causality cannot be inferred" in part for part in shown)


def test_each_estimator_stands_once_in_the_legend(parts: Parts) -> None:
    shown = parts("error_by_hyperparameter")
    assert shown.count("efficiency") == shown.count("paper-eq1") == 1


def test_without_hyperparameters_there_is_no_figure(
    evaluation: Evaluation, poor_evaluation: Evaluation
) -> None:
    assert draw_errors_by_value(poor_evaluation, "t") is None
    assert draw_errors_by_value(replace(evaluation, by_value={}), "t") is None


def test_one_column_and_one_estimator_are_enough(evaluation: Evaluation, words: Words) -> None:
    few = with_scores(evaluation, paper_eq2=(score("optimizer", "sgd"), score("optimizer", "")))
    parts = words(draw_errors_by_value(few, "t")).split(" | ")
    assert {"optimizer", "sgd (3)", "empty (3)", "paper-eq2"} <= set(parts)


def test_a_value_that_one_estimator_lacks_is_drawn(evaluation: Evaluation, words: Words) -> None:
    uneven = with_scores(
        evaluation, efficiency=(score("c", "one"),), paper_eq1=(score("c", "one"), score("c", "two"))
    )
    assert "two (3)" in words(draw_errors_by_value(uneven, "t"))


def test_many_values_stand_in_two_columns(evaluation: Evaluation, words: Words) -> None:
    scores = tuple(score(column, f"v{number}") for column in ("one", "two", "six") for number in range(5))
    few, many = with_scores(evaluation, efficiency=scores[:10]), with_scores(evaluation, efficiency=scores)
    shown = [words(draw_errors_by_value(item, "t")).split(" | ") for item in (few, many)]
    assert [parts.count("signed error [%]") for parts in shown] == [1, 2]
    assert [parts.count("v0 (3)") for parts in shown] == [2, 3]


def test_long_names_are_cut_and_many_values_counted(evaluation: Evaluation, words: Words) -> None:
    names = [f"W{number}" + "W" * 60 for number in range(26)]
    scores = tuple(score(column, name) for column in ("two" * 40,) for name in names)
    parts = words(draw_errors_by_value(with_scores(evaluation, efficiency=scores), "W " * 300)).split(" | ")
    assert parts.count("and 2 more") == 1
    assert max(len(part) for part in parts if part.startswith("W0")) < 44


def test_absurd_errors_are_cut_and_said_to_be(evaluation: Evaluation, words: Words) -> None:
    wild = with_scores(evaluation, efficiency=(score("c", "one", 4e6), score("c", "two")))
    assert "beyond the frame is cut" in words(draw_errors_by_value(wild, "t"))
