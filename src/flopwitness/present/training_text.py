"""What `train` did, for a person: what ran, how the loss went, what it took, where it lies."""

from collections.abc import Iterator
from typing import Final

from flopwitness.foundation.units import format_duration, format_flop
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import join_lines, name_count
from flopwitness.trainers.config import Precision
from flopwitness.trainers.report import TrainingReport

__all__ = ["format_rate", "render_training_text"]

_SHOWN_DIGITS: Final = 4


def render_training_text(report: TrainingReport) -> str:
    """The whole answer of `train`, ready to print."""
    lines = [_head(report), *_body(report), *finding_lines(report.findings)]
    return join_lines(lines)


def format_rate(per_second: float | None, unit: str) -> str:
    """A rate for a person's eye, such as `1.2e9 FLOP/s`; "" where no time has passed."""
    return "" if per_second is None else f"{format_flop(round(per_second))} {unit}/s"


def _head(report: TrainingReport) -> str:
    run = report.run
    size = f"decoder of {name_count(report.n_parameters, 'parameter')}"
    where = f"{run.device}, {name_count(run.threads, 'thread')}"
    if run.training.processes > 1:
        where += f" in each of {run.training.processes} processes"
    return f"{size}, {run.optimizer.name}, {run.precision} on {where}"


def _body(report: TrainingReport) -> Iterator[str]:
    total = report.run.training.steps
    if report.resumed_from:
        yield f"  resumed    from {report.resumed_from}"
    if not report.steps:
        state = "complete already" if report.is_complete else "nothing to do"
        yield f"  steps      {report.last_step:,} of {total:,} done; {state}"
        return
    yield f"  steps      {report.first_step + 1:,} to {report.last_step:,} of {total:,}"
    yield f"  loss       {report.first_loss:.{_SHOWN_DIGITS}f} to {report.last_loss:.{_SHOWN_DIGITS}f} nat"
    if report.run.precision is Precision.FP16:
        yield f"  skipped    {name_count(report.skipped_steps, 'step')} whose gradient overflowed"
    rate = format_rate(report.per_second(report.tokens), "token")
    tokens = name_count(report.tokens, "token")
    yield f"  time       {format_duration(report.duration_s)} for {tokens}, {rate}"
    model = format_rate(report.per_second(report.model_flop), "FLOP")
    yield f"  model      {format_flop(report.model_flop)} FLOP (attention in full), {model}"
    executed = format_rate(report.per_second(report.executed_flop), "FLOP")
    yield f"  executed   {format_flop(report.executed_flop)} FLOP (with what is computed again), {executed}"
    yield f"  kept       {report.checkpoint}" if report.out else "  kept       nothing (--out keeps it)"
