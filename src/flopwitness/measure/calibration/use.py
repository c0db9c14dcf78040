"""A calibration applied to one run: a point with its interval, or the reason why there is none.

Refused is a run of another device or mode (its fingerprint says so), one whose features lie outside what the
calibration has seen, one that lacks what the estimator needs, and one for which the estimate is no count of
operations. A refusal names what was expected and found; prior and bound remain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from flopwitness.catalogue.chips import Chip
from flopwitness.foundation.units import format_flop, scale_count
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.bracket import Bracket, bracket_precisions
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import MOST_DOUBT, Method
from flopwitness.measure.calibration.power_range import assess_power_range
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.link_operations import DeclaredSteps
from flopwitness.measure.observed import ObservedRuns, log_features

__all__ = ["CalibratedAnswer", "Point", "answer_from_calibration"]

_DIGITS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An estimate with its interval [FLOP]."""

    flop: float
    low_flop: float
    high_flop: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedAnswer:
    """What a calibration says of a run.

    Attributes:
        method: The estimator that was asked.
        point: Its estimate; None where it was refused.
        refusals: Why; none where there is a point.
        bracket: Between which counts the run lies where nobody recorded its precision; None where somebody
            did, and for another device or mode.
        findings: What a reader must know, the refusals included.
    """

    method: Method
    point: Point | None
    refusals: tuple[Finding, ...]
    bracket: Bracket | None
    findings: tuple[Finding, ...]


def answer_from_calibration(
    calibration: Calibration,
    run: ObservedRuns,
    fingerprint: Fingerprint,
    *,
    chips: Sequence[Chip],
    declared: DeclaredSteps | None = None,
    method: Method = Method.EFFICIENCY,
    level: float = 0.9,
) -> CalibratedAnswer:
    """The estimate for one run, or the refusal.

    Args:
        calibration: The calibration.
        run: What the sensors saw, n = 1.
        fingerprint: What was recorded of its device and mode.
        chips: The chips that it may have used, for the bracket.
        declared: What was declared of its steps, n = 1: tested, and never looked at by the estimate.
        method: The estimator.
        level: The interval's nominal level.
    """
    refusals = [
        *_refuse_fingerprint(calibration, fingerprint),
        *_refuse_method(calibration, method),
        *(list(_refuse_energy(calibration, run)) or _refuse_missing(calibration, run, method)),
        *_refuse_features(calibration, run),
    ]
    point = None
    if not refusals:
        point, anomalies = _estimate(calibration, run, method, level)
        refusals += anomalies
    notes = list(_assess_unrecorded(calibration, fingerprint))
    notes += _assess_edges(calibration, run, point)
    notes += _assess_tripwires(calibration, run, point, method, level)
    notes += _assess_declared(calibration, run, declared, point)
    is_other = any(finding.code == "calibration-mismatch" for finding in refusals)
    is_open = not is_other and not fingerprint.precisions and bool(calibration.fingerprint.precisions)
    return CalibratedAnswer(
        method=method,
        point=point,
        refusals=tuple(refusals),
        bracket=bracket_precisions(calibration, run, chips, level=level) if is_open else None,
        findings=(*refusals, *notes),
    )


def _refuse_fingerprint(calibration: Calibration, fingerprint: Fingerprint) -> Iterator[Finding]:
    for difference in calibration.fingerprint.differences(fingerprint):
        yield Finding(
            code="calibration-mismatch",
            severity=Severity.WARNING,
            message=(
                f"the calibration is for {difference.name} {difference.calibrated}, the run's is "
                f"{difference.found}: no point estimate"
            ),
            where=difference.name,
            expected=difference.calibrated,
            found=difference.found,
        )


def _refuse_method(calibration: Calibration, method: Method) -> Iterator[Finding]:
    fitted = calibration.fitted
    if method not in fitted.models:
        yield Finding(
            code="estimator-missing",
            severity=Severity.WARNING,
            message=f"the calibration holds no {method}: {fitted.refused.get(method, 'it was not fitted')}",
            where=str(method),
            expected=", ".join(fitted.models),
            found=f"no {method}",
        )


