"""What a step came to, and the port through which others look on: recorders, meters, logs, checkpoints.

The records know no PyTorch, so that what shows them need not load it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flopwitness.trainers.order import RowPlan
    from flopwitness.trainers.state import TrainState

__all__ = ["Observer", "OutcomeList", "StepOutcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """One step, done.

    Attributes:
        step: Its number, counted from 0.
        loss: Mean cross-entropy over all processes, before the update [nat].
        learning_rate: The rate.
        gradient_norm: The gradient's norm before it was cut to size; infinite where it overflowed.
        rows: The numbers of its rows, over all processes, in the order of their use.
        tokens: Tokens trained on, over all processes.
        scale_exponent: fp16: the loss was multiplied by two to this power; else None.
        is_skipped: fp16: the gradient was not finite, so nothing was updated.
        duration_ns: How long it took, by a monotonic clock [ns].
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    rows: tuple[int, ...]
    tokens: int
    scale_exponent: int | None
    is_skipped: bool
    duration_ns: int


class Observer(Protocol):
    """Who looks on at the boundaries of steps, in the process that plays rank 0.

    The next step begins when the method returns. What it raises ends the run. The state's tensors are the
    live ones: they hold still during the call, and what is needed later must be copied. They must not be
    changed.
    """

    def start(self, state: "TrainState", plan: "RowPlan") -> None:
        """Called once, before the first step.

        Args:
            state: What the first step starts from.
            plan: Which rows each step takes, and their tokens: `plan.tokens(outcome.rows)`.
        """

    def after_step(self, outcome: StepOutcome, state: "TrainState") -> None:
        """Called after every step.

        Args:
            outcome: What the step came to.
            state: What the next step starts from.
        """


class OutcomeList:
    """An observer that keeps what every step came to, for stretches that are not long."""

    def __init__(self) -> None:
        self.outcomes: list[StepOutcome] = []

    def start(self, state: "TrainState", plan: "RowPlan") -> None:
        """Nothing has come to anything yet."""

    def after_step(self, outcome: StepOutcome, state: "TrainState") -> None:
        """Keep the outcome."""
        del state
        self.outcomes.append(outcome)
