"""What a call of `train` came to, in numbers that follow from each other."""

from collections.abc import Callable

from flopwitness.foundation.digest import digest_bytes
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.report import StepFlop, TrainingReport


def test_counts_are_those_of_the_call(make_run: Callable[..., RunConfig]) -> None:
    report = TrainingReport(
        run=make_run(),
        digest=digest_bytes(b"run"),
        data=digest_bytes(b"data"),
        n_parameters=5,
        flop=StepFlop(model_flop=10**24, executed_flop=2 * 10**24),
        first_step=4,
        last_step=24,
        skipped_steps=0,
        first_loss=2.0,
        last_loss=1.0,
        duration_s=4.0,
        out="",
        resumed_from="",
        checkpoint="",
        findings=(),
    )
    assert (report.steps, report.tokens, report.is_complete) == (20, 640, True)
    assert (report.model_flop, report.executed_flop) == (20 * 10**24, 40 * 10**24)
    assert report.per_second(report.tokens) == 160.0
