"""What was tried beside the shipped kernel, on the same splits: none is better everywhere.

    python -m campaigns.kernel_variants [--shared DIR] [--splits 60]

One of them is a placebo: readings per second, which can say nothing of how much was computed. What it "gains"
is the noise of such a comparison. Seed 7, which no other table uses.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from campaigns.published_experiment import SETS, Recorded, busy_rows, known, read_table
from numpy.typing import NDArray

from flopwitness.challenge.evaluation.splits import Split, random_splits
from flopwitness.challenge.evaluation.table import KnownRuns
from flopwitness.measure.calibration.fitted import offered_features
from flopwitness.measure.observed import log_features, settle_net_energy

Vector = NDArray[np.float64]
Square = Callable[[Vector, Vector], Iterable[Vector]]

_SEED: Final = 7
_GRID: Final = tuple(product((0.15, 0.3, 0.6), (0.0, 0.4, 0.8, 1.2), (0.1, 0.2, 0.35, 0.6, 0.9)))


def _one_length(lengths: Sequence[float]) -> Square:
    """Squared distances over 2 l^2 k, one a length."""

    def distances(left: Vector, right: Vector) -> Iterable[Vector]:
        square = ((left[:, None] - right[None]) ** 2).sum(axis=-1)
        return [square / (2 * length**2 * left.shape[1]) for length in lengths]

    return distances


def _own_lengths(lengths: Sequence[float]) -> Square:
    """The same with a length for each feature."""

    def distances(left: Vector, right: Vector) -> Iterable[Vector]:
        square = (left[:, None] - right[None]) ** 2
        for point in product(lengths, repeat=left.shape[1]):
            yield (square / (2 * np.square(point) * left.shape[1])).sum(axis=-1)

    return distances


def _smooth(scaled: Vector) -> Vector:
    return np.exp(-scaled)


def _rough(scaled: Vector) -> Vector:
    """Matern with 3/2: once differentiable."""
    root = np.sqrt(6 * scaled)
    return (1 + root) * np.exp(-root)


_USUAL: Final = _one_length((0.5, 1.0, 2.0))


def predict(
    train: Vector,
    target: Vector,
    judge: Vector,
    *,
    distances: Square = _USUAL,
    shape: Callable[[Vector], Vector] = _smooth,
    bends: Sequence[float] = (0.0,),
) -> Vector:
    """The evidence-averaged prediction by one covariance a grid point, written out plainly."""
    centre, spread = train.mean(axis=0), train.std(axis=0, ddof=1)
    own, other = (train - centre) / spread, (judge - centre) / spread
    level, scale = target.mean(), target.std(ddof=1)
    residual = (target - level) / scale
    means, evidence = [], []
    for within, across in zip(distances(own, own), distances(other, own), strict=True):
        for (slope, bend, noise), quad in product(_GRID, bends):
            inner, outer = own @ own.T, other @ own.T
            covariance = 4 + slope**2 * inner + quad**2 * inner**2 + bend**2 * shape(within)
            covariance += noise**2 * np.eye(len(own))
            cross = 4 + slope**2 * outer + quad**2 * outer**2 + bend**2 * shape(across)
            root = np.linalg.cholesky(covariance)
            alpha = np.linalg.solve(root.T, np.linalg.solve(root, residual))
            means.append(cross @ alpha)
            evidence.append(-0.5 * residual @ alpha - np.log(np.diag(root)).sum())
    weight = np.exp(np.array(evidence) - max(evidence))
    return np.asarray(level + scale * (weight / weight.sum()) @ np.array(means))


def _features(runs: KnownRuns) -> Vector:
    net = settle_net_energy(runs.observed)
    return log_features(runs.observed, net, offered_features(runs.observed, net))


def _with_cells(runs: KnownRuns, make: Callable[[Callable[[str], Vector]], Vector]) -> Vector:
    """The features and one more, made of the table's own cells."""
    return np.column_stack(
        [_features(runs), make(lambda name: np.array([float(text) for text in runs.values(name)]))]
    )


def _whitened(runs: KnownRuns) -> Vector:
    features = _features(runs)
    root = np.linalg.cholesky(np.cov(features.T))
    return np.asarray((features - features.mean(axis=0)) @ np.linalg.inv(root).T)


def _ratios(runs: KnownRuns) -> Vector:
    """Power, and then each traffic over the one before it."""
    features = _features(runs)
    return np.column_stack([features[:, :2], np.diff(features[:, 1:], axis=1)])


VARIANTS: Final[dict[str, tuple[Callable[[KnownRuns], Vector], dict[str, object]]]] = {
    "as shipped": (_features, {}),
    "a length for each feature": (_features, {"distances": _own_lengths((0.6, 1.2, 4.0))}),
    "more lengths": (_features, {"distances": _one_length((0.25, 0.5, 1.0, 2.0, 4.0))}),
    "a quadratic term": (_features, {"bends": (0.0, 0.1, 0.2)}),
    "a rougher kernel": (_features, {"shape": _rough}),
    "whitened features": (_whitened, {}),
    "whitened, rougher": (_whitened, {"shape": _rough}),
    "ratios of traffics": (_ratios, {}),
    "and log utilisation": (
        lambda runs: _with_cells(runs, lambda of: np.log(of("mean_utilisation_pct"))),
        {},
    ),
    "and a placebo": (
        lambda runs: _with_cells(runs, lambda of: np.log(of("n_power_samples") / of("duration_s"))),
        {},
    ),
}


def _errors(runs: KnownRuns, splits: Sequence[Split], name: str) -> Vector:
    make, options = VARIANTS[name]
    features = make(runs)
    net_j = settle_net_energy(runs.observed).of(runs.observed)
    target = np.log(runs.flop / net_j)
    parts = [
        np.exp(predict(features[s.train], target[s.train], features[s.test], **options) - target[s.test]) - 1  # type: ignore[arg-type]
        for s in splits
    ]
    return np.asarray(np.abs(np.concatenate(parts)))


def _judge(shared: Path, item: Recorded, n_splits: int) -> None:
    runs = known(busy_rows(read_table(shared, item.path), item.precision))
    splits = list(random_splits(runs.workload, n_train=item.n_train, n_splits=n_splits, seed=_SEED))
    for name in VARIANTS:
        error = 100 * _errors(runs, splits, name)
        print(
            f"| {item.name} | {name} | {error.mean():.2f} | {np.median(error):.2f} "
            f"| {np.quantile(error, 0.95):.1f} | {error.max():.1f} |",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Kernels that were tried, on the same splits.")
    default = Path(os.environ.get("FLOPWITNESS_SHARED_DATA", "../shared"))
    parser.add_argument("--shared", type=Path, default=default)
    parser.add_argument("--splits", type=int, default=60)
    arguments = parser.parse_args()
    print("| set | kernel | mean, % | median | 95 % | largest |\n|---|---|---|---|---|---|")
    for item in (SETS[0], SETS[3]):
        _judge(arguments.shared, item, arguments.splits)


if __name__ == "__main__":
    main()
