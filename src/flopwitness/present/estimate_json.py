"""The answer of `estimate` as JSON that other programs rely on.

Counts of operations are decimal strings: 1e25 fits no integer that JavaScript or JSON can be trusted with.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from flopwitness.accounting.answers import RowAnswer
from flopwitness.accounting.thresholds import SENSOR_TOLERANCE_PPM, ThresholdAssessment
from flopwitness.catalogue.rules import Rule
from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import encode_flop, scale_count
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.answer import CONVENTION, Measurement
from flopwitness.measure.bounds import SAFETY_DEFAULT
from flopwitness.measure.question import Question
from flopwitness.measure.samples import Provenance
from flopwitness.present.finding_json import render_finding

__all__ = ["render_run", "render_table"]

SPEC: Final = "flopwitness/estimate/v1"
_WHOLE_PPM: Final = 1_000_000


def render_run(
    measurement: Measurement,
    question: Question,
    assessments: Sequence[ThresholdAssessment],
    *,
    rules: Mapping[str, Rule],
    on: dt.date,
    inputs: Sequence[Provenance],
    findings: Sequence[Finding],
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
) -> dict[str, Any]:
    """The record for one run from its logs.

    Args:
        measurement: The meter's answer.
        question: What it was asked.
        assessments: One for each limit of each rule.
        rules: The rules by id.
        on: The day that decides which of them is law.
        inputs: Where the evidence came from.
        findings: What the reader must know, worst first.
        tolerance_ppm: What the comparison with the rules allows for [ppm].
    """
    return {
        "spec": SPEC,
        "on": on.isoformat(),
        "chips": [chip.id for chip in question.chips],
        "count": question.count,
        "convention": CONVENTION,
        **_settings(question.safety, tolerance_ppm),
        **_measured(measurement),
        "rules": [_rule(item, rules[item.rule_id], on) for item in assessments],
        "findings": [render_finding(item) for item in findings],
        "inputs": [_input(part) for part in inputs],
    }


def render_table(
    answers: Iterable[RowAnswer],
    *,
    rules: Mapping[str, Rule],
    on: dt.date,
    inputs: Sequence[Provenance],
    findings: Sequence[Finding],
    safety: Fraction = SAFETY_DEFAULT,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
) -> dict[str, Any]:
    """The record for a table of runs: `runs[]` of one record a row; arguments as for `render_run`.

    `safety` is the factor of the energy bounds, which a run's question holds and a table's rows share.
    """
    return {
        "spec": SPEC,
        "on": on.isoformat(),
        "convention": CONVENTION,
        **_settings(safety, tolerance_ppm),
        "runs": [
            {
                "row": answer.row.row,
                "run_id": answer.row.run_id,
                **_measured(answer.measurement),
                "rules": [_rule(item, rules[item.rule_id], on) for item in answer.rules],
                "findings": [render_finding(item) for item in answer.all_findings],
            }
            for answer in answers
        ],
        "findings": [render_finding(item) for item in findings],
        "inputs": [_input(part) for part in inputs],
    }


def _settings(safety: Fraction, tolerance_ppm: int) -> dict[str, Any]:
    """What the answer allows for."""
    return {"safety": str(safety), "tolerance": tolerance_ppm / _WHOLE_PPM}


def _measured(measurement: Measurement) -> dict[str, Any]:
    window, energy = measurement.window, measurement.energy
    return {
        "duration_s": _rounded(measurement.duration_s, 3),
        "recorded_s": _rounded(measurement.recorded_s, 3),
        "run_start": None if window is None else format_utc(window.start_utc_ns),
        "energy_j": None if energy is None else _rounded(energy.shown_j, 1),
        "energy_low_j": None if energy is None else _rounded(energy.low_j, 1),
        "energy_high_j": None if energy is None else _rounded(energy.high_j, 1),
        "energy_scope": None if energy is None else str(energy.scope),
        "n_devices": None if energy is None else len(energy.devices),
        "coverage": None if energy is None else _rounded(energy.coverage, 6),
        "estimate": _estimate(measurement),
        "bracket": _bracket(measurement),
        "refused": [render_finding(item) for item in measurement.refusals],
        "upper_bound": _upper(measurement),
    }


def _estimate(measurement: Measurement) -> dict[str, Any] | None:
    estimate = measurement.estimate
    if estimate is None:
        return None
    prior = estimate.prior
    return {
        "flop": encode_flop(estimate.flop),
        "low": encode_flop(estimate.low_flop),
        "high": encode_flop(estimate.high_flop),
        "level": estimate.level,
        "method": estimate.method,
        "calibration": estimate.calibration,
        "calibration_runs": estimate.n_runs,
        "precisions": list(estimate.precisions),
        "load": None if prior is None else str(prior.load),
        "power_share": None if prior is None else _rounded(prior.power_share, 4),
        "reference_groups": None if prior is None else prior.n_groups,
    }


def _bracket(measurement: Measurement) -> dict[str, Any] | None:
    """Between which counts the run lies at any plausible precision, where nobody recorded it."""
    bracket = measurement.calibrated.bracket if measurement.calibrated is not None else None
    if bracket is None:
        return None
    return {
        "low": encode_flop(scale_count(bracket.low_flop)),
        "high": encode_flop(scale_count(bracket.high_flop, up=True)),
        "level": bracket.level,
        "calibrated_precision": str(bracket.calibrated),
        "precisions": [str(precision) for precision in bracket.precisions],
    }


def _upper(measurement: Measurement) -> dict[str, Any] | None:
    upper = measurement.upper
    if upper is None:
        return None
    return {
        "flop": encode_flop(upper.flop),
        "by": str(upper.by),
        "time_flop": None if upper.time_flop is None else encode_flop(upper.time_flop),
        "energy_flop": None if upper.energy_flop is None else encode_flop(upper.energy_flop),
        "safety": str(upper.safety),
        "peak_flop_per_s": upper.peak_flop_per_s,
        "peak_precision": upper.peak_precision,
        "chip": upper.chip,
        "count": upper.count,
        "duration_s": _rounded(upper.duration_s, 3),
    }


def _rule(item: ThresholdAssessment, rule: Rule, on: dt.date) -> dict[str, Any]:
    return {
        "id": item.rule_id,
        "status": rule.status.value,
        "standing": rule.status_on(on).value,
        "level": item.level,
        "threshold_flop": encode_flop(item.threshold_flop),
        "comparison": str(item.comparison),
        "verdict": item.verdict.value,
        "position": str(item.position),
        "reason": item.reason,
    }


def _input(part: Provenance) -> dict[str, Any]:
    return {
        "path": part.path,
        "format": part.format,
        "digest": str(part.digest),
        "size_bytes": part.size_bytes,
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
