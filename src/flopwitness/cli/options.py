"""Options that several verbs share, and how their text becomes values."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

import click

from flopwitness.catalogue.chips import Precision
from flopwitness.catalogue.rules import Rule, RuleCatalogue
from flopwitness.foundation.clock import Clock, format_utc
from flopwitness.foundation.errors import InputError
from flopwitness.measure.samples import Scope

__all__ = [
    "choose_rules",
    "format_option",
    "json_option",
    "on_option",
    "option_date",
    "option_precisions",
    "option_safety",
    "paths_argument",
    "rule_option",
    "scope_option",
    "today",
]


def option_date(_: click.Context, __: click.Parameter, text: str | None) -> dt.date | None:
    """A date in ISO form; None where the option is absent.

    Raises:
        InputError: Not such a date.
    """
    if text is None:
        return None
    try:
        date = dt.date.fromisoformat(text)
    except ValueError:
        date = None
    if date is None or date.isoformat() != text:
        raise InputError(
            "not a date", where="--on", expected="a date such as 2026-01-31", found=repr(text[:80])
        )
    return date


def option_precisions(_: click.Context, __: click.Parameter, text: str | None) -> tuple[Precision, ...]:
    """Precisions separated by commas, in any case; none where the option is absent.

    Raises:
        InputError: A word that names no precision.
    """
    names = [part.strip().casefold() for part in (text or "").split(",") if part.strip()]
    for name in names:
        if name not in tuple(Precision):
            raise InputError(
                "no such precision", where="--precision", expected=", ".join(Precision), found=name[:40]
            )
    return tuple(dict.fromkeys(Precision(name) for name in names))


def option_safety(_: click.Context, __: click.Parameter, text: str) -> Fraction:
    """The safety factor as an exact fraction.

    Raises:
        InputError: Not a number above 0 and at most 1.
    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise InputError(
            "not a safety factor",
            where="--safety",
            expected="a number above 0 and at most 1",
            found=repr(text[:40]),
        )
    return value


paths_argument = click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path))
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs; FLOP as decimal strings."
)
format_option = click.option(
    "--format", "format_name", metavar="NAME", help="The logs' format, where guessing fails."
)
scope_option = click.option(
    "--scope",
    type=click.Choice([str(scope) for scope in Scope]),
    help="What the power readings cover, where the log does not say.",
)
rule_option = click.option(
    "--rule",
    "rule_ids",
    multiple=True,
    metavar="ID",
    help="A rule to hold the answer against; may be repeated. [laws in force]",
)
on_option = click.option(
    "--on", callback=option_date, metavar="DATE", help="The date whose rules count. [today]"
)


def today(clock: Clock) -> dt.date:
    """The date in UTC that the clock shows."""
    return dt.date.fromisoformat(format_utc(clock.now().utc_ns)[:10])


def choose_rules(catalogue: RuleCatalogue, rule_ids: tuple[str, ...], on: dt.date) -> tuple[Rule, ...]:
    """The named rules, or the laws in force on a date where none is named.

    Raises:
        UnknownRuleError: A name that no rule has.
        InputError: A named rule that a run's total cannot be held against.
    """
    if not rule_ids:
        return catalogue.in_force(on)
    rules = tuple(dict.fromkeys(catalogue.find(rule_id) for rule_id in rule_ids))
    for rule in rules:
        if not rule.totals:
            raise InputError(
                "this rule sets no limit on a total of operations",
                where=f"--rule {rule.id}",
                expected="a rule with a threshold in FLOP",
                found=rule.title,
            )
    return rules
