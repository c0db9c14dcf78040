"""Zones: the tree is no sum, and each says what it covers."""

import pytest

from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.held_readings import HeldReadings
from flopwitness.measure.sources.powercap_zones import ZONE_ID, ZoneReadings, place_zone
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source

NAMES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "uncore",
    "intel-rapl:0:2": "dram",
    "intel-rapl:1": "psys",
    "intel-rapl:2": "package-1-die-1",
    "intel-rapl-mmio:0": "package-0",
    "intel-rapl:9": "dlvr",
}


@pytest.mark.parametrize(
    ("zone", "scope", "part"),
    [
        ("intel-rapl:0", Scope.CPU, "package-0"),
        ("intel-rapl:2", Scope.CPU, "package-1-die-1"),
        ("intel-rapl:0:0", Scope.CPU_PART, "package-0/core"),
        ("intel-rapl:0:1", Scope.CPU_PART, "package-0/uncore"),
        ("intel-rapl:0:2", Scope.DRAM, "package-0/dram"),
        ("intel-rapl:1", Scope.PLATFORM, ""),
        ("intel-rapl-mmio:0", Scope.CPU_PART, "mmio/package-0"),
        ("intel-rapl:9", Scope.UNKNOWN, "dlvr"),
        ("intel-rapl:7", Scope.UNKNOWN, "intel-rapl:7"),
    ],
)
def test_a_zone_is_what_its_name_and_its_parent_say(zone: str, scope: Scope, part: str) -> None:
    assert place_zone(zone, NAMES) == (scope, part)


@pytest.mark.parametrize(
    ("zone", "scope", "part"),
    [("package-3", Scope.CPU, "package-3"), ("core", Scope.CPU_PART, "core"), ("dram", Scope.DRAM, "dram")],
)
def test_a_zone_without_an_identifier_goes_by_its_name(zone: str, scope: Scope, part: str) -> None:
    assert place_zone(zone, {zone: zone}) == (scope, part)


@pytest.mark.parametrize("text", ["intel-rapl", "intel-rapl:", "intel:0", "rapl:0:1", "intel-rapl:12345"])
def test_what_is_no_identifier_is_none(text: str) -> None:
    assert ZONE_ID.fullmatch(text) is None


def test_zones_of_one_name_stay_apart() -> None:
    source = Source(blocks=[], where="z", device="host")
    zones = ZoneReadings(source, HeldReadings("z"))
    for zone in ("intel-rapl:1", "intel-rapl:4"):
        zones.name(zone, "psys")
        zones.limit(zone, 5e6)
        zones.add(zone, 1e6, stamp=None, line=1)
    trace = zones.trace(Recording(source, times=Times.COUNTED))
    assert [(one.scope, one.part) for one in trace.series] == [
        (Scope.PLATFORM, ""),
        (Scope.PLATFORM, "platform@intel-rapl:4"),
    ]
    assert [one.counter_range_j for one in trace.series] == [5.0, 5.0]


@pytest.mark.parametrize("range_uj", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_range_says_nothing(range_uj: float) -> None:
    zones = ZoneReadings(Source(blocks=[], where="z", device="host"), HeldReadings("z"))
    zones.limit("intel-rapl:0", range_uj)
    assert zones.ranges_j == {}


def test_the_first_name_of_a_zone_counts() -> None:
    zones = ZoneReadings(Source(blocks=[], where="z", device="host"), HeldReadings("z"))
    zones.name("intel-rapl:0", "package-0")
    zones.name("intel-rapl:0", "package-1")
    assert zones.names == {"intel-rapl:0": "package-0"}
