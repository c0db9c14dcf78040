"""Conversion factors that power logs name: the Prover's word, believed only where a power supply has such."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Series

__all__ = ["assess_conversion", "believe_conversion", "never_lower"]

CONVERSION_RANGE: Final = (0.5, 1.1)  # what a power supply keeps; above 1 for a meter's own factor


def believe_conversion(series: Series) -> Series:
    """The series without a conversion factor that no power supply has."""
    lowest, highest = CONVERSION_RANGE
    return series if lowest <= series.conversion <= highest else replace(series, conversion=1.0)


def never_lower(series: Series) -> Series:
    """The series without a conversion factor that would lower its readings, for the bound."""
    return replace(series, conversion=max(1.0, series.conversion))


def assess_conversion(series: Sequence[Series]) -> list[Finding]:
    """Conversion factors that the logs name, and those among them that no power supply has."""
    used = {item.conversion for item in map(believe_conversion, series) if item.conversion != 1.0}
    odd = [item for item in series if believe_conversion(item).conversion != item.conversion]
    findings = []
    if odd:
        findings.append(
            Finding(
                code="conversion-odd",
                severity=Severity.WARNING,
                message=(
                    f"{len(odd)} of {len(series)} power logs name a conversion factor that no power supply "
                    f"has, {odd[0].conversion:g} on {odd[0].device} for example; the estimate does not use it"
                ),
                where=odd[0].device,
                expected=" to ".join(f"{end:g}" for end in CONVERSION_RANGE),
                found=f"{odd[0].conversion:g}",
                count=len(odd),
            )
        )
    if used:
        names = ", ".join(f"{factor:g}" for factor in sorted(used))
        findings.append(
            Finding(
                code="conversion",
                severity=Severity.NOTE,
                message=f"the log names a conversion factor of {names}; it never lowers the bound",
            )
        )
    return findings
