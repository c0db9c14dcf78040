"""All estimators fitted to the same runs, and what each of them predicts for others.

What has to be chosen from data is chosen here and nowhere else: the idle power that is subtracted, the
features that the device offers, and each estimator's constants. Whoever judges an estimator on runs that were
held out calls this with the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.calibration.domain import Domain, settle_domain
from flopwitness.measure.estimators.constant import ConstantModel, fit_constant
from flopwitness.measure.estimators.efficiency import EfficiencyModel, fit_efficiency
from flopwitness.measure.estimators.paper import PaperModel, fit_paper
from flopwitness.measure.estimators.predictions import Predictions
from flopwitness.measure.observed import (
    LARGEST_LOG,
    Feature,
    NetEnergy,
    ObservedRuns,
    log_features,
    pool_means,
    settle_net_energy,
)

__all__ = ["MOST_DOUBT", "Fitted", "Method", "Model", "fit_methods", "offered_features"]

Vector = NDArray[np.float64]
Model: TypeAlias = ConstantModel | PaperModel | EfficiencyModel

MOST_DOUBT: Final = 4.0
"""Times the posterior's usual width: beyond it no calibration run combines its features as this one does."""

_MOSTLY: Final = 0.9  # a feature that fewer runs have is left out; the runs without one that more have, too
_FEWEST_RUNS: Final = 3


class Method(StrEnum):
    """The calibrated estimators."""

    EFFICIENCY = "efficiency"
    PAPER_EQ1 = "paper-eq1"
    PAPER_EQ2 = "paper-eq2"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """Estimators with their constants.

    Attributes:
        net: How energy above idle is made.
        domain: The features of the training runs.
        models: The estimators that could be fitted.
        refused: Why the others could not.
    """

    net: NetEnergy
    domain: Domain
    models: Mapping[Method, Model]
    refused: Mapping[Method, str]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that the calibration runs offer."""
        return self.domain.features

    def needed(self, method: Method) -> tuple[Feature, ...]:
        """The features that a run must record for an estimator; power for all of them."""
        match self.models.get(method):
            case EfficiencyModel() as model:
                return tuple(dict.fromkeys((Feature.POWER, *model.features)))
            case PaperModel() as model if model.has_traffic:
                return (Feature.POWER, Feature.MEMORY)
            case _:
                return (Feature.POWER,)

    def log_features(self, runs: ObservedRuns) -> Vector:
        """Natural logarithms of those features, shape (n, k)."""
        return log_features(runs, self.net, self.features)

    def is_usable(self, runs: ObservedRuns, flop: Vector) -> NDArray[np.bool_]:
        """Which runs could teach, shape (n,): those with energy above idle, every feature and a size.

        Args:
            runs: The runs, n of them.
            flop: Their true operations, shape (n,), > 0.
        """
        return _is_whole(self.log_features(runs)) & _is_possible(self.net.of(runs), flop)

    def is_outside(self, runs: ObservedRuns) -> NDArray[np.bool_]:
        """Which runs a user would be refused a point for, by their features alone, shape (n,)."""
        outside = self.domain.is_outside(self.log_features(runs)).any(axis=1)
        return np.asarray(outside | (self.doubt(runs) > MOST_DOUBT), dtype=np.bool_)

    def doubt(self, runs: ObservedRuns) -> Vector:
        """How many times more doubtful than usual the efficiency is, shape (n,); 0 without one."""
        model = self.models.get(Method.EFFICIENCY)
        if not isinstance(model, EfficiencyModel):
            return np.zeros(len(runs))
        doubt = model.doubt(log_features(runs, self.net, model.features))
        return np.where(np.isfinite(doubt), doubt, 0.0)

    def predict(self, method: Method, runs: ObservedRuns, level: float = 0.9) -> Predictions:
        """What an estimator says of runs; NaN where one lacks what the estimator needs.

        Args:
            method: The estimator.
            runs: The runs, n of them.
            level: The intervals' nominal level.

        Raises:
            NotCalibratedError: That estimator could not be fitted.
        """
        model = self.models.get(method)
        if model is None:
            raise NotCalibratedError(f"no {method} in this calibration", found=self.refused.get(method, ""))
        net_j = self.net.of(runs)
        net_j = np.where(net_j > 0, net_j, np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            match model:
                case ConstantModel():
                    return model.predict(net_j, level)
                case PaperModel():
                    return model.predict(net_j, runs.busy_s, runs.memory_tb, level)
                case EfficiencyModel():
                    return model.predict(net_j, log_features(runs, self.net, model.features), level)


def _is_whole(values: Vector) -> NDArray[np.bool_]:
    """Which rows hold no missing value, shape (n, k) to (n,)."""
    return np.asarray(np.isfinite(values).all(axis=1), dtype=np.bool_)


def _is_possible(net_j: Vector, flop: Vector) -> NDArray[np.bool_]:
    """Which runs have operations per joule that a number can hold, shape (n,)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.abs(np.log(flop / net_j)) <= LARGEST_LOG, dtype=np.bool_)


