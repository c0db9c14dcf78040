"""The energy of a host's processors and memory, from domains that overlap.

The domains that a processor meters are no partition: cores and its own graphics lie inside a package, memory
does not, and the platform's meter covers all of them. Adding them all counts some twice; taking memory away
from the package takes away what was never in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from flopwitness.measure.samples import Scope

__all__ = ["HostEnergy", "add_host_energy"]


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
