"""The meter: a trace of one run in; energy, interval, upper bound and findings out.

The run's own marks choose what is estimated, because they say which work is meant. They never lower the
bound: that covers everything recorded, since the marks are the Prover's word.
"""

import math
from typing import Final

from flopwitness.foundation.units import format_duration
from flopwitness.foundation.verdict import Finding, Severity, fold_findings
from flopwitness.measure import quality
from flopwitness.measure.answer import FEWEST_COVERED, Measurement, RunEnergy
from flopwitness.measure.averaging import assess_averaging
from flopwitness.measure.bounds import bound_from_above
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.capacity import device_limit_w, total_limit_w
from flopwitness.measure.conversion import assess_conversion
from flopwitness.measure.copies import assess_copies
from flopwitness.measure.daylight import assess_daylight
from flopwitness.measure.dead_readings import leave_out_dead
from flopwitness.measure.estimators.prior import Observation
from flopwitness.measure.framing import Frame, frame_run, length_s
from flopwitness.measure.marks import assess_marks
from flopwitness.measure.observed_trace import fingerprint_trace, observe_frame
from flopwitness.measure.plausibility import Power, assess_power
from flopwitness.measure.power_choice import power_series
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.run_energy import is_measured, measure_energy
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.settle import settle_estimate
from flopwitness.measure.timing import assess_times
from flopwitness.measure.usage import assess_waits
from flopwitness.measure.value_figures import share_over, typically_over

__all__ = ["measure_trace"]

_WIDEST_RATIO: Final = 1e6  # of the most energy to the least; beyond it neither says anything


def measure_trace(trace: Trace, question: Question, *, table: ReferenceTable) -> Measurement:
    """The answer for one run from its merged logs.

    Args:
        trace: Power, result and switch logs of one run, merged.
        question: What the user states beside them.
        table: The reference classes of the prior.
    """
    findings = [*quality.assess_reading(trace), *assess_daylight(trace)]
    trace = leave_out_dead(trace, findings)
    frame = frame_run(trace, question, findings)
    energy = measure_energy(frame, findings)
    findings += assess_marks(trace, frame.window, energy.devices if energy is not None else ())
    if energy is not None:
        findings += _assess_energy(frame, energy)
    copies = assess_copies(frame.recordings)
    power, told = _judge_power(frame, energy)
    findings += copies + told
    upper = estimate = None
    calibrated = _calibrated(frame, energy if power is Power.PLAUSIBLE else None)
    if power is Power.TOO_HIGH:
        findings += () if calibrated is None else calibrated.findings
    else:
        is_sound = not copies and power is Power.PLAUSIBLE and _is_whole(frame, energy, findings)
        upper = bound_from_above(
            frame.hardware.chips,
            count=frame.hardware.count,
            duration_s=frame.recorded_s,
            energy_j=energy.recorded_high_j if energy is not None and is_sound else None,
            safety=question.safety,
        )
        seen = _observe(frame, energy if power is Power.PLAUSIBLE else None, findings)
        estimate, calibrated = settle_estimate(
            question, seen, table=table, upper=upper, calibrated=calibrated, findings=findings
        )
    return Measurement(
        duration_s=frame.duration_s,
        recorded_s=frame.recorded_s,
        window=frame.window,
        energy=energy if energy is not None and is_measured(energy) else None,
        estimate=estimate,
        upper=upper,
        findings=fold_findings(findings),
        calibrated=calibrated,
    )


def _calibrated(frame: Frame, energy: RunEnergy | None) -> CalibratedAnswer | None:
    """What the calibration says of the run; None where none was handed over, or no energy can be used."""
    calibration = frame.question.calibration
    if calibration is None:
        return None
    return answer_from_calibration(
        calibration,
        observe_frame(frame, energy, calibration),
        fingerprint_trace(frame),
        chips=frame.question.chips,
        method=frame.question.method,
        level=frame.question.level,
    )


def _is_whole(frame: Frame, energy: RunEnergy | None, findings: list[Finding]) -> bool:
    """Whether the energy covers all the time that is bounded, on clocks that agree, one sensor a device."""
    is_apart = any(finding.code == "clocks-apart" for finding in findings)
    is_mixed = energy is not None and any(device.is_mixed or device.is_rounded for device in energy.devices)
    return not is_apart and not is_mixed and frame.recorded_s == length_s(frame.span)


