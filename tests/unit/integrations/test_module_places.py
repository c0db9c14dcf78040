"""Each operation in one row, under the innermost module, forward and backward."""

# mypy: disable-error-code="no-untyped-call"

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from flopwitness.integrations import module_places
from flopwitness.integrations.module_places import BACKWARD, OUTSIDE, ModulePlaces
from flopwitness.integrations.operation_count import OperationCount
from flopwitness.integrations.operation_counter import OperationCounter

Count = Callable[..., OperationCount]
UNIT = 2 * 2 * 4 * 4


class _Net(nn.Module):
    """A layer used at two places, another inside, and a product of the net's own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.inner = nn.Sequential(self.first, nn.Linear(4, 4, bias=False))
        self.own = nn.Parameter(torch.ones(4, 4))

    def forward(self, rows: Tensor) -> Tensor:
        result: Tensor = self.inner(self.first(rows)) @ self.own
        return result


def _rows(count: OperationCount) -> dict[str, tuple[int, int, int]]:
    return {
        row.name: (
            row.work.forward_flop // UNIT,
            row.work.backward_flop // UNIT,
            row.work.recomputed_flop // UNIT,
        )
        for row in count.by_module
    }


@pytest.fixture
def rows() -> Tensor:
    return torch.ones(2, 4, requires_grad=True)


def test_forward_and_backward(count: Count, rows: Tensor) -> None:
    """The shared layer has one row, under its first name."""
    model = _Net()
    expected = {"_Net.first": (2, 4, 0), "_Net.inner.1": (1, 2, 0), "_Net": (1, 2, 0)}
    assert _rows(count(lambda: model(rows).sum().backward())) == expected
    assert _rows(count(lambda: model(rows).sum().backward(), model)) == expected


def test_names_come_from_the_model_that_is_given(count: Count, rows: Tensor) -> None:
    model = _Net()
    assert list(_rows(count(lambda: model.inner(rows), model))) == ["_Net.first", "_Net.inner.1"]
    assert list(_rows(count(lambda: model.inner(rows)))) == ["Sequential.0", "Sequential.1"]


def test_products_outside_any_module(count: Count, rows: Tensor) -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    assert _rows(count(lambda: (rows @ weight).sum().backward())) == {OUTSIDE: (1, 2, 0)}


def test_several_models_of_one_class_stay_apart(count: Count, rows: Tensor) -> None:
    models = [nn.Linear(4, 4) for _ in range(3)]
    counted = count(lambda: [model(rows) for model in models])
    assert _rows(counted) == {"Linear": (1, 0, 0), "Linear (2)": (1, 0, 0), "Linear (3)": (1, 0, 0)}


def test_a_module_made_on_the_way_is_named_within(count: Count, rows: Tensor) -> None:
    class Late(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = nn.Linear(4, 4)(x)
            return made

    assert _rows(count(lambda: Late()(rows))) == {"Late.Linear": (1, 0, 0)}


def test_a_graph_made_before_counting_has_no_module(count: Count, rows: Tensor) -> None:
    loss = _Net()(rows).sum()
    assert _rows(count(loss.backward)) == {BACKWARD: (0, 8, 0)}


def test_what_is_computed_again_stands_in_its_module(count: Count, rows: Tensor) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    for use_reentrant in (False, True):
        counted = count(
            lambda flag=use_reentrant: checkpoint(model, rows, use_reentrant=flag).sum().backward()
        )
        assert _rows(counted) == {"Sequential.0": (1, 2, 1), "Sequential.2": (1, 2, int(use_reentrant))}


def test_a_module_left_by_an_exception_is_left(count: Count, rows: Tensor) -> None:
    class Broken(nn.Module):
        def forward(self, _rows: Tensor) -> Tensor:
            raise KeyError("broken")

    broken, model = nn.Sequential(Broken()), nn.Linear(4, 4)

    def work() -> None:
        with pytest.raises(KeyError):
            broken(rows)
        model(rows)

    assert _rows(count(work)) == {"Linear": (1, 0, 0)}


def test_two_steps_in_one_counter(rows: Tensor) -> None:
    model = _Net()
    counter = OperationCounter(model)
    for _ in range(2):
        with counter:
            model(rows).sum().backward()
    assert _rows(counter.count()) == {"_Net.first": (4, 8, 0), "_Net.inner.1": (2, 4, 0), "_Net": (2, 4, 0)}


def test_a_backward_pass_in_a_later_block_finds_its_modules(rows: Tensor) -> None:
    model, counter = _Net(), OperationCounter()
    with counter:
        loss = model(rows).sum()
    with counter:
        loss.backward()
    assert _rows(counter.count()) == {"_Net.first": (2, 4, 0), "_Net.inner.1": (1, 2, 0), "_Net": (1, 2, 0)}


def test_modules_that_are_gone_keep_their_rows(count: Count, rows: Tensor) -> None:
    def work() -> None:
        for _ in range(3):
            nn.Linear(4, 4)(rows)
            gc.collect()

    assert sum(forward for forward, _, _ in _rows(count(work)).values()) == 3


def test_outside_a_backward_pass_no_node_runs() -> None:
    assert ModulePlaces(None).of_node() == BACKWARD
    assert ModulePlaces(None).here == OUTSIDE


def test_old_notes_are_dropped_and_not_guessed(monkeypatch: pytest.MonkeyPatch, rows: Tensor) -> None:
    monkeypatch.setattr(module_places, "_MOST_NOTES", 10)
    model, counter = nn.Linear(4, 4), OperationCounter()
    with counter:
        loss = model(rows).sum()
        for _ in range(20):
            model(rows)
        loss.backward()
    assert _rows(counter.count()) == {"Linear": (21, 0, 0), BACKWARD: (0, 2, 0)}


def test_threads_that_disagree_are_not_guessed(rows: Tensor) -> None:
    """Numbers of nodes are counted per thread; as if another thread had made nodes of the same numbers."""
    model, counter = nn.Linear(4, 4), OperationCounter()
    with counter:
        loss = model(rows).sum()
        assert counter._places is not None
        counter._places._notes[-1] = ([0], ["another"])
        loss.backward()
    assert _rows(counter.count()) == {"Linear": (1, 0, 0), BACKWARD: (0, 2, 0)}
