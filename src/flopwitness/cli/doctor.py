"""`flopwitness doctor`: what logs hold, and how good each reading in them is."""

from pathlib import Path

import click

from flopwitness.cli.evidence import read_logs
from flopwitness.cli.options import format_option, json_option, paths_argument, reading_options
from flopwitness.cli.told import name_command, tell_scope_overruled, tell_settings_used
from flopwitness.measure.daylight import assess_daylight
from flopwitness.measure.host_energy import measure_hosts
from flopwitness.measure.inventory import list_readings
from flopwitness.measure.quality import assess_reading
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.present.doctor_json import render_doctor
from flopwitness.present.doctor_text import render_doctor_text
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]


@click.command("doctor")
@paths_argument
@format_option(tables=False)
@reading_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    logs: tuple[Path, ...],
    *,
    format_name: str | None,
    reading: ReadOptions,
    as_json: bool,
) -> int:
    """Say what LOGS hold: devices, channels, times, gaps, and how good each reading is."""
    trace, settings = read_logs(context, logs, format_name, reading)
    findings = name_command(
        [
            *assess_reading(trace),
            *assess_daylight(trace),
            *tell_scope_overruled(trace, reading.scope),
            *tell_settings_used(settings),
        ],
        context,
        settings,
    )
    readings, hosts = list_readings(trace), measure_hosts(trace)
    if as_json:
        click.echo(encode_answer(render_doctor(trace, readings, hosts, findings)))
    else:
        click.echo(render_doctor_text(trace, readings, hosts, findings), nl=False)
    return 0
