"""What is told of the call itself: what set its options, and which of them weaken the answer."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import click

from flopwitness.accounting.thresholds import SENSOR_TOLERANCE_PPM
from flopwitness.cli.settings import Setting, repeat_with_settings
from flopwitness.foundation.verdict import Finding, Severity, fold_findings
from flopwitness.measure.bounds import SAFETY_DEFAULT
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.present.safe_text import name_count

__all__ = [
    "name_command",
    "tell_scope_overruled",
    "tell_settings_used",
    "tell_weak_settings",
]

_PERCENT_PPM: Final = 10_000
_OF_POWER: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W, Channel.ENERGY_COUNTER_J)


def name_command(
    findings: Sequence[Finding], context: click.Context, settings: Sequence[Setting]
) -> tuple[Finding, ...]:
    """The findings, worst first, each with the command that shows it again."""
    line = (context.find_root().obj or {}).get("command", "")
    command = repeat_with_settings(line, settings)
    return tuple(replace(finding, reproduce=command) for finding in fold_findings(findings))


def tell_weak_settings(*, safety: Fraction, tolerance_ppm: int) -> list[Finding]:
    """One finding where the call allows for less than the defaults do.

    Args:
        safety: The factor s of the energy bound; over the default, energy bounds more tightly.
        tolerance_ppm: What is added to a bound before it is compared [ppm].
    """
    weak = []
    if tolerance_ppm < SENSOR_TOLERANCE_PPM:
        weak.append(
            f"the comparison allows for {_percent(tolerance_ppm)} of sensors and clocks (default "
            f"{_percent(SENSOR_TOLERANCE_PPM)})"
        )
    if safety > SAFETY_DEFAULT:
        weak.append(
            f"the energy bound takes s = {float(safety):g} (default {float(SAFETY_DEFAULT):g}), which "
            "chips that beat their data sheet pass"
        )
    if not weak:
        return []
    return [
        Finding(
            code="settings-weak",
            severity=Severity.WARNING,
            message=f"{'; '.join(weak)}. What is called below may not be so with the defaults",
            expected=f"--tolerance {SENSOR_TOLERANCE_PPM / 1e6:g} --safety {float(SAFETY_DEFAULT):g}",
            found=f"--tolerance {tolerance_ppm / 1e6:g} --safety {float(safety):g}",
        )
    ]


def tell_settings_used(settings: Sequence[Setting]) -> list[Finding]:
    """One finding where a file or the environment set options of the call."""
    if not settings:
        return []
    origins: dict[str, list[str]] = {}
    for setting in settings:
        origins.setdefault(setting.origin, []).append(setting.name)
    told = [f"{origin} sets {', '.join(names)}" for origin, names in origins.items()]
    return [
        Finding(code="settings-used", severity=Severity.NOTE, message="; ".join(told), count=len(settings))
    ]


def tell_scope_overruled(trace: Trace, stated: Scope | None) -> list[Finding]:
    """One finding where recordings of power say themselves what they cover, and the call says otherwise."""
    if stated is None:
        return []
    own = [s.scope for s in trace.series if s.channel in _OF_POWER and s.scope not in (stated, Scope.SWITCH)]
    if not own:
        return []
    scopes = " and ".join(sorted(set(own)))
    return [
        Finding(
            code="scope-overruled",
            severity=Severity.WARNING,
            message=(
                f"--scope {stated} is not used for {name_count(len(own), 'power recording')}, whose own "
                f"record or folder says {scopes}"
            ),
            expected=str(stated),
            found=scopes,
            count=len(own),
        )
    ]


def _percent(ppm: int) -> str:
    return f"{ppm / _PERCENT_PPM:g} %"
