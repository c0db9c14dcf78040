"""Ours: what a joule computes, learnt as a smooth function of power and of traffic per joule.

    z = standardised { log P, log(B/E), log(N/E), log(H/E) }, those that the device has
    y = log(F/E) ~ GP( mean of y ; s_y^2 [ 4 + t^2 z.z' + a^2 exp(-|z-z'|^2 / (2 l^2 k)) ] + (s s_y)^2 I )
    F = E exp(posterior mean of y)

All features are intensive, so an estimate grows with energy whatever a run's length. The four parameters t,
a, l, s are not chosen: predictions are averaged over a fixed grid of them, weighted by how well each explains
the training runs (marginal likelihood). There is no optimiser and no random state. A quadratic part blows up
at 14 runs; this kernel bends only near the data, and far from them its doubt grows.

Source:
    Ours: docs/adr/0008, and what was tried before it was fixed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.predictions import Predictions
from flopwitness.measure.intervals import left_out_quantile, student_t
from flopwitness.measure.observed import Feature

__all__ = ["FEWEST_RUNS", "MOST_RUNS", "EfficiencyModel", "fit_efficiency", "take_evenly"]

Vector = NDArray[np.float64]

FEWEST_RUNS: Final = 8
MOST_RUNS: Final = 500  # the work grows with their cube, and hundreds of runs already teach nothing new

_MEAN_VARIANCE: Final = 4.0  # of the function's level, in variances of y: few runs know its mean
_SLOPES: Final = (0.15, 0.3, 0.6)  # t
_BENDS: Final = (0.4, 0.8, 1.2)  # a; and 0, without bends
_LENGTHS: Final = (0.5, 1.0, 2.0)  # l
_NOISES: Final = (0.1, 0.2, 0.35, 0.6, 0.9)  # s
_CONSTANT: Final = 1e-9  # a spread of logarithms below which nothing varies


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The covariance of one grid point, noise aside."""

    slope: float
    bend: float
    length: float

    def between(self, pair: "_Pair") -> Vector:
        """The covariance of two sets of runs, shape (m, n)."""
        covariance: Vector = _MEAN_VARIANCE + self.slope**2 * pair.inner
        if self.bend:
            covariance += self.bend**2 * np.exp(-pair.square / (2 * self.length**2))
        return covariance

    def at(self, place: Vector) -> Vector:
        """The variance at standardised features, shape (m, k) to (m,)."""
        level = _MEAN_VARIANCE + self.bend**2
        variance: Vector = level + self.slope**2 * (place**2).sum(axis=1)
        return variance


@dataclass(frozen=True, slots=True)
class _Pair:
    """What all kernels need of two sets of runs: products and squared distances of their features, (m, n).

    Distances are divided by the number of features, so that lengths mean the same whatever the device offers.
    """

    inner: Vector
    square: Vector

    @classmethod
    def of(cls, left: Vector, right: Vector) -> "_Pair":
        """For standardised features, shape (m, k) and (n, k)."""
        square = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=-1)
        return cls(left @ right.T, square / max(1, left.shape[1]))


def _kernels() -> tuple[_Kernel, ...]:
    flat = [_Kernel(slope, 0.0, 1.0) for slope in _SLOPES]
    return (*flat, *(_Kernel(*point) for point in product(_SLOPES, _BENDS, _LENGTHS)))


_KERNELS: Final = _kernels()
_NOISE_VARIANCES: Final = np.square(_NOISES)


@dataclass(frozen=True, slots=True)
class _Solved:
    """One kernel's covariance of the training runs, taken apart so that every noise is a division.

    Attributes:
        kernel: The kernel.
        basis: Eigenvectors, shape (n, n).
        spread: Eigenvalues with each noise added, shape (5, n).
        pull: The training residuals in that basis over `spread`, shape (5, n).
        log_evidence: The marginal likelihood's logarithm, up to a constant, shape (5,).
    """

    kernel: _Kernel
    basis: Vector
    spread: Vector
    pull: Vector
    log_evidence: Vector


