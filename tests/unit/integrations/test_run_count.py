"""Spans add and widen; a run knows how its steps were counted."""

import pytest

from flopwitness.integrations.operation_count import OperationCount, Work
from flopwitness.integrations.run_count import RunCount, Span, StepKind


def _kind(*, low: int = 5, high: int = 5, failed: int = 0) -> StepKind:
    return StepKind(
        description="steps",
        counted=2,
        multiplied=7,
        failed=failed,
        executed=Span(low_flop=low, high_flop=high),
    )


def _run(*kinds: StepKind) -> RunCount:
    span = Span(low_flop=0, high_flop=0)
    return RunCount(count=OperationCount(work=Work()), model=span, executed=span, kinds=kinds, notes=())


def test_spans() -> None:
    span = Span(low_flop=2, high_flop=3)
    assert span + span == span * 2 == Span(low_flop=4, high_flop=6)
    assert span.widened(1) == Span(low_flop=1, high_flop=3)
    assert span.widened(9) == Span(low_flop=2, high_flop=9)
    assert span.widened(2) == span


def test_steps_are_counted_or_multiplied() -> None:
    run = _run(_kind(), _kind(failed=3))
    assert (run.counted_steps, run.multiplied_steps, run.steps, run.failed_steps) == (4, 14, 18, 3)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (_kind(), True),
        (_kind(low=4), False),
        (_kind(failed=1), False),
        (StepKind(description="", counted=0, multiplied=0, failed=1, executed=None), False),
    ],
)
def test_what_is_constant(kind: StepKind, *, answer: bool) -> None:
    assert _run(_kind(), kind).is_constant is answer


def test_a_kind_that_was_counted_once_and_multiplied_is_not_constant() -> None:
    span = Span(low_flop=5, high_flop=5)
    once = StepKind(description="", counted=1, multiplied=3, failed=0, executed=span)
    alone = StepKind(description="", counted=1, multiplied=0, failed=0, executed=span)
    assert (once.is_checked, once.is_constant) == (False, False)
    assert (alone.is_checked, alone.is_constant) == (True, True)
    assert (_run(alone, once).is_checked, _run(alone).is_checked) == (False, True)
