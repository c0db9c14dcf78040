"""The trainer: resumed anywhere it ends with the same bits, and what may differ changes little or nothing."""

import math
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from flopwitness.foundation.errors import InputError, OutOfRangeError
from flopwitness.trainers.checkpoint import load_checkpoint, save_checkpoint
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.execution import AttentionBackend, Execution, ScaleDecision
from flopwitness.trainers.loss_scale import LossScale
from flopwitness.trainers.observer import OutcomeList, StepOutcome
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.torch_settings import hold_settings
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]
MakeTrainer = Callable[..., Trainer]

EVERYTHING: dict[str, Any] = {
    "training__steps": 24,
    "training__accumulation": 2,
    "training__clip_norm": 0.5,
    "model__dropout": 0.1,
    "optimizer__weight_decay": 0.1,
    "schedule__kind": "cosine",
    "schedule__warmup_steps": 5,
    "data__rows": 21,
}
SGD: dict[str, Any] = {
    "optimizer__name": "sgd",
    "optimizer__momentum": 0.9,
    "optimizer__learning_rate": 0.1,
}
RESUMED: dict[str, dict[str, Any]] = {  # the first four at twenty steps, the others at five
    "adamw-fp32": {},
    "adamw-bf16": {"training__precision": "bf16"},
    "sgd-fp32": SGD,
    "sgd-bf16": {**SGD, "training__precision": "bf16"},
    "adamw-fp16": {"training__precision": "fp16"},
    "adamw-bf16-weights": {"training__precision": "bf16-weights", "optimizer__weight_decay": 0.0},
    "rotary-tied-frozen": {
        "model__positions": "rotary",
        "model__tied": True,
        "model__norm": "rms",
        "model__feed_forward": "swiglu",
        "model__kv_heads": 1,
        "model__frozen_layers": 1,
        "training__checkpointing": "layers",
    },
    "processes-window": {
        "training__processes": 3,
        "model__window": 3,
        "training__masking": "dense",
        "schedule__kind": "linear",
        "training__attention": "unfused",
        "training__checkpointing": "attention",
    },
}


class _Saving:
    """An observer that saves after chosen steps."""

    def __init__(self, run: RunConfig, folder: Path, steps: set[int]) -> None:
        self._run, self._folder, self._steps = run, folder, steps
        self.identity = prepare_run(run, folder=folder).identity

    def start(self, state: TrainState, plan: RowPlan) -> None:
        self._save(state)

    def after_step(self, outcome: StepOutcome, state: TrainState) -> None:
        self._save(state)

    def _save(self, state: TrainState) -> None:
        if state.step in self._steps:
            rows = state.step * self._run.training.rows_per_step
            save_checkpoint(self._folder / str(state.step), state, self.identity, rows_taken=rows)


def assert_same(one: TrainState, other: TrainState) -> None:
    """Both are the same to the bit."""
    assert (one.step, one.updates, one.scale) == (other.step, other.updates, other.scale)
    for (name, tensor), (other_name, other_tensor) in zip(one.buffers(), other.buffers(), strict=True):
        assert name == other_name
        assert torch.equal(tensor, other_tensor), name


def motion(one: TrainState, other: TrainState) -> float:
    """How far apart the weights of two states are."""
    return math.sqrt(
        sum((w.float() - other.weights[n].float()).square().sum().item() for n, w in one.weights.items())
    )


@pytest.mark.parametrize("name", RESUMED)
def test_a_run_resumed_at_any_step_ends_with_the_same_bits(
    make_run: Make, make_trainer: MakeTrainer, tmp_path: Path, name: str
) -> None:
    run = make_run(**{**EVERYTHING, **RESUMED[name]})
    count = 20 if name in list(RESUMED)[:4] else 5
    steps = set(random.Random(name).sample(range(24), count))  # noqa: S311 (a named seed)
    saving = _Saving(run, tmp_path, steps)
    straight = make_trainer(run)
    whole = OutcomeList()
    straight.train(stop=24, observers=[saving, whole])
    for step in steps:
        resumed, rest = make_trainer(run), OutcomeList()
        resumed.load(load_checkpoint(tmp_path / str(step), run, saving.identity))
        resumed.train(stop=24, observers=[rest])
        assert_same(resumed.state, straight.state)
        assert [o.loss for o in rest.outcomes] == [o.loss for o in whole.outcomes[step:]]
        assert [o.rows for o in rest.outcomes] == [o.rows for o in whole.outcomes[step:]]


