"""The log of losses: exact lines, and cut back to the checkpoint."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError
from flopwitness.trainers.losses import LossLog, encode_outcome
from flopwitness.trainers.observer import StepOutcome

OUTCOME = StepOutcome(
    step=0,
    loss=0.1 + 0.2,
    learning_rate=1e-3,
    gradient_norm=2.5,
    rows=(1, 2),
    tokens=16,
    scale_exponent=None,
    is_skipped=False,
    duration_ns=1 << 60,
)


def _write(path: Path, steps: range, *, done: int = 0) -> None:
    log = LossLog(path, steps_done=done)
    for step in steps:
        log.add(replace(OUTCOME, step=step))
    log.flush()
    log.close()


def test_a_line_is_exact() -> None:
    record = json.loads(encode_outcome(OUTCOME))
    assert float(record["loss"]) == OUTCOME.loss
    assert record["duration_ns"] == str(1 << 60)
    assert (record["step"], record["learning_rate"], record["tokens"]) == (0, "0.001", 16)
    assert "skipped" not in record


def test_an_fp16_line_says_what_became_of_the_scale() -> None:
    outcome = replace(OUTCOME, scale_exponent=12, is_skipped=True, gradient_norm=math.inf)
    record = json.loads(encode_outcome(outcome))
    assert (record["scale_exponent"], record["skipped"], record["gradient_norm"]) == (12, True, "inf")


def test_the_log_is_cut_back_to_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    _write(path, range(5))
    with path.open("ab") as file:
        file.write(b'{"step":5,"lo')  # torn by a kill
    _write(path, range(3, 4), done=3)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]
    _write(path, range(1), done=0)
    assert len(path.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:2],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], b"rubbish\n", *lines[2:]],
        lambda lines: [lines[0], b"[1]\n", *lines[2:]],
        lambda lines: [*lines[:2], lines[2][:-1]],
        lambda lines: [],
    ],
)
def test_a_log_that_lacks_a_step_is_refused(tmp_path: Path, change: object) -> None:
    path = tmp_path / "losses.jsonl"
    _write(path, range(3))
    assert callable(change)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    before = path.read_bytes()
    with pytest.raises(DecodeError, match="a step is missing"):
        LossLog(path, steps_done=3)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        LossLog(tmp_path / "none" / "losses.jsonl", steps_done=0)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot be written"):
        LossLog(tmp_path / "link", steps_done=0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110 (a device)
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    log = LossLog(tmp_path / "losses.jsonl", steps_done=0)
    log._file.close()
    full: Any = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115 (closed below)
    log._file = full
    with pytest.raises(FlopwitnessError, match="No space left"):
        log.add(OUTCOME)
    log.close()
