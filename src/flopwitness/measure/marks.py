"""Marks of a log that contradict its readings: stops that stand at the start, runs without an end."""

from collections.abc import Sequence
from typing import Final

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import Energy, Gap
from flopwitness.measure.samples import RunWindow, Trace
from flopwitness.measure.wording import agree, plural

__all__ = ["assess_marks"]

_LONGEST_OUTSIDE_S: Final = 5.0


def assess_marks(trace: Trace, window: RunWindow | None, energies: Sequence[Energy]) -> list[Finding]:
    """What is odd about the marks of the power measurement, of the run, and about the run's ends."""
    return _assess_measurement(trace) + _assess_run(window) + _assess_edges(window, energies)


def _assess_measurement(trace: Trace) -> list[Finding]:
    """Marks for the end of power measurement that carry the time of its start."""
    starts = {
        (mark.where.rpartition(":")[0], mark.utc_ns)
        for mark in trace.marks
        if mark.name == "power_measurement_start"
    }
    wrong = [
        mark
        for mark in trace.marks
        if mark.name == "power_measurement_stop" and (mark.where.rpartition(":")[0], mark.utc_ns) in starts
    ]
    if not wrong:
        return []
    return [
        Finding(
            code="mark-time",
            severity=Severity.NOTE,
            message=(
                f"{plural(len(wrong), 'mark')} for the end of power measurement "
                f"{agree(len(wrong), 'carries', 'carry')} the time of its start; "
                "the readings' own times are used"
            ),
            where=wrong[0].where,
            count=len(wrong),
        ),
    ]


def _assess_run(window: RunWindow | None) -> list[Finding]:
    """A run without a stop, or one that did not end well."""
    if window is None:
        return []
    findings = []
    if window.stop_utc_ns is None:
        findings.append(
            Finding(
                code="run-unfinished",
                severity=Severity.WARNING,
                message=(
                    "the log marks the start of the run and no stop; it is taken to end with what was "
                    "recorded"
                ),
            )
        )
    if window.status not in ("", "success"):
        findings.append(
            Finding(
                code="run-status",
                severity=Severity.NOTE,
                message=(
                    f"the log calls the run's outcome {window.status!r}; compute spent on it counts all "
                    "the same"
                ),
                found=window.status,
            )
        )
    return findings


def _assess_edges(window: RunWindow | None, energies: Sequence[Energy]) -> list[Finding]:
    """Devices without readings at an end of the run."""
    outside = sum(
        not energy.is_mixed and any(_is_edge(gap, window) for gap in energy.gaps) for energy in energies
    )
    if not outside or window is None:
        return []
    return [
        Finding(
            code="run-uncovered-edge",
            severity=Severity.WARNING,
            message=(
                f"{plural(outside, 'device')} {agree(outside, 'has', 'have')} no readings for more "
                f"than {_LONGEST_OUTSIDE_S:g} s at an end of the run"
            ),
            count=outside,
        ),
    ]


def _is_edge(gap: Gap, window: RunWindow | None) -> bool:
    if window is None or gap.duration_s <= _LONGEST_OUTSIDE_S:
        return False
    stop_ns = gap.start_utc_ns + round(gap.duration_s * NANOSECOND_PER_SECOND)
    ends = (window.start_utc_ns, window.stop_utc_ns)
    return any(
        end is not None and abs(time - end) < NANOSECOND_PER_SECOND
        for end in ends
        for time in (gap.start_utc_ns, stop_ns)
    )
