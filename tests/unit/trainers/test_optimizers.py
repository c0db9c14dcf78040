"""The optimizers against their formulas, and their moments by name."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from flopwitness.foundation.errors import InputError
from flopwitness.trainers.config import OptimizerConfig, RunConfig
from flopwitness.trainers.optimizers import Updater
from flopwitness.trainers.parameters import Parameter, list_parameters

Make = Callable[..., RunConfig]


def _set_up(
    run: RunConfig,
) -> tuple[Updater, dict[str, torch.Tensor], dict[str, torch.Tensor], list[Parameter]]:
    table = [p for p in list_parameters(run.model) if p.name in ("head.weight", "final_norm.gain")]
    weights = {p.name: torch.full(p.shape, 2.0).requires_grad_() for p in table}
    config: OptimizerConfig = run.optimizer
    moments = {f"{kind}/{p.name}": torch.zeros(p.shape) for kind in config.moments for p in table}
    for weight in weights.values():
        weight.grad = torch.full_like(weight, 0.5)
    return Updater(config, table, weights, moments), weights, moments, table


def test_adamw_by_its_formula(make_run: Make) -> None:
    run = make_run(optimizer__weight_decay=0.1, optimizer__betas=[0.9, 0.99])
    updater, weights, moments, _ = _set_up(run)
    updater.update(learning_rate=0.5, updates=0)
    step = 0.5 * (0.05 / 0.1) / (math.sqrt(0.0025 / 0.01) + 1e-8)
    matrix, vector = weights["head.weight"], weights["final_norm.gain"]
    torch.testing.assert_close(matrix.detach(), torch.full_like(matrix, 2.0 * (1 - 0.5 * 0.1) - step))
    torch.testing.assert_close(vector.detach(), torch.full_like(vector, 2.0 - step))
    first, second = moments["first/head.weight"], moments["second/head.weight"]
    torch.testing.assert_close(first, torch.full_like(first, 0.05))
    torch.testing.assert_close(second, torch.full_like(second, 0.0025))


def test_adamws_correction_goes_by_the_updates(make_run: Make) -> None:
    updater, weights, _, _ = _set_up(make_run())
    updater.update(learning_rate=1.0, updates=9)
    step = (0.05 / (1 - 0.9**10)) / (math.sqrt(0.00025 / (1 - 0.999**10)) + 1e-8)
    vector = weights["final_norm.gain"]
    torch.testing.assert_close(vector.detach(), torch.full_like(vector, 2.0 - step))


def test_sgd_with_momentum_and_decay_by_its_formula(make_run: Make) -> None:
    run = make_run(optimizer__name="sgd", optimizer__momentum=0.9, optimizer__weight_decay=0.1)
    updater, weights, moments, _ = _set_up(run)
    updater.update(learning_rate=0.5, updates=0)
    updater.update(learning_rate=0.5, updates=1)
    matrix = 2.0
    pull = 0.0
    for _ in range(2):
        pull = 0.9 * pull + 0.5 + 0.1 * matrix
        matrix -= 0.5 * pull
    found = weights["head.weight"].detach()
    torch.testing.assert_close(found, torch.full_like(found, matrix))
    kept = moments["momentum/head.weight"]
    torch.testing.assert_close(kept, torch.full_like(kept, pull))


def test_plain_sgd_keeps_nothing(make_run: Make) -> None:
    updater, weights, moments, _ = _set_up(make_run(optimizer__name="sgd"))
    updater.update(learning_rate=0.5, updates=0)
    assert not moments
    assert set(weights["head.weight"].reshape(-1).tolist()) == {1.75}


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_a_rate_of_zero_moves_nothing(make_run: Make, name: str) -> None:
    updater, weights, _, _ = _set_up(make_run(optimizer__name=name, optimizer__weight_decay=0.1))
    updater.update(learning_rate=0.0, updates=0)
    assert set(weights["head.weight"].reshape(-1).tolist()) == {2.0}


def test_no_variant_with_bits_of_its_own_is_used(make_run: Make) -> None:
    for name in ("adamw", "sgd"):
        updater, *_ = _set_up(make_run(optimizer__name=name))
        for group in updater._optimizer.param_groups:
            assert group["foreach"] is False
            assert group["fused"] is False


@pytest.mark.parametrize("register", [register_optimizer_step_pre_hook, register_optimizer_step_post_hook])
def test_a_hook_of_every_optimizer_is_refused(make_run: Make, register: Callable[..., Any]) -> None:
    updater, weights, _, _ = _set_up(make_run())
    handle = register(lambda *_: None)
    try:
        with pytest.raises(InputError, match="hook runs with every optimizer's step"):
            updater.update(learning_rate=0.5, updates=0)
    finally:
        handle.remove()
    assert set(weights["head.weight"].reshape(-1).tolist()) == {2.0}
    updater.update(learning_rate=0.5, updates=0)
