"""A run's configuration from TOML: what is accepted, and that every fault names its key."""

from collections.abc import Callable

import pytest

from flopwitness.counting.config import LARGEST_CONFIG_BYTES
from flopwitness.counting.model import FeedForward, Norm, Positions
from flopwitness.counting.training import Checkpointing, OptimizerKind
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.trainers.config import (
    DataKind,
    Device,
    Order,
    Precision,
    RunConfig,
    ScheduleKind,
    TokenType,
)
from flopwitness.trainers.config_file import decode_run

DROP = "(dropped)"

Make = Callable[..., RunConfig]
Bytes = Callable[..., bytes]


def test_a_small_configuration_and_its_defaults(make_run: Make) -> None:
    run = make_run()
    assert (run.seed, run.precision, run.device, run.threads) == (7, Precision.FP32, Device.CPU, 1)
    assert run.clip_norm == 0.0
    assert (run.optimizer.beta1, run.optimizer.beta2, run.optimizer.eps) == (0.9, 0.999, 1e-8)
    assert run.optimizer.moments == ("first", "second")
    assert run.schedule.kind is ScheduleKind.CONSTANT
    assert run.schedule.final_fraction == 1.0
    assert (run.data.kind, run.data.order, run.data.rows) == (DataKind.RANDOM, Order.SHUFFLED, 12)
    assert run.checkpoint_every == run.training.steps == 24
    assert run.tokens_per_step == 32


def test_everything_that_can_be_declared(make_run: Make, drop: object) -> None:
    run = make_run(
        model__kv_heads=1,
        model__feed_forward="swiglu",
        model__norm="rms",
        model__positions="rotary",
        model__tied=True,
        model__bias=False,
        model__dropout=0.1,
        model__window=4,
        model__window_layers=1,
        model__frozen=["norm"],
        model__frozen_layers=1,
        training__masking="dense",
        training__accumulation=2,
        training__processes=3,
        training__checkpointing="layers",
        training__attention="unfused",
        training__clip_norm=0.5,
        training__precision="bf16",
        optimizer__betas=[0.8, 0],
        optimizer__eps=1e-6,
        optimizer__weight_decay=0.1,
        schedule__kind="cosine",
        schedule__warmup_steps=3,
        schedule__final_fraction=0.1,
        data__kind="tokens",
        data__rows=drop,
        data__path="./corpus//tokens.bin",
        data__dtype="uint32",
        data__order="sequential",
        checkpoints__every=5,
    )
    assert run.model.feed_forward is FeedForward.SWIGLU
    assert (run.model.norm, run.model.positions) == (Norm.RMS, Positions.ROTARY)
    assert run.training.checkpointing is Checkpointing.LAYERS
    assert (run.optimizer.beta1, run.optimizer.beta2) == (0.8, 0.0)
    assert (run.schedule.warmup_steps, run.schedule.final_fraction) == (3, 0.1)
    assert (run.data.path, run.data.dtype) == ("corpus/tokens.bin", TokenType.UINT32)
    assert run.checkpoint_every == 5


def test_sgd_has_a_momentum_and_no_betas(make_run: Make) -> None:
    plain = make_run(optimizer__name="sgd")
    assert plain.optimizer.name is OptimizerKind.SGD
    assert plain.optimizer.moments == ()
    heavy = make_run(optimizer__name="sgd", optimizer__momentum=0.9)
    assert heavy.optimizer.moments == ("momentum",)
    assert heavy.training.has_momentum


