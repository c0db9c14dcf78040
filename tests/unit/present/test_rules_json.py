"""The rules as JSON: decimal strings, null for what is unknown, and never a vetoed act as law."""

import datetime as dt
import json
from typing import Any

import pytest

from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange, assess_levels, assess_rate
from flopwitness.catalogue.rules import load_rules
from flopwitness.foundation.verdict import Finding, Severity, Verdict
from flopwitness.present.rules_json import render_assessed, render_rule_record, render_rule_records
from flopwitness.present.rules_text import AssessedRule

RULES = load_rules()
TODAY = dt.date(2026, 6, 1)


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: str(rule.id))
def test_every_rule_can_be_written_and_says_what_it_is(rule: Any) -> None:  # noqa: ANN401 (a rule)
    record = render_rule_record(rule, TODAY)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["id"], record["status"]) == (rule.id, rule.status.value)
    assert record["standing"] == rule.status_on(TODAY).value
    assert len(record["thresholds"]) == len(rule.thresholds)


def test_the_kinds_of_threshold_have_keys_of_their_own() -> None:
    total, ratio, rate = (
        render_rule_record(RULES.find(name), TODAY)["thresholds"][0]
        for name in ("eu-ai-act-art51", "eu-gpai-modifier", "us-eo14110-cluster")
    )
    assert total == {"comparison": ">", "level": "", "threshold_flop": "1" + "0" * 25}
    assert ratio["threshold_share"] == "1/3"
    assert all(set(each["flop"]) <= set("0123456789") for each in ratio["fallbacks"])
    assert rate == {"comparison": ">=", "threshold_flop_per_s": "1" + "0" * 20}


def test_the_standing_is_that_of_the_day() -> None:
    rule = RULES.find("us-eo14110-model")
    days = {
        dt.date(2024, 6, 1): "in force",
        TODAY: "no longer in force",
        dt.date(2020, 1, 1): "not yet in force",
    }
    for day, standing in days.items():
        record = render_rule_records([rule], day)
        assert (record["on"], record["rules"][0]["standing"]) == (day.isoformat(), standing)
    assert render_rule_record(RULES.find("us-ca-sb1047"), TODAY)["in_force_from"] is None


def test_assessments_stand_worst_first_with_their_findings() -> None:
    total = ComputeRange(low_flop=5 * 10**22, upper_flop=5 * 10**22)
    assessed = [
        AssessedRule(rule=rule, assessment=item)
        for rule in (RULES.find("eu-ai-act-art51"), RULES.find("miri-draft-treaty"))
        for item in assess_levels(rule, total)
    ]
    cluster = RULES.find("us-eo14110-cluster")
    assessed.append(AssessedRule(rule=cluster, assessment=assess_rate(cluster, 2 * 10**20)))
    note = Finding(code="lineage-open", severity=Severity.WARNING, message="m")
    record = render_assessed(assessed, on=TODAY, verdict=Verdict.INCONSISTENT, findings=[note])
    assert json.loads(json.dumps(record)) == record
    assert record["verdict"] == "inconsistent"
    first = record["rules"][0]
    assert (first["id"], first["verdict"]) == (cluster.id, "inconsistent")
    assert "threshold_flop" not in record["rules"][0]
    assert record["rules"][0]["threshold_flop_per_s"] == "1" + "0" * 20
    assert record["rules"][-1]["position"] == "below"
    assert [each["code"] for each in record["findings"]] == ["lineage-open"]


def test_an_open_total_has_no_headroom() -> None:
    rule = RULES.find("eu-ai-act-art51")
    open_total = ComputeRange(low_flop=0, upper_flop=None)
    for total, headroom in ((open_total, None), (NO_COMPUTE, None)):
        (item,) = assess_levels(rule, total)
        assessed = [AssessedRule(rule=rule, assessment=item)]
        record = render_assessed(assessed, on=TODAY, verdict=item.verdict, findings=[])
        assert record["rules"][0]["headroom"] is headroom
