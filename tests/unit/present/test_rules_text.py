import datetime as dt
from pathlib import Path

import pytest

from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    ComputeRange,
    assess_levels,
    assess_rate,
    assess_threshold,
)
from flopwitness.catalogue.rules import Rule, Standing, load_rules
from flopwitness.foundation.verdict import Finding, Severity, Verdict
from flopwitness.present.rules_text import (
    AssessedRule,
    describe_amount,
    describe_range,
    describe_standing,
    describe_threshold,
    is_shown_by_default,
    rank_assessed,
    render_assessments,
    render_rule,
    render_rule_list,
    render_rules_page,
)

RULES = load_rules()
TODAY = dt.date(2026, 6, 1)
REPOSITORY = Path(__file__).resolve().parents[3]


def assessed(rule_id: str, flop: int, *, stated: bool = False) -> AssessedRule:
    rule = RULES.find(rule_id)
    total = NO_COMPUTE if stated else ComputeRange(low_flop=0, upper_flop=flop)
    found = assess_threshold(rule, total, stated_flop=flop if stated else 0)
    return AssessedRule(rule=rule, assessment=found)


@pytest.mark.parametrize(
    ("flop", "expected"),
    [
        (0, "0"),
        (9_999, "9999"),
        (10_000, "1e4"),
        (10**25, "1e25"),
        (25 * 10**23, "2.5e24"),
        (1002 * 10**22, "1.002e25"),
        (10**25 + 1, "about 1.000e25"),
        (10**25 // 3, "about 3.333e24"),
    ],
)
def test_an_amount_is_exact_or_says_about(flop: int, expected: str) -> None:
    assert describe_amount(flop) == expected


def test_a_range_carries_its_unit() -> None:
    assert describe_range(ComputeRange(low_flop=10**22, upper_flop=10**22)) == "1e22 FLOP"
    assert describe_range(ComputeRange(low_flop=10**22, upper_flop=10**23)) == "1e22 to 1e23 FLOP"
    opened = describe_range(ComputeRange(low_flop=5, upper_flop=None))
    assert opened == "at least 5 FLOP, and nothing known to bound it"


@pytest.mark.parametrize(
    ("rule_id", "expected"),
    [
        ("eu-ai-act-art51", "more than 1e25 FLOP"),
        ("kr-ai-basic-act", "at least 1e26 FLOP"),
        ("miri-draft-treaty", "monitored: at least 1e22 FLOP"),
        ("eu-gpai-modifier", "more than 1/3 of the training compute of the original model"),
        ("us-eo14110-cluster", "at least 1e20 operations per second"),
    ],
)
def test_a_threshold_in_words(rule_id: str, expected: str) -> None:
    assert describe_threshold(RULES.find(rule_id).thresholds[0]) == expected


@pytest.mark.parametrize(
    ("rule_id", "expected"),
    [
        ("eu-ai-act-art51", "in force since 2 August 2025"),
        ("us-ny-raise", "not in force yet: applies from 1 January 2027"),
        ("us-eo14110-model", "not in force: rescinded on 20 January 2025"),
        ("us-ca-sb1047", "not in force: vetoed, never law"),
        ("miri-draft-treaty", "not in force: a proposal, not law"),
        ("eu-gpai-modifier", "not in force as law: guidance, which binds nobody"),
    ],
)
def test_the_standing_of_a_rule(rule_id: str, expected: str) -> None:
    assert describe_standing(RULES.find(rule_id), TODAY) == expected


def test_a_rescinded_order_was_in_force_between_its_dates() -> None:
    text = describe_standing(RULES.find("us-eo14110-model"), dt.date(2024, 6, 1))
    assert text == "in force since 30 October 2023, until 20 January 2025"


def test_the_list_groups_by_status_and_hides_what_is_no_law() -> None:
    text = render_rule_list(RULES, TODAY)
    assert text.index("Laws.") < text.index("Guidance.")
    assert "Rescinded." not in text
    assert "us-ca-sb1047" not in text
    assert "7 more are no law on that day" in text


def test_the_whole_list_says_of_each_group_what_it_is() -> None:
    text = render_rule_list(RULES, TODAY, show_all=True)
    order = [text.index(name) for name in ("Laws.", "Guidance.", "Rescinded.", "Vetoed.", "Proposals.")]
    assert order == sorted(order)
    assert text.index("us-eo14110-model") > text.index("Rescinded.")
    assert "more are no law" not in text
    assert all(rule.id in text for rule in RULES.rules)


def test_a_list_of_an_earlier_day_shows_what_was_in_force_then() -> None:
    day = dt.date(2024, 6, 1)
    assert "us-eo14110-model" in render_rule_list(RULES, day)
    assert is_shown_by_default(RULES.find("us-eo14110-model"), day)
    assert not is_shown_by_default(RULES.find("us-ca-sb1047"), day)


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: rule.id)
def test_the_page_of_a_rule_opens_with_its_standing_and_names_its_source(rule: Rule) -> None:
    text = render_rule(rule, TODAY)
    is_law = rule.status_on(TODAY) is Standing.IN_FORCE
    assert text.splitlines()[0].startswith("In force since" if is_law else "Not in force")
    assert rule.source.url in text


