"""The answer of `evaluate` for a person: errors, intervals that hold, and what each signal brings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from flopwitness.challenge.evaluation.bound_margins import Margin
from flopwitness.challenge.evaluation.evaluation import MAIN_LEVEL, Evaluation
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.foundation.verdict import Finding
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import join_lines, name_count

__all__ = ["render_evaluation_text"]

_HEAD: Final = (
    f"{'':<24}{'mean':>8}{'sd':>8}{'bias':>8}{'median':>8}{'95 %':>8}{'largest':>9}{'splits':>9}{'held':>8}"
    f"{'ends':>7}{'refused':>9}"
)
_LEGEND: Final = (
    "errors are |estimate / truth - 1|; splits: share of splits with one over 10 %; held, ends: share of",
    f"nominal {100 * MAIN_LEVEL:g} % intervals that hold the truth, and the median ratio of their ends;",
    "refused: share that lies outside what the calibration has seen; they count in all figures here",
)


def render_evaluation_text(evaluation: Evaluation, findings: Sequence[Finding]) -> str:
    """The whole answer of `evaluate`, ready to print.

    Args:
        evaluation: What was found.
        findings: What a reader must know, worst first.
    """
    lines = [
        *_plan_lines(evaluation),
        "",
        _HEAD,
        *_score_lines(evaluation.scores),
        *_ablation_lines(evaluation.ablations),
        *_refusal_lines(evaluation),
        "",
        *_LEGEND,
        *_left_out_lines(evaluation),
        *_curve_lines(evaluation),
        *_claim_lines(evaluation),
        *_bound_lines(evaluation),
        *_repeat_lines(evaluation),
        *finding_lines(findings),
    ]
    return join_lines(lines)


def _plan_lines(evaluation: Evaluation) -> Iterator[str]:
    plan, runs = evaluation.plan, evaluation.runs
    judges = runs.n_workloads - plan.n_train
    yield (
        f"{name_count(len(runs.rows), 'run')} of {name_count(runs.n_workloads, 'workload')}; "
        f"{name_count(plan.n_splits, 'random split')}, in each {plan.n_train} teach and {judges} "
        f"{'is' if judges == 1 else 'are'} estimated; seed {plan.seed}"
    )


def _score_lines(scores: Mapping[str, Score]) -> Iterator[str]:
    for name, item in scores.items():
        ends = f"{item.interval_ratio:.2f}" if item.interval_ratio < 1000 else "none"  # noqa: PLR2004 (four digits)
        yield (
            f"{name:<24}{_pct(item.mean_abs_error_pct)}{_pct(item.sd_pct)}{item.bias_pct:>+6.1f} %"
            f"{_pct(item.median_abs_error_pct)}{_pct(item.p95_abs_error_pct)}"
            f"{item.max_abs_error_pct:>7.1f} %{item.splits_over_10pct_pct:>7.1f} %{item.coverage_pct:>6.1f} %"
            f"{ends:>7}{item.refused_pct:>7.1f} %"
        )


def _pct(value: float) -> str:
    return f"{value:>6.1f} %"


def _ablation_lines(ablations: Mapping[str, Score]) -> Iterator[str]:
    if ablations:
        yield "without some of its features"
        yield from _score_lines(ablations)


def _refusal_lines(evaluation: Evaluation) -> Iterator[str]:
    for name, (count, reason) in evaluation.refusals.items():
        yield f"{name} was not fitted in {name_count(count, 'split')}: {reason}"


def _left_out_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.left_out:
        yield ""
        yield "a value that no calibration run had (mean error, share held)"
    for item in evaluation.left_out:
        told = [
            f"{name} {score.mean_abs_error_pct:.1f} %, {score.coverage_pct:.0f} %"
            for name, score in item.scores.items()
        ]
        yield f"  {item.column[:20]:<20} {len(item.values):>2} values   {'; '.join(told)}"


def _curve_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.curve:
        yield ""
        yield "fewer or more calibration workloads (mean error, share held)"
    for point in evaluation.curve:
        told = [
            f"{name} {score.mean_abs_error_pct:.1f} %, {score.coverage_pct:.0f} %"
            for name, score in point.scores.items()
        ]
        yield f"  {point.n_train:>4}   {'; '.join(told)}"


def _claim_lines(evaluation: Evaluation) -> Iterator[str]:
    claims = evaluation.claims
    if claims is None:
        return
    caught = ", ".join(f"{share:.0f} % at {factor:g}" for factor, share in claims.caught_pct.items())
    yield ""
    yield (
        f"declared steps x link traffic: error {claims.mean_abs_error_pct:.1f} % on average, 95 % within "
        f"{claims.p95_abs_error_pct:.1f} %, at most {claims.max_abs_error_pct:.1f} %"
    )
    yield f"  tokens understated (made up) are doubted: {caught} of the truth"
    yield f"  false alarms {claims.false_alarm_pct:.1f} %; gate {claims.gate:.2f}"


def _bound_lines(evaluation: Evaluation) -> Iterator[str]:
    bounds = evaluation.bounds
    parts = (
        (f"energy, idle included (s = {float(bounds.safety):g})", bounds.total_energy),
        (f"energy above idle (s = {float(bounds.safety):g})", bounds.net_energy),
        ("chips x time x best peak", bounds.time),
    )
    if any(margin is not None for _, margin in parts):
        yield ""
        yield "the upper bound over the truth"
    for name, margin in parts:
        if margin is not None:
            yield f"  {name:<34} {_margin_words(margin)}"


def _margin_words(margin: Margin) -> str:
    return (
        f"violated by {margin.n_violated} of {name_count(margin.n_runs, 'run')}; at least {margin.least:.2f} "
        f"times, median {margin.median:.2f} times"
    )


def _repeat_lines(evaluation: Evaluation) -> Iterator[str]:
    repeats = evaluation.repeats
    if repeats is not None:
        yield ""
        yield (
            f"repeats: FLOP per joule of {name_count(repeats.n_workloads, 'workload')} "
            f"({name_count(repeats.n_runs, 'run')}) scatters by {repeats.spread_pct:.1f} %, "
            "the floor under any error"
        )
