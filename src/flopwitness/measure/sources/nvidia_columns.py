"""What nvidia-smi reads, under one name whatever its form: CSV, plain text, XML or the device monitor.

Here stands what NVIDIA documents of its power figures. `power.draw` is the mean of the last second on Ampere
and later chips, A100 and A30 excepted, and of an instant on older ones; so it is told apart by the chip's
name, and where nothing names the chip, a reading may be a mean.

Source:
    NVIDIA, NVML API reference, `nvmlDeviceGetPowerUsage`; `nvidia-smi --help-query-gpu` of driver 590.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.values import Unreadable, is_missing, parse_number

__all__ = [
    "POWER_DRAW",
    "QUANTITIES",
    "Quantity",
    "canonical_name",
    "choose_fields",
    "is_averaging",
    "parse_cell",
    "parse_whole_cell",
]

POWER_DRAW: Final = "power.draw"
"""The quantity whose meaning depends on the chip; its readings are of this part until that is settled."""
_AVERAGED_S: Final = 1.0
_MEBIBYTE: Final = float(1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One figure that nvidia-smi prints.

    Attributes:
        channel: What it is.
        scope: What it covers.
        part: What of the device.
        prefix: What stands in front of the number.
        unit: What stands behind the number, unless the tool was told to leave units out.
        factor: From its unit to the channel's.
        averaged_s: Over how long it is a mean, at most [s].
    """

    channel: Channel
    scope: Scope = Scope.GPU
    part: str = ""
    prefix: bytes = b""
    unit: bytes = b""
    factor: float = 1.0
    averaged_s: float = 0.0


def _watt(channel: Channel, scope: Scope = Scope.GPU, *, part: str = "", averaged_s: float = 0.0) -> Quantity:
    return Quantity(channel=channel, scope=scope, part=part, unit=b"W", averaged_s=averaged_s)


# Of several that mean the same, the first counts where both are there.
QUANTITIES: Final[Mapping[str, Quantity]] = {
    "power.draw.average": _watt(Channel.POWER_AVERAGE_W, averaged_s=_AVERAGED_S),
    "power.draw.instant": _watt(Channel.POWER_W),
    POWER_DRAW: _watt(Channel.POWER_W, part=POWER_DRAW, averaged_s=_AVERAGED_S),
    "module.power.draw.average": _watt(Channel.POWER_AVERAGE_W, Scope.MODULE, averaged_s=_AVERAGED_S),
    "module.power.draw.instant": _watt(Channel.POWER_W, Scope.MODULE),
    "module.power.draw": _watt(Channel.POWER_W, Scope.MODULE, averaged_s=_AVERAGED_S),
    "memory.power.draw.average": _watt(
        Channel.POWER_AVERAGE_W, Scope.RAIL, part="memory", averaged_s=_AVERAGED_S
    ),
    "memory.power.draw.instant": _watt(Channel.POWER_W, Scope.RAIL, part="memory"),
    "enforced.power.limit": _watt(Channel.POWER_LIMIT_W),
    "power.limit": _watt(Channel.POWER_LIMIT_W),
    "module.enforced.power.limit": _watt(Channel.POWER_LIMIT_W, Scope.MODULE),
    "module.power.limit": _watt(Channel.POWER_LIMIT_W, Scope.MODULE),
    "total_energy_consumption": Quantity(channel=Channel.ENERGY_COUNTER_J, unit=b"mJ", factor=1e-3),
    "utilization.gpu": Quantity(channel=Channel.UTILISATION_PCT, unit=b"%"),
    "utilization.memory": Quantity(channel=Channel.MEMORY_UTILISATION_PCT, unit=b"%"),
    "clocks.current.sm": Quantity(channel=Channel.CLOCK_HZ, unit=b"MHz", factor=1e6),
    "clocks.current.graphics": Quantity(channel=Channel.CLOCK_HZ, unit=b"MHz", factor=1e6),
    "clocks.current.memory": Quantity(channel=Channel.MEMORY_CLOCK_HZ, unit=b"MHz", factor=1e6),
    "temperature.gpu": Quantity(channel=Channel.TEMPERATURE_C, unit=b"C"),
    "temperature.memory": Quantity(channel=Channel.TEMPERATURE_C, part="memory", unit=b"C"),
    "memory.used": Quantity(channel=Channel.MEMORY_USED_BYTE, unit=b"MiB", factor=_MEBIBYTE),
    "pstate": Quantity(channel=Channel.PERFORMANCE_STATE, prefix=b"P"),
}
_ALIASES: Final = {
    "gpu.power.draw.average": "power.draw.average",
    "gpu.power.draw.instant": "power.draw.instant",
    "gpu.power.requested_limit": "power.limit",
    "gpu.power.current_limit": "enforced.power.limit",
    "module.power.requested_limit": "module.power.limit",
    "module.power.current_limit": "module.enforced.power.limit",
    "clocks.sm": "clocks.current.sm",
    "clocks.gr": "clocks.current.graphics",
    "clocks.mem": "clocks.current.memory",
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
}


