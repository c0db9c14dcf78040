"""The counter as a whole: entered, left, nested, and honest about what it cannot see."""

# mypy: disable-error-code="no-untyped-call"

import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.operation_count import OperationCount, Work
from flopwitness.integrations.operation_counter import OperationCounter

Count = Callable[..., OperationCount]
PRODUCT = 2 * 3 * 4 * 5


def _work() -> Tensor:
    return torch.ones(3, 4) @ torch.ones(4, 5)


def test_counts_add_up_when_entered_again() -> None:
    counter = OperationCounter()
    for times in (1, 2, 3):
        with counter:
            _work()
        assert counter.count().executed_flop == times * PRODUCT


def test_nothing_outside_counts() -> None:
    counter = OperationCounter()
    _work()
    with counter:
        _work()
    _work()
    assert counter.count().executed_flop == PRODUCT


def test_so_far_can_be_asked_inside() -> None:
    with OperationCounter() as counter:
        _work()
        assert counter.count().executed_flop == PRODUCT
        _work()
    assert counter.count().executed_flop == 2 * PRODUCT


def test_counters_may_lie_inside_one_another() -> None:
    with OperationCounter() as outer:
        _work()
        with OperationCounter() as inner, FlopCounterMode(display=False) as other:
            _work()
    assert (outer.count().executed_flop, inner.count().executed_flop) == (2 * PRODUCT, PRODUCT)
    assert other.get_total_flops() == PRODUCT


def test_the_same_counter_may_not_lie_inside_itself() -> None:
    with OperationCounter() as counter:
        with pytest.raises(InputError, match="counting already"), counter:
            pass
        _work()
    assert counter.count().executed_flop == PRODUCT


def test_a_counter_that_was_never_entered_has_no_count() -> None:
    with pytest.raises(InputError, match="nothing was counted"):
        OperationCounter().count()


def test_an_empty_block_is_no_ground_truth() -> None:
    with OperationCounter() as counter:
        pass
    assert counter.count() == OperationCount(work=Work())
    assert not counter.count().is_complete


def test_an_exception_goes_through_and_leaves_nothing_behind() -> None:
    counter = OperationCounter()
    before = nn.Module.__call__

    def failing() -> None:
        with counter:
            _work()
            raise KeyError("work")

    with pytest.raises(KeyError):
        failing()
    _work()
    assert counter.count().executed_flop == PRODUCT
    assert nn.Module.__call__ is before
    with counter:
        _work()
    assert counter.count().executed_flop == 2 * PRODUCT


def test_results_do_not_change() -> None:
    torch.manual_seed(0)
    model, rows = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), torch.randn(3, 4)

    def gradients() -> list[Tensor]:
        model.zero_grad()
        model(rows).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    plain = gradients()
    with OperationCounter():
        counted = gradients()
    assert all(torch.equal(*pair) for pair in zip(plain, counted, strict=True))


def test_rows_add_up_to_the_total(count: Count) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2)))
    counted = count(lambda: model(torch.ones(3, 4)).sum().backward(), model)
    assert sum((row.work for row in counted.by_module), Work()) == counted.work
    assert sum((row.work for row in counted.by_operator), Work()) == counted.work
    assert {row.name: row.work for row in counted.by_module} == {
        "Sequential.0": Work(forward_flop=2 * 3 * 4 * 8, backward_flop=2 * 3 * 4 * 8),
        "Sequential.1.1": Work(forward_flop=2 * 3 * 8 * 2, backward_flop=2 * (2 * 3 * 8 * 2)),
    }


def test_formulas_for_what_we_do_not_know() -> None:
    library = torch.library.Library("counter_test", "DEF")
    library.define("op(Tensor x) -> Tensor")
    library.impl("op", lambda x: x.clone(), "CPU")
    with OperationCounter(formulas={"counter_test::op": lambda _call: Products(flop=77)}) as counter:
        torch.ops.counter_test.op(torch.ones(3))
    assert counter.count().executed_flop == 77
    assert counter.count().is_complete
    assert "counter_test::op" in counter.count().notes[0].message
    library._destroy()


def test_modules_in_another_thread_are_told(count: Count) -> None:
    model = nn.Linear(4, 5)

    def work() -> None:
        thread = threading.Thread(target=lambda: model(torch.ones(3, 4)))
        thread.start()
        thread.join()

    counted = count(work)
    assert [row.name.split(":")[0] for row in counted.unrecognised] == ["threads"]
    assert not counted.is_complete


def test_two_threads_do_not_count_at_once() -> None:
    """What a counter changes for a time, it changes for all threads."""
    refused = list[str]()

    def other() -> None:
        try:
            with OperationCounter():
                pass
        except InputError as error:
            refused.append(str(error))

    def run() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with OperationCounter():
        run()
    assert len(refused) == 1
    assert "another thread is counting" in refused[0]
    run()
    assert len(refused) == 1


def test_products_outside_pytorch_cannot_be_seen(count: Count) -> None:
    """A limit, kept here so that nobody believes otherwise."""

    class Outside(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return torch.from_numpy(np.matmul(x.numpy(), x.numpy()))

    counted = count(lambda: Outside.apply(torch.ones(3, 3)))
    assert counted.executed_flop == 0
    assert counted.completeness == 1


def test_a_product_spelt_out_is_listed_by_its_volume(count: Count) -> None:
    """Multiply and sum: no operator of these is a product, and the list shows how much they touched."""
    left, right = torch.ones(30, 40), torch.ones(40, 50)
    counted = count(lambda: (left[:, :, None] * right[None]).sum(1))
    assert counted.executed_flop == 0
    assert counted.uncounted[0].volume >= 30 * 40 * 50


@pytest.mark.filterwarnings("ignore")
def test_scripted_models_are_seen(count: Count) -> None:
    model = torch.jit.script(nn.Sequential(nn.Linear(4, 8), nn.ReLU()))
    for _ in range(3):
        counted = count(lambda: model(torch.ones(3, 4, requires_grad=True)).sum().backward())
        assert counted.executed_flop == 3 * 2 * 3 * 4 * 8
        assert counted.is_complete


def test_a_backward_pass_in_another_thread_is_told() -> None:
    layer = nn.Linear(4, 5)

    def work(run: Callable[[Callable[[], object]], object]) -> OperationCount:
        with OperationCounter() as counter:
            run(layer(torch.ones(3, 4)).sum().backward)
        return counter.count()

    def elsewhere(backward: Callable[[], object]) -> None:
        thread = threading.Thread(target=backward)
        thread.start()
        thread.join()

    assert work(lambda backward: backward()).is_complete
    assert not work(elsewhere).is_complete


@pytest.mark.parametrize("formulas", [{"aten::mm": 5}, {5: abs}, [abs]])
def test_what_is_no_formula_is_refused(formulas: object) -> None:
    with pytest.raises(InputError, match="formula"):
        OperationCounter(formulas=formulas)  # type: ignore[arg-type]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="by module"):
        OperationCounter("x")  # type: ignore[arg-type]
