"""What is odd about a recording, as findings with stable codes (docs/findings.md lists them all).

Nothing is corrected here in silence: a check looks at readings and marks and says what it saw.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from flopwitness.foundation.clock import format_utc, utc_year
from flopwitness.foundation.units import (
    JOULE_PER_KWH,
    NANOSECOND_PER_SECOND,
    format_duration,
    format_energy,
)
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import Energy, Gap
from flopwitness.measure.samples import Channel, Declaration, RunWindow, Scope, Series, Trace
from flopwitness.measure.value_figures import count_usable, longest_still
from flopwitness.measure.wording import agree, plural

__all__ = [
    "assess_absent",
    "assess_declaration",
    "assess_devices",
    "assess_gaps",
    "assess_limits",
    "assess_reading",
    "assess_scope",
    "assess_switches",
]

_POWER_CHANNELS: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)
_MAY_REST: Final = (Scope.RAIL, Scope.CPU_PART, Scope.INSTANCE)  # 0 W is a reading of what is switched off
_ENERGY_CHANNELS: Final = (*_POWER_CHANNELS, Channel.ENERGY_COUNTER_J)
_SHORTEST_REPORTED_GAP_S: Final = 3.0
_SMALL_J: Final = 36_000.0
_FIRST_DATED_NS: Final = 10**17  # 1973: what is earlier counts from the start of a recording without a date
_STUCK_READINGS: Final = 60

_SCOPE_WORDS: Final = {
    Scope.GPU: "accelerator board power: hosts and network are not in the figure",
    Scope.MODULE: "module input power: carrier board and peripherals are not in the figure",
    Scope.RAIL: "one supply rail of the module: the rest of the module is not in the figure",
    Scope.NODE_GPUS: "all accelerator boards of a node together: hosts and network are not in the figure",
    Scope.NODE_AC: "node AC power: fans, CPUs and conversion losses are in the figure",
    Scope.NODE_DC: "node DC power: fans and CPUs are in the figure, the power supply's losses are not",
    Scope.NODE: "node power: fans and CPUs are in the figure; AC or DC side is not recorded",
    Scope.SWITCH: "network switch power: no accelerator is in the figure",
    Scope.CPU: "processor package power: no accelerator is in the figure",
    Scope.CPU_PART: "power of a part of a processor package: no accelerator is in the figure",
    Scope.DRAM: "the host's memory power: no accelerator is in the figure",
    Scope.PLATFORM: "a board's own platform meter: processors, memory and more, accelerators perhaps not",
    Scope.INSTANCE: "a slice of a partitioned accelerator, whose power nobody can tell",
    Scope.UNKNOWN: "power whose scope is not recorded: they bound nothing and estimate nothing",
}


def assess_reading(trace: Trace) -> list[Finding]:
    """What the readers could not read, and what only they could see."""
    findings = []
    if trace.n_skipped:
        first = trace.skipped[0]
        findings.append(
            Finding(
                code="lines-skipped",
                severity=Severity.WARNING,
                message=(
                    f"{plural(trace.n_skipped, 'record')} could not be read; the first is at {first.where}"
                ),
                where=first.where,
                expected=first.expected,
                found=first.found,
                count=trace.n_skipped,
            )
        )
    return [*findings, *_assess_missing(trace), *_assess_shared(trace), *trace.findings]


def _assess_missing(trace: Trace) -> list[Finding]:
    """Readings without a value, one finding a channel."""
    findings = []
    missing: dict[Channel, list[tuple[Series, int]]] = defaultdict(list)
    for series in trace.series:
        is_power = series.channel in _POWER_CHANNELS and series.scope not in _MAY_REST
        count = len(series) - count_usable(series.value, is_power=is_power)
        if count:
            missing[series.channel].append((series, count))
    for channel, lacking in missing.items():
        first, count = lacking[0][0], sum(count for _, count in lacking)
        n_readings = sum(len(series) for series, _ in lacking)
        of = f" of {channel}" if channel not in _POWER_CHANNELS else ""
        name = f"{first.device} {first.part}".rstrip()
        place = name if len(lacking) == 1 else f"{name} and {len(lacking) - 1} more"
        findings.append(
            Finding(
                code="reading-missing",
                severity=Severity.WARNING if channel in _ENERGY_CHANNELS else Severity.NOTE,
                message=(
                    f"{place}: {plural(count, 'reading')} of {n_readings:,}{of} without a value; left out, "
                    "not taken as zero"
                ),
                where=first.device,
                count=count,
            )
        )
    return findings


def _assess_shared(trace: Trace) -> list[Finding]:
    """Devices that several workloads share: what a board draws cannot be told apart by workload."""
    shared = [device for device in trace.devices if device.is_shared]
    if not shared:
        return []
    return [
        Finding(
            code="device-shared",
            severity=Severity.WARNING,
            message=(
                f"{plural(len(shared), 'device')}, {shared[0].name} for example, "
                f"{agree(len(shared), 'is', 'are')} partitioned or lent to virtual machines (MIG, vGPU): the "
                "whole board's power is counted, and is unattributable to any one workload on it"
            ),
            where=shared[0].name,
            count=len(shared),
        )
    ]


def assess_scope(scope: Scope) -> Finding:
    """What the power figure covers, in words."""
    return Finding(
        code="scope",
        severity=Severity.WARNING if scope is Scope.UNKNOWN else Severity.NOTE,
        message=f"readings are {_SCOPE_WORDS[scope]}",
        found=str(scope),
    )


def assess_gaps(energies: Sequence[Energy]) -> list[Finding]:
    """Stretches without readings inside the run, with the least and the most energy that they can hold."""
    gaps = [
        gap
        for energy in energies
        for gap in energy.gaps
        if gap.duration_s >= _SHORTEST_REPORTED_GAP_S and not energy.is_mixed  # which is told by itself
    ]
    if not gaps:
        return []
    longest = max(gaps, key=lambda gap: gap.duration_s)
    if len(gaps) == 1:
        message = (
            f"{longest.device}: no reading for {format_duration(longest.duration_s)} from "
            f"{_time_of_day(longest)}; its energy lies {_energy_range(gaps)}"
        )
    else:
        total_s = sum(gap.duration_s for gap in gaps)
        message = (
            f"{len(gaps)} stretches without readings, {format_duration(total_s)} in all, the longest "
            f"{format_duration(longest.duration_s)} from {_time_of_day(longest)} on {longest.device}; "
            f"their energy lies {_energy_range(gaps)}"
        )
    return [
        Finding(code="gap", severity=Severity.WARNING, message=message, where=longest.device, count=len(gaps))
    ]


def _energy_range(gaps: Sequence[Gap]) -> str:
    low_j = sum(gap.low_j for gap in gaps)
    highs = [gap.high_j for gap in gaps]
    if any(high is None for high in highs):
        return f"above {format_energy(low_j)}, with no limit known"
    high_j = sum(high for high in highs if high is not None)
    scale_j, unit = (JOULE_PER_KWH, "kWh") if high_j >= _SMALL_J else (1_000, "kJ")
    low, high = _two_digits(low_j / scale_j, up=False), _two_digits(high_j / scale_j, up=True)
    return f"between {low:g} and {high:g} {unit}"


def _two_digits(value: float, *, up: bool) -> float:
    """The value to two significant digits, rounded away from what lies between two bounds."""
    if not 0 < value < math.inf:
        return value
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    steps = round(value / step, 6)  # what is exact but for rounding stays
    return (math.ceil(steps) if up else math.floor(steps)) * step


def _time_of_day(gap: Gap) -> str:
    if 0 <= gap.start_utc_ns < _FIRST_DATED_NS:
        return f"{format_duration(gap.start_utc_ns / NANOSECOND_PER_SECOND)} after the start"
    try:
        return f"{format_utc(gap.start_utc_ns)[11:19]} UTC"
    except ValueError:
        return "a time that is on no calendar"


def assess_switches(switches: Sequence[Series], window: RunWindow | None, duration_s: float) -> list[Finding]:
    """Network switches: what they draw is told apart from the nodes, with the doubt about its date."""
    findings = []
    for series in _without_copies(switches):
        with np.errstate(over="ignore"):
            power_w = float(np.nanmean(series.value * series.conversion))
        kind = "estimate of the network switches" if series.is_estimate else "reading of a network switch"
        stamp = ""
        if window is not None and _is_apart(series, window):
            stamp = (
                f"; it is stamped {utc_year(int(series.utc_ns[0]))}, the run {utc_year(window.start_utc_ns)}"
            )
        findings.append(
            Finding(
                code="switch-power",
                severity=Severity.WARNING if stamp else Severity.NOTE,
                message=(
                    f"{series.device}: the {kind}, {power_w:,.0f} W, makes "
                    f"{power_w * duration_s / JOULE_PER_KWH:.1f} kWh over the run and is not in the "
                    f"energy above{stamp}"
                ),
                where=series.device,
                expected="a time inside the run" if stamp else "",
                found=format_utc(int(series.utc_ns[0])) if stamp else "",
            )
        )
    return findings


def _is_apart(series: Series, window: RunWindow) -> bool:
    """Whether no reading falls into the run, or within a day of it."""
    day_ns = 86_400 * NANOSECOND_PER_SECOND
    stop_ns = window.stop_utc_ns if window.stop_utc_ns is not None else window.start_utc_ns
    return bool(np.all((series.utc_ns < window.start_utc_ns - day_ns) | (series.utc_ns > stop_ns + day_ns)))


def assess_limits(
    series: Sequence[Series], energies: Sequence[Energy], *, limit_w: float | None
) -> list[Finding]:
    """Readings that no such device can draw, and readings that stand still for long."""
    findings = []
    over = [energy for energy in energies if limit_w is not None and energy.peak_w > limit_w]
    if over and limit_w is not None:
        worst = max(over, key=lambda energy: energy.peak_w)
        findings.append(
            Finding(
                code="power-over-limit",
                severity=Severity.WARNING,
                message=(
                    f"{plural(len(over), 'device')} read more than such a device can draw; the highest "
                    f"is {worst.device} with {worst.peak_w:,.0f} W"
                ),
                where=worst.device,
                expected=f"at most {limit_w:,.0f} W",
                found=f"{worst.peak_w:,.0f} W",
                count=len(over),
            )
        )
    still = [(item, longest_still(item.value)) for item in series]
    stuck = [(item, n_still) for item, n_still in still if n_still >= _STUCK_READINGS]
    if stuck:
        findings.append(
            Finding(
                code="reading-stuck",
                severity=Severity.WARNING,
                message=(
                    f"{plural(len(stuck), 'device')} {agree(len(stuck), 'repeats', 'repeat')} one value "
                    f"for {stuck[0][1]:,} readings or more; a sensor may have stopped"
                ),
                where=stuck[0][0].device,
                count=len(stuck),
            )
        )
    return findings


def assess_declaration(declared: Declaration | None, *, n_devices: int, scope: Scope) -> list[Finding]:
    """What the log declares beside what was handed over; a declaration tests, it never estimates."""
    if declared is None:
        return []
    findings = []
    if scope.is_per_node and declared.nodes is not None and n_devices and declared.nodes != n_devices:
        findings.append(
            Finding(
                code="nodes-differ",
                severity=Severity.WARNING,
                message=(
                    f"the log declares {plural(declared.nodes, 'node')}, power was handed over for "
                    f"{n_devices}"
                ),
                expected=str(declared.nodes),
                found=str(n_devices),
            )
        )
    return findings


def assess_devices(
    declared: Declaration | None, *, n_devices: int, n_expected: int, count: int, scope: Scope
) -> list[Finding]:
    """Devices handed over beside the chips that are stated: too few nodes for them, or more than they are."""
    findings = []
    n_declared = declared.nodes if declared is not None and declared.nodes is not None else 0
    if scope.is_per_node and n_expected > max(n_devices, n_declared):
        findings.append(
            Finding(
                code="nodes-differ",
                severity=Severity.WARNING,
                message=(
                    f"{plural(count, 'chip')} {agree(count, 'fills', 'fill')} {plural(n_expected, 'node')}, "
                    f"power was handed over for {n_devices}"
                ),
                expected=str(n_expected),
                found=str(n_devices),
            )
        )
    if n_devices > count and scope not in (Scope.RAIL, Scope.UNKNOWN):
        findings.append(
            Finding(
                code="count-differs",
                severity=Severity.WARNING,
                message=(
                    f"power was handed over for {plural(n_devices, 'device')}, the call says {count}; each "
                    "holds a chip at least, and is counted as one"
                ),
                expected=f"at least {n_devices}",
                found=str(count),
            )
        )
    return findings


def assess_absent(energies: Sequence[Energy]) -> list[Finding]:
    """Devices without any reading inside the run."""
    absent = [device.device for device in energies if device.n_readings == 0 and device.claimed_s > 0]
    if not absent:
        return []
    return [
        Finding(
            code="device-outside-run",
            severity=Severity.WARNING,
            message=(
                f"{len(absent):,} of {plural(len(energies), 'device')} {agree(len(absent), 'has', 'have')} "
                f"no reading inside the run, such as {absent[0]}; what is not read counts as unrecorded"
            ),
            where=absent[0],
            count=len(absent),
        )
    ]


def _without_copies(series: Sequence[Series]) -> list[Series]:
    """The series, each content once."""
    return list({(item.utc_ns.tobytes(), item.value.tobytes()): item for item in reversed(series)}.values())[
        ::-1
    ]
