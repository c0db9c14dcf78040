"""The learning rate as a function of the step."""

import itertools
import math
from collections.abc import Callable

import pytest

from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.schedule import learning_rate

Make = Callable[..., RunConfig]


def _rates(run: RunConfig) -> list[float]:
    return [learning_rate(run, step) for step in range(run.training.steps)]


def test_constant(make_run: Make) -> None:
    assert set(_rates(make_run())) == {0.01}


def test_a_warm_up_starts_at_zero_and_ends_at_the_highest(make_run: Make) -> None:
    rates = _rates(make_run(schedule__warmup_steps=4))
    assert rates[:5] == [0.0, 0.0025, 0.005, 0.0075, 0.01]
    assert set(rates[4:]) == {0.01}


def test_warm_up_alone(make_run: Make) -> None:
    assert _rates(make_run(schedule__warmup_steps=24))[-1] == 0.01 * (23 / 24)


@pytest.mark.parametrize("kind", ["linear", "cosine"])
@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
def test_the_last_step_has_exactly_the_final_fraction(make_run: Make, kind: str, final: float) -> None:
    run = make_run(schedule__kind=kind, schedule__warmup_steps=3, schedule__final_fraction=final)
    rates = _rates(run)
    assert rates[3] == 0.01
    assert rates[-1] == 0.01 * final
    assert all(earlier >= later for earlier, later in itertools.pairwise(rates[3:]))


def test_linear(make_run: Make) -> None:
    rates = _rates(make_run(training__steps=5, schedule__kind="linear"))
    assert rates == pytest.approx([0.01, 0.0075, 0.005, 0.0025, 0.0], rel=1e-15)


def test_cosine_is_the_cosine(make_run: Make) -> None:
    run = make_run(training__steps=1_000, schedule__kind="cosine", optimizer__learning_rate=1.0)
    expected = [(1 + math.cos(math.pi * step / 999)) / 2 for step in range(1_000)]
    assert _rates(run) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_cosine_golden_values(make_run: Make) -> None:
    run = make_run(schedule__kind="cosine")
    assert [learning_rate(run, step).hex() for step in (1, 7, 12, 22)] == [
        "0x1.46276b964b041p-7",
        "0x1.0252c40ca0946p-7",
        "0x1.31517dcfdec81p-8",
        "0x1.86a8e4964394ap-15",
    ]


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_one_step_has_the_highest_rate(make_run: Make, kind: str) -> None:
    assert _rates(make_run(training__steps=1, schedule__kind=kind)) == [0.01]
