"""`flopwitness count`: how many operations a model or run takes, from shapes, in every convention."""

import os
from pathlib import Path
from typing import Final

import click

from flopwitness.cli.options import json_option, option_count
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.cli.told import name_command, tell_settings_used
from flopwitness.counting.chain import Chain, count_chain
from flopwitness.counting.config import decode_counted
from flopwitness.counting.conventions import count_conventions
from flopwitness.counting.step import count_step
from flopwitness.foundation.files import read_bounded
from flopwitness.present.count_json import render_chain, render_count
from flopwitness.present.count_text import render_chain_text, render_count_text
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]

_LARGEST_CONFIG_BYTES: Final = 1 << 20


@click.command("count")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG")
@click.option(
    "--tokens",
    callback=option_count,
    metavar="N",
    help="Tokens of the run, for a config.json, such as 1.5e13.",
)
@click.option(
    "--sequence",
    type=click.IntRange(min=1, max=1 << 40),
    metavar="N",
    help="Tokens of a row, for a config.json.",
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
    as_json: bool,
) -> int:
    """Count the operations of CONFIG from its shapes, in every convention, and say why they differ.

    CONFIG is a run's configuration as `train` takes it (also with experts, adapters or features, which it
    does not train), a chain of layers, or a published model's config.json with --tokens and --sequence.
    """
    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, (config,), folder=Path.cwd())
    data = read_bounded(config, limit_bytes=_LARGEST_CONFIG_BYTES)
    counted = decode_counted(data, where=str(config), tokens=tokens, sequence=sequence)
    findings = name_command(tell_settings_used(settings), context, settings)
    if isinstance(counted, Chain):
        count = count_chain(counted)
        if as_json:
            click.echo(encode_answer(render_chain(counted, count, findings=findings)))
        else:
            click.echo(render_chain_text(counted, count, findings=findings), nl=False)
        return 0
    step = count_step(counted.model, counted.training)
    conventions = count_conventions(counted.model, counted.training)
    if as_json:
        click.echo(encode_answer(render_count(counted, step, conventions, findings=findings)))
    else:
        click.echo(render_count_text(counted, step, conventions, findings=findings), nl=False)
    return 0
