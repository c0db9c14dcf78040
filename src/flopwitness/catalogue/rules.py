"""The compute rules of the world as data: thresholds, dates, force, and how sure their wording is.

A rule is read from `rules.toml` and never from code, so that a lawyer can check it line by line. Whether a
rule is law depends on the date: an order that was rescinded did bind before, a statute that was signed may
not bind yet. What is not known stays unknown; a decoder that meets an unknown key refuses the file.
"""

import datetime as dt
import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from importlib import resources
from typing import Final

from flopwitness.foundation.errors import DecodeError, UnknownRuleError
from flopwitness.foundation.toml_table import TomlTable, decode_toml

__all__ = [
    "Comparison",
    "CountingGuidance",
    "Evidence",
    "Fallback",
    "RateThreshold",
    "RatioThreshold",
    "Rule",
    "RuleCatalogue",
    "RuleSource",
    "RuleStatus",
    "Standing",
    "Threshold",
    "TotalThreshold",
    "decode_rules",
    "load_rules",
]

_VERSION: Final = 1
_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHARE: Final = re.compile(r"([1-9][0-9]?)/([1-9][0-9]?)")
_NEAREST: Final = 3


class RuleStatus(StrEnum):
    """What a rule is, whatever the date."""

    LAW = "law"
    GUIDANCE = "guidance"
    RESCINDED = "rescinded"
    VETOED = "vetoed"
    PROPOSAL = "proposal"


class Standing(StrEnum):
    """What a rule is on one day."""

    IN_FORCE = "in force"
    NOT_YET = "not yet in force"
    ENDED = "no longer in force"
    UNKNOWN = "not known to be in force"
    GUIDANCE = "guidance, not law"
    VETOED = "vetoed, never law"
    PROPOSAL = "a proposal, not law"


class Evidence(StrEnum):
    """How the wording was checked."""

    READ = "read"
    SECONDARY = "secondary"
    RECALLED = "recalled"


