"""What an evaluation says to a person: the figures of the record, columns that align, no empty parts."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from flopwitness.challenge.evaluation.bound_margins import BoundScore, Margin
from flopwitness.challenge.evaluation.claims import ClaimScore
from flopwitness.challenge.evaluation.evaluation import CurvePoint, Evaluation, LeftOut, Repeats
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.evaluation_text import render_evaluation_text

WIDEST = 130
SCORE = Score(
    n_estimates=48,
    n_missing=0,
    mean_abs_error_pct=4.26,
    sd_pct=3.04,
    bias_pct=-0.51,
    median_abs_error_pct=3.5,
    p95_abs_error_pct=10.25,
    max_abs_error_pct=15.96,
    splits_over_10pct_pct=51.5,
    coverage_pct=92.5,
    interval_ratio=1.284,
    refused_pct=0.6,
)
CLAIMS = ClaimScore(
    n_estimates=40,
    mean_abs_error_pct=2.34,
    p95_abs_error_pct=5.5,
    max_abs_error_pct=7.04,
    gate=-0.0754,
    false_alarm_pct=1.0,
    caught_pct={0.8: 43.2, 0.5: 100.0},
)
HEADS = (
    "a value that no calibration run had",
    "fewer or more calibration workloads",
    "declared steps",
    "the upper bound over the truth",
    "repeats",
    "without some of its features",
    "findings",
)


def lines_of(evaluation: Evaluation, *findings: Finding) -> list[str]:
    return render_evaluation_text(evaluation, findings).splitlines()


def line_of(evaluation: Evaluation, start: str) -> str:
    (line,) = (line for line in lines_of(evaluation) if line.startswith(start))
    return line


def test_the_plan_stands_first(evaluation: Evaluation) -> None:
    assert lines_of(evaluation)[0] == (
        "26 runs of 24 workloads; 5 random splits, in each 16 teach and 8 are estimated; seed 7"
    )


def test_one_of_each_is_not_plural(poor_evaluation: Evaluation) -> None:
    assert lines_of(poor_evaluation)[0] == (
        "6 runs of 6 workloads; 1 random split, in each 5 teach and 1 is estimated; seed 7"
    )


def test_a_score_is_a_line_under_its_heads(evaluation: Evaluation) -> None:
    told = lines_of(replace(evaluation, scores={"mine": SCORE}, ablations={}))
    head, line = told[2], told[3]
    assert head.split() == [
        "mean", "sd", "bias", "median", "95", "%", "largest", "splits", "held", "ends", "refused",
    ]  # fmt: skip
    assert line.split() == [
        "mine", "4.3", "%", "3.0", "%", "-0.5", "%", "3.5", "%", "10.2", "%", "16.0", "%", "51.5", "%",
        "92.5", "%", "1.28", "0.6", "%",
    ]  # fmt: skip
    assert len(line) == len(head)
    for word, figure in (("mean", "4.3 %"), ("largest", "16.0 %"), ("held", "92.5 %"), ("ends", "1.28")):
        assert head.index(word) + len(word) == line.index(figure) + len(figure)


def test_the_figures_are_those_of_the_scores(evaluation: Evaluation) -> None:
    for name, score in evaluation.scores.items():
        words = line_of(evaluation, f"{name} ").split()
        assert words[1] == f"{score.mean_abs_error_pct:.1f}"
        assert words[5] == f"{score.bias_pct:+.1f}"
        assert words[-2] == f"{score.refused_pct:.1f}"


@pytest.mark.parametrize(("bias_pct", "word"), [(0.62, "+0.6"), (-0.62, "-0.6"), (12.3, "+12.3")])
def test_a_bias_has_its_sign(evaluation: Evaluation, bias_pct: float, word: str) -> None:
    shown = line_of(replace(evaluation, scores={"mine": replace(SCORE, bias_pct=bias_pct)}), "mine ")
    assert shown.split()[5] == word


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(math.inf, "none"), (1e200, "none"), (1000.0, "none"), (999.0, "999.00"), (1.0, "1.00")],
)
def test_an_interval_without_an_end_is_a_word(evaluation: Evaluation, ratio: float, word: str) -> None:
    endless = replace(evaluation, scores={"mine": replace(SCORE, interval_ratio=ratio)})
    assert line_of(endless, "mine ").split()[-3] == word
    assert "inf" not in " ".join(lines_of(endless)).split()


def test_ablations_stand_under_the_whole(evaluation: Evaluation) -> None:
    told = lines_of(replace(evaluation, scores={"mine": SCORE}, ablations={"mine-no-traffic": SCORE}))
    place = told.index("without some of its features")
    assert told[place - 1].startswith("mine ")
    assert told[place + 1].startswith("mine-no-traffic ")
    assert told[place + 1].split()[1:] == told[place - 1].split()[1:]


def test_who_could_not_be_fitted_is_told_with_the_reason(evaluation: Evaluation) -> None:
    told = lines_of(replace(evaluation, refusals={"a": (5, "no traffic"), "b": (1, "too few")}))
    assert "a was not fitted in 5 splits: no traffic" in told
    assert "b was not fitted in 1 split: too few" in told
    assert not any("not fitted" in line for line in lines_of(replace(evaluation, refusals={})))


def test_a_value_left_out_has_a_line(evaluation: Evaluation) -> None:
    scores = {"one": SCORE, "two": replace(SCORE, mean_abs_error_pct=8.0, coverage_pct=100.0)}
    left_out = LeftOut(column="d_model", values=("256", "512"), scores=scores)
    told = lines_of(replace(evaluation, left_out=(left_out,)))
    place = told.index("a value that no calibration run had (mean error, share held)")
    assert told[place + 1] == "  d_model               2 values   one 4.3 %, 92 %; two 8.0 %, 100 %"


def test_the_curve_has_a_line_a_size(evaluation: Evaluation) -> None:
    curve = tuple(CurvePoint(n_train=n, scores={"one": SCORE}) for n in (5, 200))
    told = lines_of(replace(evaluation, curve=curve))
    place = told.index("fewer or more calibration workloads (mean error, share held)")
    assert told[place + 1 : place + 3] == ["     5   one 4.3 %, 92 %", "   200   one 4.3 %, 92 %"]


def test_claims_are_told_with_what_was_caught(evaluation: Evaluation) -> None:
    told = " ".join(lines_of(replace(evaluation, claims=CLAIMS)))
    assert "error 2.3 % on average, 95 % within 5.5 %, at most 7.0 %" in told
    assert "43 % at 0.8, 100 % at 0.5 of the truth" in told
    assert "false alarms 1.0 %; gate -0.08" in told


def test_margins_say_how_many_runs_break_the_bound(evaluation: Evaluation) -> None:
    margin = Margin(n_runs=24, n_violated=2, least=0.957, median=4.0)
    bounds = BoundScore(safety=Fraction(3, 10), total_energy=margin, net_energy=None, time=None)
    told = lines_of(replace(evaluation, bounds=bounds))
    place = told.index("the upper bound over the truth")
    assert " ".join(told[place + 1].split()) == (
        "energy, idle included (s = 0.3) violated by 2 of 24 runs; at least 0.96 times, median 4.00 times"
    )
    assert not any("peak" in line or "above idle (s" in line for line in told)
    one = replace(bounds, total_energy=None, time=replace(margin, n_runs=1, n_violated=0))
    (line,) = (line for line in lines_of(replace(evaluation, bounds=one)) if "best peak" in line)
    assert "violated by 0 of 1 run;" in line


def test_repeats_are_told(evaluation: Evaluation) -> None:
    repeats = Repeats(n_workloads=1, n_runs=3, spread_pct=0.381)
    assert line_of(replace(evaluation, repeats=repeats), "repeats: ") == (
        "repeats: FLOP per joule of 1 workload (3 runs) scatters by 0.4 %, the floor under any error"
    )


def test_what_was_not_asked_or_recorded_is_left_out(
    evaluation: Evaluation, poor_evaluation: Evaluation
) -> None:
    whole = lines_of(replace(evaluation, claims=CLAIMS))
    poor = lines_of(poor_evaluation)
    for head in HEADS[:-1]:
        assert any(line.startswith(head) for line in whole)
    assert not any(line.startswith(head) for line in poor for head in HEADS)
    assert poor[-1] != ""


def test_findings_stand_last(evaluation: Evaluation) -> None:
    finding = Finding(code="runs-unusable", severity=Severity.WARNING, message="two runs taught nothing")
    told = lines_of(evaluation, finding)
    assert told[-2:] == ["findings", "    runs-unusable  two runs taught nothing"]
    assert told[:-2] == lines_of(evaluation)


def test_no_figure_is_no_number(evaluation: Evaluation, poor_evaluation: Evaluation) -> None:
    for each in (evaluation, poor_evaluation):
        words = " ".join(lines_of(each)).split()
        assert not {"nan", "inf", "-inf"} & set(words)


def test_lines_fit_a_wide_terminal(evaluation: Evaluation, poor_evaluation: Evaluation) -> None:
    for each in (replace(evaluation, claims=None), poor_evaluation):
        assert max(len(line) for line in lines_of(each)) <= WIDEST


def test_claims_fit_a_wide_terminal(evaluation: Evaluation) -> None:
    assert evaluation.claims is not None
    assert max(len(line) for line in lines_of(evaluation)) <= WIDEST


def test_names_cannot_steer_the_terminal(evaluation: Evaluation) -> None:
    hostile = "d\x1b[2J\nrepeats: none\x9b"
    changed = replace(
        evaluation,
        left_out=(LeftOut(column=hostile, values=("v",), scores={"one": SCORE}),),
        refusals={"a": (1, hostile)},
    )
    told = render_evaluation_text(changed, [Finding(code="c", severity=Severity.NOTE, message=hostile)])
    assert all(line.isprintable() for line in told.split("\n"))
    assert "repeats: none" not in told.splitlines()
    assert told.count("\\x1b[2J") == 3
