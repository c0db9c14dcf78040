"""Several recordings of one device: what follows each other is one, and of what overlaps one counts.

Two tools that log one GPU show the same joules, and so do an instant and an averaged column of one log. None
is added to another, and none replaces another quietly: where they differ the one that shows the most energy
counts, because nobody can tell which is right and a second log must never make a run look smaller.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from flopwitness.foundation.units import format_energy
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Series
from flopwitness.measure.wording import plural

__all__ = ["settle_recordings"]

_AGREE: Final = 0.9  # of the highest: within it, two recordings show the same


def settle_recordings(items: Sequence[Series], findings: list[Finding]) -> list[Series]:
    """The power recordings of one device that count.

    Of recordings that overlap and agree within a tenth, instant readings go before averaged ones.

    Args:
        items: All power recordings of one device and part, each with a reading; at least one.
        findings: Takes what is told of recordings that overlap.
    """
    if len(items) == 1:
        return list(items)
    line = _in_line(items)
    if not _overlap(items):
        return line
    energies_j = [integrate_power(item).shown_j for item in items]
    most_j, least_j = max(energies_j), min(energies_j)
    agreeing = [item for item, energy_j in zip(items, energies_j, strict=True) if energy_j >= _AGREE * most_j]
    if least_j < _AGREE * most_j or not _of_one_log(items):
        findings.append(_tell(items[0].device, len(items), least_j, most_j))
    if len(line) == 1 and _AGREE * integrate_power(line[0]).shown_j > most_j:
        return line  # they overlap a little, as where a new file repeats the last minute
    instant = [item for item in agreeing if item.channel is Channel.POWER_W]
    return [max(instant or agreeing, key=lambda item: integrate_power(item).shown_j)]


def _overlap(items: Sequence[Series]) -> bool:
    """Whether any two recordings share time, or an instant."""
    ends = sorted((int(item.utc_ns.min()), int(item.utc_ns.max())) for item in items)
    return any(later[0] <= earlier[1] for earlier, later in pairwise(ends))


def _of_one_log(items: Sequence[Series]) -> bool:
    """Whether they are columns of one log: channels that differ, at the same times."""
    is_told_apart = len({item.channel for item in items}) == len(items)
    return is_told_apart and all(np.array_equal(items[0].utc_ns, item.utc_ns) for item in items[1:])


def _in_line(items: Sequence[Series]) -> list[Series]:
    """All readings of the device in one line, each recording from where the one before it ends.

    Recordings whose times or factors are of unlike kinds stay apart.
    """
    if len({(item.conversion, item.timing, item.monotonic_ns is None) for item in items}) > 1:
        return list(items)
    ordered = sorted(items, key=lambda item: int(item.utc_ns.min()))
    is_one_channel = len({item.channel for item in items}) == 1
    kept = [ordered[0]]
    for item in ordered[1:]:
        kept.append(_from(item, max(int(earlier.utc_ns.max(initial=0)) for earlier in kept)))
    return [
        replace(
            ordered[0],
            channel=ordered[0].channel if is_one_channel else Channel.POWER_AVERAGE_W,
            averaged_s=max(item.averaged_s for item in ordered),
            utc_ns=np.concatenate([item.utc_ns for item in kept]),
            value=np.concatenate([item.value for item in kept]),
            monotonic_ns=None,
        )
    ]


def _from(series: Series, after_ns: int) -> Series:
    """The readings later than an instant."""
    later = series.utc_ns > after_ns
    return replace(series, utc_ns=series.utc_ns[later], value=series.value[later], monotonic_ns=None)


def _tell(device: str, count: int, least_j: float, most_j: float) -> Finding:
    differs = least_j < _AGREE * most_j
    return Finding(
        code="device-recorded-twice",
        severity=Severity.WARNING if differs else Severity.NOTE,
        message=(
            f"{device}: {plural(count, 'recording')} of one device that overlap in time, "
            f"{format_energy(least_j)} to {format_energy(most_j)}; none is added, "
            + ("the highest counts" if differs else "one counts")
        ),
        where=device,
        expected="recordings that agree" if differs else "",
        found=f"{format_energy(least_j)} and {format_energy(most_j)}" if differs else "",
        count=count,
    )
