"""The line that a terminal shows, and the silence in a pipe."""

import io
from typing import Any

import pytest
from rich.console import Console

from flopwitness.present.training_progress import TrainingProgress
from flopwitness.trainers.observer import StepOutcome

OUTCOME = StepOutcome(
    step=4,
    loss=1.23456,
    learning_rate=0.1,
    gradient_norm=1.0,
    rows=(0,),
    tokens=1_000,
    scale_exponent=None,
    is_skipped=False,
    duration_ns=100_000_000,
)


class _State:
    """As much of a state as the line needs."""

    step = 5


def _watch(*, is_terminal: bool) -> str:
    file, state = io.StringIO(), _State()
    shown: Any = state
    console = Console(file=file, force_terminal=is_terminal, width=100)
    with TrainingProgress(console, steps=60, executed_flop=10**9) as progress:
        progress.start(shown, shown)
        progress.after_step(OUTCOME, shown)
    return file.getvalue()


def test_a_terminal_shows_step_loss_and_rates() -> None:
    shown = _watch(is_terminal=True)
    assert "step 5 of 60   loss 1.2346   1.0e4 token/s   1.0e10 FLOP/s" in shown


def test_a_pipe_shows_nothing() -> None:
    assert _watch(is_terminal=False) == ""


def test_the_line_is_taken_away_after_a_failure() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    with pytest.raises(RuntimeError), TrainingProgress(console, steps=6, executed_flop=1):
        raise RuntimeError
    assert "\x1b[?25h" in file.getvalue()
