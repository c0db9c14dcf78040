"""The frame of the command line: exit statuses, one line for an error, nothing loaded before it is needed."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from flopwitness import __version__
from flopwitness.cli import group
from flopwitness.cli.group import cli
from flopwitness.cli.main import run
from flopwitness.foundation.errors import BackendError, DecodeError, EvidenceError, FlopwitnessError

Call = Callable[..., tuple[int, str, str]]


def test_help_names_every_verb_and_the_exit_statuses(call: Call) -> None:
    for option in ("--help", "-h"):
        status, out, err = call(option)
        assert (status, err) == (0, "")
        for verb in group._VERBS:
            assert f"  {verb} " in out
        assert "3 inconclusive" in out


def test_help_loads_no_heavy_library() -> None:
    program = (
        "import sys; from flopwitness.cli.main import _main; status = _main(['--help']);"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stderr
    assert "'click'" in loaded
    for library in ("numpy", "polars", "scipy", "matplotlib", "torch"):
        assert f"'{library}'" not in loaded


def test_the_version_is_told(call: Call) -> None:
    assert call("--version") == (0, f"flopwitness, version {__version__}\n", "")


def test_a_bare_call_shows_the_help_on_many_lines(call: Call) -> None:
    status, out, err = call()
    assert (status, err) == (2, "")
    assert out == call("--help")[1]
    assert out.startswith("Usage: flopwitness")
    assert out.count("\n") > 15


@pytest.mark.parametrize("verb", list(group._VERBS))
def test_every_verb_can_be_loaded_and_explains_itself(call: Call, verb: str) -> None:
    status, out, err = call(verb, "--help")
    assert (status, err) == (0, "")
    assert f"flopwitness {verb}" in out


@pytest.mark.parametrize(
    "arguments",
    [("estimat",), ("--loud",), ("estimate",), ("estimate", "x", "--count", "many"), ("import", "x")],
)
def test_wrong_use_is_one_line_and_status_2(call: Call, arguments: tuple[str, ...]) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("flopwitness: ")
    assert err.count("\n") == 1


def _failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("estimate")
    def command() -> None:
        raise error

    monkeypatch.setitem(cli.commands, "estimate", command)
    monkeypatch.setattr(type(cli), "get_command", lambda self, context, name: command)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DecodeError("torn\nline", where="a.txt:3", expected="JSON", found="\x1b[2J"), 2),
        (EvidenceError("contradicts itself"), 1),
        (BackendError("gone"), 4),
        (FlopwitnessError("failed"), 4),
        (ValueError("a\nb"), 4),
        (KeyError("x"), 4),
        (OSError(28, "No space left on device"), 4),
        (MemoryError(), 4),
        (RecursionError("deep\r\nloop"), 4),
        (KeyboardInterrupt(), 130),
        (click.UsageError("first\nsecond"), 2),
    ],
)
def test_every_failure_is_one_line_with_its_status(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    _failing(monkeypatch, error)
    found, out, err = call("estimate")
    assert (found, out) == (status, "")
    lines = err.strip("\n").split("\n")
    assert len(lines) == 1
    assert lines[0].startswith("flopwitness: ")
    assert lines[0].isprintable()
    assert "Traceback" not in err


def test_an_error_names_place_expected_and_found(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, DecodeError("torn", where="a.txt:3", expected="JSON", found="mud"))
    assert call("estimate")[2] == "flopwitness: a.txt:3: torn (expected JSON; found mud)\n"


@pytest.mark.parametrize("words", [("--debug", "estimate"), ("estimate", "--debug")])
@pytest.mark.parametrize(
    ("error", "status"),
    [(DecodeError("torn"), 2), (EvidenceError("no"), 1), (ValueError("oops"), 4), (click.UsageError("x"), 2)],
)
def test_debug_shows_the_traceback_anywhere_and_keeps_the_status(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, words: tuple[str, ...]
) -> None:
    _failing(monkeypatch, error)
    found, out, err = call(*words)
    assert (found, out) == (status, "")
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("flopwitness: ")


def test_after_two_dashes_debug_is_a_file(call: Call) -> None:
    status, _, err = call("estimate", "--", "--debug")
    assert status == 2
    assert err == "flopwitness: --debug: no such file (expected a file, a folder or an archive)\n"


def test_an_interrupt_behind_another_error_is_an_interrupt(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError("a class could not be made")
    error.__cause__ = KeyboardInterrupt()
    _failing(monkeypatch, error)
    assert call("estimate") == (130, "", "flopwitness: interrupted\n")
    plain = RuntimeError("a loop")
    plain.__cause__ = ValueError("x")
    plain.__cause__.__context__ = plain
    _failing(monkeypatch, plain)
    assert call("estimate")[0] == 4


_INTERRUPT = """
import os, signal, sys, threading
sys.argv = ["flopwitness", "estimate", {log!r}, "--chip", "h100-sxm", "--count", "16"]
from flopwitness.cli.main import run
try:
    threading.Timer({wait_s}, os.kill, (os.getpid(), signal.SIGINT)).start()
except KeyboardInterrupt:
    sys.exit(99)  # it struck before the command began: says nothing of it
run()
"""


@pytest.mark.parametrize("wait_s", [0.01, 0.02, 0.05, 0.1, 0.2, 0.3])
def test_an_interrupt_at_any_instant_is_one_line(run_folder: Path, wait_s: float) -> None:
    program = _INTERRUPT.format(log=str(run_folder), wait_s=wait_s)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        if done.returncode != 99:
            break
    assert (done.returncode, done.stderr) in ((130, "flopwitness: interrupted\n"), (0, ""))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", ["rules list", "--help", "rules list --json", ""])
def test_a_full_disk_is_one_clear_line(words: str) -> None:
    call = f"{shlex.quote(sys.executable)} -m flopwitness {words} >/dev/full"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=False)
    assert done.stderr == "flopwitness: the output cannot be written (found No space left on device)\n"
    assert done.returncode == 4


def test_the_process_ends_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["flopwitness", "no-such-verb"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2


def test_a_closed_pipe_is_no_failure(run_folder: Path) -> None:
    call = f"{shlex.quote(sys.executable)} -m flopwitness rules list --all --json"
    program = f"{call} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "0"
    assert done.stderr == ""


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flopwitness", "estimate", "/no/such/log"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "/no/such/log" in done.stderr
