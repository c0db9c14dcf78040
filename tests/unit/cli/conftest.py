"""Logs on disk in the form of the MLPerf family, made up here; and the command as a user calls it."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from flopwitness.cli.main import _main

START_MS = 1_700_000_000_000


def line(key: str, value: object = None, *, at_s: float = 0, metadata: object = "") -> str:
    """One event."""
    record = {"time_ms": START_MS + round(at_s * 1_000), "key": key, "value": value, "metadata": metadata}
    return f":::MLLOG {json.dumps(record)}\n"


def power_log(*, mean_w: float, length_s: int, number: int, extra: str = "") -> bytes:
    """The power of one node, a reading every two seconds."""
    readings = (
        line("power_reading", round(mean_w * (1 + 0.05 * math.sin(i / 5 + number)), 3), at_s=i)
        for i in range(0, length_s + 1, 2)
    )
    return (line("power_measurement_start") + extra + "".join(readings)).encode()


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Two nodes of eight H100s for ten minutes, with a result log that marks and declares the run."""
    root = tmp_path / "run"
    (root / "power_ac").mkdir(parents=True)
    for number in (1, 2):
        (root / "power_ac" / f"node_{number}.txt").write_bytes(
            power_log(mean_w=6_000, length_s=600, number=number)
        )
    system = {
        "number_of_nodes": 2,
        "accelerators_per_node": 8,
        "accelerator_model_name": "NVIDIA H100-SXM5-80GB",
    }
    (root / "result.txt").write_text(
        line("submission_benchmark", "bert")
        + line("run_start", at_s=20)
        + line("run_stop", at_s=580, metadata={"status": "success"})
        + f":::SYSJSON {json.dumps(system)}\n"
    )
    return root


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    """Three runs: small, over every threshold, and one of unknown hardware."""
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,chip,count,duration_s,utilisation_pct\n"
        "small,H100 SXM,8,3600,95\n"
        "huge,H100 SXM,1000000,36000000,40\n"
        "odd,Abacus,8,3600,\n"
    )
    return path


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """The command with its arguments: status, standard output, standard error; from an empty folder."""
    empty = tmp_path / "cwd"
    empty.mkdir()
    monkeypatch.chdir(empty)

    def call_it(*arguments: object) -> tuple[int, str, str]:
        status = _main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call_it
