"""What is odd about the times of a recording: repeats, standstill, steps back, long steps.

Time enters every bound, so a clock is doubted wherever it would make a recording shorter, and readings
wherever they would speak for time in which nobody read.
"""

from collections.abc import Sequence

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import Energy
from flopwitness.measure.wording import agree, plural

__all__ = ["assess_times"]


def assess_times(energies: Sequence[Energy]) -> list[Finding]:
    """What the readings' times leave in doubt: repeats, clocks that stand still or step back, long steps."""
    findings = _assess_standstill([energy for energy in energies if energy.is_clock_stuck])
    repeated = [energy for energy in energies if energy.n_repeated and not energy.is_clock_stuck]
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
    backwards = [energy for energy in energies if energy.n_backwards]
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
    return findings + _assess_mixed(energies) + _assess_cadence(energies)


def _assess_standstill(stuck: Sequence[Energy]) -> list[Finding]:
    if not stuck:
        return []
    count = sum(energy.n_repeated for energy in stuck)
    return [
        Finding(
            code="clock-stuck",
            severity=Severity.WARNING,
            message=(
                f"{plural(count, 'reading')} on {plural(len(stuck), 'device')} at the time of the reading "
                "before: a clock may have stood still. The recording is taken to last one usual period for "
                "each step between readings, at least, and nobody measured the time that this adds"
            ),
            where=stuck[0].device,
            count=count,
        )
    ]


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
