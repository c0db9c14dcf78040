"""`flopwitness doctor`: what logs hold, and how good each reading in them is."""

import os
from pathlib import Path

import click

from flopwitness.cli.options import format_option, json_option, paths_argument, reading_options
from flopwitness.cli.settings import check_settings_place, find_settings_used
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
    from flopwitness.measure.sources.formats import read_evidence  # noqa: PLC0415 (help loads no reader)

    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, logs, folder=Path.cwd())
    trace = read_evidence(logs, format=format_name, options=reading)
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
