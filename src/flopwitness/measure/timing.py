"""What is odd about the times of a recording: repeats, standstill, steps back, long steps.

Time enters every bound, so a clock is doubted wherever it would make a recording shorter, and readings
wherever they would speak for time in which nobody read.
"""

from collections.abc import Sequence
from typing import Final

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import Energy, doubt_clock
from flopwitness.measure.reading_blocks import clock_ns
from flopwitness.measure.samples import Scope, Series, Trace
from flopwitness.measure.wording import agree, plural

__all__ = ["assess_times", "doubt_clocks"]

_MOST_DOUBTED: Final = 0.1  # of the recordings; the others still tell how long a run lasted


def assess_times(energies: Sequence[Energy]) -> list[Finding]:
    """What the readings' times leave in doubt: repeats, steps back, unlike readings at once, long steps.

    A clock that tells no length at all is told where the recorded time is chosen (`doubt_clocks`).
    """
    findings = []
    believed = [energy for energy in energies if not energy.is_clock_doubted]
    repeated = [energy for energy in believed if energy.n_repeated]
    if repeated:
        count = sum(energy.n_repeated for energy in repeated)
        findings.append(
            Finding(
                code="time-repeated",
                severity=Severity.NOTE,
                message=(
                    f"{plural(count, 'reading')} at the time of the reading before; no energy is "
                    "counted twice"
                ),
                where=repeated[0].device,
                count=count,
            )
        )
    backwards = [energy for energy in believed if energy.n_backwards]
    if backwards:
        count = sum(energy.n_backwards for energy in backwards)
        findings.append(
            Finding(
                code="clock-backwards",
                severity=Severity.WARNING,
                message=(
                    f"the clock steps back {plural(count, 'time')}; each step is taken as one usual "
                    "period between readings"
                ),
                where=backwards[0].device,
                count=count,
            )
        )
    return findings + _assess_mixed(energies) + _assess_rounded(energies) + _assess_cadence(energies)


def doubt_clocks(trace: Trace, chosen: Sequence[Series], findings: list[Finding]) -> bool:
    """Whether so many clocks tell no length that nothing can bound the run; what is odd goes to `findings`.

    Args:
        trace: All recordings: more than a tenth of them, switches left out, are too many.
        chosen: The power recordings in use: more than a tenth of them are too many as well.
        findings: Where the doubts are told.
    """
    recorded = [item for item in trace.series if len(item) and item.scope is not Scope.SWITCH]
    clocks = {
        id(clock_ns(item)): item for item in (*recorded, *chosen)
    }  # many series of one device share one
    by_clock = {clock: doubt_clock(item) for clock, item in clocks.items()}
    doubts = {id(item): by_clock[id(clock_ns(item))] for item in (*recorded, *chosen)}
    is_lost = any(
        sum(bool(doubts[id(item)]) for item in group) > _MOST_DOUBTED * len(group)
        for group in (recorded, chosen)
    )
    told = recorded if is_lost else chosen
    for is_stuck in (True, False):
        doubted = [
            item for item in told if doubts[id(item)] and (doubts[id(item)] == "clock-stuck") == is_stuck
        ]
        if doubted:
            findings.append(_tell_doubt(doubted, len(told), is_stuck=is_stuck, is_lost=is_lost))
    return is_lost


def _tell_doubt(doubted: Sequence[Series], n_all: int, *, is_stuck: bool, is_lost: bool) -> Finding:
    stuck = "more than 20 readings in a row at one time: its clock stood still"
    back = "a clock that steps back again and again"
    lost = "how long the run lasted is not known, and neither time nor energy bounds it"
    few = "how long that took is not known, and such a recording counts as not measured"
    return Finding(
        code="clock-stuck" if is_stuck else "clock-backwards",
        severity=Severity.WARNING,
        message=(
            f"{plural(len(doubted), 'recording')} of {n_all:,}, {doubted[0].device} for example, "
            f"{agree(len(doubted), 'has', 'have')} {stuck if is_stuck else back}; {lost if is_lost else few}"
        ),
        where=doubted[0].device,
        expected="a clock that runs",
        count=len(doubted),
    )


def _assess_mixed(energies: Sequence[Energy]) -> list[Finding]:
    mixed = [energy for energy in energies if energy.is_mixed]
    if not mixed:
        return []
    return [
        Finding(
            code="sensors-mixed",
            severity=Severity.WARNING,
            message=(
                f"{plural(len(mixed), 'device')} of {len(energies):,}, {mixed[0].device} for example, "
                f"{agree(len(mixed), 'has', 'have')} many unlike readings at one time: several sensors may "
                "write one log, and their sum is not known. Such a device counts as not measured, and energy "
                "bounds nothing"
            ),
            where=mixed[0].device,
            expected="one reading at a time",
            count=len(mixed),
        )
    ]


def _assess_rounded(energies: Sequence[Energy]) -> list[Finding]:
    rounded = [energy for energy in energies if energy.is_rounded]
    if not rounded:
        return []
    return [
        Finding(
            code="times-rounded",
            severity=Severity.WARNING,
            message=(
                f"the times of {plural(len(rounded), 'device')} of {len(energies):,}, {rounded[0].device} "
                "for example, are whole seconds that unlike readings share; each is spread over its second. "
                "That one sensor wrote them cannot be told, and energy bounds nothing"
            ),
            where=rounded[0].device,
            expected="one reading at a time",
            count=len(rounded),
        )
    ]


def _assess_cadence(energies: Sequence[Energy]) -> list[Finding]:
    slow = [energy for energy in energies if energy.is_slow]
    if not slow:
        return []
    slowest = max(slow, key=lambda energy: energy.period_s)
    return [
        Finding(
            code="cadence-slow",
            severity=Severity.NOTE,
            message=(
                f"readings every {slowest.period_s:,.0f} s: what lies between them is bounded by the limit, "
                "not by the readings"
            ),
            where=slowest.device,
            count=len(slow),
        )
    ]
