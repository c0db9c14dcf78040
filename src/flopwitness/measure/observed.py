"""All that an estimator may see of a run: energy, idle power, time and traffic.

Hyperparameters, step counts, names and utilisation are not among it. They cannot reach a prediction because
there is no field that would carry them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_LOG",
    "Feature",
    "NetEnergy",
    "NetKind",
    "ObservedRuns",
    "log_features",
    "observe",
    "pool_means",
    "settle_net_energy",
]

Vector = NDArray[np.float64]

LARGEST_LOG: Final = 230.0
"""e^230 is 1e100: no reading, and no ratio of two, comes near it in any unit."""


class Feature(StrEnum):
    """What a run looks like, whatever its length: all intensive, so that FLOP scales with energy."""

    POWER = "power_w"
    MEMORY = "memory_tb_per_j"
    LINK = "link_tb_per_j"
    HOST = "host_tb_per_j"

    @property
    def unit(self) -> str:
        """The unit."""
        return "W" if self is Feature.POWER else "TB/J"

    @property
    def is_traffic(self) -> bool:
        """Whether a traffic counter is behind it."""
        return self is not Feature.POWER


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRuns:
    """Runs as their sensors saw them: arrays of shape (n,), NaN where nothing was recorded.

    Attributes:
        duration_s: Length [s], pauses included.
        busy_s: What of it the chips worked [s]; a run table, which does not say, has it equal to the length.
        energy_j: Energy of all chips together, idle included [J].
        net_energy_j: Energy above idle as the record itself gives it [J].
        idle_w: Power of all chips together at rest, as the record gives it [W].
        memory_tb: Memory traffic [TB, or the counter's own unit].
        link_tb: Traffic between chips [TB].
        host_tb: Traffic with the host [TB].
    """

    duration_s: Vector
    busy_s: Vector
    energy_j: Vector
    net_energy_j: Vector
    idle_w: Vector
    memory_tb: Vector
    link_tb: Vector
    host_tb: Vector

    def __len__(self) -> int:
        """How many runs."""
        return int(self.duration_s.size)

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_] | slice) -> "ObservedRuns":
        """Some of the runs, in the order of `index`."""
        return ObservedRuns(**{item.name: getattr(self, item.name)[index] for item in fields(self)})

    def filled(self, net: "NetEnergy") -> "ObservedRuns":
        """The runs with both energies where one of them and the idle power give the other."""
        net_j = net.of(self)
        energy_j = np.where(np.isfinite(self.energy_j), self.energy_j, net_j + net.idle_w * self.duration_s)
        return replace(self, energy_j=energy_j, net_energy_j=net_j)

    def pooled(self, group: NDArray[np.intp]) -> "ObservedRuns":
        """One run for each group, the mean of its runs: repeats of a workload teach once, and more surely.

        Args:
            group: The number of each run's group, 0 to m - 1, shape (n,).
        """
        return ObservedRuns(
            **{item.name: pool_means(getattr(self, item.name), group) for item in fields(self)}
        )

    def traffic_tb(self, feature: Feature) -> Vector:
        """The traffic behind a feature [TB].

        Raises:
            KeyError: The feature is none of traffic.
        """
        return {Feature.MEMORY: self.memory_tb, Feature.LINK: self.link_tb, Feature.HOST: self.host_tb}[
            feature
        ]


def pool_means(values: Vector, group: NDArray[np.intp]) -> Vector:
    """The mean of each group, shape (n,) to (m,); NaN where one of its values is."""
    pooled: Vector = np.bincount(group, weights=values) / np.bincount(group)
    return pooled


class _Recorded(Protocol):
    """What a record of one run gives, such as a row of a table."""

    @property
    def duration_s(self) -> float | None: ...
    @property
    def energy_j(self) -> float | None: ...
    @property
    def net_energy_j(self) -> float | None: ...
    @property
    def idle_power_w(self) -> float | None: ...
    @property
    def memory_traffic_tb(self) -> float | None: ...
    @property
    def link_traffic_tb(self) -> float | None: ...
    @property
    def host_traffic_tb(self) -> float | None: ...


_SOURCES: Final = {
    "duration_s": "duration_s",
    "busy_s": "duration_s",
    "energy_j": "energy_j",
    "net_energy_j": "net_energy_j",
    "idle_w": "idle_power_w",
    "memory_tb": "memory_traffic_tb",
    "link_tb": "link_traffic_tb",
    "host_tb": "host_traffic_tb",
}


def observe(records: Sequence[_Recorded]) -> ObservedRuns:
    """What the sensors saw of each run; everything else in the records is left behind."""
    columns = {
        name: np.array([_or_nan(getattr(record, source)) for record in records], dtype=np.float64)
        for name, source in _SOURCES.items()
    }
    return ObservedRuns(**columns)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


class NetKind(StrEnum):
    """How energy above idle is made."""

    POOLED_IDLE = "pooled-idle"  # total energy less one idle power for all runs
    RECORDED = "recorded"  # as each record gives it: no idle power is known
    TOTAL = "total"  # idle included: nothing is known of it


@dataclass(frozen=True, slots=True, kw_only=True)
class NetEnergy:
    """How energy above idle is made of what was recorded, for calibration and use alike.

    Attributes:
        kind: The way.
        idle_w: The idle power of all chips together that is subtracted [W]; 0 unless the kind is pooled.
    """

    kind: NetKind
    idle_w: float = 0.0

    def of(self, runs: ObservedRuns) -> Vector:
        """Energy above idle [J], shape (n,); NaN where it cannot be made, and negative where idle exceeds it.

        A run whose total energy is not known keeps the net energy of its own record.
        """
        match self.kind:
            case NetKind.POOLED_IDLE:
                pooled_j = runs.energy_j - self.idle_w * runs.duration_s
                return np.where(np.isfinite(pooled_j), pooled_j, runs.net_energy_j)
            case NetKind.RECORDED:
                return runs.net_energy_j
            case NetKind.TOTAL:
                return runs.energy_j


def settle_net_energy(runs: ObservedRuns) -> NetEnergy:
    """One way for all runs, with the idle power pooled over them (its median), never one for each session.

    A session's own idle moves by a tenth from day to day, and an estimate with it.

    Source:
        The idle baseline common to calibration and use: ours, docs/adr/0008.
    """
    idle_w = runs.idle_w[np.isfinite(runs.idle_w)]
    if idle_w.size:
        return NetEnergy(kind=NetKind.POOLED_IDLE, idle_w=float(np.median(idle_w)))
    n_net = np.isfinite(runs.net_energy_j).sum()
    return NetEnergy(kind=NetKind.RECORDED if n_net >= len(runs) / 2 else NetKind.TOTAL)


def log_features(runs: ObservedRuns, net: NetEnergy, features: Sequence[Feature]) -> Vector:
    """Natural logarithms of the features, shape (n, k); NaN where one was not recorded or is not above 0.

    Power is energy above idle over busy time [W], which pauses do not move; traffic is per joule above idle
    [TB/J].
    """
    net_j = net.of(runs)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        columns = [
            net_j / runs.busy_s if feature is Feature.POWER else runs.traffic_tb(feature) / net_j
            for feature in features
        ]
        values = np.column_stack(columns) if columns else np.empty((len(runs), 0))
        logs = np.where(np.isfinite(values) & (values > 0), np.log(values), np.nan)
    return np.where(np.abs(logs) <= LARGEST_LOG, logs, np.nan)
