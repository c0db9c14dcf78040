"""Zones of the kernel's power capping framework: which lie inside which, and what each covers.

Zones form a tree, but the tree is no sum: a core or uncore zone lies inside its package, a dram zone hangs
below its package and does not lie inside it, and psys covers all of them. So each zone gets a scope, and
whoever adds up energies goes by that.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.clock_text import ClockStamp
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.recording import MOST_SERIES, Recording
from flopwitness.measure.sources.source import Source

__all__ = ["ZONE_ID", "ZoneReadings", "place_zone"]

ZONE_ID: Final = re.compile(r"(?:intel|amd)-rapl(?:-mmio)?(?::[0-9]{1,4}){1,3}")
_PACKAGE: Final = re.compile(r"package-[0-9]{1,4}(?:-die-[0-9]{1,4})?")
_MMIO: Final = "-mmio:"
_LONGEST_NAME: Final = 100


def place_zone(zone: str, names: Mapping[str, str]) -> tuple[Scope, str]:
    """What a zone covers, and which part of the machine it is.

    Args:
        zone: Its identifier such as `intel-rapl:0:2`; its name where a log has no identifiers.
        names: The name of each zone by its identifier.

    Source:
        Linux, Documentation/power/powercap and drivers/powercap/intel_rapl_common.c; Intel SDM volume 3B,
        section 15.10: a memory zone hangs below its package and is not part of its figure.
    """
    name = names.get(zone, "")
    package = names.get(zone.rpartition(":")[0], "")
    if _MMIO in zone:  # the same registers by another way: the package's own energy once more
        return Scope.CPU_PART, f"mmio/{name or zone}"
    if _PACKAGE.fullmatch(name):
        return Scope.CPU, name
    part = f"{package}/{name}" if package else name
    if name in ("core", "uncore"):
        return Scope.CPU_PART, part
    if name == "dram":
        return Scope.DRAM, part
    return (Scope.PLATFORM, "") if name == "psys" else (Scope.UNKNOWN, part or zone)


@dataclass(slots=True)
class ZoneReadings:
    """The counters of one log, until the names of all zones are known.

    Attributes:
        source: The file.
        held: The readings, by zone.
        names: The name of each zone.
        ranges_j: Where each zone's counter begins again at 0.
    """

    source: Source
    held: HeldReadings
    names: dict[str, str] = field(default_factory=dict)
    ranges_j: dict[str, float] = field(default_factory=dict)

    def name(self, zone: str, name: str) -> None:
        """Keep a zone's name."""
        if len(self.names) < MOST_SERIES:
            self.names.setdefault(zone, name[:_LONGEST_NAME])

    def limit(self, zone: str, range_uj: float) -> None:
        """Keep where a zone's counter begins again; what is no such number says nothing."""
        if 0 < range_uj < float("inf") and len(self.ranges_j) < MOST_SERIES:
            self.ranges_j.setdefault(zone, range_uj / 1e6)

    def add(
        self, zone: str, energy_uj: float, *, stamp: ClockStamp | None, line: int, number: int | None = None
    ) -> None:
        """One reading of a zone's counter."""
        figure = Figure(zone, Channel.ENERGY_COUNTER_J, Scope.UNKNOWN)
        self.held.add(figure, energy_uj / 1e6, stamp=stamp, line=line, number=number)

    def trace(self, recording: Recording) -> Trace:
        """Everything by scope and part; zones that would share these are told apart by their identifiers."""
        settled: dict[Figure, Figure] = {}
        for figure in self.held.figures:
            scope, part = place_zone(figure.device, self.names)
            named = Figure(self.source.device, figure.channel, scope, part)
            if named in settled.values():
                named = Figure(self.source.device, figure.channel, scope, f"{part or scope}@{figure.device}")
            settled[figure] = named
        ranges_j = {
            figure: self.ranges_j[figure.device] for figure in settled if figure.device in self.ranges_j
        }
        self.held.fill(recording, names=settled, ranges_j=ranges_j)
        return recording.trace()
