"""One line on a terminal that says how far a training run is; nothing in a pipe."""

from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.present.training_text import format_rate
from flopwitness.trainers.observer import StepOutcome

if TYPE_CHECKING:
    from flopwitness.trainers.order import RowPlan
    from flopwitness.trainers.state import TrainState

__all__ = ["TrainingProgress"]

_OLD_SHARE: Final = 0.9  # of the rate shown, so that one slow step does not make it jump


class TrainingProgress:
    """An observer of a training run with a line of its own, as long as its context lasts."""

    def __init__(self, console: Console, *, steps: int, executed_flop: int) -> None:
        """Set up the line.

        Args:
            console: Where it stands; shown only if that is a terminal.
            steps: Steps of the whole run.
            executed_flop: Executed FLOP of one step.
        """
        self._steps, self._executed_flop = steps, executed_flop
        self._step_ns: float | None = None
        self._live = (
            Live(console=console, transient=True, refresh_per_second=8) if console.is_terminal else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def start(self, state: "TrainState", plan: "RowPlan") -> None:
        """Say where the run starts."""
        del plan
        self._show(f"step {state.step:,} of {self._steps:,}")

    def after_step(self, outcome: StepOutcome, state: "TrainState") -> None:
        """Say what the step came to."""
        took_ns = float(outcome.duration_ns)
        old_ns = took_ns if self._step_ns is None else self._step_ns
        self._step_ns = _OLD_SHARE * old_ns + (1 - _OLD_SHARE) * took_ns
        if self._live is None:
            return
        per_second = NANOSECOND_PER_SECOND / max(self._step_ns, 1.0)
        words = [
            f"step {state.step:,} of {self._steps:,}",
            f"loss {outcome.loss:.4f}",
            format_rate(outcome.tokens * per_second, "token"),
            format_rate(self._executed_flop * per_second, "FLOP"),
        ]
        self._show("   ".join(words))

    def _show(self, line: str) -> None:
        if self._live:
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"))