class Comparison(StrEnum):
    """The sign between a total and a threshold: a total equal to it decides which law applies."""

    MORE_THAN = ">"
    AT_LEAST = ">="

    def is_met(self, amount: int | Fraction, limit: int | Fraction) -> bool:
        """Whether `amount` reaches `limit` in the sense of the sign; exact, never a float."""
        return amount > limit if self is Comparison.MORE_THAN else amount >= limit

    @property
    def words(self) -> str:
        """The sign in words."""
        return "more than" if self is Comparison.MORE_THAN else "at least"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalThreshold:
    """A limit on the total training compute of a model.

    Attributes:
        flop: The count, > 0.
        comparison: What passing it means.
        name: The level's name where a rule has several, such as `prohibited`; "" otherwise.
    """

    flop: int
    comparison: Comparison
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """What takes the place of an original model's compute that is not known.

    Attributes:
        name: For which originals, such as `original with systemic risk`.
        flop: The count of which the share is taken, > 0.
    """

    name: str
    flop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioThreshold:
    """A limit on a modification as a share of the original model's compute.

    Attributes:
        share: The share, 0 < share <= 1, exact.
        of: What it is a share of, in words.
        comparison: What passing it means.
        fallbacks: What stands in for an unknown original; none where the rule names none.
    """

    share: Fraction
    of: str
    comparison: Comparison
    fallbacks: tuple[Fallback, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateThreshold:
    """A limit on how fast a cluster could compute.

    Attributes:
        flop_per_s: The rate [operations/s], > 0.
        comparison: What passing it means.
    """

    flop_per_s: int
    comparison: Comparison


Threshold = TotalThreshold | RatioThreshold | RateThreshold


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingGuidance:
    """How a rule wants compute to be counted.

    Attributes:
        methods: The accepted methods, in words and formulas.
        includes: What is counted.
        tolerance_ppm: The accepted error either way [parts per million].
    """

    methods: tuple[str, ...]
    includes: tuple[str, ...]
    tolerance_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSource:
    """Where the entry was taken from.

    Attributes:
        title: The document.
        url: Its address.
        date: When it was opened.
    """

    title: str
    url: str
    date: dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule about training compute.

    Attributes:
        id: Its stable name in this catalogue.
        status: What it is, whatever the date.
        jurisdiction: Where it applies.
        title: Its short title for a reader.
        citation: Where it stands.
        counts: What is counted towards the threshold.
        binds: Whom it binds.
        unit: The operations that it counts, in its own words.
        effect: What follows from passing the threshold.
        evidence: How the wording was checked.
        source: Where it was taken from.
        conditions: What must hold beside the threshold and cannot be judged here; "" where nothing.
        notes: What a reader must know before relying on the entry.
        adopted: When it was adopted; None where unknown or never.
        in_force_from: The first day on which it applies; None where unknown or never.
        in_force_until: The first day on which it no longer applies; None where it still does.
        thresholds: Its limits, lowest total first; none for guidance on counting.
        counting: How to count; None where the rule does not say.
    """

    id: str
    status: RuleStatus
    jurisdiction: str
    title: str
    citation: str
    counts: str
    binds: str
    unit: str
    effect: str
    evidence: Evidence
    source: RuleSource
    conditions: str = ""
    notes: tuple[str, ...] = ()
    adopted: dt.date | None = None
    in_force_from: dt.date | None = None
    in_force_until: dt.date | None = None
    thresholds: tuple[Threshold, ...] = ()
    counting: CountingGuidance | None = None

    def status_on(self, on: dt.date) -> Standing:
        """What the rule is on the day `on`; a rescinded order was in force between its dates."""
        if self.status is RuleStatus.VETOED:
            return Standing.VETOED
        if self.status is RuleStatus.PROPOSAL:
            return Standing.PROPOSAL
        if self.in_force_until is not None and on >= self.in_force_until:
            return Standing.ENDED
        if self.in_force_from is None:
            return Standing.UNKNOWN
        if on < self.in_force_from:
            return Standing.NOT_YET
        return Standing.GUIDANCE if self.status is RuleStatus.GUIDANCE else Standing.IN_FORCE

    @property
    def totals(self) -> tuple[TotalThreshold, ...]:
        """The limits on a total, lowest first."""
        return tuple(level for level in self.thresholds if isinstance(level, TotalThreshold))

    @property
    def ratio(self) -> RatioThreshold | None:
        """The limit on a modification; None where there is none."""
        return next((level for level in self.thresholds if isinstance(level, RatioThreshold)), None)

    @property
    def rate(self) -> RateThreshold | None:
        """The limit on a cluster's rate; None where there is none."""
        return next((level for level in self.thresholds if isinstance(level, RateThreshold)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCatalogue:
    """All rules that are known, in the order of the file.

    Attributes:
        rules: The rules; no two share an id.
    """

    rules: tuple[Rule, ...]

    def find(self, rule_id: str) -> Rule:
        """The rule of this id.

        Raises:
            UnknownRuleError: There is none; the nearest ids are named.
        """
        for rule in self.rules:
            if rule.id == rule_id:
                return rule
        known = [rule.id for rule in self.rules]
        near = difflib.get_close_matches(rule_id, known, n=_NEAREST, cutoff=0.4) or known
        raise UnknownRuleError(
            "no such rule", where="rule", expected="one of " + ", ".join(near), found=repr(rule_id[:80])
        )

    def in_force(self, on: dt.date) -> tuple[Rule, ...]:
        """The laws and orders in force on the day `on`; no guidance, nothing vetoed or proposed."""
        return tuple(rule for rule in self.rules if rule.status_on(on) is Standing.IN_FORCE)

    def binding_and_guidance(self, on: dt.date) -> tuple[Rule, ...]:
        """The laws in force on the day `on`, and the guidance that was out by then."""
        shown = (Standing.IN_FORCE, Standing.GUIDANCE)
        return tuple(rule for rule in self.rules if rule.status_on(on) in shown)


def load_rules() -> RuleCatalogue:
    """The catalogue that comes with this package."""
    path = resources.files("flopwitness.catalogue") / "rules.toml"
    return decode_rules(path.read_bytes(), where="rules.toml")


def decode_rules(data: bytes, *, where: str = "") -> RuleCatalogue:
    """The rules of a TOML file in the form of `rules.toml`.

    Args:
        data: TOML 1.0 in UTF-8.
        where: The place to name in an error.

    Raises:
        DecodeError: Not TOML; an unknown or missing key; a wrong type; a date that is no TOML date; a count
            that is no decimal string; two rules of one id; dates out of order; no source.
    """
    top = decode_toml(data, where=where)
    version = top.integer("version")
    if version != _VERSION:
        raise DecodeError("unknown version", where=where, expected=str(_VERSION), found=str(version))
    rules = tuple(_decode_rule(table) for table in top.tables("rules"))
    top.close()
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise DecodeError("two rules of one id", where=where, found=rule.id)
        seen.add(rule.id)
    return RuleCatalogue(rules=rules)


def _decode_rule(table: TomlTable) -> Rule:
    rule_id = table.text("id")
    if not _ID.fullmatch(rule_id):
        raise table.error("not an id", expected="lower case and hyphens", found=rule_id)
    table.path = f"{table.path} ({rule_id})"
    rule = Rule(
        id=rule_id,
        status=table.member("status", RuleStatus),
        jurisdiction=table.text("jurisdiction"),
        title=table.text("title"),
        citation=table.text("citation"),
        counts=table.text("counts"),
        binds=table.text("binds"),
        unit=table.text("unit"),
        effect=table.text("effect"),
        evidence=table.member("evidence", Evidence),
        source=_decode_source(table.table("source")),
        conditions=table.optional_text("conditions"),
        notes=table.texts("notes"),
        adopted=table.optional_date("adopted"),
        in_force_from=table.optional_date("in_force_from"),
        in_force_until=table.optional_date("in_force_until"),
        thresholds=tuple(_decode_threshold(entry) for entry in table.tables("thresholds")),
        counting=_decode_counting(table.table("counting")) if table.has("counting") else None,
    )
    table.close()
    _check_rule(rule, where=table.place())
    return rule


def _check_rule(rule: Rule, *, where: str) -> None:
    start, end = rule.in_force_from, rule.in_force_until
    if rule.status is RuleStatus.RESCINDED and end is None:
        raise DecodeError("a rescinded rule without its end", where=where, expected="in_force_until")
    if rule.status in (RuleStatus.VETOED, RuleStatus.PROPOSAL) and (start or end):
        raise DecodeError("dates of force on a rule that never was law", where=where, found=rule.status)
    if start and end and start >= end:
        raise DecodeError("dates out of order", where=where, expected=f"after {start}", found=str(end))
    counts = [level.flop for level in rule.totals]
    if counts != sorted(set(counts)):
        raise DecodeError("levels out of order", where=where, expected="the lowest total first")
    if len(counts) > 1 and not all(level.name for level in rule.totals):
        raise DecodeError("several levels without names", where=where, expected="a name for each")
    if not rule.thresholds and rule.counting is None:
        raise DecodeError("a rule that limits nothing", where=where, expected="thresholds or counting")


def _decode_source(table: TomlTable) -> RuleSource:
    source = RuleSource(title=table.text("title"), url=table.text("url"), date=table.date("date"))
    table.close()
    if not source.url.startswith("https://"):
        raise table.error("not an address", expected="https://...", found=source.url)
    return source


def _decode_threshold(table: TomlTable) -> Threshold:
    kind = table.text("kind")
    comparison = table.member("comparison", Comparison)
    threshold: Threshold
    if kind == "total":
        threshold = TotalThreshold(
            flop=table.positive_count("flop"), comparison=comparison, name=table.optional_text("name")
        )
    elif kind == "rate":
        threshold = RateThreshold(flop_per_s=table.positive_count("flop_per_s"), comparison=comparison)
    elif kind == "ratio":
        threshold = RatioThreshold(
            share=_decode_share(table),
            of=table.text("of"),
            comparison=comparison,
            fallbacks=_decode_fallbacks(table.tables("fallbacks")),
        )
    else:
        raise table.error("unknown kind of threshold", expected="total, ratio or rate", found=kind)
    table.close()
    return threshold


def _decode_share(table: TomlTable) -> Fraction:
    text = table.text("share")
    match = _SHARE.fullmatch(text)
    share = Fraction(int(match[1]), int(match[2])) if match else Fraction(0)
    if not 0 < share <= 1:
        raise table.error("not a share", expected="a fraction such as 1/3", found=repr(text))
    return share


def _decode_fallbacks(tables: tuple[TomlTable, ...]) -> tuple[Fallback, ...]:
    fallbacks = tuple(Fallback(name=each.text("name"), flop=each.positive_count("flop")) for each in tables)
    for each in tables:
        each.close()
    return fallbacks


def _decode_counting(table: TomlTable) -> CountingGuidance:
    guidance = CountingGuidance(
        methods=table.texts("methods"),
        includes=table.texts("includes"),
        tolerance_ppm=table.integer("tolerance_ppm"),
    )
    table.close()
    if not 0 <= guidance.tolerance_ppm <= 1_000_000:  # noqa: PLR2004 (a whole in parts per million)
        found = str(guidance.tolerance_ppm)
        raise table.error("not a tolerance", expected="0 to 1,000,000 ppm", found=found)
    return guidance
