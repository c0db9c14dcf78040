"""`flopwitness calibrate`: from runs of known size to a file that `estimate` takes."""

import os
from pathlib import Path

import click

from flopwitness.catalogue.chips import load_chips
from flopwitness.cli.known_runs import choice_options, read_tables, tables_argument, workload_option
from flopwitness.cli.options import json_option
from flopwitness.cli.outputs import check_outputs
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.cli.told import name_command, tell_settings_used
from flopwitness.foundation.files import write_whole
from flopwitness.measure.calibration.calibrate import calibrate
from flopwitness.present.calibration_json import render_calibration
from flopwitness.present.calibration_text import render_calibration_text
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]


@click.command("calibrate")
@tables_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The calibration to write (JSON).",
)
@choice_options
@workload_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    tables: tuple[Path, ...],
    *,
    out: Path,
    wheres: tuple[str, ...],
    gate_pct: float | None,
    scope: str | None,
    columns: tuple[str, ...],
    as_json: bool,
) -> int:
    """Learn from TABLES of runs of known size what a joule computes on one device.

    A row needs its true operations (true_tflop), energy and duration; power at rest and traffic counters make
    the estimate better. All rows must be of one chip in one power mode: --where chooses them. The file is
    tied to that chip and mode, and to the range of what its runs looked like.
    """
    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, tables, folder=Path.cwd())
    check_outputs({"--out": out}, tables)
    chosen = read_tables(tables, wheres=wheres, gate_pct=gate_pct, scope=scope)
    made = calibrate(
        chosen.tables, catalogue=load_chips(), conditions=wheres, gate_pct=gate_pct, columns=columns
    )
    write_whole(out, made.data)
    findings = name_command(
        [*chosen.findings, *made.findings, *tell_settings_used(settings)], context, settings
    )
    if as_json:
        record = render_calibration(made.calibration, out=str(out), findings=findings)
        click.echo(encode_answer(record))
    else:
        click.echo(render_calibration_text(made.calibration, out=str(out), findings=findings), nl=False)
    return 0