@dataclass(frozen=True, slots=True, eq=False)
class _Posterior:
    """The mixture over the grid, conditioned on the training runs; all in standardised units.

    Attributes:
        place: The training runs' features, shape (n, k).
        solved: The kernels.
        weight: The weight of each kernel and noise, shape (30, 5), summing to 1.
        errors: Absolute errors on runs left out, shape (n,).
        usual_sd: The median of the predictive spread at the training runs.
    """

    place: Vector
    solved: tuple[_Solved, ...]
    weight: Vector
    errors: Vector
    usual_sd: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EfficiencyModel:
    """The training runs' features and efficiencies: all that a prediction needs.

    Attributes:
        features: Which features, in the order of the columns.
        log_features: Natural logarithms of the features, shape (n, k).
        log_flop_per_j: Natural logarithms of operations per joule above idle, shape (n,).
    """

    features: tuple[Feature, ...]
    log_features: Vector
    log_flop_per_j: Vector
    _posterior: _Posterior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Condition the grid on the training runs."""
        residual = (self.log_flop_per_j - self._level) / self._scale
        object.__setattr__(self, "_posterior", _condition(self._standardised(self.log_features), residual))

    @property
    def n_runs(self) -> int:
        """How many runs it rests on."""
        return int(self.log_flop_per_j.size)

    @property
    def errors(self) -> Vector:
        """Errors of log F on runs left out, absolute, shape (n,)."""
        return self._posterior.errors * self._scale

    def predict(self, net_j: Vector, log_features: Vector, level: float) -> Predictions:
        """Estimates from energy above idle [J], shape (n,), and log features, shape (n, k).

        The interval is the wider of Student's t (n - 3 degrees of freedom) with the posterior's spread and
        the quantile of the errors on runs left out.
        """
        mean, sd = self._predict(log_features)
        left_out = left_out_quantile(self.errors, level)
        half = np.maximum(student_t(level, self.n_runs - 3) * sd, left_out)
        return Predictions(flop=net_j * np.exp(mean), log_half=half)

    def doubt(self, log_features: Vector) -> Vector:
        """How many times wider the posterior is than at the usual training run, shape (n,)."""
        doubt: Vector = self._predict(log_features)[1] / (self._posterior.usual_sd * self._scale)
        return doubt

    def pulled_in(self, log_features: Vector) -> Vector:
        """The features moved into the box that the training runs fill along their principal axes, (n, k).

        Of a run that lies outside, this is the nearest one that the calibration can speak of.
        """
        if not self.features:
            return log_features
        own, place = self._standardised(self.log_features), self._standardised(log_features)
        axes = np.linalg.svd(own, full_matrices=False)[2].T
        inside = np.clip(place @ axes, (own @ axes).min(axis=0), (own @ axes).max(axis=0)) @ axes.T
        pulled: Vector = inside * self._spread + self.log_features.mean(axis=0)
        return pulled

    def _predict(self, log_features: Vector) -> tuple[Vector, Vector]:
        mean, sd = _mix(self._posterior, self._standardised(log_features))
        return self._level + self._scale * mean, self._scale * sd

    @property
    def _level(self) -> float:
        return float(self.log_flop_per_j.mean())

    @property
    def _scale(self) -> float:
        return max(_CONSTANT, float(self.log_flop_per_j.std(ddof=1)))

    @property
    def _spread(self) -> Vector:
        return np.asarray(np.maximum(_CONSTANT, self.log_features.std(axis=0, ddof=1)))

    def _standardised(self, log_features: Vector) -> Vector:
        centred: Vector = (log_features - self.log_features.mean(axis=0)) / self._spread
        return centred


def fit_efficiency(
    features: tuple[Feature, ...], log_features: Vector, net_j: Vector, flop: Vector
) -> EfficiencyModel:
    """The model for training runs; features that hardly differ between them are left out.

    Of more than 500 runs it takes 500, evenly spread in their order.

    Args:
        features: Which features.
        log_features: Their natural logarithms, shape (n, k), finite.
        net_j: Energy above idle [J], shape (n,), > 0.
        flop: True operations, shape (n,), > 0.

    Raises:
        NotCalibratedError: Fewer than 8 runs.
    """
    n_runs = net_j.size
    if n_runs < FEWEST_RUNS:
        raise NotCalibratedError(
            "too few runs for the efficiency", expected=f"at least {FEWEST_RUNS}", found=str(n_runs)
        )
    taken = take_evenly(n_runs)
    log_features, net_j, flop = log_features[taken], net_j[taken], flop[taken]
    varies = log_features.std(axis=0) > _CONSTANT
    return EfficiencyModel(
        features=tuple(feature for feature, is_kept in zip(features, varies, strict=True) if is_kept),
        log_features=log_features[:, varies],
        log_flop_per_j=np.log(flop / net_j),
    )


def take_evenly(n_runs: int) -> NDArray[np.intp]:
    """The places of the runs that the model takes: all of up to 500, else 500 of them, evenly spread."""
    return np.linspace(0, n_runs - 1, min(n_runs, MOST_RUNS)).round().astype(np.intp)


def _condition(place: Vector, residual: Vector) -> _Posterior:
    """The mixture over the grid for standardised features, shape (n, k), and residuals, shape (n,)."""
    pair = _Pair.of(place, place)
    solved = tuple(_solve(kernel, pair, residual) for kernel in _KERNELS)
    evidence = np.stack([item.log_evidence for item in solved])
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    left_out = sum(
        (np.tensordot(row, _left_out(item), axes=1) for row, item in zip(weight, solved, strict=True)),
        start=np.zeros_like(residual),
    )
    posterior = _Posterior(place, solved, weight, np.abs(left_out))
    return replace(posterior, usual_sd=float(np.median(_mix(posterior, place)[1])))


def _solve(kernel: _Kernel, pair: _Pair, residual: Vector) -> _Solved:
    eigenvalue, basis = np.linalg.eigh(kernel.between(pair))
    spread = np.maximum(eigenvalue, 0.0) + _NOISE_VARIANCES[:, None]
    inner = basis.T @ residual
    pull = inner / spread
    log_evidence = -0.5 * (pull @ inner + np.log(spread).sum(axis=1))
    return _Solved(kernel, basis, spread, pull, log_evidence)


def _left_out(item: _Solved) -> Vector:
    """The error that each run shows when it is left out, for every noise, shape (5, n)."""
    alpha = item.pull @ item.basis.T
    precision = (1 / item.spread) @ (item.basis**2).T
    error: Vector = alpha / precision
    return error


def _mix(posterior: _Posterior, place: Vector) -> tuple[Vector, Vector]:
    """Mean and spread of the mixture at standardised features, shape (m, k) to two of (m,)."""
    mean, square = np.zeros(len(place)), np.zeros(len(place))
    for row, moments in zip(posterior.weight, _moments(posterior, place), strict=True):
        each_mean, variance = moments
        mean += row @ each_mean
        square += row @ (variance + each_mean**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _moments(posterior: _Posterior, place: Vector) -> Iterator[tuple[Vector, Vector]]:
    """Mean and variance of each kernel's predictions, noise included, shape (5, m) both."""
    pair = _Pair.of(place, posterior.place)
    for item in posterior.solved:
        across = item.kernel.between(pair) @ item.basis
        mean = item.pull @ across.T
        variance = item.kernel.at(place) + _NOISE_VARIANCES[:, None] - (1 / item.spread) @ (across**2).T
        yield mean, np.maximum(variance, 0.0)
