"""What must hold for every total, every tolerance and every limit."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    ComputeRange,
    assess_modification,
    assess_threshold,
)
from flopwitness.catalogue.rules import Comparison, Rule, load_rules
from flopwitness.foundation.verdict import Position, Verdict

RULES = [rule for rule in load_rules().rules if rule.totals]
THIRD = load_rules().find("eu-gpai-modifier")
NEAR = st.sampled_from([0, 1, 10**22, 10**23, 10**24, 10**25, 10**26]).flatmap(
    lambda centre: st.integers(max(0, centre - 3), centre + 3)
)
COUNTS = st.one_of(NEAR, st.integers(0, 10**30))
PPM = st.one_of(st.just(0), st.integers(0, 1_000_000))
ANY_RULE = st.sampled_from(RULES)


@st.composite
def ranges(draw: st.DrawFn) -> ComputeRange:
    low = draw(COUNTS)
    upper = draw(st.one_of(st.none(), st.just(low), COUNTS.map(lambda more: low + more)))
    return ComputeRange(low_flop=low, upper_flop=upper)


def _reaches(rule: Rule, amount: Fraction | int) -> bool:
    """The comparison by cross-multiplication, written apart from the code under test."""
    limit = rule.totals[0]
    value = Fraction(amount)
    difference = value.numerator - limit.flop * value.denominator
    return difference > 0 or (difference == 0 and limit.comparison is Comparison.AT_LEAST)


@given(rule=ANY_RULE, total=ranges(), other=ranges(), ppm=PPM, stated=COUNTS)
def test_the_position_follows_from_the_two_ends(
    rule: Rule, total: ComputeRange, other: ComputeRange, ppm: int, stated: int
) -> None:
    found = assess_threshold(rule, total, tolerance_ppm=ppm, other=other, stated_flop=stated)
    is_bounded = total.upper_flop is not None and other.upper_flop is not None
    worst = (
        Fraction((total.upper_flop or 0) * (1_000_000 + ppm), 1_000_000) + (other.upper_flop or 0) + stated
    )
    if _reaches(rule, total.low_flop + other.low_flop + stated):
        assert found.position is Position.LIKELY_ABOVE
    elif is_bounded and not _reaches(rule, worst):
        assert found.position is Position.BELOW
    else:
        assert found.position is Position.CANNOT_TELL
    assert (found.verdict is Verdict.INCONSISTENT) == _reaches(rule, stated)
    assert (found.verdict is Verdict.CONSISTENT) == (found.position is Position.BELOW)
    assert found.reason.endswith(".")


@given(rule=ANY_RULE, total=ranges(), more=COUNTS, ppm=PPM)
def test_more_compute_never_makes_the_answer_better(
    rule: Rule, total: ComputeRange, more: int, ppm: int
) -> None:
    order = [Position.BELOW, Position.CANNOT_TELL, Position.LIKELY_ABOVE]
    larger = total.plus(ComputeRange(low_flop=more, upper_flop=more))
    before = assess_threshold(rule, total, tolerance_ppm=ppm).position
    after = assess_threshold(rule, larger, tolerance_ppm=ppm).position
    assert order.index(before) <= order.index(after)


@given(rule=ANY_RULE, total=ranges(), ppm=PPM)
def test_the_headroom_says_the_same_as_the_position(rule: Rule, total: ComputeRange, ppm: int) -> None:
    found = assess_threshold(rule, total, tolerance_ppm=ppm)
    if found.position is Position.BELOW and found.headroom is not None:
        assert found.headroom >= 1
    if found.position is Position.CANNOT_TELL and found.headroom is not None:
        assert found.headroom <= 1


@given(modification=COUNTS, original=st.integers(1, 10**30))
def test_a_third_is_three_times_the_modification_against_the_original(
    modification: int, original: int
) -> None:
    found = assess_modification(THIRD, NO_COMPUTE, original, stated_flop=modification)
    assert (found.position is Position.LIKELY_ABOVE) == (3 * modification > original)
    assert (modification > found.threshold_flop) == (3 * modification > original)


@given(first=ranges(), second=ranges(), third=ranges())
def test_ranges_add_in_any_order(first: ComputeRange, second: ComputeRange, third: ComputeRange) -> None:
    assert first.plus(second) == second.plus(first)
    assert first.plus(second).plus(third) == first.plus(second.plus(third))
    assert first.plus(NO_COMPUTE) == first
