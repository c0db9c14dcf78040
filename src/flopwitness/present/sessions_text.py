"""Sessions and totals for a person: when devices were in use, and what no session can cut."""

from collections.abc import Iterator, Sequence
from typing import Final

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, format_duration, format_energy
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.samples import Timing
from flopwitness.measure.sessions import Session, SessionRule
from flopwitness.measure.usage import DeviceUse
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import join_lines, name_count

__all__ = ["describe_instant", "render_sessions_text"]

_MOST_SHOWN: Final = 20


def render_sessions_text(uses: Sequence[DeviceUse], rule: SessionRule, findings: Sequence[Finding]) -> str:
    """The whole answer of `sessions`, ready to print.

    Args:
        uses: One for each device.
        rule: The rule that the sessions follow.
        findings: What is odd, worst first.
    """
    lines = [_rule_line(rule)]
    for use in uses:
        lines += _device_lines(use)
    lines += finding_lines(findings)
    return join_lines(lines)


def _rule_line(rule: SessionRule) -> str:
    starts = f"above {rule.start_above_pct:g} % at {name_count(rule.start_polls, 'poll')}"
    stops = f"below {rule.stop_below_pct:g} % at {rule.stop_polls}"
    return f"sessions start {starts}, stop {stops}, polled every {rule.poll_s:g} s"


def describe_instant(utc_ns: int, timing: Timing) -> str:
    """A time of a recording for a person: a date where it has one, else the time since its start."""
    if timing is not Timing.DATED:
        return f"+{format_duration(utc_ns / NANOSECOND_PER_SECOND)}"
    try:
        return format_utc(utc_ns)[:19].replace("T", " ")
    except ValueError:
        return "a time that is on no calendar"


def _device_lines(use: DeviceUse) -> Iterator[str]:
    yield f"{use.device}: {name_count(len(use.sessions), 'session')}"
    pairs = list(zip(use.sessions, use.energies_j, strict=True))
    for session, energy_j in pairs[:_MOST_SHOWN]:
        yield _session_line(session, energy_j, use.timing)
    if len(pairs) > _MOST_SHOWN:
        yield f"  and {len(pairs) - _MOST_SHOWN:,} more (--json lists them all)"
    yield from _total_lines(use)


def _session_line(session: Session, energy_j: float | None, timing: Timing) -> str:
    length_s = (session.stop_utc_ns - session.start_utc_ns) / NANOSECOND_PER_SECOND
    energy = "" if energy_j is None else f", {format_energy(energy_j)} above idle"
    still = ", not ended" if session.is_open else ""
    return f"  {describe_instant(session.start_utc_ns, timing)}  {format_duration(length_s)}{energy}{still}"


def _total_lines(use: DeviceUse) -> Iterator[str]:
    totals = use.totals
    if totals is None:
        yield "  ledger     no power was recorded"
        return
    yield f"  ledger     {format_energy(totals.energy_j)} in {format_duration(totals.covered_s)}"
    if totals.n_ignored:
        yield f"  ignored    {name_count(totals.n_ignored, 'reading')} not later than one before"
    if totals.gap_s:
        line = f"; a straight line across would be {format_energy(totals.bridged_j)}"
        yield f"  gaps       {format_duration(totals.gap_s)} without readings, not in these figures{line}"
    if use.idle_w is None:
        used = f"{format_duration(totals.used_s)} by utilisation" if totals.utilisation_s else "not known"
        yield f"  busy       {used}; idle power not known"
        return
    yield f"  above idle {format_energy(totals.net_energy_j)} over {use.idle_w:.4g} W idle"
    working = "" if totals.working_net_w is None else f", P* {totals.working_net_w:.4g} W above idle"
    waiting = f", {format_duration(use.waiting_s)} of it waiting at near-idle power" if use.waiting_s else ""
    yield f"  busy       {format_duration(totals.busy_s)} by power{waiting}{working}"
    if use.share_in_sessions is not None:
        yield f"  sessions   hold {100 * use.share_in_sessions:.1f} % of the energy above idle"