def _judge_power(frame: Frame, energy: RunEnergy | None) -> tuple[Power, list[Finding]]:
    """Whether the stated chips can have drawn what was measured, and what is told if not."""
    if energy is None or energy.working_w <= 0:
        return Power.PLAUSIBLE, []
    chips = frame.question.chips
    limit_w = _meter_limit_w(frame)
    total_w = total_limit_w(chips, frame.count, frame.scope, frame.n_expected)
    watts = [item for item in frame.series if item.channel is not Channel.ENERGY_COUNTER_J]
    is_over = total_w is not None and typically_over(watts, total_w - _counted_w(frame, energy))
    return assess_power(
        energy.working_w,
        chips,
        count=frame.question.count,
        scope=frame.scope,
        limit_w=total_w,
        over_share=1.0 if is_over else 0.0 if limit_w is None else share_over(watts, limit_w),
    )


def _counted_w(frame: Frame, energy: RunEnergy) -> float:
    """The mean power of the devices that only a counter tells of, all together [W]."""
    counted = {item.device for item in frame.series if item.channel is Channel.ENERGY_COUNTER_J}
    devices = [device for device in energy.devices if device.device in counted]
    known_s = [device.covered_s + device.bridged_s for device in devices]
    return sum(
        device.shown_j / length_s for device, length_s in zip(devices, known_s, strict=True) if length_s > 0
    )


def _meter_limit_w(frame: Frame) -> float | None:
    """The most that one of the meters that are there can read [W], however many chips stand behind it."""
    return device_limit_w(frame.question.chips, frame.count, frame.scope, len(frame.series))


def _assess_energy(frame: Frame, energy: RunEnergy) -> list[Finding]:
    """All findings about the readings that the energy rests on."""
    declared, n_devices, scope = frame.trace.declaration, len(frame.series), frame.scope
    watts = [item for item in frame.series if item.channel is not Channel.ENERGY_COUNTER_J]
    switches = power_series(frame.trace, [Scope.SWITCH])
    return [
        quality.assess_scope(scope),
        *quality.assess_gaps(energy.devices),
        *assess_times(energy.devices),
        *assess_averaging(frame.series, frame.duration_s),
        *assess_waits(frame.trace, frame.series, idle_w=frame.question.idle_w or None),
        *quality.assess_limits(watts, energy.devices, limit_w=_meter_limit_w(frame)),
        *quality.assess_switches(switches, frame.window, frame.duration_s or 0.0),
        *quality.assess_declaration(declared, n_devices=n_devices, scope=scope),
        *quality.assess_devices(
            declared,
            n_devices=n_devices,
            n_expected=frame.n_expected,
            count=frame.question.count,
            scope=scope,
        ),
        *quality.assess_absent(energy.devices),
        *assess_conversion(frame.series),
    ]


def _observe(frame: Frame, energy: RunEnergy | None, findings: list[Finding]) -> Observation:
    """What the prior may see: energy brought up to the whole run, where enough of it was covered."""
    energy_j = None if energy is None else energy.whole_j
    if energy is None or energy_j is None:
        if energy is not None:
            covered = energy.covered
            findings.append(
                Finding(
                    code="coverage-low",
                    severity=Severity.WARNING,
                    message=(
                        f"readings cover {100 * covered:.0f} % of "
                        f"{format_duration(frame.duration_s or 0.0)}; the estimate goes by time alone"
                    ),
                    expected=f"at least {100 * FEWEST_COVERED:.0f} %",
                    found=f"{100 * covered:.0f} %",
                )
            )
        return Observation(count=frame.count, duration_s=frame.duration_s, energy_j=None, scope=frame.scope)
    spread = 0.0
    if energy.high_j is not None:
        ratio = energy.high_j / energy.low_j if energy.low_j > 0 else _WIDEST_RATIO
        spread = math.log(min(ratio, _WIDEST_RATIO))
    return Observation(
        count=frame.count,
        duration_s=frame.duration_s,
        energy_j=energy_j,
        working_w=energy.working_w,
        scope=frame.scope,
        energy_log_sd=spread / math.sqrt(12),  # as if every value between the two were as likely
    )
