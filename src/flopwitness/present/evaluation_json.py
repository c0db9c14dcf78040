"""The answer of `evaluate` as JSON that other programs rely on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from flopwitness.challenge.evaluation.bound_margins import BoundScore, Margin
from flopwitness.challenge.evaluation.claims import ClaimScore
from flopwitness.challenge.evaluation.evaluation import MAIN_LEVEL, Evaluation, RunScore
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.foundation.units import encode_flop
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.samples import Provenance
from flopwitness.present.finding_json import render_finding

__all__ = ["render_evaluation"]

SPEC: Final = "flopwitness/evaluate/v1"
_DIGITS: Final = 6
_LARGEST_RATIO: Final = 1e9


def render_evaluation(
    evaluation: Evaluation, *, inputs: Sequence[Provenance], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The record of an evaluation.

    Args:
        evaluation: What was found.
        inputs: The tables.
        findings: What a reader must know, worst first.
    """
    plan = evaluation.plan
    return {
        "spec": SPEC,
        "runs": len(evaluation.runs.rows),
        "workloads": evaluation.runs.n_workloads,
        "workload_columns": list(evaluation.runs.columns),
        "splits": plan.n_splits,
        "train": plan.n_train,
        "seed": plan.seed,
        "level": MAIN_LEVEL,
        "estimators": _scores(evaluation.scores),
        "ablations": _scores(evaluation.ablations),
        "not_fitted": {
            name: {"splits": count, "reason": reason} for name, (count, reason) in evaluation.refusals.items()
        },
        "coverage_pct": {
            name: {f"{level:g}": _rounded(share) for level, share in shares.items()}
            for name, shares in evaluation.coverage.items()
        },
        "leave_one_value_out": [
            {"column": item.column, "values": list(item.values), "estimators": _scores(item.scores)}
            for item in evaluation.left_out
        ],
        "learning_curve": [
            {"train": point.n_train, "estimators": _scores(point.scores)} for point in evaluation.curve
        ],
        "by_value": {
            name: [{key: _rounded(value) for key, value in asdict(item).items()} for item in items]
            for name, items in evaluation.by_value.items()
        },
        "by_run": [_run(evaluation, place) for place in range(len(evaluation.runs.rows))],
        "declared_steps": _claims(evaluation.claims),
        "upper_bound": _bounds(evaluation.bounds),
        "repeats": None if evaluation.repeats is None else _numbers(asdict(evaluation.repeats)),
        "findings": [render_finding(item) for item in findings],
        "inputs": [{"path": part.path, "format": part.format, "digest": str(part.digest)} for part in inputs],
    }


def _scores(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {name: _numbers(asdict(item)) for name, item in scores.items()}


def _run(evaluation: Evaluation, place: int) -> dict[str, Any]:
    """One run with each estimator's estimates of it."""
    row = evaluation.runs.rows[place]
    scores = {
        name: item for name, items in evaluation.by_run.items() for item in items if item.place == place
    }
    return {
        "row": row.row,
        "run_id": row.run_id,
        "workload": int(evaluation.runs.workload[place]),
        "true_flop": encode_flop(row.true_flop or 0),
        "estimators": {name: _run_score(item) for name, item in scores.items()},
    }


def _run_score(item: RunScore) -> dict[str, Any]:
    return {
        "n_estimates": item.n_estimates,
        "mean_error_pct": _rounded(100 * (item.mean_ratio - 1)),
        "least_error_pct": _rounded(100 * (item.least_ratio - 1)),
        "most_error_pct": _rounded(100 * (item.most_ratio - 1)),
        "coverage_pct": _rounded(item.coverage_pct),
    }


def _claims(claims: ClaimScore | None) -> dict[str, Any] | None:
    if claims is None:
        return None
    record = _numbers({key: value for key, value in asdict(claims).items() if key != "caught_pct"})
    caught = {f"{factor:g}": _rounded(share) for factor, share in claims.caught_pct.items()}
    return {**record, "caught_pct": caught}


def _bounds(bounds: BoundScore) -> dict[str, Any]:
    return {
        "safety": str(bounds.safety),
        "total_energy": _margin(bounds.total_energy),
        "net_energy": _margin(bounds.net_energy),
        "time": _margin(bounds.time),
    }


def _margin(margin: Margin | None) -> dict[str, Any] | None:
    return None if margin is None else _numbers(asdict(margin))


def _numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _rounded(value) for key, value in record.items()}


def _rounded(value: Any) -> Any:  # noqa: ANN401 (a number or a text)
    """Six significant digits; None for a ratio without an end."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}") if abs(value) < _LARGEST_RATIO else None
