import datetime as dt
from fractions import Fraction

import pytest

from flopwitness.catalogue.rules import (
    Comparison,
    Evidence,
    Fallback,
    RateThreshold,
    RatioThreshold,
    Rule,
    RuleCatalogue,
    RuleStatus,
    Standing,
    TotalThreshold,
    decode_rules,
    load_rules,
)
from flopwitness.foundation.errors import DecodeError, UnknownRuleError

CATALOGUE = load_rules()

SMALL = """
version = 1
[[rules]]
id = "a-rule"
status = "law"
jurisdiction = "Utopia"
title = "A rule"
citation = "Art. 1"
counts = "training"
binds = "all"
unit = "operations"
effect = "A notice."
evidence = "read"
in_force_from = 2026-01-01
source = { title = "t", url = "https://example.org", date = 2026-02-01 }
[[rules.thresholds]]
kind = "total"
flop = "100"
comparison = ">"
"""


def changed(old: str, new: str) -> bytes:
    assert old in SMALL
    return SMALL.replace(old, new).encode()


def ids(rules: tuple[Rule, ...]) -> list[str]:
    return [rule.id for rule in rules]


@pytest.mark.parametrize(
    ("rule_id", "comparison", "flop"),
    [
        ("eu-ai-act-art51", Comparison.MORE_THAN, 10**25),
        ("eu-gpai-indicative", Comparison.MORE_THAN, 10**23),
        ("us-ca-sb53", Comparison.MORE_THAN, 10**26),
        ("us-ny-raise", Comparison.MORE_THAN, 10**26),
        ("us-eo14110-model", Comparison.MORE_THAN, 10**26),
        ("us-eo14110-bio", Comparison.MORE_THAN, 10**23),
        ("us-bis-4e091", Comparison.AT_LEAST, 10**26),
        ("us-ca-sb1047", Comparison.MORE_THAN, 10**26),
        ("us-il-sb315", Comparison.MORE_THAN, 10**26),
        ("kr-ai-basic-act", Comparison.AT_LEAST, 10**26),
    ],
)
def test_the_thresholds_on_a_total(rule_id: str, comparison: Comparison, flop: int) -> None:
    assert CATALOGUE.find(rule_id).totals == (TotalThreshold(flop=flop, comparison=comparison),)


def test_the_other_kinds_of_threshold() -> None:
    assert CATALOGUE.find("eu-gpai-modifier").ratio == RatioThreshold(
        share=Fraction(1, 3),
        of="the training compute of the original model",
        comparison=Comparison.MORE_THAN,
        fallbacks=(
            Fallback(name="original with systemic risk", flop=10**25),
            Fallback(name="any other original", flop=10**23),
        ),
    )
    assert CATALOGUE.find("us-eo14110-cluster").rate == RateThreshold(
        flop_per_s=10**20, comparison=Comparison.AT_LEAST
    )
    levels = CATALOGUE.find("miri-draft-treaty").totals
    assert [(level.name, level.flop) for level in levels] == [("monitored", 10**22), ("prohibited", 10**24)]
    counting = CATALOGUE.find("eu-gpai-counting")
    assert counting.thresholds == ()
    assert counting.counting is not None
    assert counting.counting.tolerance_ppm == 300_000


def test_every_rule_of_each_kind_is_there_once() -> None:
    by_status = {status: {r.id for r in CATALOGUE.rules if r.status is status} for status in RuleStatus}
    assert by_status == {
        RuleStatus.LAW: {"eu-ai-act-art51", "us-ca-sb53", "us-ny-raise", "kr-ai-basic-act"},
        RuleStatus.GUIDANCE: {"eu-gpai-indicative", "eu-gpai-modifier", "eu-gpai-counting"},
        RuleStatus.RESCINDED: {
            "us-eo14110-model",
            "us-eo14110-bio",
            "us-eo14110-cluster",
            "us-bis-4e091",
        },
        RuleStatus.VETOED: {"us-ca-sb1047"},
        RuleStatus.PROPOSAL: {"us-il-sb315", "miri-draft-treaty"},
    }


