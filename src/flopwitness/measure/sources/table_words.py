"""The names of columns, word by word: quantities, their units, whose they are, and times.

Nothing is guessed from values. A name must say a quantity and its unit (`power_w`, `GPU power [mW]`,
`total_energy_consumption_mj`); one that promises power without a unit says nothing here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.table_times import Origin, TimeHeader

__all__ = [
    "ENERGY_CHANNELS",
    "NamedQuantity",
    "Subject",
    "fold_name",
    "read_quantity",
    "read_subject",
    "read_time_name",
]

ENERGY_CHANNELS: Final = frozenset({Channel.POWER_W, Channel.POWER_AVERAGE_W, Channel.ENERGY_COUNTER_J})
"""The channels from which energy is known."""

_LONGEST_NAME: Final = 128
_WH: Final = JOULE_PER_KWH / 1_000

# Lower case where case says nothing. `mw` and `mj` in lower case are milli, as NVML and Zeus write them; a
# capital M is mega, but in a name that is all capitals it may be either, and is not read.
_POWER_UNITS: Final = {"w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3, "uw": 1e-6, "MW": 1e6}
_ENERGY_UNITS: Final = {
    "j": 1.0,
    "joule": 1.0,
    "joules": 1.0,
    "mj": 1e-3,
    "kj": 1e3,
    "uj": 1e-6,
    "MJ": 1e6,
    "wh": _WH,
    "kwh": _WH * 1e3,
    "MWh": _WH * 1e6,
}
_FULL_WORD: Final = 3  # `kwh` alone says what it is; `w` and `j` may be anything
_SHARE_UNITS: Final = {"%": 1.0, "pct": 1.0, "percent": 1.0}
_CLOCK_UNITS: Final = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_SIZE_UNITS: Final = {
    "b": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
}
_RATE_UNITS: Final = {  # as they stand: a small b may be bits
    "bytes": 1.0,
    "byte": 1.0,
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
_CELSIUS_UNITS: Final = {"c": 1.0, "celsius": 1.0, "degc": 1.0}
_TIME_UNITS: Final = {
    "s": 10**9,
    "sec": 10**9,
    "secs": 10**9,
    "second": 10**9,
    "seconds": 10**9,
    "ms": 10**6,
    "msec": 10**6,
    "millis": 10**6,
    "milliseconds": 10**6,
    "us": 10**3,
    "usec": 10**3,
    "microseconds": 10**3,
    "ns": 1,
    "nsec": 1,
    "nanoseconds": 1,
}

_POWER: Final = frozenset(
    {"", "power", "power_draw", "power_usage", "power_consumption", "power_reading", "power_watts", "draw"}
    | {"active_power", "board_power", "current_power", "instant_power", "instantaneous_power", "socket_power"}
    | {"power_instant", "power_draw_instant"}
)
_AVERAGE: Final = frozenset(
    {"average_power", "avg_power", "power_average", "power_avg", "power_draw_average"}
)
_LIMIT: Final = frozenset({"power_limit", "power_cap", "enforced_power_limit", "power_limit_enforced"})
_ENERGY: Final = frozenset(
    {"", "energy", "total_energy", "energy_total", "energy_consumed", "energy_consumption", "energy_used"}
    | {"total_energy_consumption", "energy_counter", "cumulative_energy", "energy_cumulative"}
    | {"accumulated_energy", "energy_accumulated"}
)
_BUSY: Final = frozenset({"util", "utilization", "utilisation", "usage", "use", "load", "busy"})
_MEMORY_BUSY: Final = frozenset(
    f"{memory}_{busy}" for memory in ("mem", "memory") for busy in ("util", "utilization", "utilisation")
)
_CLOCK: Final = frozenset({"clock", "sm_clock", "graphics_clock", "core_clock", "gfx_clock", "clock_sm"})
_MEMORY_CLOCK: Final = frozenset({"mem_clock", "memory_clock", "clock_mem"})
_MEMORY_USED: Final = frozenset({"mem_used", "memory_used", "used_memory", "vram_used", "fb_used"})
_TEMPERATURE: Final = frozenset({"temperature", "temp"})
_PROFILE: Final = {
    "sm_active": Channel.SM_ACTIVE_PCT,
    "tensor_active": Channel.TENSOR_ACTIVE_PCT,
    "dram_active": Channel.MEMORY_ACTIVE_PCT,
    "gr_engine_active": Channel.ENGINE_ACTIVE_PCT,
}
_LINKS: Final = {"pcie": Channel.HOST_TRAFFIC_BYTE_PER_S, "nvlink": Channel.LINK_TRAFFIC_BYTE_PER_S}

_SUBJECTS: Final = {
    **dict.fromkeys(("gpu", "card", "accelerator"), Scope.GPU),
    "module": Scope.MODULE,
    **dict.fromkeys(("node", "system", "server", "host", "chassis"), Scope.NODE),
    **dict.fromkeys(("wall", "ac"), Scope.NODE_AC),
    "dc": Scope.NODE_DC,
    **dict.fromkeys(("cpu", "package", "pkg"), Scope.CPU),
    **dict.fromkeys(("dram", "ram"), Scope.DRAM),
    "total": Scope.UNKNOWN,
}
_NUMBERED: Final = re.compile(r"(gpu|card|accelerator|node|cpu|package|module)([0-9]{1,4})")

_EPOCHS: Final = frozenset(
    {"epoch", "unix", "unix_time", "unix_timestamp", "timestamp_unix", "timestamp_epoch"}
)
_UTCS: Final = frozenset({"utc", "timestamp_utc", "time_utc", "utc_time", "datetime_utc"})
_CALENDARS: Final = frozenset({"timestamp", "datetime", "date_time", "time_stamp", "ts"})
_OPENS: Final = frozenset({"time", "t"})
_STARTS: Final = frozenset(
    {
        "elapsed",
        "elapsed_time",
        "time_elapsed",
        "relative_time",
        "rel_time",
        "since_start",
        "time_since_start",
    }
)
_NOT_OURS: Final = re.compile(r"dcgm_.*|zone|outlet.*|inlet.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose quantity a name tells.

    Attributes:
        scope: What it covers; UNKNOWN where the name does not say.
        device: Its number among several, such as `gpu0`; "" where there is none.
        is_total: Whether it is a total of several, which has no device of its own.
    """

    scope: Scope = Scope.UNKNOWN
    device: str = ""
    is_total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuantity:
    """What a name says.

    Attributes:
        channel: The quantity.
        factor: What one of its units is in the channel's.
        subject: Whose it is.
        part: What of the device is read; "" for all of it.
        has_unit: Whether the name says its unit; shares are percent where it does not.
    """

    channel: Channel
    factor: float
    subject: Subject
    part: str = ""
    has_unit: bool = True


