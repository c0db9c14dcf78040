import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from flopwitness.accounting.lineage import decode_lineage, total_compute
from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    ComputeRange,
    assess_levels,
    assess_modification,
    assess_rate,
    assess_threshold,
)
from flopwitness.catalogue.rules import Rule, load_rules
from flopwitness.foundation.errors import InputError, OutOfRangeError
from flopwitness.foundation.verdict import Position, Verdict

RULES = load_rules()
ART51 = RULES.find("eu-ai-act-art51")  # more than 1e25
KOREA = RULES.find("kr-ai-basic-act")  # at least 1e26
THIRD = RULES.find("eu-gpai-modifier")
TREATY = RULES.find("miri-draft-treaty")
CLUSTER = RULES.find("us-eo14110-cluster")


def between(low: int, upper: int | None) -> ComputeRange:
    return ComputeRange(low_flop=low, upper_flop=upper)


def exactly(flop: int) -> ComputeRange:
    return between(flop, flop)


def test_ranges_add_and_stay_open() -> None:
    assert between(1, 2).plus(between(10, 20)) == between(11, 22)
    assert between(1, None).plus(between(10, 20)) == between(11, None)
    assert between(1, 2).plus(between(10, None)) == between(11, None)


@pytest.mark.parametrize(("low", "upper"), [(-1, 5), (-1, None), (3, 2)])
def test_a_range_upside_down_is_refused(low: int, upper: int | None) -> None:
    with pytest.raises(OutOfRangeError):
        between(low, upper)


@pytest.mark.parametrize(
    ("rule", "limit"), [(ART51, 10**25), (RULES.find("us-ca-sb53"), 10**26)], ids=["eu", "ca"]
)
def test_more_than_excludes_equality(rule: Rule, limit: int) -> None:
    at = assess_threshold(rule, exactly(limit), tolerance_ppm=0)
    assert (at.position, at.headroom) == (Position.BELOW, Fraction(1))
    assert assess_threshold(rule, exactly(limit + 1), tolerance_ppm=0).position is Position.LIKELY_ABOVE
    assert float(limit + 1) == float(limit), "a double could not tell the two apart"


def test_at_least_includes_equality() -> None:
    assert assess_threshold(KOREA, exactly(10**26), tolerance_ppm=0).position is Position.LIKELY_ABOVE
    assert assess_threshold(KOREA, exactly(10**26 - 1), tolerance_ppm=0).position is Position.BELOW
    stated = assess_threshold(KOREA, NO_COMPUTE, stated_flop=10**26)
    assert stated.reason == "The stated total equals it, and “at least” includes that."


def test_the_tolerance_belongs_to_the_sensors_alone() -> None:
    edge = 10**25 * 1_000_000 // 1_100_000
    assert assess_threshold(ART51, between(0, edge)).position is Position.BELOW
    assert assess_threshold(ART51, between(0, edge + 1)).position is Position.CANNOT_TELL
    assert assess_threshold(ART51, NO_COMPUTE, other=exactly(10**25)).position is Position.BELOW
    assert assess_threshold(ART51, NO_COMPUTE, stated_flop=10**25).position is Position.BELOW


def test_the_tolerance_alone_makes_it_unclear_and_says_so() -> None:
    found = assess_threshold(ART51, between(0, 10**25))
    assert found.position is Position.CANNOT_TELL
    assert (
        found.reason == "The bound does not pass it, but with the tolerance for sensors and clocks it does."
    )


def test_other_compute_is_added_at_both_ends() -> None:
    most = between(0, 5 * 10**24)
    assert assess_threshold(ART51, most, other=between(0, 4 * 10**24)).position is Position.BELOW
    assert assess_threshold(ART51, most, other=between(0, 5 * 10**24)).position is Position.CANNOT_TELL
    assert assess_threshold(ART51, most, other=between(10**25 + 1, None)).position is Position.LIKELY_ABOVE
    low = assess_threshold(ART51, between(6 * 10**24, 7 * 10**24), other=between(5 * 10**24, None))
    assert low.position is Position.LIKELY_ABOVE


@pytest.mark.parametrize(
    ("total", "other"),
    [(between(0, None), NO_COMPUTE), (NO_COMPUTE, between(0, None)), (between(10**25, None), NO_COMPUTE)],
)
def test_what_nothing_bounds_is_never_below(total: ComputeRange, other: ComputeRange) -> None:
    found = assess_threshold(ART51, total, other=other)
    assert (found.position, found.verdict) == (Position.CANNOT_TELL, Verdict.INCONCLUSIVE)
    assert found.headroom is None
    assert found.reason == "Nothing bounds the compute from above."