def test_a_recalled_rule_is_shown_as_not_verified() -> None:
    assert "not verified" in render_rule(RULES.find("eu-gpai-counting"), TODAY)
    assert "not verified" not in render_rule(RULES.find("eu-ai-act-art51"), TODAY)


def test_the_worst_news_stands_first() -> None:
    below = assessed("us-ca-sb53", 10**24)
    unclear = assessed("eu-ai-act-art51", 10**26)
    above = assessed("kr-ai-basic-act", 10**27, stated=True)
    ranked = rank_assessed([below, unclear, above])
    assert [each.assessment.verdict for each in ranked] == [
        Verdict.INCONSISTENT,
        Verdict.INCONCLUSIVE,
        Verdict.CONSISTENT,
    ]
    text = render_assessments([below, unclear, above], on=TODAY, subject="a total")
    assert text.splitlines()[0].startswith(
        "Korean AI Basic Act, high-performance AI, at least 1e26 FLOP: above."
    )


@pytest.mark.parametrize("rule_id", ["us-eo14110-model", "us-ca-sb1047", "miri-draft-treaty", "us-ny-raise"])
def test_what_is_not_in_force_says_so_in_the_first_line(rule_id: str) -> None:
    text = render_assessments([assessed(rule_id, 10**21)], on=TODAY, subject="a total")
    first = text.splitlines()[0]
    assert first.startswith("Not in force")
    assert rule_id in first


def test_a_law_in_force_needs_no_such_line() -> None:
    text = render_assessments([assessed("eu-ai-act-art51", 10**21)], on=TODAY, subject="a total")
    assert text.startswith("EU AI Act Art. 51(2), more than 1e25 FLOP: below. Even the bound is 9,000 times")
    assert "ot in force" not in text
    assert "https://ai-act-law.eu/article/51/" in text


def test_levels_and_rates_are_told_apart() -> None:
    treaty = RULES.find("miri-draft-treaty")
    total = ComputeRange(low_flop=5 * 10**22, upper_flop=5 * 10**22)
    levels = [AssessedRule(rule=treaty, assessment=each) for each in assess_levels(treaty, total)]
    assert [each.level for each in levels] == ["monitored", "prohibited"]
    text = render_assessments(levels, on=TODAY, subject="a total")
    assert "monitored, at least 1e22 FLOP: likely above." in text
    assert "prohibited, more than 1e24 FLOP: below." in text
    cluster = RULES.find("us-eo14110-cluster")
    rate = AssessedRule(rule=cluster, assessment=assess_rate(cluster, 10**19))
    assert rate.level == ""
    assert "at least 1e20 operations per second: below." in render_assessments([rate], on=TODAY, subject="x")


def test_no_rule_and_findings_are_said() -> None:
    finding = Finding(code="lineage-open", severity=Severity.WARNING, message="No run of base is recorded.")
    text = render_assessments([], on=dt.date(2020, 1, 1), subject="a total", findings=[finding])
    assert text.startswith("No compute rule in this catalogue was in force on 1 January 2020.")
    assert text.endswith("  lineage-open  No run of base is recorded.")


def test_no_line_is_wider_than_a_page_but_for_addresses() -> None:
    for text in (
        render_rule_list(RULES, TODAY, show_all=True),
        *(render_rule(r, TODAY) for r in RULES.rules),
    ):
        assert [line for line in text.splitlines() if len(line) > 100 and "https://" not in line] == []


def test_the_page_in_the_documentation_is_the_catalogue() -> None:
    written = (REPOSITORY / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written == render_rules_page(RULES), (
        "write docs/rules.md anew with render_rules_page(load_rules())"
    )