def canonical_name(name: str) -> str:
    """The name that `--help-query-gpu` gives first, for any that the tool knows, without a unit."""
    name = name.strip().lower()
    return _ALIASES.get(name, name)


def choose_fields(names: Collection[str]) -> tuple[str, ...]:
    """The quantities among canonical names, of several that mean the same the one that counts."""
    chosen: dict[tuple[Channel, Scope, str], str] = {}
    for name, quantity in QUANTITIES.items():
        if name in names:
            chosen.setdefault((quantity.channel, quantity.scope, quantity.part), name)
    return tuple(chosen.values())


def parse_cell(text: bytes, quantity: Quantity) -> float:
    """A reading in its channel's unit, with or without the tool's unit behind it; NaN where it has none.

    Raises:
        Unreadable: Neither a number nor a marker for a missing one.
    """
    text = text.strip()
    number = text.removesuffix(quantity.unit).removeprefix(quantity.prefix)
    if text and not number:
        raise Unreadable(excerpt(text))
    return parse_number(number) * quantity.factor


def parse_whole_cell(text: bytes, quantity: Quantity) -> float:
    """A reading likewise, of a form that always has its unit, so that one without it was cut off.

    Raises:
        Unreadable: Not a number with its unit, and no marker for a missing one.
    """
    if quantity.unit and not text.endswith(quantity.unit) and not is_missing(text):
        raise Unreadable(excerpt(text))
    return parse_cell(text, quantity)


# Ampere without GA100, Ada, Hopper, Blackwell.
_AVERAGING: Final = re.compile(
    r"\b(?:RTX [345]0[5-9]0|RTX A\d{3,4}|A(?:2|10[GM]?|16|40|40[045]0|[2-6]000)|L(?:2|4|20|40[SG]?)|"
    r"G?H(?:20|100|200|800)\w*|G?B(?:100|200|300)\w*|Ada|Blackwell)\b"
)
# GA100 and what came before Ampere.
_OF_AN_INSTANT: Final = re.compile(
    r"\b(?:A(?:100|800|30)[DX]?|G?[KMPV]\d{1,4}[A-Za-z]{0,2}|T\d{1,4}G?|TITAN|GTX|"
    r"RTX 20[678]0|Quadro RTX|CMP 170HX)\b"
)


def is_averaging(chip_name: str) -> bool | None:
    """Whether `power.draw` of this chip is the mean of a second; None where its name does not say.

    Source:
        NVML API reference, `nvmlDeviceGetPowerUsage`: averaged on Ampere (except GA100) or newer chips, of an
        instant on GA100 and older ones. Which chip is which: NVIDIA's product names; ours.
    """
    if _OF_AN_INSTANT.search(chip_name):
        return False
    return True if _AVERAGING.search(chip_name) else None
