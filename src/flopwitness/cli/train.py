"""`flopwitness train`: a declared run, trained so that it can be trained again to the bit."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console

from flopwitness.cli.options import WholeRange, json_option
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.counting.config import LARGEST_CONFIG_BYTES
from flopwitness.counting.step import count_step
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import read_bounded
from flopwitness.integrations.requirement import require_torch
from flopwitness.present.safe_text import encode_answer
from flopwitness.present.training_json import render_training
from flopwitness.present.training_progress import TrainingProgress
from flopwitness.present.training_text import render_training_text
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.report import StepFlop

__all__ = ["command"]


@click.command("train")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run's folder: configuration, losses, checkpoints. [nothing is kept]",
)
@click.option("--resume", "is_resumed", is_flag=True, help="Go on from the newest whole checkpoint in DIR.")
@click.option(
    "--stop-after",
    type=WholeRange(min=0),
    metavar="N",
    help="Stop, with a checkpoint, when N steps of the run are done. [its end]",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    config: Path,
    *,
    out: Path | None,
    is_resumed: bool,
    stop_after: int | None,
    as_json: bool,
) -> int:
    """Train the run that CONFIG declares (TOML; docs/training.md explains every key).

    The configuration decides the bits of the weights. A run that was stopped, by --stop-after, an interrupt
    or a failure, ends after --resume with the same weights as one that was not.
    """
    check_settings_place(find_settings_used(context, environment=os.environ), [config], folder=Path.cwd())
    if is_resumed and out is None:
        raise InputError("nothing to resume", where="--resume", expected="--out DIR beside it")
    data = read_bounded(config, limit_bytes=LARGEST_CONFIG_BYTES)
    run = decode_run(data, where=str(config))
    require_torch()
    from flopwitness.trainers.loop import TrainRequest, train_run  # noqa: PLC0415 (loads PyTorch)

    request = TrainRequest(
        data=data,
        run=run,
        where=str(config),
        folder=config.parent,
        flop=_count(run),
        out=out,
        is_resumed=is_resumed,
        stop_after=stop_after,
    )
    with (
        _ended_like_an_interrupt(),
        TrainingProgress(
            Console(file=sys.stderr), steps=run.training.steps, executed_flop=request.flop.executed_flop
        ) as progress,
    ):
        report = train_run(request, observers=[progress])
    if as_json:
        click.echo(encode_answer(render_training(report)))
    else:
        click.echo(render_training_text(report), nl=False)
    return 0


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """SIGTERM, which schedulers send, takes the way of an interrupt: one line, and nothing left half."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _count(run: RunConfig) -> StepFlop:
    """What one step takes, over all processes."""
    count = count_step(run.model, run.training)
    return StepFlop(model_flop=count.model_flop, executed_flop=count.executed_flop)
