"""The command's frame: its verbs, and a name for every way to fail."""

import click
import pytest

from flopwitness.cli import group
from flopwitness.cli.group import call, cli, describe_failure
from flopwitness.foundation.errors import BackendError, DecodeError, FlopwitnessError


def test_the_verbs_are_listed_and_loaded_by_name() -> None:
    context = click.Context(cli)
    assert cli.list_commands(context) == list(group._VERBS)
    for verb in group._VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        assert command.name == verb
    assert cli.get_command(context, "no-such-verb") is None


def test_a_call_gives_its_status_and_raises_its_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["rules", "list", "--on", "2026-06-01"]) == 0
    assert call([]) == 2
    assert call(["--version"]) == 0
    assert capsys.readouterr().out.startswith("Compute rules on 1 June 2026")
    with pytest.raises(click.UsageError):
        call(["no-such-verb"])
    with pytest.raises(FlopwitnessError):
        call(["estimate", "/no/such/log"])


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (click.UsageError("first\nsecond\x1b[2J"), "first second\\x1b[2J", 2),
        (DecodeError("torn", where="a:1"), "a:1: torn", 2),
        (BackendError("gone"), "gone", 4),
        (OSError(28, "No space left on device"), "the output cannot be written", 4),
        (OSError(5, "Input/output error"), "the output cannot be written", 4),
        (OSError(13, "Permission denied"), "internal failure: PermissionError", 4),
        (ValueError("\x1b[31mred\n"), "internal failure: ValueError: \\x1b[31mred (--debug", 4),
        (KeyError(), "internal failure: KeyError", 4),
    ],
)
def test_every_failure_has_one_line_and_a_status(error: Exception, line: str, status: int) -> None:
    message, found = describe_failure(error)
    assert message.startswith(line)
    assert message.isprintable()
    assert found == status


def test_the_answer_can_be_made_again_without_the_debug_flag(
    capsys: pytest.CaptureFixture[str], run_folder: object
) -> None:
    from flopwitness.cli.main import _main  # noqa: PLC0415 (the one that takes the flag out)

    assert _main(["estimate", str(run_folder), "--json", "--debug"]) == 0
    out = capsys.readouterr().out
    assert f'"reproduce": "flopwitness estimate {run_folder} --json"' in out
