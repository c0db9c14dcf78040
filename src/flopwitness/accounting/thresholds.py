"""Where does a total lie beside the threshold of a rule?

Everything is decided in integers and exact fractions: a modification one operation below a third of its
original is below it, although both are the same double. Energy bounds compute from above only, so a total
is *below* when even the most that the evidence leaves possible stays under the threshold, and never "proven
above" by sensors. Only a figure that its owner states as exact can contradict "stays below".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from flopwitness.catalogue.rules import Comparison, RatioThreshold, Rule, TotalThreshold
from flopwitness.foundation.errors import InputError, OutOfRangeError
from flopwitness.foundation.units import format_flop, format_times
from flopwitness.foundation.verdict import Position, Verdict

__all__ = [
    "NO_COMPUTE",
    "SENSOR_TOLERANCE_PPM",
    "ComputeRange",
    "RateAssessment",
    "ThresholdAssessment",
    "assess_levels",
    "assess_modification",
    "assess_rate",
    "assess_threshold",
]

SENSOR_TOLERANCE_PPM: Final = 100_000  # 5 % for sensors; clocks pass data-sheet peaks by up to 8 %
_WHOLE_PPM: Final = 1_000_000
_HARDLY: Final = Fraction(11, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeRange:
    """What the evidence leaves possible.

    Attributes:
        low_flop: The least, >= 0.
        upper_flop: The most, >= `low_flop`; None where nothing bounds it.
    """

    low_flop: int
    upper_flop: int | None

    def __post_init__(self) -> None:
        """Refuse a range that is negative or upside down."""
        if self.low_flop < 0 or (self.upper_flop is not None and self.upper_flop < self.low_flop):
            raise OutOfRangeError(
                "not a range of compute",
                expected="0 <= low <= upper",
                found=f"{self.low_flop} to {self.upper_flop}",
            )

    def plus(self, other: "ComputeRange") -> "ComputeRange":
        """Both together; nothing bounds the sum where nothing bounds a part."""
        if self.upper_flop is None or other.upper_flop is None:
            upper = None
        else:
            upper = self.upper_flop + other.upper_flop
        return ComputeRange(low_flop=self.low_flop + other.low_flop, upper_flop=upper)


NO_COMPUTE: Final = ComputeRange(low_flop=0, upper_flop=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAssessment:
    """Where a total lies beside one limit of a rule.

    Attributes:
        rule_id: The rule.
        level: The limit's name where the rule has several; "" otherwise.
        threshold_flop: The limit as a count. For a share: the largest count that is not over it (">") or
            the smallest that reaches it (">=").
        comparison: What passing it means.
        position: Where the total lies.
        verdict: The answer to "stays below"; `inconsistent` only for a total that is stated as exact.
        reason: Why, as a whole sentence.
        headroom: The limit divided by the most that the total may be, tolerance included; None where
            nothing bounds the total, or it is zero.
    """

    rule_id: str
    level: str
    threshold_flop: int
    comparison: Comparison
    position: Position
    verdict: Verdict
    reason: str
    headroom: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateAssessment:
    """Where a cluster's peak rate lies beside the limit of a rule.

    Attributes:
        rule_id: The rule.
        threshold_flop_per_s: The limit [operations/s].
        comparison: What passing it means.
        position: Where the rate lies.
        verdict: The answer to "stays below".
        reason: Why, as a whole sentence.
        headroom: The limit divided by the rate; None where the rate is zero.
    """

    rule_id: str
    threshold_flop_per_s: int
    comparison: Comparison
    position: Position
    verdict: Verdict
    reason: str
    headroom: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Total:
    """The three parts of a total, as they enter a comparison."""

    stated_flop: int
    low_flop: int
    upper_flop: int | None  # without the sensors' tolerance
    worst_flop: Fraction | None  # with it

    @property
    def is_stated(self) -> bool:
        return self.upper_flop == self.stated_flop


def assess_threshold(
    rule: Rule,
    total: ComputeRange,
    *,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
    other: ComputeRange = NO_COMPUTE,
    stated_flop: int = 0,
) -> ThresholdAssessment:
    """Where a model's compute lies beside the rule's threshold, the lowest where it has several.

    Below only if `total.upper * (1 + tolerance) + other.upper + stated` does not meet the comparison; likely
    above if the low ends and what is stated meet it; otherwise nobody can tell.

    Args:
        rule: A rule that limits a total.
        total: What sensors leave possible.
        tolerance_ppm: What those sensors may be off by [parts per million]; applies to `total` alone.
        other: The model's other recorded compute.
        stated_flop: What its owner states as exact, on top of both, >= 0; if this alone meets the
            comparison, the verdict is `inconsistent`.

    Raises:
        InputError: The rule limits no total.
        OutOfRangeError: A negative tolerance or statement.

    Source:
        ours: ADR 3; equality as the rule's own sign decides.
    """
    return assess_levels(rule, total, tolerance_ppm=tolerance_ppm, other=other, stated_flop=stated_flop)[0]


def assess_levels(
    rule: Rule,
    total: ComputeRange,
    *,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
    other: ComputeRange = NO_COMPUTE,
    stated_flop: int = 0,
) -> tuple[ThresholdAssessment, ...]:
    """Where a model's compute lies beside each threshold of the rule, lowest first.

    Raises:
        InputError: As `assess_threshold`.
        OutOfRangeError: As `assess_threshold`.
    """
    if not rule.totals:
        raise InputError("cannot be judged by a total", where=rule.id, expected=_what_it_needs(rule))
    parts = _join(total, tolerance_ppm=tolerance_ppm, other=other, stated_flop=stated_flop)
    return tuple(_assess_level(rule, level, parts) for level in rule.totals)


def assess_modification(
    rule: Rule,
    modification: ComputeRange,
    original_flop: int | None,
    fallback_flop: int | None = None,
    *,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
    stated_flop: int = 0,
) -> ThresholdAssessment:
    """Where a modification lies beside the rule's share of the original model's compute.

    Args:
        rule: A rule with a share.
        modification: What sensors leave possible of the modification alone.
        original_flop: The original's compute, > 0; None where unknown.
        fallback_flop: What stands in for an unknown original, > 0; None to try all that the rule names: the
            answer is then definite only where they agree.
        tolerance_ppm: As in `assess_threshold`.
        stated_flop: As in `assess_threshold`.

    Raises:
        InputError: The rule has no share, or the original is unknown and the rule names no fallback.
        OutOfRangeError: An original of zero or less; a negative tolerance or statement.

    Source:
        Commission Guidelines C(2025) 5045, downstream modifiers: 3 * modification > original.
    """
    ratio = rule.ratio
    if ratio is None:
        raise InputError(
            "compares no modification", where=rule.id, expected="a rule such as eu-gpai-modifier"
        )
    parts = _join(modification, tolerance_ppm=tolerance_ppm, other=NO_COMPUTE, stated_flop=stated_flop)
    known = original_flop if original_flop is not None else fallback_flop
    originals = [known] if known is not None else sorted(fallback.flop for fallback in ratio.fallbacks)
    if not originals:
        raise InputError("the original's compute is unknown", where=rule.id, expected="its count")
    if originals[0] <= 0:
        raise OutOfRangeError("no original", where=rule.id, expected="more than 0", found=str(originals[0]))
    return _agree([_assess_share(rule, ratio, original, parts) for original in originals])


def assess_rate(rule: Rule, rate_flop_per_s: int) -> RateAssessment:
    """Where a cluster's rate lies beside the rule's limit.

    Args:
        rule: A rule that limits a rate.
        rate_flop_per_s: The theoretical maximum, chips x peak [operations/s], > 0.

    Raises:
        InputError: The rule limits no rate.
        OutOfRangeError: A rate of zero or less.
    """
    limit = rule.rate
    if limit is None:
        raise InputError("cannot be judged by a rate", where=rule.id, expected=_what_it_needs(rule))
    if rate_flop_per_s <= 0:
        raise OutOfRangeError("no rate", where=rule.id, expected="more than 0", found=str(rate_flop_per_s))
    is_met = limit.comparison.is_met(rate_flop_per_s, limit.flop_per_s)
    headroom = Fraction(limit.flop_per_s, rate_flop_per_s)
    return RateAssessment(
        rule_id=rule.id,
        threshold_flop_per_s=limit.flop_per_s,
        comparison=limit.comparison,
        position=Position.LIKELY_ABOVE if is_met else Position.BELOW,
        verdict=Verdict.INCONSISTENT if is_met else Verdict.CONSISTENT,
        reason="The stated rate " + (_over(1 / headroom) if is_met else _under(headroom)),
        headroom=headroom,
    )


def _what_it_needs(rule: Rule) -> str:
    """What would have to be known to judge the rule at all."""
    if rule.totals:
        return "a total: this rule limits the training compute of a model"
    if rule.ratio is not None:
        return "a modification and its original: this rule limits a share of the original's compute"
    if rule.rate is not None:
        return "a rate, chips x peak: this rule limits operations per second of a cluster, not a total"
    return "nothing: this rule says how to count and sets no threshold"


def _join(total: ComputeRange, *, tolerance_ppm: int, other: ComputeRange, stated_flop: int) -> _Total:
    if tolerance_ppm < 0 or stated_flop < 0:
        found = f"{tolerance_ppm} ppm, {stated_flop} stated"
        raise OutOfRangeError("negative tolerance or statement", expected="0 or more", found=found)
    low = total.low_flop + other.low_flop + stated_flop
    if total.upper_flop is None or other.upper_flop is None:
        return _Total(stated_flop=stated_flop, low_flop=low, upper_flop=None, worst_flop=None)
    beside = other.upper_flop + stated_flop
    sensed = Fraction(total.upper_flop * (_WHOLE_PPM + tolerance_ppm), _WHOLE_PPM)
    return _Total(
        stated_flop=stated_flop,
        low_flop=low,
        upper_flop=total.upper_flop + beside,
        worst_flop=sensed + beside,
    )


def _assess_level(rule: Rule, level: TotalThreshold, parts: _Total) -> ThresholdAssessment:
    return _assess(rule.id, level.name, Fraction(level.flop), level.comparison, parts)


def _assess_share(rule: Rule, ratio: RatioThreshold, original: int, parts: _Total) -> ThresholdAssessment:
    return _assess(rule.id, "", original * ratio.share, ratio.comparison, parts)


def _assess(
    rule_id: str, level: str, limit: Fraction, comparison: Comparison, parts: _Total
) -> ThresholdAssessment:
    position, reason = _place(limit, comparison, parts)
    is_contradicted = comparison.is_met(parts.stated_flop, limit)
    return ThresholdAssessment(
        rule_id=rule_id,
        level=level,
        threshold_flop=_whole(limit, comparison),
        comparison=comparison,
        position=position,
        verdict=Verdict.INCONSISTENT if is_contradicted else position.verdict,
        reason=reason,
        headroom=limit / parts.worst_flop if parts.worst_flop else None,
    )


def _whole(limit: Fraction, comparison: Comparison) -> int:
    """The whole count that separates the same whole totals as `limit` does."""
    floor = limit.numerator // limit.denominator
    return floor if comparison is Comparison.MORE_THAN else -(-limit.numerator // limit.denominator)


def _place(limit: Fraction, comparison: Comparison, parts: _Total) -> tuple[Position, str]:
    """The position and the sentence that gives its reason."""
    if comparison.is_met(parts.low_flop, limit):
        if comparison.is_met(parts.stated_flop, limit):
            return Position.LIKELY_ABOVE, f"The stated total {_over(parts.stated_flop / limit)}"
        subject = "The estimate" if parts.low_flop == parts.upper_flop else "Even the low end"
        return Position.LIKELY_ABOVE, f"{subject} {_over(parts.low_flop / limit)}"
    if parts.worst_flop is not None and not comparison.is_met(parts.worst_flop, limit):
        subject = "The stated total" if parts.is_stated else "Even the bound"
        below = f"{subject} {_under(limit / parts.worst_flop)}" if parts.worst_flop else "The total is zero."
        return Position.BELOW, below
    return Position.CANNOT_TELL, _why_unclear(limit, comparison, parts)


def _why_unclear(limit: Fraction, comparison: Comparison, parts: _Total) -> str:
    if parts.upper_flop is None:
        return "Nothing bounds the compute from above."
    if not comparison.is_met(parts.upper_flop, limit):
        return "The bound does not pass it, but with the tolerance for sensors and clocks it does."
    low, upper = format_flop(parts.low_flop), format_flop(parts.upper_flop)
    return f"The evidence leaves {low} to {upper} FLOP, on both sides of it."


def _over(ratio: Fraction) -> str:
    if ratio == 1:
        return "equals it, and “at least” includes that."
    if ratio < _HARDLY:
        return f"is {_percent(ratio - 1)} over it."
    return f"is {format_times(ratio)} times as high."


def _under(headroom: Fraction) -> str:
    if headroom == 1:
        return "equals it, and “more than” excludes that."
    if headroom < _HARDLY:
        return f"is {_percent(1 - 1 / headroom)} under it."
    return f"is {format_times(headroom)} times under it."


def _percent(part: Fraction) -> str:
    return f"{float(part * 100):.2g} %"


def _agree(assessments: Sequence[ThresholdAssessment]) -> ThresholdAssessment:
    """One answer for all originals that are possible, lowest limit first."""
    lowest, highest = assessments[0], assessments[-1]
    if lowest.position is highest.position:
        return highest if lowest.position is Position.LIKELY_ABOVE else lowest
    limits = " or ".join(format_flop(each.threshold_flop) for each in assessments)
    return replace(
        lowest,
        position=Position.CANNOT_TELL,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"The original's compute is unknown: the limit is {limits} FLOP, depending on it.",
    )
