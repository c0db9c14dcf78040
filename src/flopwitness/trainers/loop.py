"""A declared run from its start, or from its newest checkpoint, to its end, with all that is kept of it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flopwitness.counting.parameters import count_parameters
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.trainers.agreement import AgreementCheck, is_boundary
from flopwitness.trainers.checkpoint import save_checkpoint
from flopwitness.trainers.checkpoint_record import RunIdentity
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.environment import describe_environment
from flopwitness.trainers.losses import LossLog
from flopwitness.trainers.memory import check_memory
from flopwitness.trainers.observer import Observer, StepOutcome
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.prepared import PreparedRun, prepare_run
from flopwitness.trainers.process_child import ProcessJob
from flopwitness.trainers.processes import check_launcher, join_processes
from flopwitness.trainers.report import StepFlop, TrainingReport
from flopwitness.trainers.run_folder import FoundState, RunFolder, open_folder
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.torch_settings import choose_device
from flopwitness.trainers.trainer import Trainer

__all__ = ["TrainRequest", "train_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What `train` is asked.

    Attributes:
        data: The configuration as it stands.
        run: The same, decoded.
        where: Its name in errors.
        folder: Where it lies: relative paths in it start there.
        flop: What one step takes.
        out: The run's folder; None keeps nothing.
        is_resumed: The folder holds the run's beginning.
        stop_after: Steps of the run after which to stop; None is its end.
        binding: What the seed is bound to; empty for nothing.
    """

    data: bytes
    run: RunConfig
    where: str
    folder: Path
    flop: StepFlop
    out: Path | None = None
    is_resumed: bool = False
    stop_after: int | None = None
    binding: bytes = b""


def train_run(request: TrainRequest, *, observers: Sequence[Observer] = ()) -> TrainingReport:
    """Train, and keep what the run's folder keeps.

    Args:
        request: What is asked.
        observers: Who looks on, after the run's own log and before its checkpoint.

    Returns:
        What was done. A run that is complete already is not touched.

    Raises:
        InputError: The data, the folder, or the step to stop at does not fit the run.
        OutOfRangeError: The loss or the gradient is not finite; the last checkpoint stands.
        SourceUnavailableError: The declared device is not there.
        BackendError: One of several processes failed.

    Side effects:
        Writes the run's folder; starts and ends processes where the run has several.
    """
    run = request.run
    _check_stop(request)
    check_launcher()
    choose_device(run, rank=run.training.processes - 1)
    check_memory(run)
    prepared = prepare_run(run, folder=request.folder, binding=request.binding)
    with ExitStack() as stack:
        folder, found = None, None
        if request.out is not None:
            folder = stack.enter_context(
                open_folder(request.out, request.data, run, is_resumed=request.is_resumed)
            )
            found = folder.find_newest(run, prepared.identity)
        first = found.state.step if found else 0
        stop = max(first, run.training.steps if request.stop_after is None else request.stop_after)
        findings = _tell_damaged(found)
        if folder is not None:
            findings += _note_environment(folder, run, first)
        meter = _Meter()
        if stop > first or (folder is not None and found is None):
            _carry_out(request, prepared, folder, found, stop, [meter, *observers])
        return _report(request, prepared, folder, found, meter, findings)


def _check_stop(request: TrainRequest) -> None:
    steps, stop = request.run.training.steps, request.stop_after
    if stop is not None and not 0 <= stop <= steps:
        raise InputError(
            "the run has no such step", where="--stop-after", expected=f"0 to {steps}", found=str(stop)
        )


def _carry_out(
    request: TrainRequest,
    prepared: PreparedRun,
    folder: RunFolder | None,
    found: FoundState | None,
    stop: int,
    observers: Sequence[Observer],
) -> None:
    run = request.run
    job = ProcessJob(
        data=request.data,
        where=request.where,
        folder=request.folder,
        binding=request.binding,
        start=found.path if found else None,
        stop=stop,
    )
    with join_processes(run, job) as group, _open_keeper(prepared, folder, found, stop) as keepers:
        trainer = Trainer(run, prepared.source, prepared.randomness, group=group)
        if found is not None:
            trainer.load(found.state)
        check = AgreementCheck(group, every=run.checkpoint_every, stop=stop)
        log, saver = keepers
        trainer.train(stop=stop, observers=[check, *log, *observers, *saver])


