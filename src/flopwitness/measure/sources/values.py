"""Numbers as tools write them: with units, with markers for "not there", with values that no sensor has.

Three outcomes are kept apart: a number; a marker by which the tool says that it has none; and text that is
neither, which a reader must count and locate. None of them is ever zero by default.
"""

import math
import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel
from flopwitness.measure.wording import plural

__all__ = [
    "BLANK_FROM",
    "MISSING",
    "Unreadable",
    "is_missing",
    "leave_out_impossible",
    "parse_number",
    "possible_range",
    "tell_impossible",
]

BLANK_FROM: Final = 2.0**47
"""From here on DCGM's floating point fields hold one of its blank values, not a reading.

Source:
    NVIDIA DCGM API reference, `dcgm_structs.h`: DCGM_FP64_BLANK is 140737488355328.0, and 64-bit integers
    are blank from 0x7ffffffffffffff0 on, 32-bit ones from 0x7ffffff0 on.
"""

MISSING: Final = frozenset(
    {
        b"",
        b"-",
        b"--",
        b"n/a",
        b"[n/a]",
        b"na",
        b"nan",
        b"-nan",
        b"<na>",
        b"#n/a",
        b"none",
        b"null",
        b"err!",
        b"error",
        b"[error]",
        b"unknown",
        b"[unknown error]",
        b"unknown error",
        b"not supported",
        b"[not supported]",
        b"not available",
        b"[not available]",
        b"[not found]",
        b"[function not found]",
        b"[no data]",
        b"requested functionality has been deprecated",
        b"[requested functionality has been deprecated]",
        b"[gpu requires reset]",
        b"gpu requires reset",
        b"[gpu is lost]",
        b"gpu is lost",
        b"[insufficient permissions]",
        b"insufficient permissions",
        b"<not counted>",
        b"<not supported>",
        b"off",
        b"disabled",
        b"[disabled]",
    }
)
_LONGEST_NUMBER: Final = 64
_NUMBER: Final = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_MOST_W: Final = 1e9
_MOST_BYTE_PER_S: Final = 1e16
_MOST_ACTIVE_PCT: Final = 110.0  # profiling counters divide two counts that are not read at one instant
_RANGES: Final = {
    Channel.UTILISATION_PCT: (0.0, 100.0),
    Channel.MEMORY_UTILISATION_PCT: (0.0, 100.0),
    Channel.ENGINE_ACTIVE_PCT: (0.0, _MOST_ACTIVE_PCT),
    Channel.SM_ACTIVE_PCT: (0.0, _MOST_ACTIVE_PCT),
    Channel.TENSOR_ACTIVE_PCT: (0.0, _MOST_ACTIVE_PCT),
    Channel.MEMORY_ACTIVE_PCT: (0.0, _MOST_ACTIVE_PCT),
    Channel.CPU_UTILISATION_PCT: (0.0, 100.0),
    Channel.TEMPERATURE_C: (-100.0, 300.0),
    Channel.POWER_W: (0.0, _MOST_W),
    Channel.POWER_AVERAGE_W: (0.0, _MOST_W),
    Channel.POWER_LIMIT_W: (0.0, _MOST_W),
    Channel.CLOCK_HZ: (0.0, 1e11),
    Channel.MEMORY_CLOCK_HZ: (0.0, 1e11),
    Channel.PERFORMANCE_STATE: (0.0, 15.0),
    Channel.ENERGY_COUNTER_J: (0.0, 9e15),  # below DCGM's blank for a whole number of mJ
    Channel.MEMORY_USED_BYTE: (0.0, 1e15),  # below its blank for a whole number of MiB
    Channel.MEMORY_TRAFFIC_BYTE_PER_S: (0.0, _MOST_BYTE_PER_S),
    Channel.LINK_TRAFFIC_BYTE_PER_S: (0.0, _MOST_BYTE_PER_S),
    Channel.HOST_TRAFFIC_BYTE_PER_S: (0.0, _MOST_BYTE_PER_S),
    Channel.CPU_CORES_ON: (0.0, 1e6),
}
_WIDEST: Final = (0.0, 1e30)


class Unreadable(ValueError):  # noqa: N818 (no failure of the program: a reader counts it)
    """Text that is neither a number nor a marker for a missing one."""


def is_missing(text: bytes) -> bool:
    """Whether a tool says with this text that it has no reading."""
    return text.strip().lower() in MISSING


def parse_number(text: bytes) -> float:
    """The number, without a unit; NaN where a marker says that there is none.

    Raises:
        Unreadable: The text is neither, or a number beyond a double.
    """
    text = text.strip()
    if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    elif is_missing(text):
        return math.nan
    raise Unreadable(text[:_LONGEST_NUMBER].decode("utf-8", "backslashreplace"))


def possible_range(channel: Channel) -> tuple[float, float]:
    """The least and the most that a channel can read, in its unit; what lies outside is no reading."""
    return _RANGES.get(channel, _WIDEST)


def leave_out_impossible(value: NDArray[np.float64], channel: Channel) -> int:
    """Make impossible values missing, in place; how many there were."""
    low, high = possible_range(channel)
    with np.errstate(invalid="ignore"):
        is_impossible = (value < low) | (value > high)
    value[is_impossible] = np.nan
    return int(is_impossible.sum())


def tell_impossible(rejected: Mapping[Channel, int], where: str) -> list[Finding]:
    """One finding for the impossible values that were left out, with how many of which channel."""
    counts = {channel: count for channel, count in rejected.items() if count}
    if not counts:
        return []
    words = ", ".join(f"{count:,} of {channel}" for channel, count in counts.items())
    return [
        Finding(
            code="values-impossible",
            severity=Severity.WARNING,
            message=(
                f"{plural(sum(counts.values()), 'reading')} that no such sensor can give, or that mark a "
                f"missing one: {words}; left out, not taken as zero"
            ),
            where=where,
            count=sum(counts.values()),
        )
    ]
