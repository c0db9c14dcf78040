"""Which of the recorded figures is a run's power: one scope, one figure a device, nothing twice.

A GPU, the module around it, the rails inside it and the node that holds it are often recorded together. They
cover the same joules, so one scope is chosen. Within it a device has one figure: the whole before its parts,
readings before a counter of energy, and of several recordings as `recordings` says.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.counters import integrate_counter
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.recordings import settle_recordings
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.value_figures import holds_positive
from flopwitness.measure.wording import plural

__all__ = ["PowerChoice", "choose_power", "power_series"]

_POWER_CHANNELS: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)
_SCOPE_PREFERENCE: Final = (
    Scope.GPU,
    Scope.MODULE,
    Scope.NODE_GPUS,
    Scope.NODE_AC,
    Scope.NODE_DC,
    Scope.NODE,
    Scope.RAIL,
    Scope.UNKNOWN,
)
_MOST_OF: Final = 0.8  # of the longest recording
_LEAST_SHARE: Final = 0.3  # of what a node draws, for its busy accelerators together
_GPU_RAILS: Final = ("gpu", "cv", "soc")  # a part's name that holds the first of these is the accelerator's


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerChoice:
    """What was chosen.

    Attributes:
        scope: What all of it covers.
        series: One series a device, of power, or a counter of energy where there is no power.
        counters: The counter of each device that has one beside its power, by the device's name.
    """

    scope: Scope
    series: tuple[Series, ...]
    counters: dict[str, Series]


def choose_power(trace: Trace, findings: list[Finding]) -> PowerChoice:
    """The figures of one scope, one for each device; what is left out goes to `findings`."""
    held = [item for item in trace.series if _holds_energy(item)]
    present = [scope for scope in _SCOPE_PREFERENCE if any(item.scope is scope for item in held)]
    if not present:
        return PowerChoice(scope=Scope.UNKNOWN, series=(), counters={})
    scope = present[0] if len(present) == 1 else _choose_scope(held, present, findings)
    by_device: dict[str, list[Series]] = defaultdict(list)
    for item in held:
        if item.scope is scope:
            by_device[item.device].append(item)
    series: list[Series] = []
    counters: dict[str, Series] = {}
    for device, items in by_device.items():
        chosen = _choose_part(items, findings)
        watts = [item for item in chosen if item.channel in _POWER_CHANNELS]
        counting = [item for item in chosen if item.channel is Channel.ENERGY_COUNTER_J]
        series += settle_recordings(watts, findings) if watts else [_longest(counting)]
        if watts and counting:
            counters[device] = _longest(counting)
    return PowerChoice(scope=scope, series=tuple(series), counters=counters)


def _choose_scope(held: Sequence[Series], present: Sequence[Scope], findings: list[Finding]) -> Scope:
    """The narrowest scope that says as much as the others: as long a time, and no implausible share of them.

    Accelerators draw most of what a busy node draws. Where their own log shows a small share of it, one of
    the two is wrong, and the higher one counts.
    """
    lengths_ns = {scope: _longest_ns(held, scope) for scope in present}
    lasting = [scope for scope in present if lengths_ns[scope] >= _MOST_OF * max(lengths_ns.values())]
    powers_w = {scope: _mean_w(held, scope) for scope in lasting}
    most_w = max(
        power_w for scope, power_w in powers_w.items() if scope is not Scope.UNKNOWN or len(lasting) == 1
    )
    chosen = next(scope for scope in lasting if powers_w[scope] >= _LEAST_SHARE * most_w)
    differs = chosen is not lasting[0]
    why = (
        f"{lasting[0]} shows {powers_w[lasting[0]]:,.0f} W, {chosen} {powers_w[chosen]:,.0f} W: one of them "
        f"is wrong, and {chosen} is used"
        if differs
        else f"{chosen} is used"
    )
    findings.append(
        Finding(
            code="scopes-overlap",
            severity=Severity.WARNING if differs else Severity.NOTE,
            message=(
                f"power was recorded as {' and as '.join(present)}; they cover the same devices and are not "
                f"added: {why}"
            ),
        )
    )
    return chosen


def _longest_ns(held: Sequence[Series], scope: Scope) -> int:
    """The longest time that a recording of the scope takes [ns]."""
    return max(int(item.utc_ns.max()) - int(item.utc_ns.min()) for item in held if item.scope is scope)


def _mean_w(held: Sequence[Series], scope: Scope) -> float:
    """The mean power of all devices of the scope together, each by its highest recording [W]."""
    highest: dict[str, float] = {}
    for item in held:
        if item.scope is scope and (not item.part or scope is Scope.RAIL):
            is_counter = item.channel is Channel.ENERGY_COUNTER_J
            energy = integrate_counter(item) if is_counter else integrate_power(item)
            known_s = energy.covered_s + energy.bridged_s
            mean_w = energy.shown_j / known_s if known_s > 0 else 0.0
            highest[item.device] = max(highest.get(item.device, 0.0), mean_w)
    return sum(highest.values())


def _choose_part(items: Sequence[Series], findings: list[Finding]) -> list[Series]:
    """The series of the whole device, or of one of its parts: parts may lie inside each other."""
    parts = list(dict.fromkeys(item.part for item in items))
    if len(parts) == 1:
        return list(items)
    chosen = "" if "" in parts else _best_part(parts)
    if chosen:
        findings.append(
            Finding(
                code="part-chosen",
                severity=Severity.WARNING,
                message=(
                    f"{items[0].device}: power was recorded for {plural(len(parts), 'part')} and not for the "
                    f"whole; they are not added: {chosen} is used"
                ),
                where=items[0].device,
                found=", ".join(parts[:8]),
                count=len(parts),
            )
        )
    return [item for item in items if item.part == chosen]


def _best_part(parts: Sequence[str]) -> str:
    """The part whose name says that the accelerator hangs on it, else the first."""
    for word in _GPU_RAILS:
        for part in parts:
            if word in part.casefold():
                return part
    return parts[0]


def _longest(counters: Sequence[Series]) -> Series:
    """The counter that was read over the longest time."""
    return max(counters, key=lambda item: int(item.utc_ns.max()) - int(item.utc_ns.min()))


def _holds_energy(series: Series) -> bool:
    """Whether anything was metered: a device that never reads above zero has a dead or blanked sensor."""
    if series.channel in _POWER_CHANNELS:
        return holds_positive(series.value)
    if series.channel is Channel.ENERGY_COUNTER_J:
        return bool(np.isfinite(series.value).sum() > 1)
    return False


def power_series(trace: Trace, scopes: Iterable[Scope]) -> tuple[Series, ...]:
    """The power series of the given scopes that hold any power, in the order of the recording."""
    wanted = set(scopes)
    return tuple(
        series
        for series in trace.series
        if series.channel in _POWER_CHANNELS and series.scope in wanted and _holds_energy(series)
    )