@contextmanager
def _open_keeper(
    prepared: PreparedRun, folder: RunFolder | None, found: FoundState | None, stop: int
) -> Iterator[tuple[list[Observer], list[Observer]]]:
    """What keeps the run: who comes before the other observers, and who after them."""
    if folder is None:
        yield [], []
        return
    log = LossLog(folder.losses, steps_done=found.state.step if found else 0)
    try:
        yield [_Logging(log)], [_Saving(prepared.run, prepared.identity, folder, log, stop)]
    finally:
        log.close()


class _Logging:
    """An observer that writes the log."""

    def __init__(self, log: LossLog) -> None:
        self._log = log

    def start(self, state: TrainState, plan: RowPlan) -> None:
        """Nothing to write yet."""

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        """Write the step's line."""
        del state
        self._log.add(outcome)


class _Saving:
    """An observer that writes checkpoints. The log's lines are on the disk before the checkpoint is."""

    def __init__(
        self, run: RunConfig, identity: RunIdentity, folder: RunFolder, log: LossLog, stop: int
    ) -> None:
        self._run, self._identity, self._folder = run, identity, folder
        self._log, self._stop = log, stop

    def start(self, state: TrainState, plan: RowPlan) -> None:
        """Keep the initial state, so that every stretch has a checkpoint at both ends."""
        del plan
        if state.step == 0:
            self._save(state)

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        """Save where a checkpoint is due."""
        del outcome
        if is_boundary(state.step, every=self._run.checkpoint_every, stop=self._stop):
            self._log.flush()
            self._save(state)

    def _save(self, state: TrainState) -> None:
        rows_taken = state.step * self._run.training.rows_per_step
        save_checkpoint(self._folder.checkpoint(state.step), state, self._identity, rows_taken=rows_taken)


class _Meter:
    """An observer that adds up what the report needs."""

    def __init__(self) -> None:
        self.first_loss: float | None = None
        self.last_loss: float | None = None
        self.skipped_steps = 0
        self.duration_ns = 0
        self.steps = 0

    def start(self, state: TrainState, plan: RowPlan) -> None:
        """Nothing has been done yet."""

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        """Add one step."""
        del state
        self.first_loss = outcome.loss if self.first_loss is None else self.first_loss
        self.last_loss = outcome.loss
        self.skipped_steps += outcome.is_skipped
        self.duration_ns += outcome.duration_ns
        self.steps += 1


def _tell_damaged(found: FoundState | None) -> list[Finding]:
    return [
        Finding(
            code="checkpoint-damaged",
            severity=Severity.WARNING,
            message=f"a newer checkpoint is not whole and was passed over: {fault}",
            found=fault,
        )
        for fault in (found.damaged if found else ())
    ]


def _note_environment(folder: RunFolder, run: RunConfig, first: int) -> list[Finding]:
    environment = describe_environment(run, choose_device(run))
    if not folder.note_environment(environment, step=first):
        return []
    return [
        Finding(
            code="environment-changed",
            severity=Severity.NOTE,
            message=(
                "another build, processor or setting than before the checkpoint, so from here on the bits "
                "may be others than those of a run in one go; environment.json says what differs"
            ),
            where=f"step {first}",
        )
    ]


def _report(
    request: TrainRequest,
    prepared: PreparedRun,
    folder: RunFolder | None,
    found: FoundState | None,
    meter: _Meter,
    findings: list[Finding],
) -> TrainingReport:
    first = found.state.step if found else 0
    last = first + meter.steps
    checkpoint = ""
    if folder is not None and (meter.steps or found):
        checkpoint = str(folder.checkpoint(last))
    return TrainingReport(
        run=request.run,
        digest=prepared.identity.config,
        data=prepared.identity.data,
        n_parameters=count_parameters(request.run.model).total,
        flop=request.flop,
        first_step=first,
        last_step=last,
        skipped_steps=meter.skipped_steps,
        first_loss=meter.first_loss,
        last_loss=meter.last_loss,
        duration_s=meter.duration_ns / NANOSECOND_PER_SECOND,
        out=str(folder.path) if folder else "",
        resumed_from=str(found.path) if found else "",
        checkpoint=checkpoint,
        findings=tuple(findings),
    )
