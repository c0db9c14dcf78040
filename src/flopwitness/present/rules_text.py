"""The compute rules and what was found about them, in words that a lawyer can read.

The worst news stands first. A rule that is not in force says so before anything else, and every rule says
how sure its wording is and where it can be looked up.
"""

import datetime as dt
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.accounting.thresholds import ComputeRange, RateAssessment, ThresholdAssessment
from flopwitness.catalogue.rules import (
    Evidence,
    RateThreshold,
    RatioThreshold,
    Rule,
    RuleCatalogue,
    RuleStatus,
    Standing,
    Threshold,
    TotalThreshold,
)
from flopwitness.foundation.units import format_flop
from flopwitness.foundation.verdict import Finding, Position, Verdict
from flopwitness.present.safe_text import escape_line

__all__ = [
    "AssessedRule",
    "describe_amount",
    "describe_evidence",
    "describe_range",
    "describe_standing",
    "describe_threshold",
    "is_shown_by_default",
    "rank_assessed",
    "render_assessments",
    "render_rule",
    "render_rule_list",
    "render_rules_page",
    "say_no_law",
    "warn_of_standing",
]

_WIDTH: Final = 100
_LABEL: Final = 12
_MOST_DIGITS: Final = 4

_GROUPS: Final[dict[RuleStatus, tuple[str, str]]] = {
    RuleStatus.LAW: ("Laws", "Binding from the date given."),
    RuleStatus.GUIDANCE: ("Guidance", "Not law: how an authority reads the law."),
    RuleStatus.RESCINDED: ("Rescinded", "They bound between the dates given, and no longer do."),
    RuleStatus.VETOED: ("Vetoed", "Never in force: passed by a parliament and refused."),
    RuleStatus.PROPOSAL: ("Proposals", "Not in force: nobody is bound."),
}
_SHOWN_BY_DEFAULT: Final = (RuleStatus.LAW, RuleStatus.GUIDANCE)
_BADNESS: Final = (Verdict.INCONSISTENT, Verdict.INCONCLUSIVE, Verdict.CONSISTENT)
_POSITIONS: Final = (Position.LIKELY_ABOVE, Position.CANNOT_TELL, Position.BELOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedRule:
    """A rule and where a total lies beside one of its limits."""

    rule: Rule
    assessment: ThresholdAssessment | RateAssessment

    @property
    def level(self) -> str:
        """The limit's name where the rule has several; "" otherwise."""
        return self.assessment.level if isinstance(self.assessment, ThresholdAssessment) else ""


def rank_assessed(assessed: Sequence[AssessedRule]) -> tuple[AssessedRule, ...]:
    """The assessments, worst first, otherwise in the order given."""
    return tuple(
        sorted(
            assessed,
            key=lambda each: (
                _BADNESS.index(each.assessment.verdict),
                _POSITIONS.index(each.assessment.position),
            ),
        )
    )


def describe_amount(flop: int) -> str:
    """The count, exact where four digits suffice, else after the word "about"."""
    for digits in range(1, _MOST_DIGITS + 1):
        written = format_flop(flop, digits=digits)
        mantissa, _, exponent = written.partition("e")
        whole, _, decimals = mantissa.partition(".")
        if int(whole + decimals) * 10 ** (int(exponent or 0) - len(decimals)) == flop:
            return written
    return f"about {format_flop(flop, digits=_MOST_DIGITS)}"


def describe_range(compute: ComputeRange) -> str:
    """The range in words, with its unit."""
    low = describe_amount(compute.low_flop)
    if compute.upper_flop is None:
        return f"at least {low} FLOP, and nothing known to bound it"
    if compute.upper_flop == compute.low_flop:
        return f"{low} FLOP"
    return f"{low} to {describe_amount(compute.upper_flop)} FLOP"


def describe_threshold(threshold: Threshold) -> str:
    """The limit in words, with its unit."""
    sign = threshold.comparison.words
    if isinstance(threshold, TotalThreshold):
        level = f"{threshold.name}: " if threshold.name else ""
        return f"{level}{sign} {describe_amount(threshold.flop)} FLOP"
    if isinstance(threshold, RateThreshold):
        return f"{sign} {describe_amount(threshold.flop_per_s)} operations per second"
    return f"{sign} {threshold.share} of {threshold.of}"


def describe_evidence(evidence: Evidence) -> str:
    """How sure the wording is, as a statement."""
    return {
        Evidence.READ: "read in the text, or in a faithful copy of it",
        Evidence.SECONDARY: "second hand: taken from summaries, the text itself was not read",
        Evidence.RECALLED: "not verified: from memory, no text was found",
    }[evidence]


def describe_standing(rule: Rule, on: dt.date) -> str:
    """What the rule is on the day `on`, with the date that decides it."""
    standing = rule.status_on(on)
    if standing is Standing.IN_FORCE and rule.in_force_from:
        end = rule.in_force_until
        until = f", until {_day(end)}" if end else ""
        return f"in force since {_day(rule.in_force_from)}{until}"
    if standing is Standing.NOT_YET and rule.in_force_from:
        return f"not in force yet: applies from {_day(rule.in_force_from)}"
    if standing is Standing.ENDED and rule.in_force_until:
        how = "rescinded" if rule.status is RuleStatus.RESCINDED else "it ended"
        return f"not in force: {how} on {_day(rule.in_force_until)}"
    if standing is Standing.UNKNOWN:
        return "not known to be in force: its date is unknown"
    if standing is Standing.GUIDANCE:
        return "not in force as law: guidance, which binds nobody"
    return f"not in force: {standing.value}"


def warn_of_standing(rule: Rule, on: dt.date) -> str:
    """A sentence for everything that is no law in force on the day `on`; "" for a law in force."""
    if rule.status_on(on) is Standing.IN_FORCE:
        return ""
    return _sentence(describe_standing(rule, on))


def say_no_law(on: dt.date) -> str:
    """A sentence for a day on which no rule was law."""
    return f"No compute rule in this catalogue was in force on {_day(on)}."


def is_shown_by_default(rule: Rule, on: dt.date) -> bool:
    """Whether a list shows the rule unasked: laws, guidance, and what was in force on the day `on`."""
    return rule.status in _SHOWN_BY_DEFAULT or rule.status_on(on) is Standing.IN_FORCE


def render_rule_list(catalogue: RuleCatalogue, on: dt.date, *, show_all: bool = False) -> str:
    """The rules grouped by what they are, laws first.

    Args:
        catalogue: The rules.
        on: The day for which "in force" is meant.
        show_all: Whether to list what never was law or no longer is.
    """
    lines = [f"Compute rules on {_day(on)}"]
    hidden = 0
    for status, (name, meaning) in _GROUPS.items():
        rules = [rule for rule in catalogue.rules if rule.status is status]
        shown = [rule for rule in rules if show_all or is_shown_by_default(rule, on)]
        hidden += len(rules) - len(shown)
        if shown:
            lines += ["", f"{name}. {meaning}"]
        for rule in shown:
            lines += ["", f"  {rule.id}", *_paragraph(_one_rule(rule, on), indent=4)]
    if hidden:
        lines += [
            "",
            f"{hidden} more are no law on that day (rescinded, vetoed or proposed): --all lists them.",
        ]
    return "\n".join(lines)


def render_rule(rule: Rule, on: dt.date) -> str:
    """Everything that the catalogue knows about one rule; its standing is the first line."""
    lines = [_sentence(describe_standing(rule, on)), f"{rule.title} ({rule.id}), {rule.jurisdiction}", ""]
    for label, text in _facts(rule):
        lines += _labelled(label, text)
    return "\n".join(lines)


def render_assessments(
    assessed: Sequence[AssessedRule], *, on: dt.date, subject: str, findings: Sequence[Finding] = ()
) -> str:
    """Where a total lies beside each rule, worst first.

    Args:
        assessed: The rules and what was found.
        on: The day for which "in force" is meant.
        subject: What was compared, such as `a total of 2e25 FLOP, stated as exact`.
        findings: What the reader must know about the total.
    """
    lines: list[str] = []
    for each in rank_assessed(assessed):
        standing = each.rule.status_on(on)
        if standing is not Standing.IN_FORCE:
            lines += _paragraph(_sentence(f"{describe_standing(each.rule, on)} ({each.rule.id})"))
        lines += [*_paragraph(_judgement(each)), *_basis(each.rule), ""]
    if not assessed:
        lines += [say_no_law(on), ""]
    lines += _paragraph(f"Compared: {subject}, with the rules as they stood on {_day(on)}.")
    for finding in findings:
        lines += _paragraph(f"{finding.code}  {finding.message}", indent=2)
    return "\n".join(escape_line(line) for line in lines)


def render_rules_page(catalogue: RuleCatalogue) -> str:
    """The catalogue as the Markdown page `docs/rules.md`."""
    lines = [
        "# Compute rules",
        "",
        "Written from `src/flopwitness/catalogue/rules.toml`; a test compares the two.",
        "`flopwitness rules list` shows what was in force on a day. This page is not legal advice.",
    ]
    for status, (name, meaning) in _GROUPS.items():
        rules = [rule for rule in catalogue.rules if rule.status is status]
        if rules:
            lines += ["", f"## {name}", "", meaning]
        for rule in rules:
            lines += ["", f"### {rule.title}", "", f"`{rule.id}`, {rule.jurisdiction}", ""]
            lines += [f"* **{label}**: {_escape(text)}" for label, text in _facts(rule)]
    return "\n".join(lines) + "\n"


def _facts(rule: Rule) -> list[tuple[str, str]]:
    """The labelled facts of a rule, in reading order; what is unknown is said to be unknown."""
    facts = [("threshold", describe_threshold(level)) for level in rule.thresholds]
    facts += _fallback_facts(rule.ratio)
    if rule.counting is not None:
        facts += [("method", method) for method in rule.counting.methods]
        facts.append(("includes", ", ".join(rule.counting.includes)))
        facts.append(("tolerance", f"{rule.counting.tolerance_ppm / 10_000:g} % either way"))
    facts += [("counts", rule.counts), ("in units of", rule.unit), ("binds", rule.binds)]
    facts.append(("effect", rule.effect))
    if rule.conditions:
        facts.append(("also needs", rule.conditions))
    facts += [("adopted", _day(rule.adopted)), ("applies", _period(rule))]
    facts += [("stands in", rule.citation), ("wording", describe_evidence(rule.evidence))]
    facts.append(("source", _source(rule)))
    return facts + [("note", note) for note in rule.notes]


def _fallback_facts(ratio: RatioThreshold | None) -> list[tuple[str, str]]:
    fallbacks = ratio.fallbacks if ratio else ()
    return [
        ("if unknown", f"{each.name}: {ratio.share} of {describe_amount(each.flop)} FLOP")
        for each in fallbacks
        if ratio
    ]


def _one_rule(rule: Rule, on: dt.date) -> str:
    limits = "; ".join(describe_threshold(level) for level in rule.thresholds) or "sets no threshold"
    verified = (
        "" if rule.evidence is Evidence.READ else f" Its wording is {describe_evidence(rule.evidence)}."
    )
    return f"{rule.title}: {limits}. {_sentence(describe_standing(rule, on))}{verified}"


def _judgement(each: AssessedRule) -> str:
    """One line: the rule, its limit, the position, the reason."""
    assessment = each.assessment
    sign = assessment.comparison.words
    if isinstance(assessment, RateAssessment):
        limit = f"{sign} {describe_amount(assessment.threshold_flop_per_s)} operations per second"
    else:
        level = f"{assessment.level}, " if assessment.level else ""
        limit = f"{level}{sign} {describe_amount(assessment.threshold_flop)} FLOP"
    position = {
        Position.BELOW: "below",
        Position.LIKELY_ABOVE: "likely above",
        Position.CANNOT_TELL: "cannot tell",
    }[assessment.position]
    if assessment.verdict is Verdict.INCONSISTENT:
        position = "above"
    return f"{each.rule.title}, {limit}: {position}. {assessment.reason}"


def _basis(rule: Rule) -> list[str]:
    """What a reader needs to weigh the line above it."""
    lines = [*_labelled("counts", f"{rule.counts}, in {rule.unit}"), *_labelled("effect", rule.effect)]
    if rule.conditions:
        lines += _labelled("also needs", rule.conditions)
    lines += _labelled("wording", describe_evidence(rule.evidence))
    return [*lines, *_labelled("source", f"{rule.citation}; {_source(rule)}")]


def _source(rule: Rule) -> str:
    return f"{rule.source.title}, {rule.source.url}, opened on {_day(rule.source.date)}"


def _period(rule: Rule) -> str:
    if rule.status in (RuleStatus.VETOED, RuleStatus.PROPOSAL):
        return "never" if rule.status is RuleStatus.VETOED else "not, as far as is known"
    end = f", no longer from {_day(rule.in_force_until)}" if rule.in_force_until else ""
    return f"from {_day(rule.in_force_from)}{end}"


def _day(date: dt.date | None) -> str:
    return "unknown" if date is None else f"{date.day} {date:%B} {date.year}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _escape(text: str) -> str:
    """The text for Markdown: a bare star would start emphasis."""
    return text.replace("*", r"\*")


def _paragraph(text: str, *, indent: int = 0) -> list[str]:
    lead = " " * indent
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=lead,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {label:<{_LABEL}}",
        subsequent_indent=" " * (_LABEL + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
