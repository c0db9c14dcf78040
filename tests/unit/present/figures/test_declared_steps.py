"""The test of declarations: shares caught, false alarms apart."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.declared_steps import draw_declared_steps

Words = Callable[[Mapping[str, bytes] | None], str]


def test_what_is_caught_and_what_is_a_false_alarm(evaluation: Evaluation, words: Words) -> None:
    assert evaluation.claims is not None
    claims = replace(evaluation.claims, caught_pct={0.8: 41.5, 0.5: 99.25}, false_alarm_pct=1.75, gate=-0.25)
    text = words(draw_declared_steps(replace(evaluation, claims=claims), "made up"))
    for part in ("41.5 %", "99.2 %", "1.8 %", "78 % of what energy tells", "false alarms"):
        assert part in text
    assert "declared over true tokens [%]" in text
    assert "doubted declarations [%]" in text


def test_without_declarations_there_is_no_figure(evaluation: Evaluation) -> None:
    assert draw_declared_steps(replace(evaluation, claims=None), "t") is None
