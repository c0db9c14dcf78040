"""A declared run: everything that decides the bits of its weights, as one record with one digest.

The record knows no PyTorch, so that a configuration is judged before anything heavy is loaded, and nothing
starts from one that is wrong. Two spellings of the same run have the same digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from flopwitness.counting.config import RUN_SPEC
from flopwitness.counting.model import Model
from flopwitness.counting.training import OptimizerKind, Training
from flopwitness.foundation.digest import Digest, digest_bytes
from flopwitness.foundation.encoding import JsonValue, encode_signable

__all__ = [
    "DataConfig",
    "DataKind",
    "Device",
    "OptimizerConfig",
    "Order",
    "Precision",
    "RunConfig",
    "ScheduleConfig",
    "ScheduleKind",
    "TokenType",
    "describe_run",
    "digest_run",
]


class Precision(StrEnum):
    """In which numbers a step is computed."""

    FP32 = "fp32"
    TF32 = "tf32"  # products rounded to 10 bits of fraction; CUDA only
    BF16 = "bf16"  # autocast; the weights stay fp32
    FP16 = "fp16"  # autocast with a scaled loss; the weights stay fp32
    BF16_WEIGHTS = "bf16-weights"  # weights, gradients and moments as well


class Device(StrEnum):
    """Where a step is computed. There is no choosing by itself: the device decides the bits."""

    CPU = "cpu"
    CUDA = "cuda"


class ScheduleKind(StrEnum):
    """How the learning rate goes on after the warm-up."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class DataKind(StrEnum):
    """Where tokens come from."""

    RANDOM = "random"  # drawn evenly by the run's own generator
    TOKENS = "tokens"  # a file of little-endian integers


class TokenType(StrEnum):
    """How one token lies in a file."""

    UINT16 = "uint16"
    UINT32 = "uint32"

    @property
    def size_bytes(self) -> int:
        """Bytes of one token."""
        return 2 if self is TokenType.UINT16 else 4


class Order(StrEnum):
    """In which order an epoch visits the rows."""

    SHUFFLED = "shuffled"  # another order in every epoch
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """How a gradient becomes an update.

    Attributes:
        name: AdamW (Loshchilov and Hutter 2019; decay apart from the gradient), or SGD.
        learning_rate: The schedule's highest.
        beta1: AdamW: how much of the first moment stays; 0 for SGD.
        beta2: AdamW: the same of the second moment; 0 for SGD.
        eps: AdamW: added to the root of the second moment; 0 for SGD.
        weight_decay: Decay of matrices; gains and biases have none. For SGD it is added to the gradient.
        momentum: SGD: how much of the last update's direction stays; 0 for AdamW.
    """

    name: OptimizerKind
    learning_rate: float
    beta1: float = 0.0
    beta2: float = 0.0
    eps: float = 0.0
    weight_decay: float = 0.0
    momentum: float = 0.0

    @property
    def moments(self) -> tuple[str, ...]:
        """The kinds of moments that are kept beside every learning weight."""
        if self.name is OptimizerKind.ADAMW:
            return ("first", "second")
        return ("momentum",) if self.momentum else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """The learning rate as a function of the step.

    Attributes:
        kind: How it goes on after the warm-up.
        warmup_steps: Steps of a straight line that starts at 0.
        final_fraction: What the last step has of the highest; 1 where it is constant.
    """

    kind: ScheduleKind = ScheduleKind.CONSTANT
    warmup_steps: int = 0
    final_fraction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """What is trained on.

    Attributes:
        kind: Random tokens or a file.
        path: The file, from the configuration's folder; "" for random tokens.
        dtype: How a token lies in the file.
        order: The order of the rows in an epoch.
        rows: Random tokens: rows in an epoch; 0 is a new row every time. A file has what it has.
    """

    kind: DataKind
    path: str = ""
    dtype: TokenType = TokenType.UINT16
    order: Order = Order.SHUFFLED
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One training run, declared.

    Attributes:
        model: The model's sizes.
        training: Rows, accumulation, processes, steps.
        seed: What initial weights, order, random tokens and dropout are drawn from.
        precision: In which numbers.
        device: On which kind of device.
        threads: Threads within one operation, in each process; rounding depends on them.
        clip_norm: The gradient's largest norm; 0 is none.
        optimizer: The optimizer.
        schedule: The learning rate's schedule.
        data: The data.
        checkpoint_every: Steps from one checkpoint to the next.
    """

    model: Model
    training: Training
    seed: int
    precision: Precision
    device: Device
    threads: int
    clip_norm: float
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    data: DataConfig
    checkpoint_every: int

    @property
    def tokens_per_step(self) -> int:
        """Tokens between two updates."""
        return self.training.rows_per_step * self.model.sequence


_MODEL_FIELDS: Final = [
    "kind",
    "layers",
    "d_model",
    "heads",
    "kv_heads",
    "head_dim",
    "d_ff",
    "feed_forward",
    "sequence",
    "vocabulary",
    "is_tied",
    "window",
    "window_layers",
    "frozen",
    "frozen_layers",
    "biases",
    "norm",
    "is_pre_norm",
    "has_final_norm",
    "has_embedding_norm",
    "positions",
    "dropout",
]
_TRAINING_FIELDS: Final = ["batch", "accumulation", "processes", "steps", "checkpointing", "kernel"]
_OPTIMIZER_FIELDS: Final = ["name", "learning_rate", "beta1", "beta2", "eps", "weight_decay", "momentum"]
_SCHEDULE_FIELDS: Final = ["kind", "warmup_steps", "final_fraction"]
_DATA_FIELDS: Final = ["kind", "path", "dtype", "order", "rows"]


def describe_run(run: RunConfig) -> Mapping[str, JsonValue]:
    """The run as a record with every value written out, defaults too, and no floats.

    A float is the shortest text that reads back as the same double; the seed is a decimal string.
    """
    return {
        "spec": RUN_SPEC,
        "model": _pick(run.model, _MODEL_FIELDS),
        "training": {
            **_pick(run.training, _TRAINING_FIELDS),
            "seed": str(run.seed),
            "precision": str(run.precision),
            "device": str(run.device),
            "threads": run.threads,
            "clip_norm": _plain(run.clip_norm),
        },
        "optimizer": _pick(run.optimizer, _OPTIMIZER_FIELDS),
        "schedule": _pick(run.schedule, _SCHEDULE_FIELDS),
        "data": _pick(run.data, _DATA_FIELDS),
        "checkpoints": {"every": run.checkpoint_every},
    }


def digest_run(run: RunConfig) -> Digest:
    """The digest of the run's canonical record: the name of the run."""
    return digest_bytes(encode_signable(describe_run(run)))


def _pick(record: object, names: list[str]) -> dict[str, JsonValue]:
    """The named fields. They are listed, so that a field that comes later renames no older run."""
    return {name: _plain(getattr(record, name)) for name in names}


def _plain(value: object) -> JsonValue:
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)
    if isinstance(value, float):
        return repr(value)
    return str(value) if isinstance(value, StrEnum) else value
