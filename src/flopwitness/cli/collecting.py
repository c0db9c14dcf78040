"""`flopwitness collect`: readings as they come into one trace file; today from a log that is played again."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from flopwitness.cli.evidence import read_logs
from flopwitness.cli.options import FiniteRange, format_option, json_option, reading_options
from flopwitness.cli.outputs import check_outputs
from flopwitness.cli.session_options import session_options
from flopwitness.cli.told import name_command, tell_scope_overruled, tell_settings_used
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import write_whole
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding
from flopwitness.measure import replay, sessions
from flopwitness.measure.quality import assess_reading
from flopwitness.measure.samples import Channel, Trace
from flopwitness.measure.session_watch import SessionWatch
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.measure.trace_file import encode_trace
from flopwitness.present.finding_json import render_finding
from flopwitness.present.finding_lines import brief_finding_lines
from flopwitness.present.safe_text import encode_answer, join_lines, name_count
from flopwitness.present.sessions_text import describe_instant

__all__ = ["command"]

_LONGEST_NAP_S: Final = 0.5  # an interrupt is answered within it


@click.command("collect")
@click.option(
    "--replay",
    "logs",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="A log that is played again in place of live sensors; may be repeated.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The trace file to write (Parquet), when the log ends or an interrupt comes.",
)
@click.option(
    "--speed",
    type=FiniteRange(0, 1e9),
    default=1.0,
    show_default=True,
    help="How many times faster than it was recorded; 0 for as fast as can be.",
)
@session_options
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
    speed: float,
    rule: sessions.SessionRule,
    format_name: str | None,
    reading: ReadOptions,
    as_json: bool,
) -> int:
    """Collect readings into a trace file, and tell sessions as they start and stop.

    An interrupt ends the collecting; what was read until then is kept.
    """
    check_outputs({"--out": out}, logs)
    played, settings = read_logs(context, logs, format_name, reading)
    if not any(len(series) for series in played.series):
        raise InputError("no reading to play", where=str(logs[0]), expected="a log with readings")
    sleep = (context.find_root().obj or {}).get("sleep", time.sleep)
    collector = replay.Collector(played)
    watch = _Watch(played, rule, say=None if as_json else _say)
    is_interrupted = False
    try:
        for poll in _paced(played, speed, sleep):
            collector.add(poll)
            watch.see(poll)
        watch.end()
    except KeyboardInterrupt:
        is_interrupted = True
    data = encode_trace(collector.trace())
    write_whole(out, data)
    n_series = len(collector.trace().series)
    findings = [
        *assess_reading(played),
        *tell_scope_overruled(played, reading.scope),
        *tell_settings_used(settings),
    ]
    told = name_command(findings, context, settings)
    if as_json:
        click.echo(encode_answer(_record(out, data, collector, n_series, watch, told)))
    else:
        read = name_count(collector.n_readings, "reading")
        _say(f"{out}: {read} in {n_series} series, {watch.in_words}")
        click.echo(join_lines(brief_finding_lines(told)), nl=False)
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def _paced(trace: Trace, speed: float, sleep: Callable[[float], object]) -> Iterator[replay.Poll]:
    """The polls of a trace, each after the time that lay before it."""
    for poll in replay.play(trace):
        wait_s = poll.wait_ns / NANOSECOND_PER_SECOND / speed if speed else 0.0
        while wait_s > 0:
            nap_s = min(wait_s, _LONGEST_NAP_S)
            sleep(nap_s)
            wait_s -= nap_s
        yield poll


class _Watch:
    """The session rule over what is polled, device by device."""

    def __init__(
        self, trace: Trace, rule: sessions.SessionRule, *, say: Callable[[str], None] | None
    ) -> None:
        self._say, self._trace = say, trace
        self._watches = {
            place: SessionWatch(rule=rule)
            for place, series in enumerate(trace.series)
            if series.channel is Channel.UTILISATION_PCT and not series.part
        }
        self._n_started = 0

    @property
    def n_sessions(self) -> int | None:
        """How many began; None where no utilisation was recorded, so that nobody knows."""
        return self._n_started if self._watches else None

    @property
    def in_words(self) -> str:
        """The same for a person."""
        count = self.n_sessions
        return "no utilisation to tell sessions by" if count is None else name_count(count, "session")

    def see(self, poll: replay.Poll) -> None:
        """Show one poll's utilisation to the rule."""
        for reading in poll.values:
            watch = self._watches.get(reading.place)
            if watch is not None:
                self._tell(reading.place, watch.see(poll.utc_ns, reading.value))

    def end(self) -> None:
        """Tell what the last readings began or ended."""
        for place, watch in self._watches.items():
            self._tell(place, watch.end())

    def _tell(self, place: int, events: Iterator[sessions.Event]) -> None:
        series = self._trace.series[place]
        for event in events:
            is_start = isinstance(event, sessions.Started)
            self._n_started += is_start
            if self._say is not None:
                word = "started" if is_start else "stopped"
                self._say(f"{describe_instant(event.utc_ns, series.timing)}  {series.device}: {word}")


def _say(line: str) -> None:
    click.echo(join_lines([line]), nl=False)


def _record(
    out: Path,
    data: bytes,
    collector: replay.Collector,
    n_series: int,
    watch: _Watch,
    findings: Sequence[Finding],
) -> dict[str, Any]:
    return {
        "spec": "flopwitness/collect/v1",
        "out": str(out),
        "size_bytes": len(data),
        "n_series": n_series,
        "n_readings": collector.n_readings,
        "n_sessions": watch.n_sessions,
        "findings": [render_finding(finding) for finding in findings],
    }