REJECTED: list[tuple[dict[str, object], str]] = [
    ({"spec": DROP}, "spec"),
    ({"spec": ""}, "spec"),
    ({"spec": "flopwitness/run/v2"}, "spec"),
    ({"spec": 1}, "spec"),
    ({"model": DROP}, "model"),
    ({"model": 3}, "model"),
    ({"model__layers": DROP}, "model.layers"),
    ({"model__layers": 0}, "model.layers"),
    ({"model__layers": 1.5}, "model.layers"),
    ({"model__layers": True}, "model.layers"),
    ({"model__layers": 1001}, "model.layers"),
    ({"model__depth": 2}, "model.depth"),
    ({"model__kind": "encoder"}, "model.kind"),
    ({"model__kind": "mamba"}, "model.kind"),
    ({"model__input": "features", "model__vocabulary": DROP}, "model.input"),
    ({"model__experts": {"count": 4, "active": 1}}, "model.experts"),
    ({"model__lora": {"rank": 2, "on": ["query"]}}, "model.lora"),
    ({"model__outputs": 0}, "model.outputs"),
    ({"model__outputs": 31}, "model.outputs"),
    ({"model__vocabulary": 1 << 32}, "model.vocabulary"),
    ({"model__d_model": 1 << 30, "model__heads": 1}, "model"),
    ({"model__heads": 3}, "model.heads"),
    ({"model__kv_heads": 4}, "model.kv_heads"),
    ({"model__head_dim": 3, "model__positions": "rotary"}, "model.head_dim"),
    ({"model__positions": "alibi"}, "model.positions"),
    ({"model__dropout": 1.0}, "model.dropout"),
    ({"model__dropout": "none"}, "model.dropout"),
    ({"model__dropout": float("nan")}, "model.dropout"),
    ({"model__frozen": ["body"]}, "model.frozen"),
    ({"model__frozen": ["head"], "model__tied": True}, "model.frozen"),
    ({"model__frozen": ["embedding", "attention", "feed_forward", "norm", "head"]}, "model.frozen"),
    ({"model__frozen_layers": 3}, "model.frozen_layers"),
    ({"training": DROP}, "training"),
    ({"training__batch": DROP}, "training.batch"),
    ({"training__batch": 0}, "training.batch"),
    ({"training__batch": "4"}, "training.batch"),
    ({"training__batch": 1 << 29}, "training.batch"),
    ({"training__batch": 1 << 27, "model__sequence": 8, "model__d_ff": 1 << 20}, "training.batch"),
    ({"training__steps": DROP}, "training.steps"),
    ({"training__steps": (1 << 24) + 1}, "training.steps"),
    ({"training__seed": DROP}, "training.seed"),
    ({"training__seed": -1}, "training.seed"),
    ({"training__seed": 1 << 63}, "training.seed"),
    ({"training__precision": DROP}, "training.precision"),
    ({"training__precision": "fp8"}, "training.precision"),
    ({"training__precision": "tf32"}, "training.precision"),
    ({"training__device": DROP}, "training.device"),
    ({"training__device": "auto"}, "training.device"),
    ({"training__device": "cuda:0"}, "training.device"),
    ({"training__threads": DROP}, "training.threads"),
    ({"training__threads": 0}, "training.threads"),
    ({"training__threads": 1025}, "training.threads"),
    ({"training__clip_norm": 0.0}, "training.clip_norm"),
    ({"training__clip_norm": -1.0}, "training.clip_norm"),
    ({"training__clip_norm": float("inf")}, "training.clip_norm"),
    ({"training__documents": [4, 4]}, "training.documents"),
    ({"model__window": 4}, "training.masking"),
    ({"model__window": 4, "training__masking": "documents"}, "training.masking"),
    ({"training__processes": 65}, "training.processes"),
    ({"training__processes": 0}, "training.processes"),
    ({"training__accumulation": 0}, "training.accumulation"),
    ({"training__checkpointing": "all"}, "training.checkpointing"),
    ({"training__attention": "flash"}, "training.attention"),
    ({"training__compile": True}, "training.compile"),
    ({"optimizer": DROP}, "optimizer"),
    ({"optimizer__name": DROP}, "optimizer.name"),
    ({"optimizer__name": "lion"}, "optimizer.name"),
    ({"optimizer__learning_rate": DROP}, "optimizer.learning_rate"),
    ({"optimizer__learning_rate": -1e-3}, "optimizer.learning_rate"),
    ({"optimizer__learning_rate": "1e-3"}, "optimizer.learning_rate"),
    ({"optimizer__learning_rate": float("nan")}, "optimizer.learning_rate"),
    ({"optimizer__momentum": 0.9}, "optimizer.momentum"),
    ({"optimizer__betas": 0.9}, "optimizer.betas"),
    ({"optimizer__betas": [0.9]}, "optimizer.betas"),
    ({"optimizer__betas": [0.9, 0.99, 0.999]}, "optimizer.betas"),
    ({"optimizer__betas": [0.9, 1.0]}, "optimizer.betas"),
    ({"optimizer__betas": [0.9, True]}, "optimizer.betas"),
    ({"optimizer__betas": [0.9, "0.99"]}, "optimizer.betas"),
    ({"optimizer__eps": 0.0}, "optimizer.eps"),
    ({"optimizer__weight_decay": -0.1}, "optimizer.weight_decay"),
    ({"optimizer__fused": True}, "optimizer.fused"),
    ({"optimizer__name": "sgd", "optimizer__betas": [0.9, 0.9]}, "optimizer.betas"),
    ({"optimizer__name": "sgd", "optimizer__eps": 1e-8}, "optimizer.eps"),
    ({"optimizer__name": "sgd", "optimizer__momentum": 1.0}, "optimizer.momentum"),
    ({"optimizer__name": "sgd", "optimizer__nesterov": True}, "optimizer.nesterov"),
    (
        {"training__precision": "bf16-weights", "optimizer__weight_decay": 0.1},
        "optimizer.weight_decay",
    ),
    ({"schedule__kind": "step"}, "schedule.kind"),
    ({"schedule__warmup_steps": 25}, "schedule.warmup_steps"),
    ({"schedule__warmup_steps": -1}, "schedule.warmup_steps"),
    ({"schedule__final_fraction": 0.1}, "schedule.final_fraction"),
    ({"schedule__kind": "linear", "schedule__final_fraction": 1.1}, "schedule.final_fraction"),
    ({"schedule__gamma": 0.5}, "schedule.gamma"),
    ({"data": DROP}, "data"),
    ({"data__kind": DROP}, "data.kind"),
    ({"data__kind": "text"}, "data.kind"),
    ({"data__rows": 0}, "data.rows"),
    ({"data__rows": DROP, "data__order": "sequential"}, "data.order"),
    ({"data__order": "random"}, "data.order"),
    ({"data__path": "tokens.bin"}, "data.path"),
    ({"data__kind": "tokens", "data__rows": DROP}, "data.path"),
    ({"data__kind": "tokens", "data__rows": DROP, "data__path": "a"}, "data.dtype"),
    (
        {"data__kind": "tokens", "data__rows": DROP, "data__path": "a", "data__dtype": "int64"},
        "data.dtype",
    ),
    ({"data__kind": "tokens", "data__path": "a", "data__dtype": "uint16"}, "data.rows"),
    ({"data__kind": "tokens", "data__rows": DROP, "data__path": "", "data__dtype": "uint16"}, "data.path"),
    ({"checkpoints__every": 0}, "checkpoints.every"),
    ({"checkpoints__every": 25}, "checkpoints.every"),
    ({"checkpoints__keep": 3}, "checkpoints.keep"),
    ({"extra": 1}, "extra"),
]


