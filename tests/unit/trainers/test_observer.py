"""The port for those who look on."""

from collections.abc import Callable

import pytest
import torch

from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.observer import OutcomeList, StepOutcome
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]


class _Recorder:
    """An observer that copies all it is shown."""

    def __init__(self) -> None:
        self.states: list[TrainState] = []
        self.rows: list[tuple[int, ...]] = []
        self.tokens: list[int] = []

    def start(self, state: TrainState, plan: RowPlan) -> None:
        self.states.append(state.copy())
        self._plan = plan

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        self.states.append(state.copy())
        self.rows.append(outcome.rows)
        self.tokens.append(int(self._plan.tokens(outcome.rows).sum()))


def test_an_observer_sees_every_boundary_and_the_data(
    make_run: Make, make_trainer: Callable[..., Trainer]
) -> None:
    trainer, recorder, outcomes = make_trainer(make_run()), _Recorder(), OutcomeList()
    trainer.train(stop=3, observers=[recorder, outcomes])
    assert [state.step for state in recorder.states] == [0, 1, 2, 3]
    assert [outcome.step for outcome in outcomes.outcomes] == [0, 1, 2]
    assert recorder.rows == [trainer.plan.rows(step) for step in range(3)]
    assert len(set(recorder.tokens)) == 3
    weights = [state.weights["head.weight"] for state in recorder.states]
    assert not torch.equal(weights[0], weights[1])
    assert torch.equal(weights[3], trainer.state.weights["head.weight"])


def test_what_an_observer_raises_ends_the_run(make_run: Make, make_trainer: Callable[..., Trainer]) -> None:
    class _Full(OutcomeList):
        def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
            super().after_step(outcome, state)
            raise OSError("full")

    observer = _Full()
    with pytest.raises(OSError, match="full"):
        make_trainer(make_run()).train(stop=3, observers=[observer])
    assert len(observer.outcomes) == 1