def test_what_was_not_found_is_marked_as_recalled() -> None:
    assert [r.id for r in CATALOGUE.rules if r.evidence is Evidence.RECALLED] == ["eu-gpai-counting"]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2023-10-29", []),
        ("2024-06-01", ["us-eo14110-model", "us-eo14110-bio", "us-eo14110-cluster"]),
        ("2025-01-19", ["us-eo14110-model", "us-eo14110-bio", "us-eo14110-cluster", "us-bis-4e091"]),
        ("2025-01-20", ["us-bis-4e091"]),
        ("2025-08-01", []),
        ("2025-08-02", ["eu-ai-act-art51"]),
        ("2026-01-01", ["eu-ai-act-art51", "us-ca-sb53"]),
        ("2026-12-31", ["eu-ai-act-art51", "us-ca-sb53", "kr-ai-basic-act"]),
        ("2027-01-01", ["eu-ai-act-art51", "us-ca-sb53", "us-ny-raise", "kr-ai-basic-act"]),
    ],
)
def test_the_laws_in_force_depend_on_the_day(day: str, expected: list[str]) -> None:
    assert ids(CATALOGUE.in_force(dt.date.fromisoformat(day))) == expected


def test_guidance_is_added_from_its_day_and_nothing_else() -> None:
    day = dt.date(2026, 3, 1)
    added = set(ids(CATALOGUE.binding_and_guidance(day))) - set(ids(CATALOGUE.in_force(day)))
    assert added == {"eu-gpai-indicative", "eu-gpai-modifier", "eu-gpai-counting"}
    assert CATALOGUE.binding_and_guidance(dt.date(2025, 7, 17)) == ()


@pytest.mark.parametrize(
    ("rule_id", "day", "expected"),
    [
        ("eu-ai-act-art51", "2025-08-01", Standing.NOT_YET),
        ("eu-ai-act-art51", "2025-08-02", Standing.IN_FORCE),
        ("us-eo14110-model", "2023-10-29", Standing.NOT_YET),
        ("us-eo14110-model", "2024-06-01", Standing.IN_FORCE),
        ("us-eo14110-model", "2025-01-20", Standing.ENDED),
        ("eu-gpai-modifier", "2026-01-01", Standing.GUIDANCE),
        ("us-ca-sb1047", "2024-09-15", Standing.VETOED),
        ("miri-draft-treaty", "2026-01-01", Standing.PROPOSAL),
    ],
)
def test_what_a_rule_is_on_a_day(rule_id: str, day: str, expected: Standing) -> None:
    assert CATALOGUE.find(rule_id).status_on(dt.date.fromisoformat(day)) is expected


def test_a_law_without_a_known_date_is_never_assumed_to_be_in_force() -> None:
    catalogue = decode_rules(changed("in_force_from = 2026-01-01\n", ""))
    assert catalogue.rules[0].status_on(dt.date(2100, 1, 1)) is Standing.UNKNOWN
    assert catalogue.in_force(dt.date(2100, 1, 1)) == ()


def test_an_unknown_rule_names_its_nearest_neighbours() -> None:
    with pytest.raises(UnknownRuleError, match="us-ca-sb53") as caught:
        CATALOGUE.find("us-ca-sb35")
    assert caught.value.exit_status == 2
    with pytest.raises(UnknownRuleError, match="expected one of eu-ai-act-art51"):
        CATALOGUE.find("\n???")


def test_the_sign_decides_about_equality() -> None:
    assert not Comparison.MORE_THAN.is_met(10**25, 10**25)
    assert Comparison.MORE_THAN.is_met(10**25 + 1, 10**25)
    assert Comparison.AT_LEAST.is_met(10**25, 10**25)
    assert not Comparison.AT_LEAST.is_met(10**25 - 1, 10**25)
    assert (Comparison.MORE_THAN.words, Comparison.AT_LEAST.words) == ("more than", "at least")


