"""`flopwitness import`: logs of one run, read into one trace file that keeps where everything came from."""

from pathlib import Path

import click

from flopwitness.cli.evidence import read_logs
from flopwitness.cli.options import format_option, json_option, paths_argument, reading_options
from flopwitness.cli.outputs import check_outputs
from flopwitness.cli.told import name_command, tell_scope_overruled, tell_settings_used
from flopwitness.foundation.files import write_whole
from flopwitness.measure.quality import assess_reading
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.measure.trace_file import encode_trace
from flopwitness.present.finding_json import render_finding
from flopwitness.present.finding_lines import brief_finding_lines
from flopwitness.present.safe_text import encode_answer, join_lines, name_count

__all__ = ["command"]


@click.command("import")
@paths_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The trace file to write (Parquet).",
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
    out: Path,
    format_name: str | None,
    reading: ReadOptions,
    as_json: bool,
) -> int:
    """Read LOGS of one run and keep them as one trace file, whole or not at all."""
    check_outputs({"--out": out}, logs)
    trace, settings = read_logs(context, logs, format_name, reading)
    data = encode_trace(trace)
    write_whole(out, data)
    findings = name_command(
        [
            *assess_reading(trace),
            *tell_scope_overruled(trace, reading.scope),
            *tell_settings_used(settings),
        ],
        context,
        settings,
    )
    n_readings = sum(len(series) for series in trace.series)
    if as_json:
        record = {
            "spec": "flopwitness/import/v1",
            "out": str(out),
            "size_bytes": len(data),
            "n_series": len(trace.series),
            "n_readings": n_readings,
            "n_runs": len(trace.windows),
            "n_skipped": trace.n_skipped,
            "inputs": [
                {"path": part.path, "format": part.format, "digest": str(part.digest)}
                for part in trace.provenance
            ],
            "findings": [render_finding(finding) for finding in findings],
        }
        click.echo(encode_answer(record))
        return 0
    read = name_count(n_readings, "reading")
    files = name_count(len(trace.provenance), "file")
    lines = [f"{out}: {read} in {len(trace.series)} series from {files}"]
    lines += brief_finding_lines(findings)
    click.echo(join_lines(lines), nl=False)
    return 0
