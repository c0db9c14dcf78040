"""`flopwitness train` as a user calls it: from a file to a folder, stopped, resumed, and refused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flopwitness.cli.main import _main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

CONFIG = """
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 1
d_model = 16
heads = 2
d_ff = 32
sequence = 8
vocabulary = 32
dropout = 0.1
[training]
batch = 4
accumulation = 2
steps = 30
seed = 7
precision = "fp32"
device = "cpu"
threads = 1
[optimizer]
name = "adamw"
learning_rate = 0.01
[schedule]
kind = "cosine"
warmup_steps = 3
[data]
kind = "random"
rows = 20
[checkpoints]
every = 7
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """The command with its arguments: status, standard output, standard error; from an empty folder."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")

    def call_it(*arguments: object) -> tuple[int, str, str]:
        status = _main(["train", *(str(argument) for argument in arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call_it


def _run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flopwitness", "train", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _weights(out: Path, step: int = 30) -> list[bytes]:
    folder = out / "checkpoints" / f"step-{step:06d}"
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def test_a_run_for_a_person(call: Call, config: Path, tmp_path: Path) -> None:
    status, out, err = call(config, "--out", tmp_path / "out")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "decoder of 3,392 parameters, adamw, fp32 on cpu, 1 thread"
    assert [line.split()[0] for line in lines[1:]] == ["steps", "loss", "time", "model", "executed", "kept"]
    assert "1 to 30 of 30" in lines[1]
    assert (tmp_path / "out" / "run.toml").read_text() == CONFIG
    environment = json.loads((tmp_path / "out" / "environment.json").read_text())
    assert environment["stretches"][0]["from_step"] == 0


def test_a_run_for_a_program(call: Call, config: Path, tmp_path: Path) -> None:
    status, out, err = call(config, "--out", tmp_path / "out", "--stop-after", 10, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert record["spec"] == "flopwitness/train/v1"
    assert (record["first_step"], record["last_step"], record["steps"]) == (0, 10, 30)
    assert record["complete"] is False
    assert int(record["model_flop"]) == 10 * int(record["model_flop_per_step"]) > 0
    assert int(record["executed_flop"]) > int(record["model_flop"])
    assert record["tokens"] == 10 * 64
    assert record["checkpoint"].endswith("step-000010")
    assert record["findings"] == []


def test_fresh_processes_end_where_one_run_in_one_go_ends(call: Call, config: Path, tmp_path: Path) -> None:
    assert call(config, "--out", tmp_path / "whole")[0] == 0
    for stop in (11, 30):
        done = _run(config, "--out", tmp_path / "parts", "--stop-after", stop, *["--resume"][: stop > 11])
        assert (done.returncode, done.stderr) == (0, "")
    assert "resumed" in done.stdout
    assert _weights(tmp_path / "parts") == _weights(tmp_path / "whole")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_its_status_and_is_resumed(
    call: Call, config: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    config.write_text(CONFIG.replace("steps = 30", "steps = 1000000").replace("every = 7", "every = 20"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flopwitness", "train", str(config), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (out / "checkpoints" / "step-000020").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(ending)
        answer, told = process.communicate(timeout=30)
    assert (process.returncode, answer, told) == (130, "", "flopwitness: interrupted\n")
    assert all(path.name.startswith("step-") for path in (out / "checkpoints").iterdir())
    newest = max(path.name for path in (out / "checkpoints").iterdir())
    step = int(newest.removeprefix("step-"))
    status, text, _ = call(config, "--out", out, "--resume", "--stop-after", step + 3)
    assert status == 0
    assert f"{step + 1:,} to {step + 3:,}" in text


def test_a_file_of_tokens_lies_beside_its_configuration(call: Call, config: Path, tmp_path: Path) -> None:
    tokens = np.arange(2_000, dtype="<u2") % 32
    (tmp_path / "tokens.bin").write_bytes(tokens.tobytes())
    text = CONFIG.replace(
        'kind = "random"\nrows = 20', 'kind = "tokens"\npath = "tokens.bin"\ndtype = "uint16"'
    )
    config.write_text(text)
    status, out, _ = call(config, "--json")
    assert status == 0
    record = json.loads(out)
    assert record["last_loss"] < record["first_loss"]
    tokens[77] = 32
    (tmp_path / "tokens.bin").write_bytes(tokens.tobytes())
    status, out, err = call(config)
    assert (status, out) == (2, "")
    assert "tokens.bin, token 77: a token outside the vocabulary" in err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("steps = 30", "steps = -1", "training.steps: out of range (expected a whole number from 1 to"),
        (
            'device = "cpu"',
            'device = "auto"',
            "training.device: bad value (expected one of cpu, cuda; found 'auto')",
        ),
        ("heads = 2", "heads = 3", "model.heads: does not fit the model (expected a divisor of d_model (16)"),
        ("d_ff = 32", "dff = 32", "model.d_ff: missing key"),
        ("every = 7", "evry = 7", "checkpoints.evry: unknown key (expected one of"),
        ('spec = "flopwitness/run/v1"', 'spec = "v1"', "spec: another kind of file"),
        ("layers = 1", "layers = 1\nexperts = {count = 4, active = 1}", "model.experts: not trained here"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_nothing_starts(
    call: Call, config: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    config.write_text(CONFIG.replace(old, new))
    status, out, err = call(config, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err.startswith("flopwitness: ")
    assert f"run.toml, {told}" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_does_not_go_together_is_refused(call: Call, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call(config, "--resume")[0] == 2
    assert "no run to resume" in call(config, "--out", out, "--resume")[2]
    assert call(config, "--out", out, "--stop-after", 31)[0] == 2
    assert call(config, "--out", tmp_path / "none" / "out")[0] == 2
    assert call(tmp_path / "none.toml")[0] == 2
    assert call(config, "--out", config)[0] == 2


def test_a_folder_holds_one_run(call: Call, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call(config, "--out", out, "--stop-after", 1)[0] == 0
    status, _, err = call(config, "--out", out)
    assert status == 2
    assert "the folder holds a run already (expected another folder, or --resume)" in err
    config.write_text(CONFIG.replace("seed = 7", "seed = 8"))
    status, _, err = call(config, "--out", out, "--resume")
    assert status == 2
    assert "the folder holds another run" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_closed_folder_is_refused(call: Call, config: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    status, _, err = call(config, "--out", tmp_path / "closed" / "out")
    assert status == 2
    assert "cannot be written" in err


def test_a_complete_run_says_so(call: Call, config: Path, tmp_path: Path) -> None:
    assert call(config, "--out", tmp_path / "out")[0] == 0
    status, out, _ = call(config, "--out", tmp_path / "out", "--resume")
    assert status == 0
    assert "30 of 30 done; complete already" in out


def test_without_pytorch_one_line_says_what_to_install(config: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from flopwitness.cli.main import _main\n"
        f"status = _main(['train', {str(config)!r}, '--out', {str(tmp_path / 'out')!r}])\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'flopwitness[torch]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_help_loads_no_pytorch(config: Path) -> None:
    code = (
        "import sys\n"
        "from flopwitness.cli.main import _main\n"
        "_main(['--help'])\n"
        "_main(['train', '--help'])\n"
        f"_main(['train', {str(config)!r}, '--resume'])\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--stop-after" in done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("decoder_*.toml")), ids=lambda path: path.stem)
def test_every_example_starts(call: Call, tmp_path: Path, path: Path) -> None:
    text = path.read_text()
    if 'kind = "tokens"' in text:
        (tmp_path / "tokens.bin").write_bytes((np.arange(20_000, dtype="<u2") % 256).tobytes())
    copy = tmp_path / path.name
    copy.write_text(text)
    status, out, err = call(copy, "--stop-after", 2)
    assert (status, err) == (0, "")
    assert "1 to 2 of" in out


@pytest.mark.parametrize(
    ("words", "variables", "told"),
    [
        (["--stop-after", "31"], {}, "--stop-after: the run has no such step"),
        ([], {"WORLD_SIZE": "2"}, "training.processes: started by another launcher"),
    ],
)
def test_what_is_refused_leaves_no_folder(
    config: Path, tmp_path: Path, words: list[str], variables: dict[str, str], told: str
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flopwitness", "train", str(config), "--out", str(out), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | variables, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"flopwitness: {told}")
    assert not out.exists()


@pytest.mark.parametrize("key", ["layers", "d_model", "steps", "seed", "learning_rate", "every"])
def test_a_number_of_very_many_digits_is_refused_in_one_line(call: Call, config: Path, key: str) -> None:
    lines = [
        f"{key} = 0x{'f' * 5000}" if line.startswith(f"{key} =") else line for line in CONFIG.splitlines()
    ]
    config.write_text("\n".join(lines))
    status, out, err = call(config)
    assert (status, out) == (2, "")
    assert f".{key}: " in err
    assert err.count("\n") == 1


def test_stopping_before_the_first_step_keeps_the_initial_weights(
    call: Call, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert call(config, "--out", out, "--stop-after", 0)[0] == 0
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-000000"]
    assert call(config, "--out", out, "--resume")[0] == 0
