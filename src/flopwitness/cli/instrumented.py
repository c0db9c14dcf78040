"""One pass of a run's training, counted operator by operator, to hold the closed form against."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flopwitness.counting.step import StepCount, count_step
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.integrations.operation_count import OperationCount
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.requirement import require_torch
from flopwitness.trainers.config import DataConfig, DataKind, Device, Precision, RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.memory import check_memory

__all__ = ["InstrumentedPass", "count_instrumented", "tell_instrumented"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentedPass:
    """One pass, counted twice.

    Attributes:
        rows: Rows of the pass.
        closed: The count from shapes.
        seen: The count of what ran.
    """

    rows: int
    closed: StepCount
    seen: OperationCount


def count_instrumented(data: bytes, *, where: str) -> InstrumentedPass:
    """Train one pass of a configuration on this computer's processor, and count what runs.

    The pass is one process's, of random tokens: what runs depends on shapes alone, so neither the data nor
    the device, nor how often passes are repeated, matters for its count.

    Args:
        data: The configuration.
        where: The file to name in an error.

    Raises:
        InputError: The trainer does not train it, or PyTorch is not installed.
    """
    try:
        run = _one_pass(decode_run(data, where=where))
    except InputError as error:
        raise InputError(
            "this is not trained here, so nothing can be instrumented", where="--torch", found=str(error)
        ) from error
    check_memory(run)
    require_torch()
    from flopwitness.trainers.prepared import prepare_run  # noqa: PLC0415 (loads PyTorch)
    from flopwitness.trainers.trainer import Trainer  # noqa: PLC0415 (see above)

    prepared = prepare_run(run, folder=Path())
    trainer = Trainer(run, prepared.source, prepared.randomness)
    counter = OperationCounter()
    with counter:
        trainer.train(stop=1)
    return InstrumentedPass(
        rows=run.training.batch, closed=count_step(run.model, run.training), seen=counter.count()
    )


def _one_pass(run: RunConfig) -> RunConfig:
    return replace(
        run,
        training=replace(run.training, accumulation=1, processes=1, steps=1),
        device=Device.CPU,
        precision=Precision.FP32 if run.precision is Precision.TF32 else run.precision,
        data=DataConfig(kind=DataKind.RANDOM),
        schedule=replace(run.schedule, warmup_steps=0),
        checkpoint_every=1,
    )


def tell_instrumented(counted: InstrumentedPass) -> Sequence[Finding]:
    """What a reader must know: whether the two counts agree, and whether the instrumented one is whole."""
    findings = []
    pairs = (
        ("once-computed", counted.closed.once_flop, counted.seen.model_flop),
        ("executed", counted.closed.executed_flop, counted.seen.executed_flop),
    )
    for name, closed_flop, seen_flop in pairs:
        if closed_flop != seen_flop:
            findings.append(
                Finding(
                    code="counts-differ",
                    severity=Severity.CONTRADICTION,
                    message=f"{name} FLOP of one pass: the closed form and what ran are not the same",
                    expected=str(closed_flop),
                    found=str(seen_flop),
                )
            )
    hidden = counted.seen.unrecognised
    if hidden:
        names = ", ".join(sorted({row.name for row in hidden}))
        findings.append(
            Finding(
                code="operators-not-recognised",
                severity=Severity.WARNING,
                message=f"{names} ran and may hide products; the instrumented count is no ground truth",
                count=sum(row.calls for row in hidden),
            )
        )
    return findings
