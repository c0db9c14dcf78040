"""The entry point: one file a verb, loaded only when it is called; one line for an error, no traceback."""

import importlib
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from flopwitness import __version__
from flopwitness.cli.settings import read_settings
from flopwitness.foundation.errors import FlopwitnessError

__all__ = ["cli", "run"]

_INTERNAL_FAILURE: Final = 4
_INTERRUPTED: Final = 130
# Click from 8.2 on raises this where a group is called bare, and its message is the whole help.
_NO_ARGUMENTS: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())

_VERBS: Final[dict[str, tuple[str, str]]] = {
    "estimate": (
        "flopwitness.cli.estimate",
        "FLOP, interval, upper bound and rules from logs or a table of runs.",
    ),
    "import": ("flopwitness.cli.importing", "Read a log of any known format into one trace file."),
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


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="flopwitness")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
@click.pass_context
def cli(context: click.Context, *, debug: bool) -> None:
    """Tell whether an AI training run stayed within a compute rule, from evidence.

    Options may also stand in flopwitness.toml or in FLOPWITNESS_VERB_OPTION; flags win.

    Exit status: 0 done or consistent, 1 inconsistent, 2 wrong use or unreadable input, 3 inconclusive,
    4 internal failure, 130 interrupted.
    """
    context.obj = {**(context.obj or {}), "debug": debug}
    verb = context.invoked_subcommand
    command = cli.get_command(context, verb) if verb is not None else None
    if verb is not None and command is not None:
        settings = read_settings(command, verb, folder=Path.cwd(), environment=os.environ)
        context.default_map = {verb: settings}


def _fail(message: str, status: int) -> int:
    click.echo(f"flopwitness: {message}", err=True)
    return status


def _refuse(error: click.ClickException) -> int:
    """Tell a wrong call in one line, or how to call where there was none."""
    if isinstance(error, _NO_ARGUMENTS):
        click.echo(error.format_message(), err=True)
        return int(error.exit_code)
    return _fail(error.format_message().replace("\n", " "), error.exit_code)


def _main(arguments: list[str]) -> int:
    """The exit status of one call; every failure becomes one line on standard error."""
    debug = "--debug" in arguments
    try:
        status: Any = cli.main(
            args=arguments,
            prog_name="flopwitness",
            standalone_mode=False,
            obj={"command": shlex.join(["flopwitness", *arguments])},
        )
    except click.exceptions.Abort:
        return _fail("interrupted", _INTERRUPTED)
    except click.ClickException as error:
        return _refuse(error)
    except FlopwitnessError as error:
        if debug:
            raise
        return _fail(str(error), error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        reason = " ".join(str(error).split())
        return _fail(
            f"internal failure: {type(error).__name__}: {reason} (--debug shows where)", _INTERNAL_FAILURE
        )
    return status if isinstance(status, int) else 0


def run() -> None:
    """Run the command line and end the process with the status of DESIGN section 5."""
    sys.exit(_main(sys.argv[1:]))
