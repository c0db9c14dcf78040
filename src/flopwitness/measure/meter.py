"""The meter: a trace of one run in; energy, interval, upper bound and findings out.

The run's own marks choose what is estimated, because they say which work is meant. They never lower the
bound: that covers everything recorded, since the marks are the Prover's word.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from flopwitness.catalogue.chips import Chip, Precision
from flopwitness.foundation.units import format_duration, scale_count
from flopwitness.foundation.verdict import Finding, Severity, rank_findings
from flopwitness.measure import quality
from flopwitness.measure.bounds import SAFETY_DEFAULT, UpperBound, bound_from_above
from flopwitness.measure.energy import Energy, integrate_for_bound, integrate_power
from flopwitness.measure.estimators.prior import Observation, Prior, estimate_prior
from flopwitness.measure.framing import (
    CONVERSION_RANGE,
    assess_clock,
    believe_conversion,
    choose_power,
    choose_window,
    claimed_stretches,
    covers_limits,
    device_limit_w,
    expected_devices,
    least_count,
    length_s,
    needed_devices,
    recorded_length_s,
    recorded_span,
    total_limit_w,
)
from flopwitness.measure.plausibility import Power, assess_power, settle_hardware
from flopwitness.measure.reference import ReferenceTable, Workload
from flopwitness.measure.samples import RunWindow, Scope, Series, Trace
from flopwitness.measure.timing import assess_times
from flopwitness.measure.wording import agree, plural

__all__ = ["Estimate", "Measurement", "Question", "RunEnergy", "measure_trace", "settle_estimate"]

CONVENTION: Final = (
    "model FLOP, a multiply-add is 2; the upper bound holds for executed FLOP of any precision"
)

_FEWEST_COVERED: Final = 0.8
_WIDEST_RATIO: Final = 1e6  # of the most energy to the least; beyond it neither says anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user states beside the logs.

    Attributes:
        chips: The chips that may have been used; several where a name leaves the variant open.
        count: How many chips in all.
        precisions: The precisions that may have been used; empty where nobody says.
        workload: What is stated of the workload.
        safety: The factor s of the energy bound.
        level: Nominal level of the interval.
        declared_chips: The chips that the log itself declares; the bound covers them too.
    """

    chips: tuple[Chip, ...]
    count: int
    precisions: tuple[Precision, ...] = ()
    workload: Workload = Workload.ANY
    safety: Fraction = SAFETY_DEFAULT
    level: float = 0.9
    declared_chips: tuple[Chip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """The energy of all devices together.

    Attributes:
        scope: What the readings cover.
        devices: One figure a device, over the run.
        shown_j: What the readings show over the run [J].
        working_w: Energy-weighted mean power of all devices together [W], int p^2 / int p: idle time around
            the work, or pauses in it, hardly change it.
        low_j: The least that they leave possible [J].
        high_j: The most [J]; None where a gap or a missing device has no limit.
        recorded_high_j: The most over everything recorded [J]; None likewise.
        coverage: Covered time over claimed time, 0 to 1, of the least covered devices that the chips need:
            what else was handed over does not make up for them. None where a table of runs does not say.
        filled: Covered or bridged time over claimed time of the same devices, 0 to 1.
    """

    scope: Scope
    devices: tuple[Energy, ...]
    shown_j: float
    working_w: float
    low_j: float
    high_j: float | None
    recorded_high_j: float | None
    coverage: float | None
    filled: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A point never travels without its interval, level, method and the digest of what it rests on.

    Attributes:
        flop: The point.
        low_flop: Lower end, rounded down.
        high_flop: Upper end, rounded up; at most the upper bound.
        level: Nominal level of the interval.
        calibration: Digest of the calibration or reference table.
        prior: How the prior came to it.
    """

    flop: int
    low_flop: int
    high_flop: int
    level: float
    calibration: str
    prior: Prior

    @property
    def ratio(self) -> float:
        """Upper end over lower end."""
        return self.high_flop / max(1, self.low_flop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The meter's answer for one run.

    Attributes:
        duration_s: The run's length as marked, else the recording's [s]; None where unknown.
        recorded_s: The length of everything recorded [s]; None where unknown.
        window: The run that was measured; None for the whole recording.
        energy: The energy; None where no power was recorded.
        estimate: The interval; None where nothing can be estimated.
        upper: The bound; None where nothing bounds the run.
        findings: What a reader must know, worst first.
    """

    duration_s: float | None
    recorded_s: float | None
    window: RunWindow | None
    energy: RunEnergy | None
    estimate: Estimate | None
    upper: UpperBound | None
    findings: tuple[Finding, ...]


def measure_trace(trace: Trace, question: Question, *, table: ReferenceTable) -> Measurement:
    """The answer for one run from its merged logs.

    Args:
        trace: Power, result and switch logs of one run, merged.
        question: What the user states beside them.
        table: The reference classes of the prior.
    """
    findings = quality.assess_reading(trace)
    scope, series = choose_power(trace, findings)
    window = choose_window(trace, series, findings)
    findings += assess_clock(trace)
    in_run = window or recorded_span(series, window)
    span = recorded_span(series, window, claimed_stretches(trace))
    recorded_s = recorded_length_s(span, trace)
    duration_s = length_s(window) or length_s(recorded_span(series, window)) or recorded_s
    energy = _measure_energy(trace, series, scope, in_run, span, question) if series and duration_s else None
    findings += quality.assess_marks(trace, window, energy.devices if energy is not None else ())
    if energy is not None:
        findings += _assess_energy(trace, series, energy, window, duration_s or 0.0, question)
    copies = quality.assess_copies(series)
    findings += copies
    hardware = settle_hardware(
        question.chips,
        least_count(series, scope, question.count),
        declared_chips=question.declared_chips,
        declared_count=None if trace.declaration is None else trace.declaration.chips,
        findings=findings,
    )
    power = _judge_power(trace, series, energy, question, findings)
    if power is Power.TOO_HIGH:
        return _contradicted(window, duration_s, recorded_s, energy, findings)
    is_apart = any(finding.code == "clocks-apart" for finding in findings)
    is_mixed = energy is not None and any(device.is_mixed for device in energy.devices)
    is_sound = not copies and not is_apart and not is_mixed and power is Power.PLAUSIBLE
    is_whole = is_sound and recorded_s == length_s(span)
    upper = bound_from_above(
        hardware.chips,
        count=hardware.count,
        duration_s=recorded_s,
        energy_j=energy.recorded_high_j if energy is not None and is_whole else None,
        safety=question.safety,
    )
    used = energy if power is Power.PLAUSIBLE else None
    seen = _observe(used, scope, least_count(series, scope, question.count), duration_s, findings)
    estimate = settle_estimate(question, seen, table=table, upper=upper, findings=findings)
    return Measurement(
        duration_s=duration_s,
        recorded_s=recorded_s,
        window=window,
        energy=energy,
        estimate=estimate,
        upper=upper,
        findings=rank_findings(findings),
    )


def _judge_power(
    trace: Trace,
    series: tuple[Series, ...],
    energy: RunEnergy | None,
    question: Question,
    findings: list[Finding],
) -> Power:
    """Whether the stated chips can have drawn what was measured."""
    if energy is None or energy.working_w <= 0:
        return Power.PLAUSIBLE
    n_expected = expected_devices(trace, series, energy.scope, question.chips, question.count)
    limit_w = device_limit_w(question.chips, question.count, energy.scope, n_expected)
    count = least_count(series, energy.scope, question.count)
    total_w = total_limit_w(question.chips, count, energy.scope, n_expected)
    is_over = total_w is not None and quality.typical_w(series) > total_w
    power, told = assess_power(
        energy.working_w,
        question.chips,
        count=question.count,
        scope=energy.scope,
        limit_w=total_w,
        over_share=1.0 if is_over else 0.0 if limit_w is None else quality.share_over(series, limit_w),
    )
    findings += told
    return power


def _contradicted(
    window: RunWindow | None,
    duration_s: float | None,
    recorded_s: float | None,
    energy: RunEnergy | None,
    findings: list[Finding],
) -> Measurement:
    """The answer where the hardware cannot be what was stated: nothing that rests on it."""
    return Measurement(
        duration_s=duration_s,
        recorded_s=recorded_s,
        window=window,
        energy=energy,
        estimate=None,
        upper=None,
        findings=rank_findings(findings),
    )


def settle_estimate(
    question: Question,
    seen: Observation,
    *,
    table: ReferenceTable,
    upper: UpperBound | None,
    findings: list[Finding],
) -> Estimate | None:
    """The prior's interval in whole counts, cut at the bound; what it had to assume goes to `findings`."""
    prior = estimate_prior(
        question.chips,
        seen,
        table=table,
        precisions=question.precisions,
        workload=question.workload,
        level=question.level,
    )
    if prior is None:
        return None
    if not question.precisions:
        names = ", ".join(prior.precisions)
        findings.append(
            Finding(
                code="precision-assumed",
                severity=Severity.NOTE,
                message=(
                    f"nobody recorded the precision; the interval allows for {names}. The bound holds "
                    "for every precision"
                ),
            )
        )
    high_flop = scale_count(prior.interval.high_flop, up=True)
    flop, low_flop = scale_count(prior.interval.mid_flop), scale_count(prior.interval.low_flop)
    if upper is not None and high_flop > upper.flop:
        high_flop = upper.flop
        low_flop = min(low_flop, high_flop)
        flop = min(flop, math.isqrt(low_flop * high_flop))
    return Estimate(
        flop=flop,
        low_flop=low_flop,
        high_flop=high_flop,
        level=question.level,
        calibration=str(table.digest),
        prior=prior,
    )


def _measure_energy(
    trace: Trace,
    series: tuple[Series, ...],
    scope: Scope,
    window: RunWindow | None,
    span: RunWindow | None,
    question: Question,
) -> RunEnergy:
    """The energy over the run, and the most over everything recorded."""
    n_expected = expected_devices(trace, series, scope, question.chips, question.count)
    limit_w = device_limit_w(question.chips, question.count, scope, n_expected)
    in_run = window if window is not None else span
    devices = tuple(
        integrate_power(believe_conversion(item), window=in_run, limit_w=limit_w) for item in series
    )
    recorded = [integrate_for_bound(_not_lowered(item), window=span, limit_w=limit_w) for item in series]
    n_absent = max(0, n_expected - len(series))
    run_s = max((device.claimed_s for device in devices), default=0.0)
    n_needed = needed_devices(scope, question.chips, question.count)
    covered_s = [device.covered_s for device in devices] + [0.0] * n_absent
    filled_s = [device.covered_s + device.bridged_s for device in devices] + [0.0] * n_absent
    return RunEnergy(
        scope=scope,
        devices=devices,
        shown_j=sum(device.shown_j for device in devices),
        working_w=_working_w(devices, n_expected),
        low_j=sum(device.low_j for device in devices),
        high_j=_add_absent([device.high_j for device in devices], n_absent, limit_w, run_s),
        recorded_high_j=None
        if not covers_limits(scope, question.chips)
        else _add_absent([device.high_j for device in recorded], n_absent, limit_w, length_s(span) or 0.0),
        coverage=_least_share(covered_s, run_s, n_needed),
        filled=_least_share(filled_s, run_s, n_needed),
    )


def _least_share(times_s: Sequence[float], run_s: float, n_needed: int) -> float:
    """Share of the run that the least covered devices have, as many as the chips need, 0 to 1."""
    return min(1.0, sum(sorted(times_s)[:n_needed]) / (run_s * n_needed)) if run_s > 0 else 0.0


def _working_w(devices: Sequence[Energy], n_expected: int) -> float:
    """Energy-weighted mean power of all devices together [W]; those without readings count as the others."""
    working_w = [device.square_w2s / device.shown_j for device in devices if device.shown_j > 0]
    return n_expected * sum(working_w) / len(working_w) if working_w else 0.0


def _not_lowered(series: Series) -> Series:
    """The readings without a conversion factor that would lower them: the factor is the Prover's word."""
    return replace(series, conversion=max(1.0, series.conversion))


def _add_absent(
    highs: Sequence[float | None], n_absent: int, limit_w: float | None, run_s: float
) -> float | None:
    """The sum with devices nobody recorded at their limit; None where anything has no limit."""
    if any(high is None for high in highs) or (n_absent and limit_w is None):
        return None
    return sum(high for high in highs if high is not None) + n_absent * (limit_w or 0.0) * run_s


def _assess_energy(
    trace: Trace,
    series: tuple[Series, ...],
    energy: RunEnergy,
    window: RunWindow | None,
    duration_s: float,
    question: Question,
) -> list[Finding]:
    """All findings about the readings that the energy rests on."""
    n_expected = expected_devices(trace, series, energy.scope, question.chips, question.count)
    limit_w = device_limit_w(question.chips, question.count, energy.scope, n_expected)
    findings = [quality.assess_scope(energy.scope)]
    findings += quality.assess_gaps(energy.devices)
    findings += assess_times(energy.devices)
    findings += quality.assess_limits(series, energy.devices, limit_w=limit_w)
    findings += quality.assess_switches(quality.power_series(trace, [Scope.SWITCH]), window, duration_s)
    findings += quality.assess_declaration(trace.declaration, n_devices=len(series), scope=energy.scope)
    findings += quality.assess_devices(
        trace.declaration,
        n_devices=len(series),
        n_expected=n_expected,
        count=question.count,
        scope=energy.scope,
    )
    absent = [device.device for device in energy.devices if device.n_readings == 0 and device.claimed_s > 0]
    if absent:
        findings.append(
            Finding(
                code="device-outside-run",
                severity=Severity.WARNING,
                message=(
                    f"{len(absent):,} of {plural(len(series), 'device')} {agree(len(absent), 'has', 'have')} "
                    f"no reading inside the run, such as {absent[0]}; what is not read counts as unrecorded"
                ),
                where=absent[0],
                count=len(absent),
            )
        )
    findings += _assess_conversion(series)
    return findings


def _assess_conversion(series: Sequence[Series]) -> list[Finding]:
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


def _observe(
    energy: RunEnergy | None, scope: Scope, count: int, duration_s: float | None, findings: list[Finding]
) -> Observation:
    """What the prior may see: energy brought up to the whole run, where enough of it was covered."""
    if energy is None or energy.filled < _FEWEST_COVERED:
        if energy is not None:
            findings.append(
                Finding(
                    code="coverage-low",
                    severity=Severity.WARNING,
                    message=(
                        f"readings cover {100 * energy.filled:.0f} % of "
                        f"{format_duration(duration_s or 0.0)}; the estimate goes by time alone"
                    ),
                    expected=f"at least {100 * _FEWEST_COVERED:.0f} %",
                    found=f"{100 * energy.filled:.0f} %",
                )
            )
        return Observation(count=count, duration_s=duration_s, energy_j=None, scope=scope)
    spread = 0.0
    if energy.high_j is not None:
        ratio = energy.high_j / energy.low_j if energy.low_j > 0 else _WIDEST_RATIO
        spread = math.log(min(ratio, _WIDEST_RATIO))
    return Observation(
        count=count,
        duration_s=duration_s,
        energy_j=energy.shown_j / energy.filled,
        working_w=energy.working_w,
        scope=scope,
        energy_log_sd=spread / math.sqrt(12),  # as if every value between the two were as likely
    )
