"""Case h12: zones overlap. Packages and memory add up; cores, graphics and the platform's meter do not."""

from pathlib import Path
from typing import Any

import pytest

from flopwitness.measure.host_energy import HostEnergy, measure_hosts
from flopwitness.measure.samples import Scope, Timing, Trace
from flopwitness.measure.sources.powercap import FORMATS
from flopwitness.measure.sources.source import Source


@pytest.fixture(scope="module")
def trace(cases: Path) -> Trace:
    data = (cases / "h12_rapl_zone_tree" / "rapl.csv").read_bytes()
    assert FORMATS[0].is_it(data, "rapl.csv")
    return FORMATS[0].decode(Source(blocks=[data], where="rapl.csv", device="host"))


@pytest.fixture(scope="module")
def energies_j(trace: Trace) -> dict[tuple[Scope, str], float]:
    return {(one.scope, one.part): float(one.value[-1] - one.value[0]) for one in trace.series}


def _host_energy(trace: Trace) -> HostEnergy:
    (host,) = measure_hosts(trace)
    return host.energy


def test_every_zone_is_read_with_its_scope(trace: Trace, energies_j: dict[tuple[Scope, str], float]) -> None:
    assert list(energies_j) == [
        (Scope.CPU, "package-0"),
        (Scope.CPU_PART, "package-0/core"),
        (Scope.CPU_PART, "package-0/uncore"),
        (Scope.DRAM, "package-0/dram"),
        (Scope.PLATFORM, ""),
    ]
    assert {len(one) for one in trace.series} == {2}
    assert {one.timing for one in trace.series} == {Timing.COUNTED}
    assert {one.counter_range_j for one in trace.series} == {262_143.328850}
    assert trace.n_skipped == 0


def test_packages_and_memory_add_up_and_nothing_else(
    expected: dict[str, Any], trace: Trace, energies_j: dict[tuple[Scope, str], float]
) -> None:
    energy = _host_energy(trace)
    expect = expected["expect"]
    assert energies_j[Scope.CPU, "package-0"] == expect["cpu_package_j"]
    assert energies_j[Scope.DRAM, "package-0/dram"] == expect["dram_j"]
    assert energies_j[Scope.CPU_PART, "package-0/core"] == expect["core_share_of_package_j"]
    assert energy.cpu_plus_dram_j == expect["cpu_plus_dram_j"]
    assert energy.platform_j == expect["platform_psys_j"]


def test_the_wrong_answers_are_given_nowhere(
    expected: dict[str, Any], trace: Trace, energies_j: dict[tuple[Scope, str], float]
) -> None:
    energy = _host_energy(trace)
    given = {energy.cpu_j, energy.dram_j, energy.cpu_plus_dram_j, energy.platform_j}
    wrong = expected["wrong_answers"]
    assert sum(energies_j.values()) == wrong["all_zones_added_j"]
    assert wrong["all_zones_added_j"] not in given
    assert wrong["package_minus_dram_j"] not in given
    assert wrong["psys_plus_package_j"] not in given
    # 21,000 J are the platform's own; as a sum of the package and its cores they are given by none.
    assert energy.cpu_j != wrong["package_plus_core_j"]
    assert energy.cpu_plus_dram_j != wrong["package_plus_core_j"]