def _refuse_energy(calibration: Calibration, run: ObservedRuns) -> Iterator[Finding]:
    """Energy that leaves no work: at or under idle all the time."""
    net = calibration.fitted.net
    net_j = float(net.of(run)[0])
    if net_j <= 0:
        yield Finding(
            code="energy-under-idle",
            severity=Severity.WARNING,
            message=(
                f"the run's energy lies {-net_j:,.4g} J under what the calibration's idle power "
                f"({net.idle_w:.4g} W) makes of its time: an anomaly, and no point estimate"
            ),
            expected="energy above idle",
            found=f"{net_j:,.4g} J",
        )
    elif np.isfinite(net_j) and run.busy_s[0] == 0:
        yield Finding(
            code="run-at-rest",
            severity=Severity.WARNING,
            message=(
                "the run draws hardly more than idle power all the time: there is no work to estimate, and "
                "no point estimate"
            ),
            expected="power above idle",
            found="0 s of it",
        )


def _refuse_missing(calibration: Calibration, run: ObservedRuns, method: Method) -> Iterator[Finding]:
    """Readings that the estimator needs and the run does not have."""
    fitted = calibration.fitted
    needed = fitted.needed(method)
    seen = log_features(run, fitted.net, needed)[0]
    missing = [str(name) for name, value in zip(needed, seen, strict=True) if not np.isfinite(value)]
    if missing:
        yield Finding(
            code="feature-missing",
            severity=Severity.WARNING,
            message=(
                f"{', '.join(missing)}: not recorded of the run, or not usable, and {method} rests on it: no "
                "point estimate"
            ),
            expected=", ".join(needed),
            found=f"no {', '.join(missing)}",
            count=len(missing),
        )


def _refuse_features(calibration: Calibration, run: ObservedRuns) -> Iterator[Finding]:
    """Features outside the range, then features that no calibration run combines so."""
    fitted, domain = calibration.fitted, calibration.fitted.domain
    seen = fitted.log_features(run)
    ranges = domain.ranges_outside(seen)[0]
    is_outside = domain.is_outside(seen)[0]
    for place in np.flatnonzero(is_outside):
        low, high = np.exp([domain.log_low[place], domain.log_high[place]])
        feature = domain.features[place]
        side = "below" if ranges[place] < 0 else "above"
        yield Finding(
            code="feature-outside",
            severity=Severity.WARNING,
            message=(
                f"{feature} {np.exp(seen[0, place]):.3g} {feature.unit} lies {abs(ranges[place]):.1f} ranges "
                f"{side} what the calibration has seen ({low:.3g} to {high:.3g}): no point estimate"
            ),
            where=str(feature),
            expected=f"{low:.3g} to {high:.3g} {feature.unit}, or {domain.most_ranges:.2f} ranges outside",
            found=f"{np.exp(seen[0, place]):.3g} {feature.unit}",
        )
    doubt = float(fitted.doubt(run)[0])
    if not is_outside.any() and doubt > MOST_DOUBT:
        yield Finding(
            code="features-unlike",
            severity=Severity.WARNING,
            message=(
                f"no calibration run combines its features as this one does: the estimate would be "
                f"{doubt:.1f} times as doubtful as usual, so there is no point"
            ),
            expected=f"at most {MOST_DOUBT:g} times",
            found=f"{doubt:.1f} times",
        )


def _estimate(
    calibration: Calibration, run: ObservedRuns, method: Method, level: float
) -> tuple[Point | None, list[Finding]]:
    answer = calibration.fitted.predict(method, run, level)
    flop = float(answer.flop[0])
    if not flop > 0:
        return None, [_negative(method, flop)]
    if not np.isfinite(answer.high_flop[0]):
        return None, [_unbounded(method)]
    return Point(flop=flop, low_flop=float(answer.low_flop[0]), high_flop=float(answer.high_flop[0])), []


def _negative(method: Method, flop: float) -> Finding:
    return Finding(
        code="estimate-negative",
        severity=Severity.WARNING,
        message=(
            f"{method} makes {flop:.3g} FLOP of it: traffic and overhead explain more energy than was used. "
            "Of honest training this is not seen; look for traffic without work"
        ),
        where=str(method),
        expected="a count above 0",
        found=f"{flop:.3g}",
    )


def _unbounded(method: Method) -> Finding:
    return Finding(
        code="interval-unbounded",
        severity=Severity.WARNING,
        message=(
            f"{method} made no sensible estimate of a calibration run that was left out, so nothing bounds "
            "its interval: no point estimate"
        ),
        where=str(method),
        expected="an interval with two ends",
    )


