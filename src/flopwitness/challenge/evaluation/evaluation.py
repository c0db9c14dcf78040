"""The judgement of all estimators on one table: what `evaluate` prints, draws and hands to programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.challenge.evaluation.bound_margins import BoundScore, judge_bounds
from flopwitness.challenge.evaluation.claims import ClaimScore, judge_claims
from flopwitness.challenge.evaluation.contest import (
    ABLATIONS,
    CONTESTANTS,
    Contestant,
    Refusals,
    hold_contest,
)
from flopwitness.challenge.evaluation.metrics import Errors, Score, score
from flopwitness.challenge.evaluation.splits import (
    Split,
    check_split,
    leave_one_value_out,
    random_splits,
)
from flopwitness.challenge.evaluation.table import KnownRuns
from flopwitness.measure.observed import Feature, log_features, settle_net_energy

__all__ = [
    "MAIN_LEVEL",
    "CurvePoint",
    "Evaluation",
    "LeftOut",
    "Plan",
    "Repeats",
    "RunScore",
    "ValueScore",
    "evaluate_runs",
]

LEVELS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Nominal levels whose coverage is measured."""

MAIN_LEVEL: Final = 0.9
"""The nominal level of the intervals in the table of estimators."""

_FEWEST_TEACHERS: Final = 3
_CURVE_SPLITS: Final = 50
_CURVE: Final = (5, 8, 14, 20, 40, 58, 75, 100, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked of an evaluation.

    Attributes:
        n_train: How many workloads teach in each random split.
        n_splits: How many random splits.
        seed: Their seed.
        leave_out: Columns whose values are left out one by one.
        curve: Numbers of teaching workloads to try; None for a usual few.
        safety: The factor of the energy bound.
    """

    n_train: int
    n_splits: int
    seed: int
    leave_out: tuple[str, ...] = ()
    curve: tuple[int, ...] | None = None
    safety: Fraction = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """One run's estimates by one estimator, over the splits in which it was held out.

    Attributes:
        place: The run's place in the table.
        n_estimates: How many.
        mean_ratio: Mean of estimate over truth.
        least_ratio: The smallest.
        most_ratio: The largest.
        coverage_pct: Share of intervals that hold the truth [%].
    """

    place: int
    n_estimates: int
    mean_ratio: float
    least_ratio: float
    most_ratio: float
    coverage_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueScore:
    """One estimator's error on the runs that share a value of a column: no cause can be read from it.

    Attributes:
        column: The column.
        value: The value.
        n_runs: How many runs have it.
        mean_error_pct: Mean over the runs of their mean signed error [%].
        least_error_pct: The lowest run's mean signed error [%].
        most_error_pct: The highest run's [%].
    """

    column: str
    value: str
    n_runs: int
    mean_error_pct: float
    least_error_pct: float
    most_error_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The estimators on runs whose value of a column no calibration run had.

    Attributes:
        column: The column.
        values: The values that were left out in turn.
        scores: By estimator, pooled over the values.
    """

    column: str
    values: tuple[str, ...]
    scores: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The estimators with so many calibration workloads."""

    n_train: int
    scores: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How well the same workload repeats: the floor under every estimator's error.

    Attributes:
        n_workloads: Workloads with more than one run.
        n_runs: Their runs.
        spread_pct: Root mean square of FLOP per joule around each workload's mean [%].
    """

    n_workloads: int
    n_runs: int
    spread_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All that was found.

    Attributes:
        runs: The runs that were judged on.
        plan: What was asked.
        scores: The estimators' scores over the random splits, by name.
        ablations: Ours without some of its features.
        refusals: Who could not be fitted in how many splits, and why.
        by_run: Each estimator's runs.
        by_value: Each estimator's errors by hyperparameter.
        coverage: Measured coverage [%] by estimator and nominal level.
        left_out: One for each column.
        curve: One for each number of calibration workloads.
        claims: The test of declared operations; None without link traffic or declarations.
        bounds: The bound's margins.
        repeats: How well workloads repeat; None where none was run twice.
    """

    runs: KnownRuns
    plan: Plan
    scores: Mapping[str, Score]
    ablations: Mapping[str, Score]
    refusals: Refusals
    by_run: Mapping[str, tuple[RunScore, ...]]
    by_value: Mapping[str, tuple[ValueScore, ...]]
    coverage: Mapping[str, Mapping[float, float]]
    left_out: tuple[LeftOut, ...]
    curve: tuple[CurvePoint, ...]
    claims: ClaimScore | None
    bounds: BoundScore
    repeats: Repeats | None


def evaluate_runs(
    runs: KnownRuns,
    plan: Plan,
    *,
    catalogue: ChipCatalogue,
    tick: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Judge all estimators on a table of runs.

    Args:
        runs: The runs of known size.
        plan: What is asked.
        catalogue: The known chips.
        tick: Called with the name of each step before it is taken.

    Raises:
        InputError: The table has too few workloads for such splits.
    """
    for n_train in plan.curve or ():
        check_split(runs.workload, n_train, where="--curve")
    splits = list(random_splits(runs.workload, n_train=plan.n_train, n_splits=plan.n_splits, seed=plan.seed))
    tick("random splits")
    contest, refusals = hold_contest(
        runs.observed, runs.flop, splits, CONTESTANTS, workload=runs.workload, levels=LEVELS
    )
    main = {name: errors for (name, level), errors in contest.items() if level == MAIN_LEVEL}
    tick("ablations")
    ablated, more = hold_contest(
        runs.observed, runs.flop, splits, _useful_ablations(runs), workload=runs.workload
    )
    by_run = {name: _by_run(errors) for name, errors in main.items()}
    return Evaluation(
        runs=runs,
        plan=plan,
        scores=_scores(main),
        ablations=_scores({name: errors for (name, _), errors in ablated.items()}),
        refusals={**refusals, **more},
        by_run=by_run,
        by_value={name: tuple(_by_value(runs, scores)) for name, scores in by_run.items()},
        coverage=_coverage(contest),
        left_out=tuple(_leave_out(runs, plan, tick)),
        curve=tuple(_learning_curve(runs, plan, tick)),
        claims=_claims(runs, splits, tick),
        bounds=judge_bounds(runs.rows, catalogue, safety=plan.safety),
        repeats=_repeats(runs),
    )


def _scores(errors: Mapping[str, Errors]) -> dict[str, Score]:
    """The scores by name, in one order wherever they stand."""
    order = [contestant.name for contestant in (*CONTESTANTS, *ABLATIONS)]
    scored = {name: score(errors[name]) for name in sorted(errors, key=order.index)}
    return {name: item for name, item in scored.items() if item is not None}


def _useful_ablations(runs: KnownRuns) -> list[Contestant]:
    """The ablations that leave out something the table has, and do not leave out the same."""
    has = {
        feature for feature in Feature if feature.is_traffic and (runs.observed.traffic_tb(feature) > 0).any()
    }
    chosen: dict[frozenset[Feature], Contestant] = {}
    for contestant in ABLATIONS:
        left = frozenset(contestant.candidates) & has
        if left != has:
            chosen.setdefault(left, contestant)
    return list(chosen.values())


def _claims(runs: KnownRuns, splits: Sequence[Split], tick: Callable[[str], None]) -> ClaimScore | None:
    tick("declared steps")
    return judge_claims(runs.observed, runs.declared, runs.flop, splits, workload=runs.workload)


def _coverage(contest: Mapping[tuple[str, float], Errors]) -> dict[str, dict[float, float]]:
    """Share of intervals that hold the truth [%], by estimator and level; none without estimates."""
    shares: dict[str, dict[float, float]] = {}
    for (name, level), errors in contest.items():
        known = np.isfinite(errors.ratio)
        if known.any():
            shares.setdefault(name, {})[level] = 100 * float(errors.is_held()[known].mean())
    return shares


def _by_run(errors: Errors) -> tuple[RunScore, ...]:
    scores = []
    for place in np.unique(errors.run):
        own = (errors.run == place) & np.isfinite(errors.ratio)
        if not own.any():
            continue
        ratio = errors.ratio[own]
        scores.append(
            RunScore(
                place=int(place),
                n_estimates=int(own.sum()),
                mean_ratio=float(ratio.mean()),
                least_ratio=float(ratio.min()),
                most_ratio=float(ratio.max()),
                coverage_pct=100 * float(errors.is_held()[own].mean()),
            )
        )
    return tuple(scores)


def _by_value(runs: KnownRuns, scores: Sequence[RunScore]) -> Iterator[ValueScore]:
    """The errors of one estimator by the values of each hyperparameter."""
    for column in runs.axes():
        values = runs.values(column)
        for value in sorted(set(values), key=_natural):
            errors = [100 * (item.mean_ratio - 1) for item in scores if values[item.place] == value]
            if errors:
                yield ValueScore(
                    column=column,
                    value=value,
                    n_runs=len(errors),
                    mean_error_pct=float(np.mean(errors)),
                    least_error_pct=min(errors),
                    most_error_pct=max(errors),
                )


def _natural(text: str) -> tuple[int, float, str]:
    """Numbers by their size, before words."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _leave_out(runs: KnownRuns, plan: Plan, tick: Callable[[str], None]) -> Iterator[LeftOut]:
    for column in plan.leave_out:
        tick(f"leaving out {column}")
        pairs = [
            (value, split)
            for value, split in leave_one_value_out(runs.values(column), runs.workload)
            if split.train.size >= _FEWEST_TEACHERS
        ]
        contest, _ = hold_contest(
            runs.observed, runs.flop, [split for _, split in pairs], CONTESTANTS, workload=runs.workload
        )
        yield LeftOut(
            column=column,
            values=tuple(value for value, _ in pairs),
            scores=_scores({name: errors for (name, _), errors in contest.items()}),
        )


def _learning_curve(runs: KnownRuns, plan: Plan, tick: Callable[[str], None]) -> Iterator[CurvePoint]:
    sizes = (
        plan.curve if plan.curve is not None else tuple(n for n in _CURVE if n <= runs.n_workloads * 7 // 8)
    )
    n_splits = min(plan.n_splits, _CURVE_SPLITS)
    for n_train in sizes:
        tick(f"learning from {n_train}")
        splits = random_splits(runs.workload, n_train=n_train, n_splits=n_splits, seed=plan.seed)
        contest, _ = hold_contest(runs.observed, runs.flop, splits, CONTESTANTS, workload=runs.workload)
        yield CurvePoint(
            n_train=n_train, scores=_scores({name: errors for (name, _), errors in contest.items()})
        )


def _repeats(runs: KnownRuns) -> Repeats | None:
    """The spread of FLOP per joule between runs of one workload, with one idle power for all."""
    net = settle_net_energy(runs.observed)
    known = np.isfinite(log_features(runs.observed, net, [Feature.POWER])).all(axis=1)
    log_flop_per_j = np.log(runs.flop[known] / net.of(runs.observed)[known])
    groups = [log_flop_per_j[runs.workload[known] == number] for number in range(runs.n_workloads)]
    repeated = [group for group in groups if group.size > 1]
    if not repeated:
        return None
    freedom = sum(group.size - 1 for group in repeated)
    square = sum(float(((group - group.mean()) ** 2).sum()) for group in repeated)
    return Repeats(
        n_workloads=len(repeated),
        n_runs=sum(group.size for group in repeated),
        spread_pct=100 * float(np.sqrt(square / freedom)),
    )
