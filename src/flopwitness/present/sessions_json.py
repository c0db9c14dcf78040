"""Sessions and totals for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.samples import Provenance, Timing
from flopwitness.measure.sessions import SessionRule
from flopwitness.measure.usage import DeviceUse
from flopwitness.present.finding_json import render_finding
from flopwitness.present.sessions_text import describe_instant

__all__ = ["render_sessions"]

SPEC: Final = "flopwitness/sessions/v1"


def render_sessions(
    uses: Sequence[DeviceUse],
    rule: SessionRule,
    *,
    inputs: Sequence[Provenance],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """The record of sessions and totals.

    Args:
        uses: One for each device.
        rule: The rule that the sessions follow.
        inputs: Where the readings came from.
        findings: What is odd, worst first.
    """
    return {
        "spec": SPEC,
        "rule": asdict(rule),
        "inputs": [{"path": p.path, "format": p.format, "digest": str(p.digest)} for p in inputs],
        "devices": [_render_use(use) for use in uses],
        "findings": [render_finding(finding) for finding in findings],
    }


def _render_use(use: DeviceUse) -> dict[str, Any]:
    totals = use.totals
    return {
        "device": use.device,
        "timing": str(use.timing),
        "sessions": [
            {
                "start": describe_instant(session.start_utc_ns, use.timing),
                "start_ns": str(session.start_utc_ns),
                "stop_ns": str(session.stop_utc_ns),
                "duration_s": (session.stop_utc_ns - session.start_utc_ns) / 1e9,
                "net_energy_j": energy_j,
                "is_open": session.is_open,
            }
            for session, energy_j in zip(use.sessions, use.energies_j, strict=True)
        ],
        "idle_w": use.idle_w,
        "waiting_s": use.waiting_s,
        "totals": None if totals is None else {**asdict(totals), "working_net_w": totals.working_net_w},
        "share_in_sessions": use.share_in_sessions if use.timing is not Timing.COUNTED else None,
    }