def test_sensors_never_contradict_only_a_statement_does() -> None:
    sensed = assess_threshold(ART51, exactly(10**30), other=exactly(10**30))
    assert (sensed.position, sensed.verdict) == (Position.LIKELY_ABOVE, Verdict.INCONCLUSIVE)
    mixed = assess_threshold(ART51, exactly(10**25), stated_flop=10**25)
    assert (mixed.position, mixed.verdict) == (Position.LIKELY_ABOVE, Verdict.INCONCLUSIVE)
    stated = assess_threshold(ART51, between(0, None), stated_flop=10**25 + 1)
    assert (stated.position, stated.verdict) == (Position.LIKELY_ABOVE, Verdict.INCONSISTENT)


@pytest.mark.parametrize(
    ("total", "stated", "reason"),
    [
        (between(0, 3_130_000_000_000_000_000_000), 0, "Even the bound is 2,900 times under it."),
        (between(0, 8_880_000_000_000_000_000_000_000), 0, "Even the bound is 2.3 % under it."),
        (NO_COMPUTE, 5 * 10**24, "The stated total is 2 times under it."),
        (NO_COMPUTE, 10**25, "The stated total equals it, and “more than” excludes that."),
        (NO_COMPUTE, 2 * 10**25, "The stated total is 2 times as high."),
        (NO_COMPUTE, 1002 * 10**22, "The stated total is 0.2 % over it."),
        (NO_COMPUTE, 0, "The total is zero."),
        (between(2 * 10**25, 4 * 10**25), 0, "Even the low end is 2 times as high."),
        (exactly(2 * 10**25), 0, "The estimate is 2 times as high."),
        (between(10**24, 4 * 10**25), 0, "The evidence leaves 1.0e24 to 4.0e25 FLOP, on both sides of it."),
    ],
)
def test_the_reason_is_a_whole_sentence(total: ComputeRange, stated: int, reason: str) -> None:
    assert assess_threshold(ART51, total, stated_flop=stated).reason == reason


def test_the_headroom_is_exact() -> None:
    assert assess_threshold(ART51, between(0, 10**24)).headroom == Fraction(10**25, 110 * 10**22)
    assert assess_threshold(ART51, NO_COMPUTE).headroom is None


def test_each_level_is_judged_and_the_lowest_speaks_for_the_rule() -> None:
    levels = assess_levels(TREATY, exactly(5 * 10**22))
    assert [(each.level, each.position) for each in levels] == [
        ("monitored", Position.LIKELY_ABOVE),
        ("prohibited", Position.BELOW),
    ]
    assert assess_threshold(TREATY, exactly(5 * 10**22)) == levels[0]


@pytest.mark.parametrize(
    ("rule_id", "needs"),
    [
        ("us-eo14110-cluster", "a rate, chips x peak"),
        ("eu-gpai-modifier", "a modification and its original"),
        ("eu-gpai-counting", "says how to count"),
    ],
)
def test_a_rule_without_a_limit_on_a_total_is_refused_with_what_it_needs(rule_id: str, needs: str) -> None:
    with pytest.raises(InputError, match=needs):
        assess_threshold(RULES.find(rule_id), exactly(1))


@pytest.mark.parametrize(("tolerance_ppm", "stated_flop"), [(-1, 0), (0, -1)])
def test_negative_amounts_are_refused(tolerance_ppm: int, stated_flop: int) -> None:
    with pytest.raises(OutOfRangeError):
        assess_threshold(ART51, NO_COMPUTE, tolerance_ppm=tolerance_ppm, stated_flop=stated_flop)


def test_a_third_is_decided_in_integers() -> None:
    below = assess_modification(THIRD, exactly(3 * 10**24), 9 * 10**24, tolerance_ppm=0)
    above = assess_modification(THIRD, exactly(3 * 10**24 + 1), 9 * 10**24, tolerance_ppm=0)
    assert (below.position, above.position) == (Position.BELOW, Position.LIKELY_ABOVE)
    assert below.threshold_flop == 3 * 10**24
    assert assess_modification(THIRD, exactly(3), 10, tolerance_ppm=0).position is Position.BELOW
    assert assess_modification(THIRD, exactly(4), 10, tolerance_ppm=0).position is Position.LIKELY_ABOVE


