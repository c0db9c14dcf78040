"""The energy of a host's processors and memory, from domains that overlap.

The domains that a processor meters are no partition: cores and its own graphics lie inside a package, memory
does not, and the platform's meter covers all of them. Adding them all counts some twice; taking memory away
from the package takes away what was never in it.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flopwitness.measure.counters import integrate_counter
from flopwitness.measure.energy import Energy, integrate_power, recorded_stretch
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Trace
from flopwitness.measure.sources.result_log import join_extents

__all__ = ["HostEnergy", "HostUse", "add_host_energy", "measure_hosts"]

_SCOPES: Final = (Scope.CPU, Scope.DRAM, Scope.PLATFORM)
_CHANNELS: Final = (Channel.ENERGY_COUNTER_J, Channel.POWER_W, Channel.POWER_AVERAGE_W)  # the first counts
_FEWEST_FILLED: Final = 0.95  # of the host's time; domains are not always read at the same instants


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnergy:
    """What a host used, by figures that may not be added to each other.

    Attributes:
        cpu_j: All processor packages [J]; None where one is not known, or there is none.
        dram_j: The host's memory [J]; None likewise.
        platform_j: What the board's own meter covers [J], packages and memory and more; None likewise.
    """

    cpu_j: float | None
    dram_j: float | None
    platform_j: float | None

    @property
    def cpu_plus_dram_j(self) -> float | None:
        """Packages and memory, which do not overlap; None where either is not known."""
        if self.cpu_j is None or self.dram_j is None:
            return None
        return self.cpu_j + self.dram_j


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What one recorded host used, over the time that its readings cover.

    Attributes:
        device: The host's name in the recording.
        energy: Its energy from the first to the last reading of any of its domains; gaps hold a straight
            line between two readings. A domain that was read over another or a shorter time is not known.
        coverage: Share of that time that the least covered of the known domains has, 0 to 1.
    """

    device: str
    energy: HostEnergy
    coverage: float


def measure_hosts(trace: Trace) -> tuple[HostUse, ...]:
    """The energy of each host whose processors, memory or platform were metered, in order of the recording.

    Args:
        trace: The recording. Where a domain has a counter and power, the counter counts.
    """
    hosts: dict[str, dict[tuple[Scope, str], Series]] = defaultdict(dict)
    for channel in _CHANNELS:
        for series in trace.series:
            if series.channel is channel and series.scope in _SCOPES and len(series):
                hosts[series.device].setdefault((series.scope, series.part), series)
    return tuple(_measure_host(device, domains) for device, domains in hosts.items())


def _measure_host(device: str, domains: Mapping[tuple[Scope, str], Series]) -> HostUse:
    window = join_extents(recorded_stretch(series) for series in domains.values())
    energies = {key: _integrate(series, window) for key, series in domains.items()}
    known = {key: energy for key, energy in energies.items() if _is_known(energy)}
    shown_j = {key: known[key].shown_j if key in known else math.nan for key in energies}
    return HostUse(
        device=device,
        energy=add_host_energy(shown_j),
        coverage=min((energy.coverage for energy in known.values()), default=0.0),
    )


def _integrate(series: Series, window: RunWindow | None) -> Energy:
    is_counter = series.channel is Channel.ENERGY_COUNTER_J
    return integrate_counter(series, window=window) if is_counter else integrate_power(series, window=window)


def _is_known(energy: Energy) -> bool:
    """Whether the readings tell of the host's time; what a counter that stands still counted is not known."""
    is_told = energy.covered_s > 0 or energy.shown_j > 0
    return is_told and energy.covered_s + energy.bridged_s >= _FEWEST_FILLED * energy.claimed_s


def add_host_energy(energies_j: Mapping[tuple[Scope, str], float]) -> HostEnergy:
    """A host's energy out of that of its domains.

    Args:
        energies_j: The energy of each domain, by its scope and part as a trace has them; NaN where it is not
            known. Scopes other than CPU, DRAM and PLATFORM lie inside these or elsewhere, and do not count.

    Returns:
        Of each scope the figure of the whole where there is one, else the sum of its parts: a package's part
        lies inside all packages.
    """
    return HostEnergy(
        cpu_j=_sum(energies_j, Scope.CPU),
        dram_j=_sum(energies_j, Scope.DRAM),
        platform_j=_sum(energies_j, Scope.PLATFORM),
    )


def _sum(energies_j: Mapping[tuple[Scope, str], float], scope: Scope) -> float | None:
    parts = {part: energy_j for (own, part), energy_j in energies_j.items() if own is scope}
    total_j = parts[""] if "" in parts else sum(parts.values())
    return total_j if parts and math.isfinite(total_j) else None