def offered_features(
    runs: ObservedRuns, net: NetEnergy, candidates: Sequence[Feature] = tuple(Feature)
) -> tuple[Feature, ...]:
    """The features that nine runs in ten have; a counter that reads 0 has none."""
    known = np.isfinite(log_features(runs, net, candidates))
    if not len(runs):
        return (Feature.POWER,)
    return tuple(
        feature
        for feature, share in zip(candidates, known.mean(axis=0), strict=True)
        if share >= _MOSTLY or feature is Feature.POWER
    )


def fit_methods(
    runs: ObservedRuns,
    flop: Vector,
    *,
    methods: Sequence[Method] = tuple(Method),
    candidates: Sequence[Feature] = tuple(Feature),
    workload: NDArray[np.intp] | None = None,
) -> Fitted:
    """The estimators fitted to runs of known size; repeats of one workload count once, by their mean.

    As runs of their own they would vouch for each other: the errors on runs left out would be those of
    repeating a run, and not of estimating an unknown one.

    Args:
        runs: The runs, n of them.
        flop: Their true operations, shape (n,), > 0.
        methods: Which estimators.
        candidates: The features that may be used; fewer of them for an ablation.
        workload: The number of each run's workload, shape (n,); each its own where None.

    Raises:
        NotCalibratedError: Fewer than three workloads have an energy above idle and the features.
    """
    net = settle_net_energy(runs)
    runs = runs.filled(net)
    features = offered_features(runs, net, candidates)
    seen = log_features(runs, net, features)
    used = _is_whole(seen) & _is_possible(net.of(runs), flop)
    group = _number(np.arange(len(runs)) if workload is None else workload, used)
    n_workloads = int(group.max()) + 1 if group.size else 0
    if n_workloads < _FEWEST_RUNS:
        raise NotCalibratedError(
            "too few workloads with energy above idle",
            expected=f"at least {_FEWEST_RUNS}",
            found=str(n_workloads),
        )
    domain = settle_domain(features, seen[used], n_runs=n_workloads)
    runs, flop = runs.take(used).pooled(group), pool_means(flop[used], group)
    seen = log_features(runs, net, features)
    net_j = net.of(runs)
    fits: dict[Method, Callable[[], Model]] = {
        Method.EFFICIENCY: lambda: fit_efficiency(features, seen, net_j, flop),
        Method.PAPER_EQ1: lambda: fit_paper(net_j, runs.busy_s, _memory(runs, features), flop),
        Method.PAPER_EQ2: lambda: fit_paper(net_j, runs.busy_s, None, flop),
        Method.CONSTANT: lambda: fit_constant(net_j, flop),
    }
    models: dict[Method, Model] = {}
    refused: dict[Method, str] = {}
    for method in methods:
        try:
            models[method] = fits[method]()
        except NotCalibratedError as error:
            refused[method] = str(error)
    return Fitted(
        net=net,
        domain=domain,
        models=MappingProxyType(models),
        refused=MappingProxyType(refused),
    )


def _number(workload: NDArray[np.intp], used: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The workloads of the used runs, numbered from 0 in the order of their numbers."""
    return np.asarray(np.unique(workload[used], return_inverse=True)[1], dtype=np.intp)


def _memory(runs: ObservedRuns, features: Sequence[Feature]) -> Vector:
    """The memory traffic of the runs.

    Raises:
        NotCalibratedError: The runs do not record it.
    """
    if Feature.MEMORY not in features:
        raise NotCalibratedError("no memory traffic was recorded", expected="a traffic counter above 0")
    return runs.memory_tb