def test_a_stretch_can_be_done_again_without_files(make_run: Make, make_trainer: MakeTrainer) -> None:
    run = make_run(**EVERYTHING)
    trainer = make_trainer(run)
    trainer.train(stop=10)
    start = trainer.state.copy()
    trainer.train(stop=13)
    end = trainer.state.copy()
    trainer.train(stop=20)
    trainer.load(start)
    trainer.train(stop=13)
    assert_same(trainer.state, end)


def test_the_weights_after_a_known_run_move_with_every_setting(
    make_run: Make, make_trainer: MakeTrainer
) -> None:
    ends = []
    for changes in ({}, {"training__seed": 8}, {"optimizer__learning_rate": 0.0101}, {"model__dropout": 0.2}):
        trainer = make_trainer(make_run(**{**EVERYTHING, **changes}))
        trainer.train(stop=3)
        ends.append(trainer.state)
    for other in ends[1:]:
        assert motion(ends[0], other) > 1e-6


@pytest.mark.parametrize("changes", [{}, SGD], ids=["adamw", "sgd"])
def test_fp32_bits_do_not_depend_on_the_number_of_threads(
    make_run: Make, make_trainer: MakeTrainer, changes: dict[str, Any]
) -> None:
    size = {"model__d_model": 64, "model__d_ff": 256, "model__sequence": 64, "model__layers": 1}
    run = make_run(**{**EVERYTHING, **size, "training__batch": 8, **changes})
    ends = []
    for threads in (1, 2):
        trainer = make_trainer(run, execution=replace(Execution.declared(run), threads=threads))
        trainer.train(stop=2)
        ends.append(trainer.state)
    assert_same(*ends)


def _variants(run: RunConfig) -> list[Execution]:
    declared = Execution.declared(run)
    return [
        replace(declared, has_onednn=False),
        replace(declared, attention=AttentionBackend.MATH),
        replace(declared, parts=2),
        replace(declared, parts=4, threads=2),
    ]


@pytest.mark.parametrize(
    ("changes", "most"),
    [({}, 1e-5), (SGD, 1e-5), ({"training__precision": "bf16"}, 0.05)],
    ids=["adamw", "sgd", "bf16"],
)
def test_other_legitimate_kernels_end_close_by(
    make_run: Make, make_trainer: MakeTrainer, changes: dict[str, Any], most: float
) -> None:
    run = make_run(**{**EVERYTHING, **changes})
    declared = make_trainer(run)
    declared.train(stop=6)
    start = declared.state.copy()
    declared.train(stop=8)
    moved = motion(start, declared.state)
    assert moved > 0
    for execution in _variants(run):
        replayed = make_trainer(run, execution=execution)
        replayed.load(start)
        replayed.train(stop=8)
        assert motion(replayed.state, declared.state) <= most * moved


def test_other_data_do_not_end_close_by(make_run: Make, make_trainer: MakeTrainer) -> None:
    run = make_run(**EVERYTHING)
    trainer, other = make_trainer(run), make_trainer(make_run(**{**EVERYTHING, "training__seed": 8}))
    trainer.train(stop=8)
    other.load(trainer.state)
    start = trainer.state.copy()
    trainer.train(stop=12)
    other.train(stop=12)
    assert motion(other.state, trainer.state) > 0.1 * motion(start, trainer.state)


def test_two_processes_do_what_one_does_in_two_passes(make_run: Make, make_trainer: MakeTrainer) -> None:
    ends = []
    for changes in ({"training__accumulation": 2}, {"training__processes": 2}):
        trainer = make_trainer(make_run(**changes))
        trainer.train(stop=6)
        ends.append(trainer.state)
    start = make_trainer(make_run()).state
    assert motion(*ends) <= 1e-5 * motion(start, ends[0])


