"""Products of an optimizer stand in a row of their own; those of a closure that it calls do not."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable

import torch
from torch import nn

from flopwitness.integrations.operation_count import OperationCount
from flopwitness.integrations.optimizer_steps import OPTIMIZER, is_optimizer_step

Count = Callable[..., OperationCount]


def _by_module(counted: OperationCount) -> dict[str, int]:
    return {row.name: row.work.executed_flop for row in counted.by_module}


def test_an_optimizer_without_products_has_no_row(count: Count) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    counted = count(optimizer.step)
    assert not counted.by_module
    assert not counted.notes


def test_products_of_an_optimizer_are_its_own(count: Count) -> None:
    model = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.Muon(model.parameters())

    def step() -> None:
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    counted = count(step, model)
    assert _by_module(counted)["Linear"] == 2 * 2 * (2 * 4 * 4)
    assert _by_module(counted)[OPTIMIZER] > 0
    assert [note.kind for note in counted.notes] == ["optimizer-products"]


def test_a_closure_does_its_own_work(count: Count) -> None:
    model = nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    weight = torch.ones(1, 1)
    calls = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        calls.append(1)
        loss: torch.Tensor = (model(torch.ones(2, 4)) @ weight).square().sum()
        with torch.no_grad():
            model(torch.ones(2, 4))
        loss.backward()
        return loss

    counted = _by_module(count(lambda: optimizer.step(closure), model))
    assert counted["Linear"] == len(calls) * 3 * (2 * 2 * 4)
    assert counted["(outside any module)"] == len(calls) * 2 * (2 * 2)
    assert counted[OPTIMIZER] > 0


def test_outside_any_step_is_none() -> None:
    with torch.no_grad():
        assert not is_optimizer_step()
