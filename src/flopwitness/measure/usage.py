"""When each device of a recording was in use, and what it drew: sessions, and totals that none of them cuts.

Long recordings are looked at piece by piece, so that a year of readings needs no more memory than they take.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND, format_duration
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.baseline import assess_idle, find_idle, pool_baselines
from flopwitness.measure.counters import integrate_counter
from flopwitness.measure.dead_readings import leave_out_dead
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.paired import longest_step_s
from flopwitness.measure.power_choice import choose_power
from flopwitness.measure.running_clock import laid_out_ticks
from flopwitness.measure.samples import Channel, Series, Timing, Trace
from flopwitness.measure.sessions import Session, SessionRule, find_sessions, session_energy
from flopwitness.measure.timing import assess_times
from flopwitness.measure.totals import LedgerState, MeterKey, Totals, extend
from flopwitness.measure.waiting import find_waiting
from flopwitness.measure.wording import agree, plural

__all__ = ["DeviceUse", "assess_use", "assess_waits"]

_POWER: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)
_PIECE: Final = 1 << 19  # readings: six days of one a second


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """One device's sessions and totals.

    Attributes:
        device: The device's name.
        timing: What its times are worth.
        sessions: The stretches in which utilisation says that it was in use.
        energies_j: The energy above idle of each session [J]; None where power or idle power is not known.
        totals: What the ledger adds up, sessions or not; None where no power was recorded.
        power: The power series behind it; None likewise.
        idle_w: The idle power that was seen, or the user's [W]; None where neither is known.
        waiting_s: Full utilisation at near-idle power, which is no work [s]; busy time holds it.
    """

    device: str
    timing: Timing
    sessions: tuple[Session, ...]
    energies_j: tuple[float | None, ...]
    totals: Totals | None
    power: Series | None
    idle_w: float | None
    waiting_s: float = 0.0

    @property
    def share_in_sessions(self) -> float | None:
        """The energy above idle of all sessions over the ledger's; None where either is not known."""
        if self.totals is None or self.idle_w is None or not self.totals.net_energy_j > 0:
            return None
        return sum(energy_j or 0.0 for energy_j in self.energies_j) / self.totals.net_energy_j


def assess_use(
    trace: Trace, rule: SessionRule, findings: list[Finding], *, idle_w: float | None = None
) -> tuple[DeviceUse, ...]:
    """Sessions and totals of every device whose utilisation was recorded.

    Args:
        trace: The recording.
        rule: When a session begins and ends.
        findings: Takes what is odd: no utilisation, no idle seen, full utilisation at near-idle power.
        idle_w: What each device draws idle [W], where the user says so; else what the recording shows.
    """
    trace = leave_out_dead(trace, findings)
    utilisation = list(_utilisation(trace).values())
    if not utilisation:
        findings.append(
            Finding(
                code="utilisation-unrecorded",
                severity=Severity.WARNING,
                message="no utilisation was recorded: when devices were in use cannot be told",
            )
        )
    metered = {item.device: item for item in choose_power(trace, findings).series}
    watts = [item for item in metered.values() if item.channel in _POWER]
    findings += assess_times([integrate_power(item) for item in watts])
    findings += assess_waits(trace, watts, idle_w=idle_w)
    uses = [_use(item, metered.pop(item.device, None), rule, idle_w) for item in utilisation]
    uses += [_metered(item, idle_w) for item in metered.values()]
    _tell_alone(uses, findings)
    return tuple(uses)


def assess_waits(trace: Trace, power: Sequence[Series], *, idle_w: float | None = None) -> list[Finding]:
    """One finding where devices show full utilisation at near-idle power: waiting, which is no work.

    Args:
        trace: The recording, for the devices' utilisation.
        power: The power series in use.
        idle_w: What each device draws idle [W]; None takes what the recording shows, device by device.
    """
    utilisation = _utilisation(trace)
    waits = [
        (item.device, _waiting_s(item, utilisation[item.device], idle_w))
        for item in power
        if item.device in utilisation and item.channel in _POWER
    ]
    waits = [(device, waiting_s) for device, waiting_s in waits if waiting_s > 0]
    if not waits:
        return []
    device, longest_s = max(waits, key=lambda item: item[1])
    return [
        Finding(
            code="busy-at-idle-power",
            severity=Severity.WARNING,
            message=(
                f"{plural(len(waits), 'device')} {agree(len(waits), 'reports', 'report')} full utilisation "
                f"at near-idle power, {device} for {format_duration(longest_s)}: it waited, in a collective "
                "perhaps, and that time is no work"
            ),
            where=device,
            found=format_duration(longest_s),
            count=len(waits),
        )
    ]


def _utilisation(trace: Trace) -> dict[str, Series]:
    """The utilisation of each device; of several recordings the longest."""
    chosen: dict[str, Series] = {}
    for series in trace.series:
        is_whole = series.channel is Channel.UTILISATION_PCT and not series.part
        if is_whole and np.isfinite(series.value).any():
            chosen[series.device] = max(chosen.get(series.device, series), series, key=len)
    return chosen


def _waiting_s(power: Series, utilisation: Series, stated_w: float | None) -> float:
    idle_w = stated_w if stated_w is not None else _seen_idle_w(power, utilisation)
    if idle_w is None:
        return 0.0
    pieces = _pieces(power, utilisation)
    return sum(
        find_waiting(watts, share, idle_w=idle_w).waiting_s for watts, share in pieces if share is not None
    )


def _seen_idle_w(power: Series, utilisation: Series) -> float | None:
    """What the recording shows of the device's idle power [W]; None where it was never idle for long."""
    found = (find_idle(watts, share) for watts, share in _pieces(power, utilisation))
    pooled = pool_baselines([baseline for baseline in found if baseline is not None])
    return None if pooled is None else pooled.idle_w


