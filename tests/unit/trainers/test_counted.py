"""What a step of the trainer executes, operator by operator, is what the closed form says."""

from collections.abc import Callable
from typing import Any

import pytest

from flopwitness.counting.step import count_step
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.trainer import Trainer


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"training__accumulation": 2, "training__processes": 2, "model__dropout": 0.1},
        {"model__feed_forward": "swiglu", "model__norm": "rms", "model__kv_heads": 1},
        {"model__positions": "rotary", "model__tied": True, "training__attention": "unfused"},
        {"training__checkpointing": "layers"},
        {"training__checkpointing": "attention"},
        {"training__checkpointing": "layers", "training__attention": "unfused"},
        {"model__frozen_layers": 1, "model__frozen": ["embedding"]},
        {"model__frozen": ["attention"], "training__precision": "bf16"},
        {"model__window": 3, "training__masking": "dense"},
        {"optimizer__name": "sgd", "training__precision": "fp16"},
    ],
)
def test_nothing_more_and_nothing_less_is_executed(
    make_run: Callable[..., RunConfig], make_trainer: Callable[..., Trainer], changes: dict[str, Any]
) -> None:
    run = make_run(**changes)
    trainer, counter = make_trainer(run), OperationCounter()
    with counter:
        trainer.train(stop=1)
    count = counter.count()
    assert count.is_complete
    assert count.executed_flop == count_step(run.model, run.training).executed_flop
