"""Options become values, or an error that names the option."""

import datetime as dt
from fractions import Fraction

import click
import pytest

from flopwitness.catalogue.chips import Precision
from flopwitness.catalogue.rules import load_rules
from flopwitness.cli.options import choose_rules, option_date, option_precisions, option_safety, today
from flopwitness.foundation.clock import FrozenClock, parse_utc
from flopwitness.foundation.errors import InputError, UnknownRuleError

CONTEXT = click.Context(click.Command("estimate"))
OPTION = click.Option(["--x"])


def test_a_date_is_read() -> None:
    assert option_date(CONTEXT, OPTION, "2026-01-31") == dt.date(2026, 1, 31)
    assert option_date(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize(
    "text", ["", "2026", "20260131", "31.1.2026", "2026-02-30", "2026-W05-6", "today", "2026-1-31"]
)
def test_other_dates_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_date(CONTEXT, OPTION, text)
    assert caught.value.where == "--on"


@pytest.mark.parametrize(
    ("text", "precisions"),
    [
        (None, ()),
        ("", ()),
        ("bf16", (Precision.BF16,)),
        (" BF16 , fp8,,bf16", (Precision.BF16, Precision.FP8)),
    ],
)
def test_precisions_are_read(text: str | None, precisions: tuple[Precision, ...]) -> None:
    assert option_precisions(CONTEXT, OPTION, text) == precisions


@pytest.mark.parametrize("text", ["fp3", "bf16;fp8", "bf16,half", "16"])
def test_other_precisions_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_precisions(CONTEXT, OPTION, text)
    assert caught.value.where == "--precision"
    assert "bf16" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "value"), [("0.3", Fraction(3, 10)), ("1", Fraction(1)), ("1/3", Fraction(1, 3))]
)
def test_a_safety_factor_is_exact(text: str, value: Fraction) -> None:
    assert option_safety(CONTEXT, OPTION, text) == value


@pytest.mark.parametrize("text", ["0", "-0.5", "1.01", "nan", "inf", "", "half", "1/0"])
def test_other_safety_factors_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_safety(CONTEXT, OPTION, text)
    assert caught.value.where == "--safety"


def test_today_is_in_utc() -> None:
    assert today(FrozenClock(utc_ns=parse_utc("2026-06-01T00:30:00+02:00"))) == dt.date(2026, 5, 31)


def test_named_rules_are_taken_once_and_in_order() -> None:
    catalogue = load_rules()
    chosen = choose_rules(catalogue, ("us-ca-sb53", "eu-ai-act-art51", "us-ca-sb53"), dt.date(2026, 6, 1))
    assert [rule.id for rule in chosen] == ["us-ca-sb53", "eu-ai-act-art51"]


def test_without_a_name_the_laws_of_the_day_are_taken() -> None:
    catalogue = load_rules()
    early, late = (choose_rules(catalogue, (), dt.date(year, 6, 1)) for year in (2022, 2026))
    assert early == ()
    assert "eu-ai-act-art51" in {rule.id for rule in late}


def test_rules_that_cannot_be_answered_are_refused() -> None:
    catalogue = load_rules()
    with pytest.raises(UnknownRuleError):
        choose_rules(catalogue, ("eu-ai-act-art52",), dt.date(2026, 6, 1))
    with pytest.raises(InputError) as caught:
        choose_rules(catalogue, ("eu-gpai-modifier",), dt.date(2026, 6, 1))
    assert caught.value.where == "--rule eu-gpai-modifier"
