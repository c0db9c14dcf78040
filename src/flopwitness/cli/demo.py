"""`flopwitness demo`: the estimate on a small made-up run, from its logs to the verdict."""

from pathlib import Path
from typing import Final

import click

from flopwitness.cli.estimate import command as estimate
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import write_whole
from flopwitness.simulation.node_logs import MadeUpRun, make_node_logs

__all__ = ["command"]

_CHIPS_A_NODE: Final = 8


@click.command("demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    metavar="DIR",
    help="Where the logs, the picture and the answer go.",
)
@click.pass_context
def command(context: click.Context, /, *, out: Path) -> int:
    """Make up the logs of a small run, then say how much compute they show.

    The logs are a simulation: they show what the command does, not what any chip did.
    """
    run = MadeUpRun()
    logs = out / "logs"
    try:
        (logs / "power_ac").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("cannot be made", where=str(logs), found=error.strerror or str(error)) from error
    for name, data in make_node_logs(run).items():
        write_whole(logs / name, data)
    words = [str(logs), "--chip", "h100-sxm", "--count", str(_CHIPS_A_NODE * run.nodes)]
    click.echo(f"A simulated run: {run.nodes} nodes of {_CHIPS_A_NODE} H100, made up with seed {run.seed}.\n")
    click.echo(f"$ flopwitness estimate {' '.join(words)}")
    files = ["--plot", str(out / "power.png"), "--out", str(out / "report.json")]
    with estimate.make_context("estimate", [*words, *files], parent=context) as called:
        status: int = estimate.invoke(called)
    click.echo(f"\nthe picture  {out / 'power.png'}\nthe answer   {out / 'report.json'}")
    return status
