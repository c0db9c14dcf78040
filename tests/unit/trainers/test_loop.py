"""A whole run: what its folder holds, and that stopping it anywhere changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flopwitness.foundation.errors import InputError, OutOfRangeError, SourceUnavailableError
from flopwitness.trainers import loop, trainer
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.loop import TrainRequest, train_run
from flopwitness.trainers.observer import OutcomeList, StepOutcome
from flopwitness.trainers.report import StepFlop, TrainingReport
from flopwitness.trainers.state import TrainState

Make = Callable[..., RunConfig]
Bytes = Callable[..., bytes]

FLOP = StepFlop(model_flop=7, executed_flop=9)


@pytest.fixture
def train(config_bytes: Bytes, tmp_path: Path) -> Callable[..., TrainingReport]:
    """A function that trains a small run in a folder under the test's own."""

    def start(name: str | None, changes: dict[str, Any] | None = None, **settings: Any) -> TrainingReport:  # noqa: ANN401
        data = config_bytes(**{"checkpoints__every": 10, **(changes or {})})
        observers = settings.pop("observers", ())
        request = TrainRequest(
            data=data,
            run=decode_run(data),
            where="run.toml",
            folder=tmp_path,
            flop=FLOP,
            out=None if name is None else tmp_path / name,
            **settings,
        )
        return train_run(request, observers=observers)

    return start


def _checkpoints(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted((path / "checkpoints").rglob("*"))
        if file.is_file()
    }


def test_a_run_and_what_is_kept_of_it(
    train: Callable[..., TrainingReport], tmp_path: Path, config_bytes: Bytes
) -> None:
    report = train("out")
    assert (report.first_step, report.last_step, report.is_complete) == (0, 24, True)
    assert (report.model_flop, report.executed_flop) == (24 * 7, 24 * 9)
    assert report.first_loss is not None
    assert report.last_loss is not None
    assert report.last_loss < report.first_loss
    assert report.checkpoint == str(tmp_path / "out" / "checkpoints" / "step-000024")
    assert report.findings == ()
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "checkpoints",
        "environment.json",
        "losses.jsonl",
        "run.toml",
    ]
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == [
        "step-000000",
        "step-000010",
        "step-000020",
        "step-000024",
    ]
    lines = [json.loads(line) for line in (out / "losses.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(24))
    assert float(lines[-1]["loss"]) == report.last_loss


@pytest.mark.parametrize("stop", [1, 10, 17, 23])
def test_stopped_and_resumed_it_leaves_the_same_bytes(
    train: Callable[..., TrainingReport], tmp_path: Path, stop: int
) -> None:
    train("whole")
    first = train("parts", stop_after=stop)
    assert (first.last_step, first.is_complete) == (stop, False)
    second = train("parts", is_resumed=True)
    assert (second.first_step, second.resumed_from) == (stop, first.checkpoint)
    whole, parts = _checkpoints(tmp_path / "whole"), _checkpoints(tmp_path / "parts")
    assert {name: parts[name] for name in whole} == whole
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "losses.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]


class _Interrupting(OutcomeList):
    """The keyboard, at one step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        if state.step == self._step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("step", [3, 10, 15])
def test_an_interrupt_writes_nothing_half_and_a_resume_goes_on(
    train: Callable[..., TrainingReport], tmp_path: Path, step: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train("out", observers=[_Interrupting(step)])
    report = train("out", is_resumed=True)
    assert (report.first_step, report.last_step) == (0 if step <= 10 else 10, 24)
    train("whole")
    assert _checkpoints(tmp_path / "out") == _checkpoints(tmp_path / "whole")


def test_a_damaged_checkpoint_is_passed_over_told_and_made_again(
    train: Callable[..., TrainingReport], tmp_path: Path
) -> None:
    train("out", stop_after=20)
    damaged = tmp_path / "out" / "checkpoints" / "step-000020" / "optimizer.safetensors"
    good = damaged.read_bytes()
    damaged.write_bytes(good[:-8])
    report = train("out", is_resumed=True)
    assert report.first_step == 10
    (finding,) = report.findings
    assert finding.code == "checkpoint-damaged"
    assert "step-000020" in finding.message
    assert damaged.read_bytes() == good


def test_another_environment_is_told(
    train: Callable[..., TrainingReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    train("out", stop_after=10)
    monkeypatch.setattr(loop, "describe_environment", lambda *_: {"torch": "another"})
    report = train("out", is_resumed=True)
    assert [finding.code for finding in report.findings] == ["environment-changed"]


def test_a_complete_run_is_not_touched(train: Callable[..., TrainingReport], tmp_path: Path) -> None:
    train("out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    report = train("out", is_resumed=True)
    assert (report.steps, report.is_complete, report.first_loss) == (0, True, None)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_without_a_folder_nothing_is_kept(train: Callable[..., TrainingReport], tmp_path: Path) -> None:
    report = train(None, stop_after=2)
    assert (report.out, report.checkpoint, report.last_step) == ("", "", 2)
    assert not list(tmp_path.iterdir())


def test_a_step_to_stop_at_that_is_done_does_nothing(train: Callable[..., TrainingReport]) -> None:
    train("out", stop_after=10)
    report = train("out", is_resumed=True, stop_after=5)
    assert (report.first_step, report.last_step) == (10, 10)


def test_a_step_that_the_run_does_not_have_is_refused(train: Callable[..., TrainingReport]) -> None:
    with pytest.raises(InputError, match="--stop-after"):
        train(None, stop_after=25)


def test_a_seed_that_is_bound_gives_another_run(train: Callable[..., TrainingReport]) -> None:
    plain, bound = train(None, stop_after=1), train(None, stop_after=1, binding=b"nonce")
    assert plain.digest == bound.digest
    assert plain.first_loss != bound.first_loss


def test_a_run_that_diverges_leaves_its_last_checkpoint(
    train: Callable[..., TrainingReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(100))
    monkeypatch.setattr(trainer, "gradient_norm", lambda _: float("nan") if next(calls) == 15 else 1.0)
    with pytest.raises(OutOfRangeError, match="step 15"):
        train("out")
    names = sorted(path.name for path in (tmp_path / "out" / "checkpoints").iterdir())
    assert names == ["step-000000", "step-000010"]


def test_nothing_starts_where_the_data_or_the_device_is_missing(
    train: Callable[..., TrainingReport], tmp_path: Path, drop: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = {"data__kind": "tokens", "data__rows": drop, "data__path": "none.bin", "data__dtype": "uint16"}
    with pytest.raises(InputError, match=r"none\.bin"):
        train("out", tokens)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SourceUnavailableError):
        train("out", {"training__device": "cuda"})
    assert not list(tmp_path.iterdir())


def test_a_model_that_does_not_fit_the_memory_is_refused(
    train: Callable[..., TrainingReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda _: 64)
    with pytest.raises(OutOfRangeError, match="memory"):
        train(None)
