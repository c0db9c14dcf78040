"""How declared steps are carried out: what may differ between a prover and its verifier without a lie.

The declaration says what is computed. These settings change the order of additions, and so the last bits,
and nothing else: a verifier replays a segment under several of them to learn how far honest results can lie
apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from flopwitness.counting.training import AttentionKernel
from flopwitness.foundation.errors import InputError
from flopwitness.trainers.config import RunConfig

__all__ = ["AttentionBackend", "Execution", "ScaleDecision"]


class AttentionBackend(StrEnum):
    """Which kernel computes attention."""

    FUSED = "fused"  # flash attention, or the memory-efficient kernel where flash does not go
    MATH = "math"  # products and a softmax, one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDecision:
    """What was decided about the loss scale in one step of an fp16 run.

    Attributes:
        exponent: The loss was multiplied by two to this power.
        is_skipped: The gradient was not finite, so nothing was updated.
    """

    exponent: int
    is_skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The settings of one carrying out.

    Attributes:
        threads: Threads within one operation.
        attention: The kernel of attention.
        has_onednn: Products on a CPU may go through oneDNN.
        parts: Every pass is cut into so many, whose gradients are added.
        scales: For fp16: decisions to take over by step, in place of one's own.
    """

    threads: int
    attention: AttentionBackend
    has_onednn: bool = True
    parts: int = 1
    scales: Mapping[int, ScaleDecision] = field(default_factory=dict)

    @classmethod
    def declared(cls, run: RunConfig) -> "Execution":
        """The settings that the run declares."""
        is_fused = run.training.kernel is AttentionKernel.FUSED
        return cls(
            threads=run.threads, attention=AttentionBackend.FUSED if is_fused else AttentionBackend.MATH
        )

    def check(self, run: RunConfig) -> None:
        """Refuse settings that the run cannot be carried out with.

        Raises:
            InputError: More parts than a pass has rows, or no threads.
        """
        if not 1 <= self.parts <= run.training.batch:
            raise InputError(
                "cannot be cut so",
                where="parts",
                expected=f"1 to {run.training.batch}",
                found=str(self.parts),
            )
        if self.threads < 1:
            raise InputError("no threads", where="threads", expected="1 or more", found=str(self.threads))
