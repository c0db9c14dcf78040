"""The allow-list: which declared runs this trainer trains, and how large they may be.

Counting knows more shapes than training does. What is not on the list is refused by its key before anything
is allocated, never trained as something else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flopwitness.counting.model import ModelInput, ModelKind, Part, Positions
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.training import AttentionKernel, Masking, OptimizerKind
from flopwitness.foundation.errors import DecodeError
from flopwitness.trainers.config import Device, Precision, RunConfig

__all__ = [
    "LARGEST_STATE_BYTES",
    "LARGEST_TENSOR_BYTES",
    "check_allowed",
    "count_state_bytes",
    "count_tensor_bytes",
]

LARGEST_STATE_BYTES: Final = 1 << 40
"""Weights, gradients and moments of one process together."""

LARGEST_TENSOR_BYTES: Final = 1 << 38
"""The largest single result within a step."""

_MOST_LAYERS: Final = 1_000
_MOST_PROCESSES: Final = 64
_MOST_STEPS: Final = 1 << 24  # the optimizer counts its updates in fp32, which is exact up to here
_MOST_TOKENS: Final = 1 << 31
_LARGEST_VOCABULARY: Final = 1 << 31
_HALF_ULP_BF16: Final = 2.0**-9  # relative to a weight, at its smallest


@dataclass(frozen=True, slots=True)
class _Fact:
    """One thing that must hold: of which key, whether it does, what was expected and found."""

    key: str
    is_right: bool
    expected: str
    found: object


def check_allowed(run: RunConfig, *, where: str = "") -> None:
    """Refuse a run that this trainer does not train.

    Args:
        run: The run, whose sizes fit each other.
        where: The file to name in an error.

    Raises:
        DecodeError: The first key that is not on the list, by its path.
    """
    for facts in (_model_facts, _freezing_facts, _training_facts, _size_facts):
        for fact in facts(run):
            if not fact.is_right:
                raise DecodeError(
                    "not trained here",
                    where=", ".join(part for part in (where, fact.key) if part),
                    expected=fact.expected,
                    found=str(fact.found),
                )


def _model_facts(run: RunConfig) -> Iterator[_Fact]:
    model = run.model
    yield _Fact("model.kind", model.kind is ModelKind.DECODER, ModelKind.DECODER, model.kind)
    yield _Fact("model.input", model.inputs is ModelInput.TOKENS, ModelInput.TOKENS, model.inputs)
    yield _Fact("model.experts", model.experts is None, "a dense feed-forward", "experts")
    yield _Fact("model.lora", model.lora is None, "no adapters", "adapters")
    yield _Fact("model.layers", model.layers <= _MOST_LAYERS, f"at most {_MOST_LAYERS}", model.layers)
    yield _Fact(
        "model.vocabulary",
        model.vocabulary <= _LARGEST_VOCABULARY,
        f"at most {_LARGEST_VOCABULARY}",
        model.vocabulary,
    )
    yield _Fact(
        "model.outputs",
        model.outputs == model.vocabulary,
        f"one for each token ({model.vocabulary})",
        model.outputs,
    )
    yield _Fact(
        "model.head_dim",
        model.positions is not Positions.ROTARY or model.head_dim % 2 == 0,
        "an even width with rotary positions",
        model.head_dim,
    )


def _freezing_facts(run: RunConfig) -> Iterator[_Fact]:
    model = run.model
    yield _Fact(
        "model.frozen",
        not (model.is_tied and Part.HEAD in model.frozen),
        "embedding: a tied head is its matrix",
        Part.HEAD,
    )
    yield _Fact("model.frozen", count_parameters(model).learning > 0, "something that learns", "nothing")


def _training_facts(run: RunConfig) -> Iterator[_Fact]:
    training, optimizer = run.training, run.optimizer
    yield _Fact(
        "training.documents", not training.documents, "one document in each row", len(training.documents)
    )
    yield _Fact(
        "training.masking",
        not run.model.window_layers or training.masking is Masking.DENSE,
        f"{Masking.DENSE} with a window: whole rows are computed, and masked afterwards",
        training.masking,
    )
    processes, steps = training.processes, training.steps
    yield _Fact("training.processes", processes <= _MOST_PROCESSES, f"at most {_MOST_PROCESSES}", processes)
    yield _Fact("training.steps", steps <= _MOST_STEPS, f"at most {_MOST_STEPS}", steps)
    yield _Fact(
        "training.precision",
        run.precision is not Precision.TF32 or run.device is Device.CUDA,
        f"{Precision.FP32} on {run.device}",
        run.precision,
    )
    pulls = optimizer.learning_rate * optimizer.weight_decay
    yield _Fact(
        "optimizer.weight_decay",
        run.precision is not Precision.BF16_WEIGHTS
        or optimizer.name is not OptimizerKind.ADAMW
        or not optimizer.weight_decay
        or pulls > _HALF_ULP_BF16,
        f"0, or a decay per step above {_HALF_ULP_BF16:g}: less rounds away in bf16 weights",
        f"{pulls:g} per step",
    )


def _size_facts(run: RunConfig) -> Iterator[_Fact]:
    tokens = run.tokens_per_step
    yield _Fact("training.batch", tokens <= _MOST_TOKENS, f"at most {_MOST_TOKENS} tokens a step", tokens)
    state, tensor = count_state_bytes(run), count_tensor_bytes(run)
    expected = f"at most {LARGEST_STATE_BYTES} bytes of weights, gradients and moments"
    yield _Fact("model", state <= LARGEST_STATE_BYTES, expected, f"{state} bytes")
    expected = f"at most {LARGEST_TENSOR_BYTES} bytes in one result of a pass"
    yield _Fact("training.batch", tensor <= LARGEST_TENSOR_BYTES, expected, f"{tensor} bytes")


def count_state_bytes(run: RunConfig) -> int:
    """Bytes of weights, gradients and moments in one process; with several, of what they exchange too."""
    parameters = count_parameters(run.model)
    copies = 1 + len(run.optimizer.moments) + (1 if run.training.processes > 1 else 0)
    width = 2 if run.precision is Precision.BF16_WEIGHTS else 4
    return width * (parameters.total + copies * parameters.learning)


def count_tensor_bytes(run: RunConfig) -> int:
    """Bytes of the largest result of one pass: logits, hidden layer, or kept scores."""
    model, training = run.model, run.training
    widest = max(model.vocabulary, model.d_ff, model.d_model, model.query_width)
    is_kept = training.kernel is AttentionKernel.UNFUSED
    scores = model.heads * model.sequence if is_kept else 0
    return 4 * training.batch * model.sequence * max(widest, scores)
