"""A host's energy: packages and memory add up, and nothing else does."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.measure.host_energy import HostEnergy, add_host_energy, measure_hosts
from flopwitness.measure.samples import Channel, Scope, Series, Trace

MakeSeries = Callable[..., Series]

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


def _domain(make: MakeSeries, values: list[float], scope: Scope, *, power: bool = False) -> Series:
    channel = Channel.POWER_W if power else Channel.ENERGY_COUNTER_J
    return make(values, channel=channel, scope=scope, device="node")


def test_a_host_is_measured_by_its_counters_where_it_has_them(make_series: MakeSeries) -> None:
    trace = Trace(
        series=(
            _domain(make_series, [7.0] * 11, CPU, power=True),
            _domain(make_series, [100.0 + 5.0 * i for i in range(11)], CPU),
            _domain(make_series, [2.0] * 11, DRAM, power=True),
            _domain(make_series, [9.0] * 11, Scope.GPU, power=True),
            replace(_domain(make_series, [3.0] * 11, PLATFORM, power=True), device="other"),
        )
    )
    node, other = measure_hosts(trace)
    assert (node.device, node.coverage) == ("node", 1.0)
    assert node.energy == HostEnergy(cpu_j=50.0, dram_j=20.0, platform_j=None)
    assert (other.device, other.energy) == ("other", HostEnergy(cpu_j=None, dram_j=None, platform_j=30.0))


def test_the_least_covered_domain_gives_the_coverage(make_series: MakeSeries) -> None:
    holed = [2.0 if i < 25 or i > 74 else math.nan for i in range(101)]
    trace = Trace(
        series=(
            _domain(make_series, [5.0 * i for i in range(101)], CPU),
            _domain(make_series, holed, DRAM, power=True),
        )
    )
    (host,) = measure_hosts(trace)
    assert host.coverage == pytest.approx(0.49)


@pytest.mark.parametrize("values", [[500.0] * 61, [math.nan] * 61, [500.0]])
def test_a_counter_that_tells_nothing_gives_no_energy(make_series: MakeSeries, values: list[float]) -> None:
    (host,) = measure_hosts(Trace(series=(_domain(make_series, values, CPU),)))
    assert (host.energy.cpu_j, host.coverage) == (None, 0.0)


def test_without_a_hosts_meter_there_is_no_host(make_series: MakeSeries) -> None:
    assert measure_hosts(Trace(series=(_domain(make_series, [9.0] * 5, RAIL),))) == ()


def test_a_domain_of_another_time_is_not_added(make_series: MakeSeries) -> None:
    """Two summaries in one file: memory was metered in the first alone."""
    cpu = _domain(make_series, [100.0 * i for i in range(61)], CPU)
    memory = _domain(make_series, [10.0 * i for i in range(6)], DRAM)
    (host,) = measure_hosts(Trace(series=(cpu, memory)))
    assert host.energy == HostEnergy(cpu_j=6_000.0, dram_j=None, platform_j=None)
    assert host.coverage == 1.0