@pytest.mark.parametrize("kind", ["layers", "attention"])
def test_computing_activations_again_changes_no_bit(
    make_run: Make, make_trainer: MakeTrainer, kind: str
) -> None:
    ends = []
    for checkpointing in ("none", kind):
        trainer = make_trainer(make_run(**EVERYTHING, training__checkpointing=checkpointing))
        trainer.train(stop=4)
        ends.append(trainer.state)
    assert_same(*ends)


@pytest.mark.parametrize("changes", [{}, SGD, {"training__precision": "fp16"}], ids=["adamw", "sgd", "fp16"])
def test_the_loss_falls_on_what_can_be_learnt(
    make_run: Make, make_trainer: MakeTrainer, changes: dict[str, Any]
) -> None:
    outcomes = OutcomeList()
    run = make_run(training__steps=60, data__rows=4, **changes)
    make_trainer(run).train(stop=60, observers=[outcomes])
    losses = [outcome.loss for outcome in outcomes.outcomes]
    assert losses[0] == pytest.approx(math.log(32), abs=0.1)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("changes", [{}, {"model__positions": "rotary", "model__tied": True}])
def test_no_parameter_has_a_null_gradient(
    make_run: Make, make_trainer: MakeTrainer, changes: dict[str, Any]
) -> None:
    trainer = make_trainer(make_run(**changes))
    trainer.train(stop=3)
    with hold_settings(trainer.run, trainer.execution):
        _, gradients = trainer._gradients(trainer.state, None)
    learning = [each.name for each in trainer._learning]
    assert not any("key.bias" in name for name in learning)
    for name, gradient in zip(learning, gradients, strict=True):
        assert gradient.norm().item() > 1e-5, name


def test_frozen_parts_do_not_move_and_have_no_moments(make_run: Make, make_trainer: MakeTrainer) -> None:
    run = make_run(model__frozen=["embedding", "norm"], model__frozen_layers=1, optimizer__weight_decay=0.5)
    trainer = make_trainer(run)
    start = trainer.state.copy()
    trainer.train(stop=3)
    still = {
        name for name, weight in trainer.state.weights.items() if torch.equal(weight, start.weights[name])
    }
    expected = {
        name
        for name in start.weights
        if name.startswith("layers.0.") or "norm" in name or name in ("embedding.weight", "positions.weight")
    }
    assert still == expected
    assert not any(name.partition("/")[2] in expected for name in trainer.state.moments)


