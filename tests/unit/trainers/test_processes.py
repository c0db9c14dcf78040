"""Several processes: the same bits as one that plays them all, one clear end, and nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from flopwitness.foundation.errors import BackendError, InputError
from flopwitness.trainers.checkpoint import load_checkpoint
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.loop import TrainRequest, train_run
from flopwitness.trainers.observer import OutcomeList, StepOutcome
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.process_child import ProcessJob
from flopwitness.trainers.processes import join_processes
from flopwitness.trainers.report import StepFlop, TrainingReport
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.trainer import Trainer

MakeTrainer = Callable[..., Trainer]

TWO: dict[str, Any] = {
    "training__processes": 2,
    "training__accumulation": 2,
    "training__clip_norm": 0.5,
    "training__steps": 8,
    "model__dropout": 0.1,
    "checkpoints__every": 4,
}


@pytest.fixture
def request_for(config_bytes: Callable[..., bytes], tmp_path: Path) -> Callable[..., TrainRequest]:
    """A function that asks for a run of two processes."""

    def make(changes: dict[str, Any] | None = None, **settings: Any) -> TrainRequest:  # noqa: ANN401
        data = config_bytes(**{**TWO, **(changes or {})})
        return TrainRequest(
            data=data,
            run=decode_run(data),
            where="run.toml",
            folder=tmp_path,
            flop=StepFlop(model_flop=1, executed_flop=1),
            **settings,
        )

    return make


def _train(request: TrainRequest, *observers: OutcomeList) -> TrainingReport:
    before = dict(os.environ)
    report = train_run(request, observers=observers)
    assert dict(os.environ) == before
    assert not active_children()
    assert not dist.is_initialized()
    return report


def test_two_processes_stopped_and_resumed_give_the_bits_of_one_that_plays_both(
    request_for: Callable[..., TrainRequest], make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert _train(request_for(out=out, stop_after=3)).last_step == 3
    request = request_for(out=out, is_resumed=True)
    assert _train(request).first_step == 3
    played = make_trainer(request.run)
    played.train(stop=8)
    identity = prepare_run(request.run, folder=tmp_path).identity
    joined = load_checkpoint(out / "checkpoints" / "step-000008", request.run, identity)
    for (name, one), (_, other) in zip(joined.buffers(), played.state.buffers(), strict=True):
        assert torch.equal(one, other), name


class _Killing(OutcomeList):
    """Ends the other process after a step."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self._number = number

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        super().after_step(outcome, state)
        if state.step == 2:
            for child in active_children():
                assert child.pid is not None
                os.kill(child.pid, self._number)


def test_a_killed_process_ends_the_run_with_one_error(
    request_for: Callable[..., TrainRequest], tmp_path: Path
) -> None:
    request = request_for(out=tmp_path / "out")
    with pytest.raises(BackendError, match=r"process 1: a process failed.*signal 9"):
        train_run(request, observers=[_Killing(signal.SIGKILL)])
    assert not active_children()
    assert not dist.is_initialized()
    names = sorted(path.name for path in (tmp_path / "out" / "checkpoints").iterdir())
    assert names == ["step-000000"]


class _Failing(OutcomeList):
    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        raise RuntimeError("odd")


def test_a_failure_here_ends_the_others(request_for: Callable[..., TrainRequest]) -> None:
    with pytest.raises(RuntimeError, match="odd"):
        train_run(request_for(), observers=[_Failing()])
    assert not active_children()
    assert not dist.is_initialized()


def test_a_process_that_cannot_start_is_explained(
    request_for: Callable[..., TrainRequest], tmp_path: Path
) -> None:
    request = request_for()
    job = ProcessJob(data=b"spec = 1", where="run.toml", folder=tmp_path, binding=b"", start=None, stop=1)
    with (
        pytest.raises(BackendError, match=r"process 1: a process failed.*run\.toml, spec: bad value"),
        join_processes(request.run, job),
    ):
        pass
    assert not active_children()


def _job(run: RunConfig) -> ProcessJob:
    del run
    return ProcessJob(data=b"", where="", folder=Path(), binding=b"", start=None, stop=0)


def test_one_process_starts_no_other(make_run: Callable[..., RunConfig]) -> None:
    run = make_run()
    with join_processes(run, _job(run), variables={"WORLD_SIZE": "1"}) as group:
        assert (group.size, list(group.ranks)) == (1, [0])
        assert not active_children()


@pytest.mark.parametrize("processes", [1, 2])
def test_another_launcher_is_refused(make_run: Callable[..., RunConfig], processes: int) -> None:
    run = make_run(training__processes=processes)
    with (
        pytest.raises(InputError, match="another launcher"),
        join_processes(run, _job(run), variables={"WORLD_SIZE": "2", "RANK": "0"}),
    ):
        pass


_PARENT = """
import sys, time
from pathlib import Path
from multiprocessing import active_children
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.process_child import ProcessJob
from flopwitness.trainers.processes import join_processes

if __name__ == "__main__":
    data = Path(sys.argv[1]).read_bytes()
    job = ProcessJob(data=data, where="", folder=Path(), binding=b"", start=None, stop=8)
    with join_processes(decode_run(data), job):
        print(active_children()[0].pid, flush=True)
        time.sleep(60)
"""


def test_others_end_with_a_process_that_is_killed(config_bytes: Callable[..., bytes], tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(config_bytes(**TWO))
    (tmp_path / "parent.py").write_text(_PARENT)
    with subprocess.Popen(
        [sys.executable, tmp_path / "parent.py", tmp_path / "run.toml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # a killed process leaves its private folder
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and _is_alive(child):
        time.sleep(0.05)
    assert not _is_alive(child)


def _is_alive(number: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
