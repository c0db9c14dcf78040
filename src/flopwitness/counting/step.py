"""One training step, counted from shapes: model FLOP and executed FLOP apart.

*Model FLOP* is what the mathematics of the step takes once: useful tokens only, nothing twice, whatever the
implementation. *Executed FLOP* adds what the implementation computes besides: padding, pairs that a mask then
throws away, activations computed again, scores that a fused kernel computes again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from flopwitness.counting.gradients import Component, ComponentCount, add_counts
from flopwitness.counting.layers import Row, RowCounts, count_row
from flopwitness.counting.model import Model
from flopwitness.counting.pairs import count_full_pairs, count_masked_pairs
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.training import (
    AttentionKernel,
    Checkpointing,
    Masking,
    OptimizerKind,
    Training,
)

__all__ = ["StepCount", "count_step"]

_ADAMW_OPERATIONS: Final = (
    13  # m: 3, v: 4; of v the root, its correction, epsilon: 3; quotient, scale, update: 3
)
_SGD_OPERATIONS: Final = 2  # scale, update
_MOMENTUM_OPERATIONS: Final = 2
_ADAMW_DECAY_OPERATIONS: Final = 1  # decoupled: the weight is scaled
_SGD_DECAY_OPERATIONS: Final = 2  # added to the gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCount:
    """What one update of the weights takes, over all processes.

    Attributes:
        tokens: Tokens of documents.
        executed_tokens: Tokens that pass through the layers, padding included.
        components: Model FLOP by component; attention in full, as if no mask were causal.
        causal_flop: Model FLOP with only the pairs that the mask leaves.
        padding_flop: What padding, and pairs across documents or beyond a window, take besides.
        recomputed_flop: The forward passes that activation checkpointing runs again.
        again_flop: What fused attention kernels compute again in their backward pass.
        optimizer_flop: Element-wise operations of the update; in neither sum, as in all conventions.
    """

    tokens: int
    executed_tokens: int
    components: Mapping[Component, ComponentCount]
    causal_flop: int
    padding_flop: int
    recomputed_flop: int
    again_flop: int
    optimizer_flop: int

    @property
    def forward_flop(self) -> int:
        """Model FLOP of the forward pass."""
        return sum(count.forward_flop for count in self.components.values())

    @property
    def backward_flop(self) -> int:
        """Model FLOP of the backward pass."""
        return sum(count.backward_flop for count in self.components.values())

    @property
    def model_flop(self) -> int:
        """Model FLOP, attention in full."""
        return self.forward_flop + self.backward_flop

    @property
    def once_flop(self) -> int:
        """What is executed, nothing of it twice: model FLOP and padding."""
        return self.model_flop + self.padding_flop

    @property
    def executed_flop(self) -> int:
        """All products that the hardware is given to do."""
        return self.once_flop + self.recomputed_flop + self.again_flop


def count_step(model: Model, training: Training) -> StepCount:
    """The operations of one update of the weights.

    Args:
        model: Sizes that `check_model` accepts.
        training: Rows, documents, and what is computed twice.

    Returns:
        Exact counts; a multiply-add is 2. Norms, activations, softmax, lookups and biases take no products
        and are not in them.

    Source:
        ours; for the encoder of the public records it gives their closed form,
        tokens x L x (24 d^2 + 12 d d_ff + 14 s d), with the head.
    """
    documents = training.documents or (model.sequence,)
    useful = _row(model, documents)
    executed = useful if training.masking is Masking.DOCUMENTS else _dense_row(model)
    rows = training.rows_per_step
    needed = count_row(model, useful)
    done = needed if executed == useful else count_row(model, executed)
    components, all_done = _join(needed), _join(done)
    return StepCount(
        tokens=rows * useful.tokens,
        executed_tokens=rows * executed.tokens,
        components={
            component: ComponentCount(
                forward_flop=rows * count.forward_flop, backward_flop=rows * count.backward_flop
            )
            for component, count in components.items()
        },
        causal_flop=rows * _sum(_join(count_row(model, _masked_row(model, documents)))),
        padding_flop=rows * (_sum(all_done) - _sum(components)),
        recomputed_flop=rows * _recomputed(done, training.checkpointing),
        again_flop=rows * sum(count.again_flop for count in all_done.values())
        if training.kernel is AttentionKernel.FUSED
        else 0,
        optimizer_flop=count_parameters(model).learning * _operations_per_parameter(training),
    )


def _row(model: Model, documents: tuple[int, ...]) -> Row:
    return Row(
        tokens=sum(documents),
        pairs=count_full_pairs(documents, kind=model.kind),
        window_pairs=count_full_pairs(documents, kind=model.kind, window=model.window),
    )


def _dense_row(model: Model) -> Row:
    """Every pair of a row, whatever is masked afterwards: padding, other documents, a window."""
    pairs = model.sequence**2
    return Row(tokens=model.sequence, pairs=pairs, window_pairs=pairs)


def _masked_row(model: Model, documents: tuple[int, ...]) -> Row:
    return Row(
        tokens=sum(documents),
        pairs=count_masked_pairs(documents, kind=model.kind),
        window_pairs=count_masked_pairs(documents, kind=model.kind, window=model.window),
    )


def _join(counts: RowCounts) -> dict[Component, ComponentCount]:
    return add_counts(counts.layers, counts.head)


def _sum(counts: Mapping[Component, ComponentCount]) -> int:
    return sum(count.flop for count in counts.values())


def _recomputed(counts: RowCounts, checkpointing: Checkpointing) -> int:
    layers = counts.learning_layers
    if checkpointing is Checkpointing.LAYERS:
        return sum(count.forward_flop for count in layers.values())
    if checkpointing is Checkpointing.ATTENTION and Component.SCORES in layers:
        return layers[Component.SCORES].forward_flop
    return 0


def _operations_per_parameter(training: Training) -> int:
    """Element-wise operations that one parameter's update takes, as Loshchilov and Hutter write AdamW."""
    if training.optimizer is OptimizerKind.ADAMW:
        return _ADAMW_OPERATIONS + (_ADAMW_DECAY_OPERATIONS if training.has_decay else 0)
    momentum = _MOMENTUM_OPERATIONS if training.has_momentum else 0
    return _SGD_OPERATIONS + momentum + (_SGD_DECAY_OPERATIONS if training.has_decay else 0)
