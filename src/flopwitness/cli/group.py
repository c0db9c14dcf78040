"""The command: one file a verb, loaded only when it is called, and a name for every way to fail."""

import importlib
import os
import shlex
from pathlib import Path
from typing import Any, Final

import click

from flopwitness import __version__
from flopwitness.cli.settings import read_settings
from flopwitness.foundation.errors import FlopwitnessError
from flopwitness.foundation.files import FULL_ERRNOS
from flopwitness.present.safe_text import escape_line

__all__ = ["call", "cli", "describe_failure"]

_WRONG_USE: Final = 2
_INTERNAL_FAILURE: Final = 4

_VERBS: Final[dict[str, tuple[str, str]]] = {
    "estimate": (
        "flopwitness.cli.estimate",
        "FLOP, interval, upper bound and rules from logs or a table of runs.",
    ),
    "calibrate": (
        "flopwitness.cli.calibrate",
        "Learn from runs of known size what a joule computes on one device.",
    ),
    "evaluate": (
        "flopwitness.cli.evaluate",
        "Judge the estimators on runs that they were not calibrated on.",
    ),
    "import": ("flopwitness.cli.importing", "Read a log of any known format into one trace file."),
    "sessions": (
        "flopwitness.cli.sessions",
        "When workloads started and stopped, and totals that no cut changes.",
    ),
    "collect": (
        "flopwitness.cli.collecting",
        "Readings as they come, or a log played again, into one trace file.",
    ),
    "doctor": ("flopwitness.cli.doctor", "What logs hold, and how good each reading in them is."),
    "count": ("flopwitness.cli.count", "FLOP of a model or run from its shapes, in every convention."),
    "train": ("flopwitness.cli.train", "Train a declared run, deterministically, with checkpoints."),
    "rules": ("flopwitness.cli.rules", "The compute rules: list, show, assess."),
    "demo": ("flopwitness.cli.demo", "The estimate on a small made-up trace, start to end."),
}


class _LazyGroup(click.Group):
    """A group that imports a verb's module when the verb is called, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _VERBS:
            return None
        command: click.Command = importlib.import_module(_VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(verb, help_text) for verb, (_, help_text) in _VERBS.items()])


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="flopwitness")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure; may stand anywhere.")
@click.pass_context
def cli(context: click.Context, *, debug: bool) -> None:
    """Tell whether an AI training run stayed within a compute rule, from evidence.

    Options may also stand in flopwitness.toml or in FLOPWITNESS_VERB_OPTION; flags win.

    Exit status: 0 done or consistent, 1 inconsistent, 2 wrong use, unreadable input or a refused calibration,
    3 inconclusive, 4 internal failure, 130 interrupted.
    """
    del debug  # taken out of the line before it comes here
    verb = context.invoked_subcommand
    if verb is None:
        click.echo(context.get_help())
        context.exit(_WRONG_USE)
    context.obj = context.obj or {}
    command = cli.get_command(context, verb)
    if command is not None:
        settings = read_settings(command, verb, folder=Path.cwd(), environment=os.environ)
        context.default_map = {verb: settings}


def call(arguments: list[str]) -> int:
    """Run one call and give its exit status; every failure comes out as an exception.

    Side effects:
        What the verb does; its answer goes to standard output.
    """
    made_by = {"command": shlex.join(["flopwitness", *arguments])}
    try:
        with cli.make_context("flopwitness", list(arguments), obj=made_by) as context:
            status: Any = cli.invoke(context)
    except click.exceptions.Exit as ended:
        status = ended.exit_code
    return status if isinstance(status, int) else 0


def describe_failure(error: BaseException) -> tuple[str, int]:
    """The one line for a failure, and its exit status."""
    if isinstance(error, click.ClickException):
        return escape_line(" ".join(error.format_message().split())), error.exit_code
    if isinstance(error, FlopwitnessError):
        return str(error), error.exit_status
    if isinstance(error, OSError) and error.errno in FULL_ERRNOS:
        return f"the output cannot be written (found {error.strerror})", _INTERNAL_FAILURE
    reason = escape_line(" ".join(str(error).split()))
    name = type(error).__name__
    return f"internal failure: {name}: {reason} (--debug shows where)", _INTERNAL_FAILURE
