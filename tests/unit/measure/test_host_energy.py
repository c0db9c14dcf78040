"""A host's energy: packages and memory add up, and nothing else does."""

import math

import pytest

from flopwitness.measure.host_energy import HostEnergy, add_host_energy
from flopwitness.measure.samples import Scope

CPU, DRAM, RAIL, PLATFORM = Scope.CPU, Scope.DRAM, Scope.CPU_PART, Scope.PLATFORM


def test_packages_and_memory_add_up_and_the_platform_stands_apart() -> None:
    energy = add_host_energy(
        {
            (CPU, "package-0"): 100.0,
            (CPU, "package-1"): 50.0,
            (DRAM, "package-0/dram"): 20.0,
            (RAIL, "package-0/core"): 80.0,
            (RAIL, "package-0/uncore"): 5.0,
            (PLATFORM, ""): 400.0,
            (Scope.GPU, "0"): 1_000.0,
        }
    )
    assert energy == HostEnergy(cpu_j=150.0, dram_j=20.0, platform_j=400.0)
    assert energy.cpu_plus_dram_j == 170.0


def test_the_figure_of_the_whole_holds_its_parts() -> None:
    energy = add_host_energy({(CPU, ""): 150.0, (CPU, "package-0"): 100.0, (DRAM, ""): 0.0})
    assert (energy.cpu_j, energy.cpu_plus_dram_j) == (150.0, 150.0)


@pytest.mark.parametrize(
    "energies_j",
    [
        {},
        {(CPU, ""): 5.0},
        {(DRAM, ""): 5.0},
        {(RAIL, "core"): 5.0},
        {(CPU, ""): math.nan, (DRAM, ""): 5.0},
        {(CPU, "package-0"): 5.0, (CPU, "package-1"): math.nan, (DRAM, ""): 5.0},
    ],
)
def test_what_is_not_known_is_no_sum(energies_j: dict[tuple[Scope, str], float]) -> None:
    assert add_host_energy(energies_j).cpu_plus_dram_j is None


def test_one_part_that_is_not_known_leaves_the_others() -> None:
    energy = add_host_energy({(CPU, ""): 5.0, (PLATFORM, ""): math.nan})
    assert energy == HostEnergy(cpu_j=5.0, dram_j=None, platform_j=None)