@pytest.mark.parametrize(
    ("modification", "position"),
    [
        (33_333_333_333_333_333_333_333, Position.BELOW),
        (33_333_333_333_333_333_333_334, Position.CANNOT_TELL),
        (3_333_333_333_333_333_333_333_333, Position.CANNOT_TELL),
        (3_333_333_333_333_333_333_333_334, Position.LIKELY_ABOVE),
    ],
)
def test_an_unknown_original_is_judged_by_every_fallback(modification: int, position: Position) -> None:
    found = assess_modification(THIRD, NO_COMPUTE, None, stated_flop=modification)
    assert found.position is position
    expected = {Position.BELOW: Verdict.CONSISTENT, Position.LIKELY_ABOVE: Verdict.INCONSISTENT}
    assert found.verdict is expected.get(position, Verdict.INCONCLUSIVE)


def test_a_disagreement_of_the_fallbacks_is_explained() -> None:
    found = assess_modification(THIRD, exactly(10**24), None)
    assert found.reason == (
        "The original's compute is unknown: the limit is 3.3e22 or 3.3e24 FLOP, depending on it."
    )


@pytest.mark.parametrize("original", [0, -5])
def test_an_original_of_nothing_is_refused(original: int) -> None:
    with pytest.raises(OutOfRangeError):
        assess_modification(THIRD, exactly(1), original)


def test_a_rule_without_a_share_compares_no_modification() -> None:
    with pytest.raises(InputError, match="compares no modification"):
        assess_modification(ART51, exactly(1), 3)


@pytest.mark.parametrize(
    ("rate", "position", "verdict"),
    [
        (10**20 - 1, Position.BELOW, Verdict.CONSISTENT),
        (10**20, Position.LIKELY_ABOVE, Verdict.INCONSISTENT),
        (3 * 10**20, Position.LIKELY_ABOVE, Verdict.INCONSISTENT),
    ],
)
def test_a_rate_is_compared_with_the_cluster_rule(rate: int, position: Position, verdict: Verdict) -> None:
    found = assess_rate(CLUSTER, rate)
    assert (found.position, found.verdict, found.headroom) == (position, verdict, Fraction(10**20, rate))


def test_a_rate_needs_a_rule_about_rates_and_a_rate() -> None:
    with pytest.raises(InputError, match="cannot be judged by a rate"):
        assess_rate(ART51, 10**20)
    with pytest.raises(OutOfRangeError):
        assess_rate(CLUSTER, 0)


@pytest.fixture(scope="module")
def h32() -> Path:
    return Path(__file__).resolve().parents[2] / "cases" / "h32_cumulative_threshold"


def _json(path: Path) -> Any:  # noqa: ANN401 (test data)
    return json.loads(path.read_text())


def test_case_h32_many_runs_one_model(h32: Path) -> None:
    expected = _json(h32 / "expected.json")
    models = decode_lineage((h32 / "lineage.json").read_bytes())
    total = total_compute(models, "model")
    assert total == exactly(int(expected["expect"]["total_flops"]))
    found = assess_threshold(ART51, NO_COMPUTE, stated_flop=total.low_flop)
    exceeds = found.position is Position.LIKELY_ABOVE
    assert exceeds is expected["expect"]["exceeds"]
    assert found.verdict is Verdict.INCONSISTENT
    alone = [assess_threshold(ART51, run.compute, tolerance_ppm=0).position for run in models[0].runs]
    any_single = Position.LIKELY_ABOVE in alone
    assert any_single is expected["expect"]["any_single_run_exceeds"]
    assert exceeds is not expected["wrong_answers"]["per_run_only"]


def test_case_h32_modifications(h32: Path) -> None:
    expected = _json(h32 / "expected.json")
    found = {}
    for entry in _json(h32 / "modifications.json")["modifications"]:
        base = entry["base_flops"]
        found[entry["name"]] = assess_modification(
            THIRD,
            exactly(int(entry["modification_flops"])),
            None if base is None else int(base),
            int(entry["base_threshold"]) if base is None else None,
            tolerance_ppm=0,
        )
    exceeds = {name: each.position is Position.LIKELY_ABOVE for name, each in found.items()}
    assert exceeds == expected["expect"]["modifications"]
    assert found["m3"].threshold_flop == int(expected["expect"]["m3_limit"])
    assert (exceeds["m1"] == exceeds["m2"]) is not expected["wrong_answers"]["m1_as_double_equals_m2"]
