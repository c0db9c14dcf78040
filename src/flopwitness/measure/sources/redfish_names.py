"""What a Redfish name stands for: which device, which scope, which unit.

The same property is a server's in one place and a GPU's in another; only the path of the resource and the
names of chassis and sensors tell them apart. What these do not tell is of unknown scope, never a node's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.foundation.encoding import JsonValue
from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.samples import Channel, Scope

__all__ = ["Named", "name_members", "name_metric", "name_place", "name_sensor"]

_RESOURCE: Final = re.compile(r"/(Chassis|Systems|Processors|Memory|Sensors)/([^/#?]{1,100})")
_GPU: Final = re.compile(r"gpu|accelerator", re.IGNORECASE)
_CPU: Final = re.compile(r"cpu", re.IGNORECASE)
_BOARD: Final = re.compile(r"hgx|baseboard|nvswitch|pcie|switch", re.IGNORECASE)
_TOTAL: Final = re.compile(r"total|consum|(?:chassis|system|server|node).?power|power.?meter", re.IGNORECASE)
_CONTEXTS: Final = {
    "GPU": Scope.GPU,
    "GPUSubsystem": Scope.UNKNOWN,
    "Accelerator": Scope.GPU,
    "CPU": Scope.CPU,
    "CPUSubsystem": Scope.CPU,
    "Memory": Scope.DRAM,
    "MemorySubsystem": Scope.DRAM,
    "Chassis": Scope.NODE,
}
_IN_NODE: Final = {"CPU": Scope.CPU, "Memory": Scope.DRAM, "GPU": Scope.GPU, "Accelerator": Scope.GPU}
_UNITS: Final = {
    "W": (Channel.POWER_W, 1.0),
    "kW.h": (Channel.ENERGY_COUNTER_J, float(JOULE_PER_KWH)),
    "J": (Channel.ENERGY_COUNTER_J, 1.0),
}
_LAST_NAMES: Final = (
    ("/PowerConsumedWatts", Channel.POWER_W, 1.0),
    ("/AverageConsumedWatts", Channel.POWER_AVERAGE_W, 1.0),
    ("/PowerWatts/Reading", Channel.POWER_W, 1.0),
    ("/PowerWatts", Channel.POWER_W, 1.0),
    ("/EnergykWh/Reading", Channel.ENERGY_COUNTER_J, float(JOULE_PER_KWH)),
    ("/EnergykWh", Channel.ENERGY_COUNTER_J, float(JOULE_PER_KWH)),
    ("/EnergyJoules/Reading", Channel.ENERGY_COUNTER_J, 1.0),
    ("/EnergyJoules", Channel.ENERGY_COUNTER_J, 1.0),
)
_SENSOR_ENDS: Final = re.compile(r"(.*)_(Power|Energy)_[0-9]{1,3}")
_METRIC_IDS: Final = {  # of Dell's telemetry, whose properties name no unit
    "SystemInputPower": Scope.NODE_AC,
    "SystemOutputPower": Scope.NODE_DC,
    "SystemPowerConsumption": Scope.NODE,
    "TotalCPUPower": Scope.CPU,
    "TotalMemoryPower": Scope.DRAM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Whose a figure is.

    Attributes:
        name: The chassis, system or processor; "" where the path names none.
        scope: What the figure covers.
        part: What of it; "" for all.
    """

    name: str
    scope: Scope
    part: str = ""


def name_place(path: str) -> Named:
    """Whose the figures of a resource are, by its path, such as `/redfish/v1/Chassis/1U/Power`."""
    places: list[tuple[str, str]] = [
        (kind, name) for kind, name in _RESOURCE.findall(path) if kind != "Sensors"
    ]
    if not places:
        return Named(name="", scope=Scope.NODE)
    kind, name = places[-1]
    if _GPU.search(name):
        return Named(name=name, scope=Scope.GPU)
    if kind == "Memory":
        return Named(name=name, scope=Scope.DRAM)
    if kind == "Processors" or _CPU.search(name):
        return Named(name=name, scope=Scope.CPU)
    return Named(name=name, scope=Scope.UNKNOWN if _BOARD.search(name) else Scope.NODE)


def name_members(place: Named, members: Sequence[Mapping[str, JsonValue]]) -> list[Named]:
    """Whose the figures of each `PowerControl` member are.

    Members that say that they are of processors or of memory are so. Of those left over one alone is the
    whole; several may be a total and its parts, and are parts all.
    """
    scopes = [_IN_NODE.get(str(member.get("PhysicalContext")), place.scope) for member in members]
    is_alone = scopes.count(place.scope) == 1
    return [
        replace(
            place, scope=scope, part="" if is_alone and scope is place.scope else _member_name(member, index)
        )
        for index, (member, scope) in enumerate(zip(members, scopes, strict=True))
    ]


def _member_name(member: Mapping[str, JsonValue], index: int) -> str:
    name = member.get("MemberId")
    return name[:100] if isinstance(name, str) and name else str(index)


def name_sensor(document: Mapping[str, JsonValue]) -> tuple[Channel, Named, float] | None:
    """Channel, place and scale of a `Sensor` document; None where it reads neither power nor energy."""
    unit = _UNITS.get(str(document.get("ReadingUnits")))
    if unit is None:
        return None
    path, own = str(document.get("@odata.id", ""))[:1_000], str(document.get("Id", ""))[:100]
    place = name_place(path)
    context = document.get("PhysicalContext")
    if isinstance(context, str) and context:
        place = replace(place, scope=_CONTEXTS.get(context, Scope.UNKNOWN))
    return unit[0], _named_part(place, own), unit[1]


def name_metric(metric: str, path: str) -> tuple[Channel, Named, float] | None:
    """Channel, place and scale of one value of a report; None where it is none of power or energy."""
    place = name_place(path)
    path = path.replace("#", "")
    for end, channel, scale in _LAST_NAMES:
        if path.endswith(end):
            is_average = channel is Channel.POWER_W and metric.startswith(("Average", "Avg"))
            return Channel.POWER_AVERAGE_W if is_average else channel, place, scale
    scope = _METRIC_IDS.get(metric)
    if scope is not None:
        return Channel.POWER_W, replace(place, scope=scope), 1.0
    own = next((name for kind, name in reversed(_RESOURCE.findall(path)) if kind == "Sensors"), "")
    found = _SENSOR_ENDS.fullmatch(own)
    if found is None:
        return None
    channel = Channel.POWER_W if found[2] == "Power" else Channel.ENERGY_COUNTER_J
    return channel, place if found[1] == place.name else replace(place, part=own), 1.0


def _named_part(place: Named, sensor: str) -> Named:
    """A sensor that reads a total has its chassis' figure; any other is a part of it."""
    found = _SENSOR_ENDS.fullmatch(sensor)
    is_whole = found[1] == place.name if found is not None else _TOTAL.search(sensor) is not None
    return place if is_whole else replace(place, part=sensor)
