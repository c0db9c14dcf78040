"""The shape of a training run: rows, documents, steps, and what is computed twice."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AttentionKernel", "Checkpointing", "Masking", "OptimizerKind", "Training"]


class Checkpointing(StrEnum):
    """Which activations are thrown away in the forward pass and computed again in the backward pass."""

    NONE = "none"
    ATTENTION = "attention"  # the scores and their product with the values, "selective" elsewhere
    LAYERS = "layers"  # every layer's whole forward pass


class AttentionKernel(StrEnum):
    """How the backward pass of attention gets the scores that it needs."""

    FUSED = "fused"  # computes them again: five products in place of four
    UNFUSED = "unfused"  # kept them


class Masking(StrEnum):
    """Which pairs of a query and a key the kernel computes."""

    DENSE = "dense"  # all of a row, padding and other documents included, masked afterwards
    DOCUMENTS = "documents"  # those of one document ("varlen"), so cost is the sum of squares


class OptimizerKind(StrEnum):
    """The optimizer; its element-wise operations are counted apart from products."""

    ADAMW = "adamw"
    SGD = "sgd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a run does with its model.

    A step is one update of the weights: `processes` x `accumulation` x `batch` rows.

    Attributes:
        batch: Rows that one process takes in one pass.
        accumulation: Passes whose gradients are added before an update.
        processes: Data-parallel processes.
        steps: Updates of the weights.
        documents: Lengths of the documents in each row [token]; empty is one document that fills the row.
            What they leave of the row is padding.
        masking: Which pairs the attention kernel computes.
        checkpointing: What is computed again in the backward pass.
        kernel: Whether attention's backward pass computes the scores again.
        optimizer: The optimizer.
        has_momentum: Whether SGD keeps a momentum; AdamW always keeps two moments.
        has_decay: Whether the weights decay.
    """

    batch: int
    accumulation: int = 1
    processes: int = 1
    steps: int = 1
    documents: tuple[int, ...] = ()
    masking: Masking = Masking.DOCUMENTS
    checkpointing: Checkpointing = Checkpointing.NONE
    kernel: AttentionKernel = AttentionKernel.FUSED
    optimizer: OptimizerKind = OptimizerKind.ADAMW
    has_momentum: bool = False
    has_decay: bool = False

    @property
    def rows_per_step(self) -> int:
        """Rows between two updates."""
        return self.batch * self.accumulation * self.processes

    @property
    def rows(self) -> int:
        """Rows in the whole run."""
        return self.rows_per_step * self.steps
