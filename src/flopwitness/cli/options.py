"""Options that several verbs share, and how their text becomes values."""

import datetime as dt
import functools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from flopwitness.catalogue.chips import Precision
from flopwitness.catalogue.rules import Rule, RuleCatalogue
from flopwitness.foundation.clock import Clock, SystemClock, format_utc
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.units import parse_flop
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.format_names import FORMAT_NAMES
from flopwitness.measure.sources.source import ColumnMap, ReadOptions

__all__ = [
    "TABLE_FORMAT",
    "FiniteRange",
    "WholeRange",
    "choose_rules",
    "columns_option",
    "format_option",
    "json_option",
    "known_formats",
    "on_option",
    "option_columns",
    "option_count",
    "option_date",
    "option_precisions",
    "option_safety",
    "option_tokens",
    "option_zone",
    "paths_argument",
    "period_option",
    "reading_options",
    "rule_option",
    "scope_option",
    "today",
    "zone_option",
]


TABLE_FORMAT: Final = "run-table"
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NO_CHANNEL: Final = {"time", "device"}
_FACTOR: Final = re.compile(
    r"(?:[0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(?:[eE]-?[0-9])?|[0-9]{1,9}/[0-9]{1,9}"
)


class FiniteRange(click.FloatRange):
    """A finite number in a range, in ASCII digits: no NaN, no infinity, no underscores."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 (click's signature)
        """The number.

        Raises:
            click.BadParameter: No such number, or out of the range.
        """
        if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
            self.fail(f"{str(value)[:40]!r} is not a number.", param, ctx)
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


class WholeRange(click.IntRange):
    """A whole number in a range, in ASCII digits: no underscores."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 (click's signature)
        """The number.

        Raises:
            click.BadParameter: No such number, or out of the range.
        """
        if isinstance(value, bool | float) or (
            isinstance(value, str) and not _WHOLE.fullmatch(value.strip())
        ):
            self.fail(f"{str(value)[:40]!r} is not a whole number.", param, ctx)
        return int(super().convert(value, param, ctx))


def option_count(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """A count of operations such as `2.5e24`, exactly; None where the option is absent.

    Raises:
        DecodeError: Not such a count; the option is named.
    """
    return None if text is None else parse_flop(text, where=parameter.opts[0])


def option_tokens(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """A count of tokens such as `1.5e13`, exactly; None where the option is absent.

    Raises:
        DecodeError: Not such a count; the option is named.
    """
    return None if text is None else parse_flop(text, where=parameter.opts[0], unit="tokens")


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
        value = Fraction(text.strip()) if _FACTOR.fullmatch(text.strip()) else Fraction(0)
    except ZeroDivisionError:
        value = Fraction(0)
    if not 0 < value <= 1:
        raise InputError(
            "not a safety factor",
            where="--safety",
            expected="a number above 0 and at most 1",
            found=repr(text[:40]),
        )
    return value


def option_zone(_: click.Context, __: click.Parameter, text: str | None) -> ZoneInfo | None:
    """A time zone of the tz database; None where the option is absent.

    Raises:
        InputError: Not such a zone.
    """
    if text is None:
        return None
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            "no such time zone",
            where="--timezone",
            expected="a name of the tz database, such as Europe/Berlin or UTC",
            found=repr(text[:80]),
        ) from None


def option_columns(_: click.Context, __: click.Parameter, text: str | None) -> ColumnMap | None:
    """A map of a plain table's columns; None where the option is absent.

    Raises:
        InputError: Not of the form NAME=COLUMN,..., or without a channel.
    """
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    named = {name.strip(): column.strip() for name, equals, column in pairs if equals}
    if len(named) < len(pairs) or not all(named) or not all(named.values()) or not named.keys() - _NO_CHANNEL:
        raise InputError(
            "no map of columns",
            where="--columns",
            expected="time=COLUMN,power_w=COLUMN,... with at least one channel, each name once",
            found=repr(text[:80]),
        )
    channels = tuple((column, name) for name, column in named.items() if name not in _NO_CHANNEL)
    return ColumnMap(time=named.get("time", ""), device=named.get("device", ""), channels=channels)


paths_argument = click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path))
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs; FLOP as decimal strings."
)


def known_formats(*, tables: bool) -> tuple[str, ...]:
    """The names that `--format` takes; a table of runs is read by `estimate` alone."""
    return (*FORMAT_NAMES, *((TABLE_FORMAT,) if tables else ()))


def format_option(*, tables: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format`, with its names in the help."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(known_formats(tables=tables)),
        help="The logs' format, where guessing fails.",
    )


scope_option = click.option(
    "--scope",
    type=click.Choice([str(scope) for scope in Scope]),
    help="What the power readings cover, where the log does not say.",
)
zone_option = click.option(
    "--timezone",
    "zone",
    callback=option_zone,
    metavar="ZONE",
    help="The time zone of times that stand without one, such as Europe/Berlin. [UTC, and told]",
)
period_option = click.option(
    "--period",
    "period_s",
    type=FiniteRange(min=0.001, max=86_400),
    metavar="SECONDS",
    help="The time from reading to reading, for logs that hold no times. [the tool's usual one, and told]",
)
columns_option = click.option(
    "--columns",
    callback=option_columns,
    metavar="MAP",
    help="How to read a plain table: time=COLUMN,power_w=COLUMN,device=COLUMN,... (channels with units).",
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All options that say how logs are to be read; the verb takes them together as `reading`."""

    @functools.wraps(command)
    def with_reading(*args: Any, **options: Any) -> Any:  # noqa: ANN401 (whatever the verb takes)
        scope = options.pop("scope")
        reading = ReadOptions(
            scope=None if scope is None else Scope(scope),
            zone=options.pop("zone"),
            period_s=options.pop("period_s"),
            columns=options.pop("columns"),
        )
        return command(*args, reading=reading, **options)

    for option in (columns_option, period_option, zone_option, scope_option):
        with_reading = option(with_reading)
    return with_reading


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


def today(context: click.Context) -> dt.date:
    """The date in UTC, from the clock in the context where one was handed in."""
    clock: Clock = (context.find_root().obj or {}).get("clock") or SystemClock()
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
