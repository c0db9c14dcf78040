"""Estimators fitted on the training part of each split, and judged on the rest.

Nothing is handed from one split to the next, and nothing of the judging runs but what sensors saw reaches a
prediction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from flopwitness.challenge.evaluation.metrics import Errors, join_errors
from flopwitness.challenge.evaluation.splits import Split
from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.calibration.fitted import Fitted, Method, fit_methods
from flopwitness.measure.observed import Feature, ObservedRuns

__all__ = ["ABLATIONS", "CONTESTANTS", "Contestant", "Refusals", "hold_contest"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """An estimator and the features that it may use.

    Attributes:
        name: Its name in answers.
        method: The estimator.
        candidates: The features that it may use where the device offers them.
    """

    name: str
    method: Method
    candidates: tuple[Feature, ...] = tuple(Feature)


CONTESTANTS = tuple(
    Contestant(name=str(method), method=method)
    for method in (Method.CONSTANT, Method.PAPER_EQ1, Method.PAPER_EQ2, Method.EFFICIENCY)
)

ABLATIONS = (
    Contestant(name="efficiency-no-traffic", method=Method.EFFICIENCY, candidates=(Feature.POWER,)),
    *(
        Contestant(
            name=f"efficiency-no-{feature.removesuffix('_tb_per_j')}",
            method=Method.EFFICIENCY,
            candidates=tuple(other for other in Feature if other is not feature),
        )
        for feature in Feature
        if feature.is_traffic
    ),
)
"""Ours without one traffic counter, and without any. Eq. (2) is Eq. (1) without."""

Refusals = Mapping[str, tuple[int, str]]
"""In how many splits a contestant could not be fitted, and why the first time."""


def hold_contest(
    runs: ObservedRuns,
    flop: Vector,
    splits: Iterable[Split],
    contestants: Sequence[Contestant],
    *,
    workload: NDArray[np.intp] | None = None,
    levels: Sequence[float] = (0.9,),
) -> tuple[dict[tuple[str, float], Errors], Refusals]:
    """Every contestant's estimates of the judging runs, over all splits.

    Args:
        runs: What the sensors saw of all runs.
        flop: Their true operations, shape (n,).
        splits: The splits.
        contestants: Who takes part.
        workload: The number of each run's workload, shape (n,); each its own where None.
        levels: Nominal levels of the intervals.

    Returns:
        The estimates by name and level, and who could not be fitted.
    """
    number_of = np.arange(flop.size) if workload is None else workload
    parts: dict[tuple[str, float], list[Errors]] = {}
    refusals: dict[str, tuple[int, str]] = {}
    for number, split in enumerate(splits):
        train, truth = runs.take(split.train), flop[split.train]
        for candidates, group in _by_candidates(contestants).items():
            fitted, reasons = _fit(train, truth, number_of[split.train], group, candidates)
            for item in group:
                if item.method in reasons:
                    seen, first = refusals.get(item.name, (0, reasons[item.method]))
                    refusals[item.name] = (seen + 1, first)
            if fitted is not None:
                _enter(parts, fitted, group, runs.take(split.test), flop, split, number, levels)
    return {key: join_errors(item) for key, item in parts.items()}, refusals


def _enter(
    parts: dict[tuple[str, float], list[Errors]],
    fitted: Fitted,
    group: Sequence[Contestant],
    judges: ObservedRuns,
    flop: Vector,
    split: Split,
    number: int,
    levels: Sequence[float],
) -> None:
    """Add the estimates of one split's judging runs by all of a group that could be fitted."""
    is_refused = fitted.is_outside(judges)
    for contestant, level in product(group, levels):
        if contestant.method not in fitted.models:
            continue
        answer = fitted.predict(contestant.method, judges, level)
        errors = Errors(
            split=np.full(split.test.size, number, dtype=np.intp),
            run=split.test,
            ratio=answer.flop / flop[split.test],
            log_half=answer.log_half,
            is_refused=is_refused,
        )
        parts.setdefault((contestant.name, level), []).append(errors)


def _by_candidates(contestants: Sequence[Contestant]) -> dict[tuple[Feature, ...], list[Contestant]]:
    """The contestants that share their features, which are fitted together."""
    groups: dict[tuple[Feature, ...], list[Contestant]] = {}
    for contestant in contestants:
        groups.setdefault(contestant.candidates, []).append(contestant)
    return groups


def _fit(
    runs: ObservedRuns,
    flop: Vector,
    workload: NDArray[np.intp],
    group: Sequence[Contestant],
    candidates: tuple[Feature, ...],
) -> tuple[Fitted | None, Mapping[Method, str]]:
    """The group fitted to training runs, and why the rest could not be."""
    methods = [contestant.method for contestant in group]
    try:
        fitted = fit_methods(runs, flop, methods=methods, candidates=candidates, workload=workload)
    except NotCalibratedError as error:
        return None, dict.fromkeys(methods, str(error))
    return fitted, fitted.refused
