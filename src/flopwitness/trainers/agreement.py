"""Whether all processes hold the same weights: they make the same updates, so anything else is a fault."""

import hashlib

import torch

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers.group import Group
from flopwitness.trainers.observer import StepOutcome
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.state import TrainState

__all__ = ["AgreementCheck", "is_boundary"]

_COMPARED_BYTES = 6  # as many as a double holds exactly


def is_boundary(step: int, *, every: int, stop: int) -> bool:
    """Whether a checkpoint is due after so many steps."""
    return step % every == 0 or step == stop


class AgreementCheck:
    """An observer in every process that compares the weights where a checkpoint is due."""

    def __init__(self, group: Group, *, every: int, stop: int) -> None:
        self._group, self._every, self._stop = group, every, stop

    def start(self, state: TrainState, plan: RowPlan) -> None:
        """Nothing has been updated yet."""

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        """Compare the weights of all processes.

        Raises:
            BackendError: They are not the same.
        """
        del outcome
        if self._group.size == len(self._group.ranks):
            return
        if is_boundary(state.step, every=self._every, stop=self._stop):
            marks = self._group.gather([_mark(state)])
            if len(set(marks)) > 1:
                odd = next(rank for rank, mark in enumerate(marks) if mark != marks[0])
                raise BackendError("the processes hold different weights", where=f"process {odd}")


def _mark(state: TrainState) -> float:
    """A number that differs where the weights differ, but for one chance in 2^48."""
    digest = hashlib.sha256()
    for tensor in state.weights.values():
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return float(int.from_bytes(digest.digest()[:_COMPARED_BYTES], "big"))