def test_a_tied_head_is_the_embedding(make_run: Make, make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(make_run(model__tied=True))
    assert "head.weight" not in trainer.state.weights
    trainer.train(stop=2)
    assert set(trainer.state.weights) == set(make_trainer(make_run(model__tied=True)).state.weights)


def test_the_first_step_of_a_warm_up_moves_no_weight(make_run: Make, make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(make_run(schedule__warmup_steps=3))
    start = trainer.state.copy()
    trainer.train(stop=1)
    assert motion(start, trainer.state) == 0
    assert any(moment.abs().sum() > 0 for moment in trainer.state.moments.values())
    trainer.train(stop=2)
    assert motion(start, trainer.state) > 0


def test_an_overflow_skips_the_update_and_halves_the_scale(make_run: Make, make_trainer: MakeTrainer) -> None:
    trainer, outcomes = make_trainer(make_run(training__precision="fp16")), OutcomeList()
    trainer.load(replace(trainer.state, scale=LossScale(exponent=40, good_steps=5)))
    start = trainer.state.copy()
    trainer.train(stop=1, observers=[outcomes])
    (outcome,) = outcomes.outcomes
    assert (outcome.is_skipped, outcome.scale_exponent, outcome.gradient_norm) == (True, 40, math.inf)
    assert (trainer.state.step, trainer.state.updates) == (1, 0)
    assert trainer.state.scale == LossScale(exponent=39, good_steps=0)
    assert motion(start, trainer.state) == 0


def test_recorded_scales_are_taken_over(make_run: Make, make_trainer: MakeTrainer) -> None:
    run, outcomes = make_run(training__precision="fp16"), OutcomeList()
    scales = {
        0: ScaleDecision(exponent=10, is_skipped=False),
        1: ScaleDecision(exponent=12, is_skipped=True),
    }
    trainer = make_trainer(run, execution=replace(Execution.declared(run), scales=scales))
    trainer.train(stop=3, observers=[outcomes])
    assert [o.scale_exponent for o in outcomes.outcomes] == [10, 12, 11]
    assert [o.is_skipped for o in outcomes.outcomes] == [False, True, False]
    assert trainer.state.updates == 2


def _broken(trainer: Trainer, value: float) -> TrainState:
    state = trainer.state.copy()
    state.weights["head.weight"][3, 3] = value
    return state


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_run(
    make_run: Make, make_trainer: MakeTrainer, value: float
) -> None:
    trainer = make_trainer(make_run())
    trainer.load(_broken(trainer, value))
    with pytest.raises(OutOfRangeError, match=r"^step 0: the loss is not finite"):
        trainer.train(stop=2)
    assert trainer.state.step == 0


def test_a_gradient_that_is_not_finite_ends_the_run(
    make_run: Make, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(make_run())
    start = trainer.state.copy()
    monkeypatch.setattr("flopwitness.trainers.trainer.gradient_norm", lambda _: math.inf)
    with pytest.raises(OutOfRangeError, match="the gradient is not finite"):
        trainer.train(stop=2)
    assert_same(trainer.state, start)


@pytest.mark.parametrize("stop", [-1, 25])
def test_steps_that_the_run_does_not_have_are_refused(
    make_run: Make, make_trainer: MakeTrainer, stop: int
) -> None:
    with pytest.raises(InputError, match="no such step"):
        make_trainer(make_run()).train(stop=stop)


def test_steps_that_are_done_are_refused(make_run: Make, make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(make_run())
    trainer.train(stop=2)
    with pytest.raises(InputError, match="no such step"):
        trainer.train(stop=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"model__layers": 1},
        {"model__d_ff": 16},
        {"optimizer__name": "sgd"},
        {"training__precision": "bf16-weights"},
        {"model__tied": True},
    ],
)
def test_another_runs_state_is_refused(
    make_run: Make, make_trainer: MakeTrainer, changes: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="another run's state"):
        make_trainer(make_run()).load(make_trainer(make_run(**changes)).state)


def test_what_does_not_fit_the_run_is_refused(make_run: Make, make_trainer: MakeTrainer) -> None:
    run = make_run()
    with pytest.raises(InputError, match="parts"):
        make_trainer(run, execution=replace(Execution.declared(run), parts=5))


def test_the_outcome_of_a_step(make_run: Make, make_trainer: MakeTrainer) -> None:
    ticks = iter(range(0, 10_000, 7))
    outcomes = OutcomeList()
    trainer = make_trainer(make_run(training__accumulation=3), clock_ns=lambda: next(ticks))
    trainer.train(stop=1, observers=[outcomes])
    (outcome,) = outcomes.outcomes
    assert (outcome.step, outcome.tokens, outcome.learning_rate, outcome.duration_ns) == (0, 96, 0.01, 7)
    assert (outcome.scale_exponent, outcome.is_skipped) == (None, False)
    assert outcome.rows == trainer.plan.rows(0)
    assert 0 < outcome.gradient_norm < 10


CALLERS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "other-autocast": lambda: torch.autocast("cpu", dtype=torch.float16, cache_enabled=False),
    "inference": torch.inference_mode,
    "no-gradients": torch.no_grad,
    "meta": lambda: torch.device("meta"),
}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    "changes",
    [
        {"model__positions": "rotary", "model__window": 3, "training__masking": "dense"},
        {"training__precision": "bf16", "training__checkpointing": "layers", "training__accumulation": 2},
    ],
)
def test_a_callers_modes_change_no_bit(
    make_run: Make, make_trainer: MakeTrainer, caller: str, changes: dict[str, Any]
) -> None:
    run = make_run(**{"training__clip_norm": 0.5, "model__dropout": 0.1, **changes})
    plain = make_trainer(run)
    plain.train(stop=3)
    with CALLERS[caller]():
        other = make_trainer(run)
        other.train(stop=1)
        other.load(other.state.copy())
        other.train(stop=3)
    assert_same(other.state, plain.state)