def read_quantity(name: str) -> NamedQuantity | None:
    """The quantity that a name says; None where it says none, or one without its unit."""
    if _NOT_OURS.fullmatch(fold_name(name)):
        return None
    for words in _variants(name):
        quantity = _match_words(words, is_capital=name.isupper())
        if quantity is not None:
            return quantity
    return None


def read_subject(name: str) -> Subject:
    """Whose quantity a name tells, whatever else it says."""
    return _take_subjects(_words(name))[1]


def read_time_name(name: str) -> tuple[TimeHeader, int]:
    """What a name says of times, and how much it is worth; 0 for a name that says nothing of them."""
    for words in _variants(name):
        folded = [word.lower() for word in words]
        whole, unit_ns = "_".join(folded), None
        if len(folded) > 1 and folded[-1] in _TIME_UNITS:
            unit_ns, whole = _TIME_UNITS[folded[-1]], "_".join(folded[:-1])
        if whole in _UTCS:
            return TimeHeader(unit_ns=unit_ns, origin=Origin.EPOCH, is_utc=True), 1
        if whole in _EPOCHS:
            may_be_training = whole == "epoch" and unit_ns is None
            return TimeHeader(unit_ns=unit_ns, origin=Origin.EPOCH), 6 if may_be_training else 2
        if whole in _CALENDARS:
            return TimeHeader(unit_ns=unit_ns), 3
        if whole in _OPENS:
            return TimeHeader(unit_ns=unit_ns), 4
        if whole in _STARTS or (len(folded) == 1 and whole in ("seconds", "secs")):
            return TimeHeader(unit_ns=unit_ns, origin=Origin.START), 5
    return TimeHeader(), 0


def fold_name(name: str) -> str:
    """A name in lower case, its words joined by single underscores."""
    return "_".join(word.lower() for word in _words(name))


def _words(name: str) -> list[str]:
    """The words of a name as they stand: `gpu0 Power [mW]` has three."""
    text = name[:_LONGEST_NAME].strip().lstrip("#").strip()
    text = re.sub(r"/\s*s(?:ec)?\b", "_per_s", text)
    return [word for word in re.split(r"[^0-9A-Za-z%]+", text) if word]


def _variants(name: str) -> Iterator[list[str]]:
    """The words of a name, once as they are separated and once where `PowerWatts` is two words."""
    words = _words(name)
    yield words
    parted = [part for word in words for part in re.split(r"(?<=[a-z0-9])(?=[A-Z])", word)]
    if parted != words:
        yield parted


def _match_words(words: Sequence[str], *, is_capital: bool) -> NamedQuantity | None:
    stem, subject = _take_subjects(words)
    if stem is None or (len(stem[-1]) < _FULL_WORD and len(stem) == 1 and subject == Subject()):
        return None
    for channel, factor, part in _match_quantity(stem, subject, is_capital=is_capital):
        scope = _scope_of(channel, subject.scope)
        if scope is not None:
            return NamedQuantity(
                channel=channel,
                factor=factor,
                subject=replace(subject, scope=scope),
                part=part,
                has_unit=stem[-1].lower() not in _BUSY,
            )
    return None


