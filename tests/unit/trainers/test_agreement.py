"""Whether processes that hold different weights are found out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers.agreement import AgreementCheck, is_boundary
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.group import PlayedGroup
from flopwitness.trainers.observer import StepOutcome
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.trainer import Trainer

OUTCOME = StepOutcome(
    step=0,
    loss=1.0,
    learning_rate=0.1,
    gradient_norm=1.0,
    rows=(),
    tokens=1,
    scale_exponent=None,
    is_skipped=False,
    duration_ns=1,
)


class _Others:
    """A group whose other processes hand in what they are told to."""

    def __init__(self, others: Sequence[float] | None) -> None:
        self.size: int = 3
        self.ranks: Sequence[int] = (0,)
        self._others = others
        self.asked = 0

    def sum_in_order(self, gradients: Sequence[torch.Tensor]) -> None:
        raise NotImplementedError

    def gather(self, values: Sequence[float]) -> list[float]:
        self.asked += 1
        others = self._others if self._others is not None else [values[0]] * 2
        return [*values, *others]


@pytest.fixture
def state(make_run: Callable[..., RunConfig], make_trainer: Callable[..., Trainer]) -> TrainState:
    return replace(make_trainer(make_run()).state, step=10)


def test_a_checkpoint_is_due_at_every_so_many_steps_and_at_the_end() -> None:
    assert [step for step in range(1, 12) if is_boundary(step, every=4, stop=11)] == [4, 8, 11]


def test_processes_that_agree_go_on(state: TrainState) -> None:
    group = _Others(None)
    AgreementCheck(group, every=5, stop=20).after_step(OUTCOME, state)
    assert group.asked == 1


def test_one_that_differs_is_named(state: TrainState) -> None:
    with pytest.raises(BackendError, match="process 1: the processes hold different weights"):
        AgreementCheck(_Others([1.0, 2.0]), every=5, stop=20).after_step(OUTCOME, state)


def test_a_single_changed_bit_is_seen(state: TrainState) -> None:
    marks: list[float] = []

    class _Noting(_Others):
        def gather(self, values: Sequence[float]) -> list[float]:
            marks.extend(values)
            return list(values) * 3

    check = AgreementCheck(_Noting(None), every=5, stop=20)
    check.after_step(OUTCOME, state)
    weights = dict(state.weights)
    changed = weights["head.weight"].detach().clone()
    changed.view(torch.int32)[0, 0] ^= 1
    weights["head.weight"] = changed
    check.after_step(OUTCOME, replace(state, weights=weights))
    assert marks[0] != marks[1]


def test_nothing_is_asked_between_checkpoints_or_of_oneself(state: TrainState) -> None:
    group = _Others([1.0, 2.0])
    AgreementCheck(group, every=4, stop=20).after_step(OUTCOME, state)
    assert group.asked == 0
    AgreementCheck(PlayedGroup(3), every=5, stop=20).after_step(OUTCOME, state)
