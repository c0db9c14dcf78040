"""`flopwitness count`: how many operations a model or run takes, from shapes, in every convention."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from flopwitness.cli.instrumented import InstrumentedPass, count_instrumented, tell_instrumented
from flopwitness.cli.options import WholeRange, json_option, option_tokens
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.cli.told import name_command, tell_settings_used
from flopwitness.counting.chain import Chain, count_chain
from flopwitness.counting.config import LARGEST_CONFIG_BYTES, CountedRun, decode_counted
from flopwitness.counting.conventions import count_conventions
from flopwitness.counting.step import count_step
from flopwitness.foundation.encoding import decode_json
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import read_bounded
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.integrations.module_table import total_of_module_table
from flopwitness.present.count_json import render_chain, render_count, render_total
from flopwitness.present.count_text import render_chain_text, render_count_text, render_total_text
from flopwitness.present.instrumented_json import render_instrumented
from flopwitness.present.instrumented_text import instrumented_lines
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]

_INCONSISTENT: Final = 1


@click.command("count")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG")
@click.option(
    "--tokens",
    callback=option_tokens,
    metavar="N",
    help="Tokens of the run, for a config.json, such as 1.5e13.",
)
@click.option(
    "--sequence",
    type=WholeRange(min=1, max=1 << 40),
    metavar="N",
    help="Tokens of a row, for a config.json.",
)
@click.option(
    "--torch", "is_instrumented", is_flag=True, help="Also train one pass here, and count what runs."
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    config: Path,
    *,
    tokens: int | None,
    sequence: int | None,
    is_instrumented: bool,
    as_json: bool,
) -> int:
    """Count the operations of CONFIG from its shapes, in every convention, and say why they differ.

    CONFIG is a run's configuration as `train` takes it (also with experts, adapters or features, which it
    does not train), a chain of layers, a published model's config.json with --tokens and --sequence, or a
    table by module of another counter ({"rows": {"Global": ...}}), whose total is not the sum of its rows.
    """
    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, (config,), folder=Path.cwd())
    data = read_bounded(config, limit_bytes=LARGEST_CONFIG_BYTES)
    told = tell_settings_used(settings)
    rows = _find_module_rows(data, where=str(config))
    if rows is not None:
        _check_no_run(tokens, sequence, is_instrumented=is_instrumented, expected="no option beside a table")
        _answer_table(rows, name_command(told, context, settings), where=str(config), as_json=as_json)
        return 0
    counted = decode_counted(data, where=str(config), tokens=tokens, sequence=sequence)
    if isinstance(counted, Chain):
        _check_no_run(None, None, is_instrumented=is_instrumented, expected="a run's configuration")
        findings = name_command(told, context, settings)
        _answer_chain(counted, findings, as_json=as_json)
        return 0
    if not counted.has_updates:
        _check_no_run(None, None, is_instrumented=is_instrumented, expected="a run's configuration")
    seen = count_instrumented(data, where=str(config)) if is_instrumented else None
    if seen is not None:
        told += tell_instrumented(seen)
    _answer_run(counted, seen, name_command(told, context, settings), as_json=as_json)
    return _INCONSISTENT if any(item.severity is Severity.CONTRADICTION for item in told) else 0


def _find_module_rows(data: bytes, *, where: str) -> Mapping[str, object] | None:
    """The rows of a table by module that another counter wrote as JSON; None where the file is no such."""
    if data.lstrip()[:1] != b"{":
        return None
    record = decode_json(data, where=where)
    rows = record.get("rows") if "model_type" not in record else None
    return rows if isinstance(rows, dict) else None


def _check_no_run(tokens: int | None, sequence: int | None, *, is_instrumented: bool, expected: str) -> None:
    """Refuse options that ask for a run where the file describes none."""
    given = {"--tokens": tokens is not None, "--sequence": sequence is not None, "--torch": is_instrumented}
    odd = next((name for name, is_given in given.items() if is_given), None)
    if odd is not None:
        raise InputError("no run to count", where=odd, expected=expected)


def _answer_table(
    rows: Mapping[str, object], findings: Sequence[Finding], *, where: str, as_json: bool
) -> None:
    flop = total_of_module_table(rows, where=where)
    if as_json:
        click.echo(encode_answer(render_total(flop, rows=len(rows), findings=findings)))
    else:
        click.echo(render_total_text(flop, rows=len(rows), findings=findings), nl=False)


def _answer_chain(chain: Chain, findings: Sequence[Finding], *, as_json: bool) -> None:
    count = count_chain(chain)
    if as_json:
        click.echo(encode_answer(render_chain(chain, count, findings=findings)))
    else:
        click.echo(render_chain_text(chain, count, findings=findings), nl=False)


def _answer_run(
    run: CountedRun, seen: InstrumentedPass | None, findings: Sequence[Finding], *, as_json: bool
) -> None:
    step = count_step(run.model, run.training)
    conventions = count_conventions(run.model, run.training)
    if as_json:
        record = None if seen is None else render_instrumented(seen.closed, seen.seen, rows=seen.rows)
        click.echo(encode_answer(render_count(run, step, conventions, torch=record, findings=findings)))
    else:
        lines = () if seen is None else tuple(instrumented_lines(seen.closed, seen.seen, rows=seen.rows))
        text = render_count_text(run, step, conventions, torch_lines=lines, findings=findings)
        click.echo(text, nl=False)
