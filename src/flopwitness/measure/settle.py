"""Which estimate is told: the calibration's where it gives one, else the prior's; both under the bound."""

import math
from dataclasses import replace

from flopwitness.foundation.units import format_flop, scale_count
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.answer import Estimate
from flopwitness.measure.bounds import UpperBound
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.calibration.use import CalibratedAnswer, Point
from flopwitness.measure.estimators.prior import Observation, estimate_prior
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable

__all__ = ["settle_estimate"]


def settle_estimate(
    question: Question,
    seen: Observation | None,
    *,
    table: ReferenceTable,
    upper: UpperBound | None,
    calibrated: CalibratedAnswer | None,
    findings: list[Finding],
) -> tuple[Estimate | None, CalibratedAnswer | None]:
    """The estimate, and the calibration's answer as it stands beside the bound.

    Args:
        question: What the user states.
        seen: What the prior may look at; None where it has nothing to go by.
        table: The reference classes of the prior.
        upper: The bound; a point above it is absurd and refused, an interval is cut at it.
        calibrated: What the calibration says; None where none was handed over.
        findings: Takes what is told of either.
    """
    if calibrated is not None:
        calibrated = _under_bound(calibrated, upper)
        findings += calibrated.findings
    calibration = question.calibration
    if calibrated is not None and calibrated.point is not None and calibration is not None:
        return _calibrated(question, calibration, calibrated.point, calibrated, upper), calibrated
    if seen is None:
        return None, calibrated
    return _prior(question, seen, table=table, upper=upper, findings=findings), calibrated


def _under_bound(answer: CalibratedAnswer, upper: UpperBound | None) -> CalibratedAnswer:
    """The answer, its point refused where it lies above what the run can have computed at all."""
    if answer.point is None or upper is None or answer.point.flop <= upper.flop:
        return answer
    flop = format_flop(scale_count(answer.point.flop), digits=4)
    most_flop = format_flop(upper.flop, digits=4)
    refusal = Finding(
        code="estimate-over-bound",
        severity=Severity.WARNING,
        message=(
            f"{answer.method} makes {flop} FLOP of it, more than the bound of {most_flop}: absurd, and no "
            "point estimate"
        ),
        where=str(answer.method),
        expected=f"at most {most_flop} FLOP",
        found=f"{flop} FLOP",
    )
    return replace(
        answer, point=None, refusals=(*answer.refusals, refusal), findings=(refusal, *answer.findings)
    )


def _calibrated(
    question: Question,
    calibration: Calibration,
    point: Point,
    answer: CalibratedAnswer,
    upper: UpperBound | None,
) -> Estimate:
    """The point with its interval, its upper end cut at the bound."""
    high_flop = scale_count(point.high_flop, up=True)
    return Estimate(
        flop=scale_count(point.flop),
        low_flop=scale_count(point.low_flop),
        high_flop=high_flop if upper is None else min(high_flop, upper.flop),
        level=question.level,
        method=str(answer.method),
        calibration=str(calibration.digest),
        precisions=calibration.fingerprint.precisions,
        n_runs=calibration.data.n_runs,
    )


def _prior(
    question: Question,
    seen: Observation,
    *,
    table: ReferenceTable,
    upper: UpperBound | None,
    findings: list[Finding],
) -> Estimate | None:
    """The prior's interval, cut at the bound; what it had to assume goes to `findings`."""
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
        method=prior.method,
        calibration=str(table.digest),
        precisions=tuple(str(precision) for precision in prior.precisions),
        prior=prior,
    )
