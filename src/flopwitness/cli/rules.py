"""`flopwitness rules`: the compute rules, listed, shown, and compared with a total."""

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from flopwitness.accounting.lineage import LineageTotal, account_lineage, decode_lineage, find_final_model
from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    SENSOR_TOLERANCE_PPM,
    ComputeRange,
    assess_levels,
    assess_modification,
    assess_rate,
)
from flopwitness.catalogue.rules import Rule, RuleCatalogue, load_rules
from flopwitness.cli.options import json_option, on_option, option_count, today
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.cli.told import tell_settings_used
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.foundation.files import read_bounded
from flopwitness.foundation.verdict import Finding, combine_verdicts
from flopwitness.present.rules_json import render_assessed, render_rule_record, render_rule_records
from flopwitness.present.rules_text import (
    AssessedRule,
    describe_amount,
    describe_range,
    is_shown_by_default,
    render_assessments,
    render_rule,
    render_rule_list,
)
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]

_LARGEST_LINEAGE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is compared with the rules."""

    has_total: bool
    sensed: ComputeRange
    other: ComputeRange
    stated_flop: int
    original_flop: int | None
    rate_flop_per_s: int | None
    subject: str
    findings: tuple[Finding, ...]


@click.group(name="rules")
def command() -> None:
    """The compute rules: list them, show one, or compare a total with them.

    A rule that was rescinded, vetoed or only proposed is never counted as law.
    """


@command.command(name="list")
@on_option
@click.option("--all", "show_all", is_flag=True, help="Also what is rescinded, vetoed or proposed.")
@json_option
@click.pass_context
def list_rules(context: click.Context, on: dt.date | None, *, show_all: bool, as_json: bool) -> int:
    """The rules, grouped by what they are: laws, guidance, and with --all everything else."""
    catalogue = load_rules()
    day = on or today(context)
    if as_json:
        shown = [rule for rule in catalogue.rules if show_all or is_shown_by_default(rule, day)]
        click.echo(encode_answer(render_rule_records(shown, day)))
    else:
        click.echo(render_rule_list(catalogue, day, show_all=show_all))
    return 0


@command.command(name="show")
@click.argument("rule_id", metavar="ID")
@on_option
@json_option
@click.pass_context
def show_rule(context: click.Context, rule_id: str, on: dt.date | None, *, as_json: bool) -> int:
    """Everything that is known about the rule ID, and how sure its wording is."""
    rule = load_rules().find(rule_id)
    day = on or today(context)
    if as_json:
        click.echo(encode_answer(render_rule_record(rule, day)))
    else:
        click.echo(render_rule(rule, day))
    return 0


@command.command(name="assess")
@click.option("--flop", callback=option_count, metavar="N", help="The compute, such as 2.5e24.")
@click.option(
    "--low", callback=option_count, metavar="N", help="The least it may be; --flop is then the most."
)
@click.option("--exact", is_flag=True, help="--flop is stated as exact: no tolerance is added.")
@click.option("--other-flop", callback=option_count, metavar="N", help="Other recorded compute of the model.")
@click.option("--lineage", type=click.Path(path_type=Path), help="A lineage file: runs, models, parents.")
@click.option("--model", help="Which model of the lineage; needed where several are nobody's parent.")
@click.option("--original-flop", callback=option_count, metavar="N", help="The original's compute.")
@click.option("--rate", callback=option_count, metavar="N", help="Chips x peak [operations/s].")
@click.option("--rule", "rule_ids", multiple=True, metavar="ID", help="A rule; the laws in force if none.")
@on_option
@json_option
@click.pass_context
def assess_total(
    context: click.Context,
    /,
    rule_ids: tuple[str, ...],
    on: dt.date | None,
    *,
    as_json: bool,
    **amounts: Any,  # noqa: ANN401 (click hands the options over by name)
) -> int:
    """Compare a total with the rules: does it stay below?

    \b
    --flop N              an estimate: 10 % are added for sensors and clocks
    --low M --flop N      between M and N; N with 10 % decides "below", M decides "likely above"
    --flop N --exact      a statement; passing a threshold contradicts "stays below"
    --lineage FILE        the sum over all runs and ancestors; exact runs are statements

    Without --rule the laws in force on the day are taken. What is rescinded, vetoed, proposed or guidance
    is compared only if it is named, and the first line then says that it is not in force. A rule about
    modifications takes the modification as --flop and its original as --original-flop; where the original
    is not given it counts as unknown.

    Exit status: 0 below every threshold, 1 a stated total is above one, 3 nobody can tell.
    """  # noqa: D301 (click reads the escape)
    settings = find_settings_used(context, environment=os.environ)
    if amounts["lineage"] is not None:
        check_settings_place(settings, [amounts["lineage"]], folder=Path.cwd())
    catalogue = load_rules()
    day = on or today(context)
    question = _ask(amounts)
    question = replace(question, findings=(*question.findings, *tell_settings_used(settings)))
    rules = _choose(catalogue, rule_ids, day, question)
    assessed = [each for rule in rules for each in _assess(rule, question)]
    verdict = combine_verdicts(each.assessment.verdict for each in assessed)
    if as_json:
        record = render_assessed(assessed, on=day, verdict=verdict, findings=question.findings)
        click.echo(encode_answer(record))
    else:
        text = render_assessments(assessed, on=day, subject=question.subject, findings=question.findings)
        click.echo(text)
    return verdict.exit_status


def _ask(amounts: dict[str, Any]) -> _Question:
    """The question that the options put together."""
    flop: int | None = amounts["flop"]
    low: int | None = amounts["low"]
    lineage = _load_lineage(amounts["lineage"], amounts["model"])
    if flop is None and lineage is None and amounts["rate"] is None:
        raise InputError("nothing to compare", where="rules assess", expected="--flop, --lineage or --rate")
    if flop is None and (low is not None or amounts["exact"]):
        raise InputError("--low and --exact describe --flop", where="rules assess", expected="--flop")
    if low is not None and amounts["exact"]:
        raise InputError("--exact leaves no room for --low", where="rules assess", expected="one of the two")
    stated_flop = lineage.stated_flop if lineage else 0
    sensed = lineage.estimated if lineage else NO_COMPUTE
    if flop is not None and amounts["exact"]:
        stated_flop += flop
    elif flop is not None:
        sensed = sensed.plus(ComputeRange(low_flop=flop if low is None else low, upper_flop=flop))
    other_flop = amounts["other_flop"] or 0
    other = ComputeRange(low_flop=other_flop, upper_flop=other_flop)
    return _Question(
        has_total=flop is not None or lineage is not None,
        sensed=sensed,
        other=other,
        stated_flop=stated_flop,
        original_flop=amounts["original_flop"],
        rate_flop_per_s=amounts["rate"],
        subject=_describe(sensed, other, stated_flop, amounts["rate"], lineage),
        findings=lineage.findings if lineage else (),
    )


def _load_lineage(path: Path | None, model_id: str | None) -> LineageTotal | None:
    if path is None:
        if model_id is not None:
            raise InputError("--model needs a lineage", where="rules assess", expected="--lineage FILE")
        return None
    data = read_bounded(path, limit_bytes=_LARGEST_LINEAGE_BYTES)
    try:
        models = decode_lineage(data, where=str(path))
        return account_lineage(models, model_id if model_id is not None else find_final_model(models))
    except DecodeError:
        raise
    except InputError as error:  # a lineage that was read and makes no sense
        raise InputError(error.message, where=str(path), expected=error.expected, found=error.found) from None


def _describe(
    sensed: ComputeRange,
    other: ComputeRange,
    stated_flop: int,
    rate: int | None,
    lineage: LineageTotal | None,
) -> str:
    """What is compared, in words."""
    parts = []
    if stated_flop:
        stated = describe_range(ComputeRange(low_flop=stated_flop, upper_flop=stated_flop))
        parts.append(f"{stated}, stated as exact")
    if sensed != NO_COMPUTE:
        added = f"{SENSOR_TOLERANCE_PPM // 10_000} % added at the top for sensors and clocks"
        parts.append(f"{describe_range(sensed)}, estimated ({added})")
    if other != NO_COMPUTE:
        parts.append(f"{describe_range(other)} of other recorded compute")
    if rate is not None:
        parts.append(f"a rate of {describe_amount(rate)} operations per second")
    counted = len(lineage.model_ids) if lineage else 0
    where = f" (over {counted} model{'' if counted == 1 else 's'} of the lineage)" if counted else ""
    return (" and ".join(parts) or "no compute") + where


def _choose(
    catalogue: RuleCatalogue, rule_ids: Sequence[str], on: dt.date, question: _Question
) -> list[Rule]:
    """The rules that are named, or the laws in force that the amounts can be compared with.

    An amount that no rule would use is refused: it would look as if it had been judged.
    """
    named = [catalogue.find(rule_id) for rule_id in dict.fromkeys(rule_ids)]
    rules = named or [
        rule
        for rule in catalogue.in_force(on)
        if (question.has_total and rule.totals) or (question.rate_flop_per_s is not None and rule.rate)
    ]
    if question.original_flop is not None and not any(rule.ratio for rule in rules):
        expected = "--rule eu-gpai-modifier"
        raise InputError("no rule here uses the original", where="--original-flop", expected=expected)
    if question.rate_flop_per_s is not None and not any(rule.rate for rule in rules):
        expected = "--rule us-eo14110-cluster"
        raise InputError("no rule here limits a rate", where="--rate", expected=expected)
    if question.has_total and named and not any(rule.totals or rule.ratio for rule in named):
        assess_levels(named[0], question.sensed)  # refuses, and says what the rule needs
    return rules


def _assess(rule: Rule, question: _Question) -> list[AssessedRule]:
    if rule.rate is not None and question.rate_flop_per_s is not None:
        return [AssessedRule(rule=rule, assessment=assess_rate(rule, question.rate_flop_per_s))]
    if not question.has_total:
        raise InputError("cannot be judged by a rate", where=rule.id, expected="--flop or --lineage")
    if rule.ratio is not None:
        modification = assess_modification(
            rule,
            question.sensed.plus(question.other),
            question.original_flop,
            stated_flop=question.stated_flop,
        )
        return [AssessedRule(rule=rule, assessment=modification)]
    levels = assess_levels(rule, question.sensed, other=question.other, stated_flop=question.stated_flop)
    return [AssessedRule(rule=rule, assessment=level) for level in levels]