def _assess_unrecorded(calibration: Calibration, fingerprint: Fingerprint) -> Iterator[Finding]:
    """What could not be compared, because only one side tells it; the chip even where neither does."""
    own, other = set(calibration.fingerprint.unrecorded()), set(fingerprint.unrecorded())
    missing = [item.name for item in fields(Fingerprint) if item.name in own ^ other]
    if "chips" in own & other:
        missing.insert(0, "chips")
    if missing:
        is_grave = bool({"chips", "power_mode", "precisions"} & set(missing))
        yield Finding(
            code="fingerprint-unrecorded",
            severity=Severity.WARNING if is_grave else Severity.NOTE,
            message=(
                f"{', '.join(missing)} cannot be compared: not recorded of the run, or of the calibration's "
                "runs. The estimate holds only if they are the same"
            ),
            found=", ".join(missing),
            count=len(missing),
        )
    if "power_mode" in own | other:
        yield from assess_power_range(calibration)


def _assess_edges(calibration: Calibration, run: ObservedRuns, point: Point | None) -> Iterator[Finding]:
    """Features beyond what was seen, though not by so much that the point is refused."""
    domain, seen = calibration.fitted.domain, calibration.fitted.log_features(run)
    ranges = np.nan_to_num(domain.ranges_outside(seen)[0])
    beyond = [place for place in range(ranges.size) if ranges[place] != 0]
    if point is None or not beyond:
        return
    told = []
    for place in beyond:
        low, high = np.exp([domain.log_low[place], domain.log_high[place]])
        value = f"{np.exp(seen[0, place]):.3g}"
        told.append(
            f"{domain.features[place]} {value} {domain.features[place].unit} ({low:.3g} to {high:.3g})"
        )
    yield Finding(
        code="feature-beyond",
        severity=Severity.NOTE,
        message=(
            f"beyond what the calibration has seen, by less than one range: {', '.join(told)}. The interval "
            "allows for it; padded traffic would look so too"
        ),
        expected="features that calibration runs had",
        found=", ".join(told),
        count=len(told),
    )


def _assess_tripwires(
    calibration: Calibration, run: ObservedRuns, point: Point | None, asked: Method, level: float
) -> Iterator[Finding]:
    """What the other estimators say: one that turns negative, or lies outside, is a sign of odd traffic."""
    if point is None:
        return
    for method in calibration.fitted.models:
        if method is asked:
            continue
        answer = calibration.fitted.predict(method, run, level)
        flop, low, high = (float(item[0]) for item in (answer.flop, answer.low_flop, answer.high_flop))
        if flop <= 0:
            yield _negative(method, flop)
        elif low > point.high_flop or high < point.low_flop:
            yield Finding(
                code="estimators-disagree",
                severity=Severity.NOTE,
                message=(
                    f"{method} says {_short(low)} to {_short(high)} FLOP, apart from the estimate's "
                    f"{_short(point.low_flop)} to {_short(point.high_flop)}"
                ),
                where=str(method),
                expected=f"{_short(point.low_flop)} to {_short(point.high_flop)}",
                found=f"{_short(low)} to {_short(high)}",
            )


def _short(flop: float) -> str:
    return format_flop(scale_count(flop), digits=_DIGITS) if np.isfinite(flop) else "any number of"


def _assess_declared(
    calibration: Calibration, run: ObservedRuns, declared: DeclaredSteps | None, point: Point | None
) -> Iterator[Finding]:
    """The declared steps against the energy: a claim that is too small for its own link traffic."""
    limit = calibration.link_gate
    if calibration.link is None or declared is None or point is None or limit is None:
        return
    flop = float(calibration.link.predict(run.link_tb, declared, 0.9).flop[0])
    if not np.isfinite(flop):
        return
    energy = calibration.fitted.predict(Method.EFFICIENCY, run)
    gap = float(np.log(flop / energy.flop[0]))
    if gap < limit:
        yield Finding(
            code="declared-steps-low",
            severity=Severity.WARNING,
            message=(
                f"with the declared tokens a step, the link traffic makes {_short(flop)} FLOP, "
                f"{100 * (1 - np.exp(gap)):.0f} % under what the energy shows "
                f"({_short(float(energy.flop[0]))}): more tokens were trained on than declared, or the link "
                "or its use differs from the calibration's"
            ),
            expected=f"at least {np.exp(limit):.2f} of the energy's estimate",
            found=f"{np.exp(gap):.2f}",
        )
    elif gap > -limit:
        yield Finding(
            code="declared-steps-high",
            severity=Severity.NOTE,
            message=(
                f"with the declared tokens a step, the link traffic makes {_short(flop)} FLOP, "
                f"{100 * (np.exp(gap) - 1):.0f} % over what the energy shows: traffic that is no all-reduce, "
                "or larger claims than work"
            ),
            expected=f"at most {np.exp(-limit):.2f} of the energy's estimate",
            found=f"{np.exp(gap):.2f}",
        )