def test_the_smallest_file_is_read() -> None:
    catalogue = decode_rules(SMALL.encode())
    assert isinstance(catalogue, RuleCatalogue)
    (rule,) = catalogue.rules
    assert (rule.id, rule.conditions, rule.notes, rule.adopted, rule.in_force_until) == (
        "a-rule",
        "",
        (),
        None,
        None,
    )
    assert rule.ratio is None
    assert rule.rate is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version = 1", "version = 2"),
        ("version = 1", "version = true"),
        ("version = 1", ""),
        ("version = 1", "version = 1\nextra = 1"),
        ('id = "a-rule"', 'id = "A Rule"'),
        ('id = "a-rule"', 'id = "a-rule"\nin_forse_from = 2026-01-01'),
        ('status = "law"', 'status = "LAW"'),
        ('status = "law"', 'status = "rescinded"'),
        ('status = "law"', 'status = "vetoed"'),
        ('status = "law"', 'status = "proposal"'),
        ('unit = "operations"\n', ""),
        ('evidence = "read"', 'evidence = "background"'),
        ("in_force_from = 2026-01-01", 'in_force_from = "2026-01-01"'),
        ("in_force_from = 2026-01-01", "in_force_from = 2026-02-30"),
        ("in_force_from = 2026-01-01", "in_force_from = 2026-01-01\nin_force_until = 2026-01-01"),
        ('source = { title = "t", url = "https://example.org", date = 2026-02-01 }\n', ""),
        ('url = "https://example.org", ', ""),
        ("https://", "http://"),
        ("date = 2026-02-01 }", "date = 2026-02-01, page = 3 }"),
        ('kind = "total"', 'kind = "sum"'),
        ('kind = "total"', 'kind = "rate"'),
        ('flop = "100"', "flop = 100"),
        ('flop = "100"', 'flop = "1e2"'),
        ('flop = "100"', 'flop = "0"'),
        ('comparison = ">"', 'comparison = "<"'),
        ('comparison = ">"', 'comparison = ">"\nfactor = 2'),
        ('[[rules.thresholds]]\nkind = "total"\nflop = "100"\ncomparison = ">"', ""),
    ],
)
def test_a_faulty_catalogue_is_refused(old: str, new: str) -> None:
    with pytest.raises(DecodeError):
        decode_rules(changed(old, new), where="rules.toml")


RATIO = 'kind = "ratio"\nshare = "{share}"\nof = "x"\ncomparison = ">"'


@pytest.mark.parametrize("share", ["0/3", "4/3", "1/0", "0.33", "1 / 3", "01/3"])
def test_a_share_must_be_an_exact_fraction_of_a_whole(share: str) -> None:
    old = 'kind = "total"\nflop = "100"\ncomparison = ">"'
    decode_rules(changed(old, RATIO.format(share="1/3")))
    with pytest.raises(DecodeError):
        decode_rules(changed(old, RATIO.format(share=share)))


@pytest.mark.parametrize(
    "levels",
    [
        [("", 100), ("", 200)],
        [("upper", 200), ("lower", 100)],
        [("one", 100), ("two", 100)],
    ],
)
def test_levels_are_named_and_ordered(levels: list[tuple[str, int]]) -> None:
    old = '[[rules.thresholds]]\nkind = "total"\nflop = "100"\ncomparison = ">"'
    new = "\n".join(
        f'[[rules.thresholds]]\nkind = "total"\nflop = "{flop}"\ncomparison = ">"'
        + (f'\nname = "{name}"' if name else "")
        for name, flop in levels
    )
    with pytest.raises(DecodeError, match="levels"):
        decode_rules(changed(old, new))


@pytest.mark.parametrize("ppm", [-1, 1_000_001])
def test_a_tolerance_lies_between_nothing_and_the_whole(ppm: int) -> None:
    text = SMALL + f'[rules.counting]\nmethods = ["m"]\nincludes = ["i"]\ntolerance_ppm = {ppm}\n'
    with pytest.raises(DecodeError, match="not a tolerance"):
        decode_rules(text.encode())


def test_two_rules_of_one_id_are_refused() -> None:
    with pytest.raises(DecodeError, match="two rules of one id"):
        decode_rules((SMALL + SMALL.replace("version = 1", "")).encode())


@pytest.mark.parametrize("data", [b"", b"version = 1\nrules = 3", b"\xff", b"[[rules]"])
def test_no_catalogue_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_rules(data)