def _take_subjects(words: Sequence[str]) -> tuple[list[str] | None, Subject]:
    """The words without those that say whose the quantity is; None for the words of two subjects."""
    scopes: set[Scope] = set()
    device, rest, is_total = "", [], False
    words = list(words)
    for i, word in enumerate(words):
        folded = word.lower()
        match = _NUMBERED.fullmatch(folded)
        if match is not None and not device:
            scopes.add(_SUBJECTS[match[1]])
            device = folded
        elif folded.isdigit() and i and words[i - 1].lower() in _SUBJECTS and not device:
            device = f"{words[i - 1].lower()}{int(folded[:4])}"
        elif folded == "total":
            is_total = True
            rest.append(word)
        elif folded in _SUBJECTS:
            scopes.add(_SUBJECTS[folded])
        else:
            rest.append(word)
    if len(scopes) > 1:
        return None, Subject()
    is_total = is_total and "energy" not in (
        word.lower() for word in rest
    )  # of energy it says: since a start
    if is_total:
        rest = [word for word in rest if word.lower() != "total"]
    scope = next(iter(scopes), Scope.UNKNOWN)
    return (rest or None), Subject(scope=scope, device=device, is_total=is_total)


def _match_quantity(
    words: Sequence[str], subject: Subject, *, is_capital: bool
) -> Iterator[tuple[Channel, float, str]]:
    """The channels, factors and parts that words without their subject may mean."""
    stem, unit = "_".join(word.lower() for word in words[:-1]), words[-1]
    whole = "_".join(word.lower() for word in words)
    if (factor := _factor(_POWER_UNITS, unit, is_capital=is_capital)) is not None:
        names = (
            (_POWER, Channel.POWER_W),
            (_AVERAGE, Channel.POWER_AVERAGE_W),
            (_LIMIT, Channel.POWER_LIMIT_W),
        )
        yield from ((channel, factor, "") for stems, channel in names if stem in stems)
    if (factor := _factor(_ENERGY_UNITS, unit, is_capital=is_capital)) is not None and stem in _ENERGY:
        yield Channel.ENERGY_COUNTER_J, factor, ""
    if unit.lower() in _SHARE_UNITS:
        yield from _match_share(stem, subject)
    if whole in _BUSY and (subject.scope is Scope.GPU or whole.startswith("util")):
        yield from _match_share(whole, subject)
    if whole in _MEMORY_BUSY:
        yield Channel.MEMORY_UTILISATION_PCT, 1.0, ""
    yield from _match_state(stem, unit.lower(), words)


def _match_share(stem: str, subject: Subject) -> Iterator[tuple[Channel, float, str]]:
    if stem in _BUSY or (not stem and subject.scope in (Scope.GPU, Scope.CPU)):
        channel = Channel.CPU_UTILISATION_PCT if subject.scope is Scope.CPU else Channel.UTILISATION_PCT
        yield channel, 1.0, ""
    elif stem in _MEMORY_BUSY:
        yield Channel.MEMORY_UTILISATION_PCT, 1.0, ""
    elif stem in _PROFILE:
        yield _PROFILE[stem], 1.0, ""


def _match_state(stem: str, unit: str, words: Sequence[str]) -> Iterator[tuple[Channel, float, str]]:
    """Clocks, memory, temperature and traffic."""
    if unit in _CLOCK_UNITS and stem in _CLOCK:
        yield Channel.CLOCK_HZ, _CLOCK_UNITS[unit], ""
    elif unit in _CLOCK_UNITS and stem in _MEMORY_CLOCK:
        yield Channel.MEMORY_CLOCK_HZ, _CLOCK_UNITS[unit], ""
    elif unit in _SIZE_UNITS and stem in _MEMORY_USED:
        yield Channel.MEMORY_USED_BYTE, _SIZE_UNITS[unit], ""
    elif unit in _CELSIUS_UNITS and stem in _TEMPERATURE:
        yield Channel.TEMPERATURE_C, 1.0, ""
    match [word.lower() for word in words]:
        case ["memory" | "mem" | "dram", "traffic", _, "per", "s"] if words[2] in _RATE_UNITS:
            yield Channel.MEMORY_TRAFFIC_BYTE_PER_S, _RATE_UNITS[words[2]], ""
        case [link, "tx" | "rx" as direction, _, "per", "s"] if link in _LINKS and words[2] in _RATE_UNITS:
            yield _LINKS[link], _RATE_UNITS[words[2]], direction


def _scope_of(channel: Channel, scope: Scope) -> Scope | None:
    """What a channel's figure covers; None where the subject is none of the channel's."""
    if channel is Channel.CPU_UTILISATION_PCT:
        return Scope.CPU
    if channel in ENERGY_CHANNELS or scope in (Scope.GPU, Scope.MODULE, Scope.UNKNOWN):
        return scope
    return None


def _factor(units: Mapping[str, float], unit: str, *, is_capital: bool) -> float | None:
    """What one unit is; None for one that is unknown, or that may be milli or mega."""
    if unit[:1] == "M":
        return None if is_capital else units.get(unit)
    return units.get(unit.lower())