@pytest.mark.parametrize(
    ("changes", "key"), REJECTED, ids=[f"{i}-{key}" for i, (_, key) in enumerate(REJECTED)]
)
def test_a_fault_is_one_line_that_names_its_key(
    config_bytes: Bytes, drop: object, changes: dict[str, object], key: str
) -> None:
    given = {name: drop if value == DROP else value for name, value in changes.items()}
    with pytest.raises(InputError) as caught:
        decode_run(config_bytes(**given), where="run.toml")
    assert str(caught.value).startswith(f"run.toml, {key}: ")
    assert caught.value.expected
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"spec = ", b"[", b"spec = 'flopwitness/run/v1'\nspec = 'flopwitness/run/v1'"]
)
def test_what_is_no_configuration_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_run(data, where="run.toml")


def test_a_huge_file_is_refused_unread() -> None:
    with pytest.raises(DecodeError, match="too large"):
        decode_run(b"#" * (LARGEST_CONFIG_BYTES + 1), where="run.toml")


def test_a_path_that_does_not_print_is_refused(config_bytes: Bytes) -> None:
    data = config_bytes(data__kind="tokens", data__path="PATH", data__dtype="uint16").replace(
        b"PATH", b"a\\u001bb"
    )
    with pytest.raises(DecodeError, match=r"data\.path"):
        decode_run(data, where="run.toml")


def test_decay_that_reaches_bf16_weights_is_accepted(make_run: Make) -> None:
    run = make_run(
        training__precision="bf16-weights", optimizer__learning_rate=0.1, optimizer__weight_decay=0.1
    )
    assert run.precision is Precision.BF16_WEIGHTS
    assert (
        make_run(
            training__precision="bf16-weights", optimizer__name="sgd", optimizer__weight_decay=1e-4
        ).optimizer.weight_decay
        == 1e-4
    )
