"""Does link traffic catch a Prover who declares fewer tokens than were trained on?

The constant and the gate are learnt from each split's training runs; the judging runs' declared tokens are
then understated by known factors. The lie is made up here, the recordings are real.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.challenge.evaluation.splits import Split
from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.calibration.fitted import Method, fit_methods
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.link_operations import DeclaredSteps, fit_link, gate
from flopwitness.measure.observed import ObservedRuns

__all__ = ["UNDERSTATEMENTS", "ClaimScore", "judge_claims"]

Vector = NDArray[np.float64]

UNDERSTATEMENTS: Final = (0.8, 0.7, 0.6, 0.5)
"""Declared tokens over true ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimScore:
    """How well declared operations through link traffic test a claim.

    Attributes:
        n_estimates: How many judgements, pooled over splits.
        mean_abs_error_pct: Of F_ops with honest declarations [%].
        p95_abs_error_pct: Its 95 % quantile [%].
        max_abs_error_pct: The largest [%].
        gate: The median gate on log(F_ops / F_energy).
        false_alarm_pct: Share of honest declarations that are doubted [%].
        caught_pct: Share of understated ones that are doubted [%], by declared over true tokens.
    """

    n_estimates: int
    mean_abs_error_pct: float
    p95_abs_error_pct: float
    max_abs_error_pct: float
    gate: float
    false_alarm_pct: float
    caught_pct: Mapping[float, float]


def judge_claims(
    runs: ObservedRuns,
    declared: DeclaredSteps,
    flop: Vector,
    splits: Iterable[Split],
    *,
    workload: NDArray[np.intp] | None = None,
) -> ClaimScore | None:
    """The test on runs held out; None where the runs lack link traffic or declarations.

    Args:
        runs: What the sensors saw of all runs.
        declared: What the table declares of their steps.
        flop: Their true operations, shape (n,).
        splits: The splits.
        workload: The number of each run's workload, shape (n,); each its own where None.
    """
    number_of = np.arange(flop.size) if workload is None else workload
    if not np.isfinite(declared.work(runs.link_tb)).any():
        return None
    judged = [_judge(runs, declared, flop, split, number_of) for split in splits]
    known = [item for item in judged if item is not None]
    if not known:
        return None
    error = np.abs(np.concatenate([ratio - 1 for ratio, _, _ in known]))
    gaps = [(gap, limit) for _, gap, limit in known]
    return ClaimScore(
        n_estimates=int(error.size),
        mean_abs_error_pct=100 * float(error.mean()),
        p95_abs_error_pct=100 * float(np.quantile(error, 0.95)),
        max_abs_error_pct=100 * float(error.max()),
        gate=float(np.median([limit for _, limit in gaps])),
        false_alarm_pct=_doubted_pct(gaps, 1.0),
        caught_pct={factor: _doubted_pct(gaps, factor) for factor in UNDERSTATEMENTS},
    )


def _judge(
    runs: ObservedRuns, declared: DeclaredSteps, flop: Vector, split: Split, workload: NDArray[np.intp]
) -> tuple[Vector, Vector, float] | None:
    """Of the judging runs: F_ops over truth, log(F_ops / F_energy), and the gate; None without a constant."""
    train, judges = runs.take(split.train), runs.take(split.test)
    try:
        fitted = fit_methods(
            train, flop[split.train], methods=[Method.EFFICIENCY], workload=workload[split.train]
        )
        link = fit_link(
            train.link_tb,
            declared.take(split.train),
            flop[split.train],
            workload=workload[split.train],
        )
    except NotCalibratedError:
        return None
    model = fitted.models.get(Method.EFFICIENCY)
    if not isinstance(model, EfficiencyModel):
        return None
    operations = link.predict(judges.link_tb, declared.take(split.test), 0.9).flop
    energy = fitted.predict(Method.EFFICIENCY, judges).flop
    known = np.isfinite(operations) & np.isfinite(energy)
    gap = np.log(operations[known] / energy[known])
    return operations[known] / flop[split.test][known], gap, gate(link, model.errors)


def _doubted_pct(gaps: Sequence[tuple[Vector, float]], factor: float) -> float:
    """Share of claims under their gate where tokens are declared at `factor` of the truth [%]."""
    return 100 * float(np.concatenate([gap + np.log(factor) < limit for gap, limit in gaps]).mean())
