"""What a recording holds, for a person: one line a channel, with what is doubted about it."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import format_duration, format_energy
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.host_energy import HostUse
from flopwitness.measure.inventory import Group, Reading, group_readings
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import join_lines, name_count

__all__ = ["render_doctor_text"]

_WIDTH: Final = 100
_MOST_NAMES: Final = 3
_MOST_FILES: Final = 6
_SCALES: Final = {
    Channel.ENERGY_COUNTER_J: (1e3, "kJ"),
    Channel.MEMORY_USED_BYTE: (2**30, "GiB"),
    Channel.CLOCK_HZ: (1e6, "MHz"),
    Channel.MEMORY_CLOCK_HZ: (1e6, "MHz"),
    Channel.TEMPERATURE_C: (1.0, "degrees C"),
    Channel.PERFORMANCE_STATE: (1.0, ""),
    Channel.CPU_CORES_ON: (1.0, "cores"),
}
_NO_ACCELERATOR: Final = frozenset(
    {Scope.SWITCH, Scope.CPU, Scope.CPU_PART, Scope.DRAM, Scope.PLATFORM, Scope.INSTANCE}
)
_SUFFIXES: Final = {"_w": "W", "_pct": "%", "_byte": "byte", "_byte_per_s": "byte/s", "_j": "J"}


def render_doctor_text(
    trace: Trace, readings: Sequence[Reading], hosts: Sequence[HostUse], findings: Sequence[Finding]
) -> str:
    """The whole answer of `doctor` for logs, ready to print.

    Args:
        trace: The recording.
        readings: Its channels (`list_readings`).
        hosts: The energy of its hosts (`measure_hosts`).
        findings: What is odd about it, worst first.
    """
    lines = [*_file_lines(trace), *_time_lines(readings), *_device_lines(trace)]
    for group in group_readings(readings):
        lines += _group_lines(group)
    if not readings:
        lines.append("  no readings")
    lines += [*_host_lines(hosts), *_run_lines(trace)]
    lines += finding_lines(findings)
    return join_lines(lines)


def _file_lines(trace: Trace) -> Iterator[str]:
    for part in trace.provenance[:_MOST_FILES]:
        yield f"{part.path}: {part.format}, {part.size_bytes:,} bytes"
    rest = len(trace.provenance) - _MOST_FILES
    if rest > 0:
        yield f"and {name_count(rest, 'more file')}"


def _time_lines(readings: Sequence[Reading]) -> Iterator[str]:
    dated = [reading for reading in readings if reading.start_utc_ns is not None]
    longest_s = max((reading.duration_s for reading in readings), default=0.0)
    if dated:
        start_ns = min(reading.start_utc_ns or 0 for reading in dated)
        try:
            yield f"  from       {format_utc(start_ns)}, {format_duration(longest_s)}"
        except ValueError:
            yield f"  from       a time that is on no calendar, {format_duration(longest_s)}"
    elif readings:
        yield f"  length     {format_duration(longest_s)}, no date"


def _device_lines(trace: Trace) -> Iterator[str]:
    chips: dict[str, list[str]] = {}
    for device in trace.devices:
        chips.setdefault(device.chip_name or "name not recorded", []).append(device.name)
    for chip, names in list(chips.items())[:_MOST_NAMES]:
        shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
        yield f"  {'devices' if len(names) > 1 else 'device':<10} {len(names)} x {chip} ({shown})"
    rest = len(chips) - _MOST_NAMES
    if rest > 0:
        yield f"  and devices of {name_count(rest, 'more name')}"


def _group_lines(group: Group) -> list[str]:
    worst = group.worst
    name = str(worst.channel)
    place = str(worst.scope) + (f", {worst.part}" if worst.part else "")
    n_devices = len(group.readings)
    many = f" on {n_devices} devices" if n_devices > 1 else ""
    n_readings = sum(reading.n_readings for reading in group.readings)
    every = "" if np.isnan(worst.period_s) else f", every {worst.period_s:.3g} s"
    told = worst.doubts if n_devices == 1 else (*worst.doubts, *_missing_of_all(group))
    doubts = f"; {', '.join(told)}" if told else ""
    text = f"{worst.grade}: {name_count(n_readings, 'reading')}{many}{every}{_range(group)} ({place}){doubts}"
    return _wrapped(text, head=f"  {name:<26}")


def _missing_of_all(group: Group) -> list[str]:
    """How much is missing on all devices together, beside what is said of the worst one."""
    n_missing = sum(reading.n_missing for reading in group.readings)
    return [f"on all devices {n_missing:,} without a value"] if n_missing else []


def _range(group: Group) -> str:
    known = [reading for reading in group.readings if not np.isnan(reading.low)]
    if not known:
        return ""
    channel = known[0].channel
    unit = next((word for suffix, word in _SUFFIXES.items() if channel.endswith(suffix)), "")
    scale, unit = _SCALES.get(channel, (1.0, unit))
    low = min(reading.low for reading in known) / scale
    high = max(reading.high for reading in known) / scale
    return f", {_figure(low)} to {_figure(high)} {unit}".rstrip()


def _figure(value: float) -> str:
    """Four digits, or every digit before the point up to a billion."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"  # noqa: PLR2004


def _host_lines(hosts: Sequence[HostUse]) -> Iterator[str]:
    """The energy of each host, with what overlaps told apart and never added."""
    for host in hosts[:_MOST_NAMES]:
        energy = host.energy
        parts = (
            ("processors", energy.cpu_j),
            ("memory", energy.dram_j),
            ("both together", energy.cpu_plus_dram_j),
            ("the platform's own meter", energy.platform_j),
        )
        told = [f"{name} {format_energy(energy_j)}" for name, energy_j in parts if energy_j is not None]
        text = f"{', '.join(told) or 'energy not known'}; {100 * host.coverage:.1f} % of the time covered"
        yield from _wrapped(text, head=f"  {f'host {host.device}':<26}")
    rest = len(hosts) - _MOST_NAMES
    if rest > 0:
        yield f"  and {name_count(rest, 'more host')}"


def _run_lines(trace: Trace) -> Iterator[str]:
    for window in trace.windows[:_MOST_NAMES]:
        length_s = 0.0 if window.stop_utc_ns is None else (window.stop_utc_ns - window.start_utc_ns) / 1e9
        end = "no stop" if window.stop_utc_ns is None else format_duration(max(0.0, length_s))
        yield f"  run marked {end}{f', {window.status}' if window.status else ''}"
    rest = len(trace.windows) - _MOST_NAMES
    if rest > 0:
        yield f"  and {name_count(rest, 'more run')}"
    yield from _verdict_lines(trace)


def _verdict_lines(trace: Trace) -> Iterator[str]:
    """What the recording can serve for."""
    scopes = {item.scope for item in trace.series if _is_metered(item)} - _NO_ACCELERATOR
    if scopes - {Scope.UNKNOWN}:
        yield "  serves for an estimate from energy"
    elif scopes:
        yield "  serves for an estimate from energy once --scope names what the readings cover"
    else:
        yield "  serves for an estimate from time alone: no accelerator's power over any time is recorded"


def _is_metered(series: Series) -> bool:
    """Whether the series holds power or a counter at two instants at least: one has no length."""
    is_known = np.isfinite(series.value)
    known, times = series.value[is_known], series.utc_ns[is_known]
    if known.size < 2 or times.min() == times.max():  # noqa: PLR2004 (see above)
        return False
    if series.channel is Channel.ENERGY_COUNTER_J:
        return True
    return series.channel in (Channel.POWER_W, Channel.POWER_AVERAGE_W) and bool((known > 0).any())


def _wrapped(text: str, *, head: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]
