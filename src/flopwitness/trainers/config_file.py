"""A run's configuration, read from TOML: each key of its kind, none left over, and nothing that cannot be.

The tables `[model]` and `[training]` are those that `count` reads, so one file says how much a run computes
and how it is trained.
"""

from pathlib import PurePosixPath
from typing import Final

from flopwitness.counting.config import LARGEST_CONFIG_BYTES, check_spec
from flopwitness.counting.tables import read_model, read_training
from flopwitness.counting.training import OptimizerKind, Training
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.toml_table import TomlTable, decode_toml, show_value
from flopwitness.trainers.allowed import check_allowed
from flopwitness.trainers.config import (
    DataConfig,
    DataKind,
    Device,
    OptimizerConfig,
    Order,
    Precision,
    RunConfig,
    ScheduleConfig,
    ScheduleKind,
    TokenType,
)

__all__ = ["decode_run"]

_LARGEST_SEED: Final = (1 << 63) - 1
_MOST_THREADS: Final = 1024
_MOST_ROWS: Final = 1 << 31
_LARGEST_BETA: Final = 1 - 2.0**-20
_ADAMW_BETAS: Final = (0.9, 0.999)
_ADAMW_EPS: Final = 1e-8


def decode_run(data: bytes, *, where: str = "") -> RunConfig:
    """The run that a configuration declares.

    Args:
        data: TOML in UTF-8, at most 1 MiB.
        where: The file to name in an error.

    Raises:
        DecodeError: Not TOML, a key is missing, unknown or of another kind, the sizes do not fit each other,
            or it is no run that this trainer trains.
    """
    if len(data) > LARGEST_CONFIG_BYTES:
        expected = f"at most {LARGEST_CONFIG_BYTES} bytes"
        raise DecodeError("too large", where=where, expected=expected, found=f"{len(data)} bytes")
    top = decode_toml(data, where=where)
    check_spec(top)
    run = _read_run(top)
    top.close()
    check_allowed(run, where=where)
    return run


def _read_run(top: TomlTable) -> RunConfig:
    model = read_model(top.table("model"))
    table, optimizer = top.table("training"), top.table("optimizer")
    optimizer.member("name", OptimizerKind)  # no default here: a declaration names its optimizer
    training = read_training(table, optimizer=optimizer, model=model)
    run = RunConfig(
        model=model,
        training=training,
        seed=table.whole("seed", low=0, high=_LARGEST_SEED),
        precision=table.member("precision", Precision),
        device=table.member("device", Device),
        threads=table.whole("threads", low=1, high=_MOST_THREADS),
        clip_norm=table.number("clip_norm", low=1e-9, high=1e9, default=0.0),
        optimizer=_read_optimizer(optimizer, training),
        schedule=_read_schedule(top.optional_table("schedule"), training),
        data=_read_data(top.table("data")),
        checkpoint_every=_read_checkpoints(top.optional_table("checkpoints"), training),
    )
    table.close()
    return run


def _read_optimizer(table: TomlTable, training: Training) -> OptimizerConfig:
    is_adamw = training.optimizer is OptimizerKind.ADAMW
    for key in ("momentum",) if is_adamw else ("betas", "eps"):
        if table.has(key):
            other = OptimizerKind.SGD if is_adamw else OptimizerKind.ADAMW
            raise table.error(
                f"{training.optimizer} has no such setting", key=key, expected=f"it with {other} only"
            )
    beta1, beta2 = _read_betas(table) if is_adamw else (0.0, 0.0)
    optimizer = OptimizerConfig(
        name=training.optimizer,
        learning_rate=table.number("learning_rate", low=0.0, high=10.0),
        beta1=beta1,
        beta2=beta2,
        eps=table.number("eps", low=1e-30, high=1.0, default=_ADAMW_EPS) if is_adamw else 0.0,
        weight_decay=table.number("weight_decay", low=0.0, high=1e3, default=0.0),
        momentum=table.number("momentum", low=0.0, high=_LARGEST_BETA, default=0.0),
    )
    table.close()
    return optimizer


def _read_betas(table: TomlTable) -> tuple[float, float]:
    if not table.has("betas"):
        return _ADAMW_BETAS
    table.read.add("betas")
    value, expected = table.values["betas"], f"two numbers from 0 to {_LARGEST_BETA:g}"
    numbers = value if isinstance(value, list) else []
    if len(numbers) != len(_ADAMW_BETAS) or any(type(item) not in (int, float) for item in numbers):
        raise table.error("bad value", key="betas", expected=expected, found=show_value(value))
    if not all(0 <= item <= _LARGEST_BETA for item in numbers):
        raise table.error("out of range", key="betas", expected=expected, found=show_value(value))
    return float(numbers[0]), float(numbers[1])


def _read_schedule(table: TomlTable, training: Training) -> ScheduleConfig:
    kind = table.member("kind", ScheduleKind, default=ScheduleKind.CONSTANT)
    is_constant = kind is ScheduleKind.CONSTANT
    if is_constant and table.has("final_fraction"):
        raise table.error(
            "a constant rate has no end of its own", key="final_fraction", expected="a kind that decays"
        )
    schedule = ScheduleConfig(
        kind=kind,
        warmup_steps=table.whole("warmup_steps", low=0, high=training.steps, default=0),
        final_fraction=1.0 if is_constant else table.number("final_fraction", low=0.0, high=1.0, default=0.0),
    )
    table.close()
    return schedule


def _read_data(table: TomlTable) -> DataConfig:
    kind = table.member("kind", DataKind)
    if kind is DataKind.TOKENS:
        data = DataConfig(
            kind=kind,
            path=_read_path(table),
            dtype=table.member("dtype", TokenType),
            order=table.member("order", Order, default=Order.SHUFFLED),
        )
    else:
        rows = table.whole("rows", low=1, high=_MOST_ROWS, default=0)
        if not rows and table.has("order"):
            raise table.error(
                "rows that are all new have no order", key="order", expected="a number of rows beside it"
            )
        data = DataConfig(kind=kind, order=table.member("order", Order, default=Order.SHUFFLED), rows=rows)
    table.close()
    return data


def _read_path(table: TomlTable) -> str:
    text = table.text("path")
    if "\0" in text or not text.isprintable():
        raise table.error("bad value", key="path", expected="a path that prints", found=repr(text))
    return str(PurePosixPath(text))


def _read_checkpoints(table: TomlTable, training: Training) -> int:
    every = table.whole("every", low=1, high=training.steps, default=training.steps)
    table.close()
    return every
