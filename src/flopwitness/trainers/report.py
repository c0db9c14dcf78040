"""What a call of `train` came to; knows no PyTorch."""

from dataclasses import dataclass

from flopwitness.foundation.digest import Digest
from flopwitness.foundation.verdict import Finding
from flopwitness.trainers.config import RunConfig

__all__ = ["StepFlop", "TrainingReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFlop:
    """What one step takes, over all processes.

    Attributes:
        model_flop: What the mathematics takes once; attention in full.
        executed_flop: What is computed, with all that is computed again.
    """

    model_flop: int
    executed_flop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What was done.

    Attributes:
        run: The declaration.
        digest: Its digest.
        data: The digest of its data.
        n_parameters: All of them; a tied matrix once.
        flop: What one step takes.
        first_step: Steps that were done before.
        last_step: Steps that are done now.
        skipped_steps: fp16: steps of this call that updated nothing.
        first_loss: The loss of the first step of this call [nat]; None where it did none.
        last_loss: That of its last step.
        duration_s: How long its steps took, without start, checkpoints and logs [s].
        out: The run's folder; "" where nothing was kept.
        resumed_from: The checkpoint that it went on from; "" for the start.
        checkpoint: The newest checkpoint; "" where there is none.
        findings: What is odd.
    """

    run: RunConfig
    digest: Digest
    data: Digest
    n_parameters: int
    flop: StepFlop
    first_step: int
    last_step: int
    skipped_steps: int
    first_loss: float | None
    last_loss: float | None
    duration_s: float
    out: str
    resumed_from: str
    checkpoint: str
    findings: tuple[Finding, ...]

    @property
    def steps(self) -> int:
        """Steps of this call."""
        return self.last_step - self.first_step

    @property
    def tokens(self) -> int:
        """Tokens of this call."""
        return self.steps * self.run.tokens_per_step

    @property
    def model_flop(self) -> int:
        """Model FLOP of this call."""
        return self.steps * self.flop.model_flop

    @property
    def executed_flop(self) -> int:
        """Executed FLOP of this call."""
        return self.steps * self.flop.executed_flop

    @property
    def is_complete(self) -> bool:
        """Whether the declared run is done."""
        return self.last_step == self.run.training.steps

    def per_second(self, count: int) -> float | None:
        """A count of this call as a rate [1/s]; None where no time has passed."""
        return count / self.duration_s if self.duration_s > 0 else None
