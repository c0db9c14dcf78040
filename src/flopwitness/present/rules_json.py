"""The rules, and where a total lies beside them, as JSON that other programs rely on.

Counts of operations are decimal strings. Every record of a rule says what the rule is (`status`) and what it
is on the day that counts (`standing`), so that no program takes a vetoed act for law.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from flopwitness.accounting.thresholds import ThresholdAssessment
from flopwitness.catalogue.rules import (
    RateThreshold,
    RatioThreshold,
    Rule,
    Threshold,
    TotalThreshold,
)
from flopwitness.foundation.units import encode_flop
from flopwitness.foundation.verdict import Finding, Verdict
from flopwitness.present.finding_json import render_finding
from flopwitness.present.rules_text import AssessedRule, rank_assessed

__all__ = ["render_assessed", "render_rule_record", "render_rule_records"]


def render_rule_records(rules: Sequence[Rule], on: dt.date) -> dict[str, Any]:
    """The record of a list of rules on the day `on`."""
    return {"on": on.isoformat(), "rules": [render_rule_record(rule, on) for rule in rules]}


def render_rule_record(rule: Rule, on: dt.date) -> dict[str, Any]:
    """Everything that the catalogue knows about one rule; what is unknown is null."""
    return {
        "id": rule.id,
        "status": rule.status.value,
        "standing": rule.status_on(on).value,
        "jurisdiction": rule.jurisdiction,
        "title": rule.title,
        "citation": rule.citation,
        "thresholds": [_threshold(level) for level in rule.thresholds],
        "counts": rule.counts,
        "binds": rule.binds,
        "unit": rule.unit,
        "effect": rule.effect,
        "conditions": rule.conditions,
        "adopted": _iso(rule.adopted),
        "in_force_from": _iso(rule.in_force_from),
        "in_force_until": _iso(rule.in_force_until),
        "evidence": rule.evidence.value,
        "source": {"title": rule.source.title, "url": rule.source.url, "date": _iso(rule.source.date)},
        "notes": list(rule.notes),
    }


def render_assessed(
    assessed: Sequence[AssessedRule], *, on: dt.date, verdict: Verdict, findings: Sequence[Finding]
) -> dict[str, Any]:
    """The record of a total beside the rules, worst first."""
    return {
        "on": on.isoformat(),
        "verdict": verdict.value,
        "rules": [_assessed(each, on) for each in rank_assessed(assessed)],
        "findings": [render_finding(finding) for finding in findings],
    }


def _threshold(threshold: Threshold) -> dict[str, Any]:
    record: dict[str, Any] = {"comparison": threshold.comparison.value}
    if isinstance(threshold, TotalThreshold):
        record |= {"level": threshold.name, "threshold_flop": encode_flop(threshold.flop)}
    elif isinstance(threshold, RatioThreshold):
        fallbacks = [{"name": each.name, "flop": encode_flop(each.flop)} for each in threshold.fallbacks]
        record |= {"threshold_share": str(threshold.share), "of": threshold.of, "fallbacks": fallbacks}
    elif isinstance(threshold, RateThreshold):
        record |= {"threshold_flop_per_s": encode_flop(threshold.flop_per_s)}
    return record


def _assessed(each: AssessedRule, on: dt.date) -> dict[str, Any]:
    rule, assessment = each.rule, each.assessment
    record: dict[str, Any] = {
        "id": rule.id,
        "status": rule.status.value,
        "standing": rule.status_on(on).value,
        "level": each.level,
        "comparison": assessment.comparison.value,
        "position": assessment.position.value,
        "verdict": assessment.verdict.value,
        "reason": assessment.reason,
        "headroom": None if assessment.headroom is None else str(assessment.headroom),
        "evidence": rule.evidence.value,
    }
    if isinstance(assessment, ThresholdAssessment):
        record["threshold_flop"] = encode_flop(assessment.threshold_flop)
    else:
        record["threshold_flop_per_s"] = encode_flop(assessment.threshold_flop_per_s)
    return record


def _iso(date: dt.date | None) -> str | None:
    return None if date is None else date.isoformat()
