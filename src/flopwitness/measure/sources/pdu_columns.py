"""What the columns of a power distribution unit's export stand for, by the words in their names.

An outlet feeds one supply of one machine: its figure is a node's, on the AC side. An inlet, a phase, a bank
or the whole unit feeds a rack: what that covers the export does not say. A unit must stand in the name, and
what is a limit, an extreme or an apparent power is no reading of power.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.samples import Channel

__all__ = ["PduColumn", "PduTable", "find_table"]

_UNITS: Final = {
    "w": (Channel.POWER_W, 1.0),
    "watt": (Channel.POWER_W, 1.0),
    "watts": (Channel.POWER_W, 1.0),
    "kw": (Channel.POWER_W, 1e3),
    "kilowatts": (Channel.POWER_W, 1e3),
    "wh": (Channel.ENERGY_COUNTER_J, JOULE_PER_KWH / 1e3),
    "kwh": (Channel.ENERGY_COUNTER_J, float(JOULE_PER_KWH)),
    "mwh": (Channel.ENERGY_COUNTER_J, JOULE_PER_KWH * 1e3),
}
_NO_READING: Final = frozenset(
    [
        "max",
        "maximum",
        "min",
        "minimum",
        "peak",
        "apparent",
        "reactive",
        "factor",
        "capacity",
        "limit",
        "rated",
        "rating",
        "threshold",
        "va",
        "nominal",
        "budget",
        "headroom",
        "low",
        "high",
        "warning",
        "critical",
        "cost",
        "unbalanced",
    ]
)
_AVERAGE: Final = frozenset(("avg", "average", "mean"))
_KINDS: Final = {
    "outlet": "outlet",
    "receptacle": "outlet",
    "socket": "outlet",
    "inlet": "inlet",
    "infeed": "inlet",
    "cord": "inlet",
    "phase": "phase",
    "ph": "phase",
    "line": "phase",
    "bank": "bank",
    "branch": "branch",
    "breaker": "branch",
    "circuit": "branch",
}
_PDU_WORDS: Final = frozenset((*_KINDS, "pdu", "rpdu", "pwr")) - {"line", "ph", "circuit", "phase", "breaker"}
_TIMES: Final = frozenset(
    [
        "time",
        "timestamp",
        "time stamp",
        "date time",
        "datetime",
        "date and time",
        "sample time",
        "log time",
        "time utc",
        "timestamp utc",
        "date time utc",
        "utc time",
        "recorded at",
        "date",
    ]
)
_UNIT_NAMES: Final = frozenset(
    [
        "pdu",
        "pdu name",
        "pdu id",
        "rpdu",
        "device",
        "device name",
        "host",
        "hostname",
        "ip",
        "ip address",
        "unit name",
    ]
)
_PLACE_NAMES: Final = re.compile(
    r"(outlet|receptacle|socket|inlet|infeed|phase|bank|branch)(?: (?:number|no|id|name|label))?"
)
_WORD: Final = re.compile(r"[a-z]+|[0-9]+|%")
_LETTERS: Final = ("a", "b", "c")
_LONGEST_LETTERS: Final = 2
_LONGEST_NUMBER: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PduColumn:
    """A column with readings.

    Attributes:
        index: Its place in a row, from 0.
        channel: What it holds.
        scale: SI units in one of its own.
        kind: `outlet`, `inlet`, `phase`, `bank` or `branch`; "" where its name says none.
        number: Which of them; "" where its name does not say.
    """

    index: int
    channel: Channel
    scale: float
    kind: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PduTable:
    """What the columns of one export hold.

    Attributes:
        width: How many fields a row has.
        times: The place of the time, or of the date and of the time of day.
        is_utc: Whether the header says that times are in UTC.
        unit: The place of the unit's name; None where there is none.
        places: The places of columns that name an outlet or the like, each with its kind.
        columns: Those with readings.
    """

    width: int
    times: tuple[int, ...]
    is_utc: bool
    unit: int | None
    places: tuple[tuple[int, str], ...]
    columns: tuple[PduColumn, ...]


def find_table(names: Sequence[str]) -> PduTable | None:
    """The table that a row of names heads; None where it is no header of such an export."""
    words = [_WORD.findall(name.lower()) for name in names]
    if any("gpu" in own for own in words) or not any(_PDU_WORDS & set(own) for own in words):
        return None
    spelt = [" ".join(own) for own in words]
    times = _find_times(spelt)
    columns = tuple(
        column for index, own in enumerate(words) if (column := _find_column(index, own)) is not None
    )
    if not times or not columns:
        return None
    places = [
        (index, found[1]) for index, name in enumerate(spelt) if (found := _PLACE_NAMES.fullmatch(name))
    ]
    return PduTable(
        width=len(names),
        times=times,
        is_utc=any("utc" in words[index] for index in times),
        unit=next((index for index, name in enumerate(spelt) if name in _UNIT_NAMES), None),
        places=tuple((index, _KINDS[kind]) for index, kind in places),
        columns=columns,
    )


def _find_times(spelt: Sequence[str]) -> tuple[int, ...]:
    if "date" in spelt and "time" in spelt:
        return spelt.index("date"), spelt.index("time")
    return tuple(index for index, name in enumerate(spelt) if name in _TIMES)[:1]


def _find_column(index: int, words: Sequence[str]) -> PduColumn | None:
    unit = next((word for word in reversed(words) if word in _UNITS), None)
    if unit is None or _NO_READING & set(words):
        return None
    channel, scale = _UNITS[unit]
    if channel is Channel.POWER_W and _AVERAGE & set(words):
        channel = Channel.POWER_AVERAGE_W
    at = next((place for place, word in enumerate(words) if word in _KINDS), None)
    if at is None:
        return PduColumn(index=index, channel=channel, scale=scale)
    number = _number_after(words[at + 1 : at + 3])
    return PduColumn(index=index, channel=channel, scale=scale, kind=_KINDS[words[at]], number=number)


def _number_after(words: Sequence[str]) -> str:
    """Which outlet or inlet, by the words after that: `1`, `I1`, `A`; "" where they do not say."""
    first, second = (*words, "", "")[:2]
    if first.isdigit():
        return first[:_LONGEST_NUMBER]
    if first in _UNITS or len(first) > _LONGEST_LETTERS:
        return ""
    if second.isdigit():
        return (first + second)[:_LONGEST_NUMBER]
    return first if first in _LETTERS else ""