def _pieces(power: Series, utilisation: Series | None) -> Iterator[tuple[Series, Series | None]]:
    """The readings in pieces, each with the utilisation of its time."""
    if len(power) <= _PIECE:
        yield power, utilisation
        return
    shares_clock = utilisation is not None and np.array_equal(power.utc_ns, utilisation.utc_ns)
    in_order = utilisation is not None and bool((utilisation.utc_ns[1:] >= utilisation.utc_ns[:-1]).all())
    for start in range(0, len(power), _PIECE):
        rows = slice(start, start + _PIECE)
        piece = _cut(power, rows)
        if utilisation is None:
            yield piece, None
        elif shares_clock:
            yield piece, _cut(utilisation, rows)
        else:
            yield piece, _within(utilisation, piece, in_order=in_order)


def _within(series: Series, piece: Series, *, in_order: bool) -> Series:
    """The readings of the piece's time."""
    begin_ns, end_ns = int(piece.utc_ns.min()), int(piece.utc_ns.max())
    if in_order:
        return _cut(series, slice(*np.searchsorted(series.utc_ns, [begin_ns, end_ns + 1])))
    return _cut(series, (series.utc_ns >= begin_ns) & (series.utc_ns <= end_ns))


def _cut(series: Series, chosen: slice | NDArray[np.bool_]) -> Series:
    return replace(
        series,
        utc_ns=series.utc_ns[chosen],
        value=series.value[chosen],
        monotonic_ns=None if series.monotonic_ns is None else series.monotonic_ns[chosen],
    )


def _use(utilisation: Series, power: Series | None, rule: SessionRule, stated_w: float | None) -> DeviceUse:
    utilisation = _laid_out(utilisation)
    sessions = find_sessions(utilisation, rule)
    if power is None or power.channel not in _POWER:
        return DeviceUse(
            device=utilisation.device,
            timing=utilisation.timing,
            sessions=sessions,
            energies_j=(None,) * len(sessions),
            totals=None if power is None else _counted(power, stated_w),
            power=None,
            idle_w=stated_w,
        )
    power = _laid_out(power)
    idle_w = stated_w if stated_w is not None else _seen_idle_w(power, utilisation)
    return DeviceUse(
        device=utilisation.device,
        timing=power.timing,
        sessions=sessions,
        energies_j=tuple(_session_j(power, session, idle_w) for session in sessions),
        totals=_total(power, utilisation, idle_w),
        power=power,
        idle_w=idle_w,
        waiting_s=_waiting_s(power, utilisation, idle_w),
    )


def _metered(power: Series, idle_w: float | None) -> DeviceUse:
    """A device whose utilisation nobody recorded: totals, and no sessions."""
    is_power = power.channel in _POWER
    return DeviceUse(
        device=power.device,
        timing=power.timing,
        sessions=(),
        energies_j=(),
        totals=_total(_laid_out(power), None, idle_w) if is_power else _counted(power, idle_w),
        power=power if is_power else None,
        idle_w=idle_w,
    )


def _laid_out(series: Series) -> Series:
    """The series on a clock that never runs back: each step back is one usual step, as for a run's energy."""
    utc_ns, n_back = laid_out_ticks(series.utc_ns)
    return replace(series, utc_ns=utc_ns) if n_back else series


def _counted(counter: Series, idle_w: float | None) -> Totals:
    """What a counter of energy shows, whose course between two readings is not known."""
    energy = integrate_counter(counter)
    net_j = 0.0 if idle_w is None else energy.measured_j - idle_w * energy.covered_s
    return Totals(
        energy_j=energy.measured_j,
        net_energy_j=net_j,
        unnetted_j=energy.measured_j if idle_w is None else 0.0,
        covered_s=energy.covered_s,
        gap_s=energy.bridged_s,
        bridged_j=energy.bridged_j,
        gap_low_j=sum(gap.low_j for gap in energy.gaps),
        gap_high_j=None if energy.gaps else 0.0,
        n_readings=energy.n_readings,
        n_missing=energy.n_missing,
    )


def _total(power: Series, utilisation: Series | None, idle_w: float | None) -> Totals:
    key = MeterKey(power.device, power.channel, power.scope, power.part)
    time_s = (np.sort(power.utc_ns) - power.utc_ns.min()) / NANOSECOND_PER_SECOND
    state, step_s = LedgerState(), longest_step_s(time_s)
    for watts, share in _pieces(power, utilisation):
        state = extend(state, watts, share, idle_w=idle_w, longest_step_s=step_s)
    return state.meters[key].totals


def _session_j(power: Series, session: Session, idle_w: float | None) -> float | None:
    return None if idle_w is None else session_energy(power, session, idle_w)


def _tell_alone(uses: Sequence[DeviceUse], findings: list[Finding]) -> None:
    """What is told once for all devices: no idle seen, and sessions that miss much of the energy."""
    unseen = [use for use in uses if use.totals and use.totals.utilisation_s and use.idle_w is None]
    if unseen:
        first = assess_idle(unseen[0].device, None)
        if first is not None:
            findings.append(first)
    short = [use for use in uses if (use.share_in_sessions or 1.0) < 0.95]  # noqa: PLR2004 (a twentieth)
    if short:
        worst = min(short, key=lambda use: use.share_in_sessions or 0.0)
        findings.append(
            Finding(
                code="sessions-short",
                severity=Severity.WARNING,
                message=(
                    f"the sessions of {plural(len(short), 'device')} hold less than 95 % of the energy above "
                    f"idle, {100 * (worst.share_in_sessions or 0.0):.0f} % on {worst.device}: work in short "
                    "pieces escapes the rule. The ledger's totals count all of it"
                ),
                where=worst.device,
                count=len(short),
            )
        )
