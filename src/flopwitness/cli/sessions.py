"""`flopwitness sessions`: when workloads started and stopped, beside totals that no session can cut."""

from pathlib import Path

import click

from flopwitness.cli.evidence import read_logs
from flopwitness.cli.options import (
    FiniteRange,
    format_option,
    json_option,
    paths_argument,
    reading_options,
)
from flopwitness.cli.session_options import session_options
from flopwitness.cli.told import name_command, tell_settings_used
from flopwitness.measure.daylight import assess_daylight
from flopwitness.measure.quality import assess_reading
from flopwitness.measure.sessions import SessionRule
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.measure.usage import assess_use
from flopwitness.present.safe_text import encode_answer
from flopwitness.present.sessions_json import render_sessions
from flopwitness.present.sessions_text import render_sessions_text

__all__ = ["command"]


@click.command("sessions")
@paths_argument
@session_options
@click.option(
    "--idle",
    "idle_w",
    type=FiniteRange(0, 1e6),
    metavar="WATTS",
    help="What each device draws idle. [what the recording shows]",
)
@format_option(tables=False)
@reading_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    logs: tuple[Path, ...],
    *,
    rule: SessionRule,
    idle_w: float | None,
    format_name: str | None,
    reading: ReadOptions,
    as_json: bool,
) -> int:
    """Say when workloads started and stopped in LOGS, by the rule of a polling daemon.

    The totals beside them never go by sessions: energy, busy time and P* (the energy-weighted mean power)
    count all readings, so that splitting a run changes nothing.
    """
    trace, settings = read_logs(context, logs, format_name, reading)
    findings = [*assess_reading(trace), *assess_daylight(trace), *tell_settings_used(settings)]
    uses = assess_use(trace, rule, findings, idle_w=idle_w)
    told = name_command(findings, context, settings)
    if as_json:
        click.echo(encode_answer(render_sessions(uses, rule, inputs=trace.provenance, findings=told)))
    else:
        click.echo(render_sessions_text(uses, rule, told), nl=False)
    return 0
