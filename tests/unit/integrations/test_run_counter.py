"""A step of each kind is counted, the others multiplied, and what differs is told with bounds."""

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from flopwitness.foundation.errors import InputError
from flopwitness.integrations import run_counter
from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.run_count import RunCount, Span
from flopwitness.integrations.run_counter import RECOUNT_EVERY, RunCounter

UNIT = 2 * 4 * 4


def _multiply(rows: int, times: int = 1) -> None:
    for _ in range(times):
        torch.ones(rows, 4) @ torch.ones(4, 4)


def _run(run: RunCounter, steps: int, work: Callable[[int], object], batch: object = None) -> RunCount:
    for index in range(steps):
        with run.step(batch):
            work(index)
    return run.count()


def test_equal_steps_are_counted_once_and_multiplied() -> None:
    result = _run(RunCounter(), 300, lambda _: _multiply(3), torch.ones(3, 4))
    assert (result.counted_steps, result.multiplied_steps, result.steps) == (1, 299, 300)
    assert result.count.executed_flop == 300 * 3 * UNIT
    assert result.executed == result.model == Span(low_flop=300 * 3 * UNIT, high_flop=300 * 3 * UNIT)
    assert result.is_constant
    assert [note.kind for note in result.notes] == ["counted-once"]


def test_a_real_training_loop_equals_counting_every_step() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters())

    def step(rows: Tensor) -> None:
        optimizer.zero_grad()
        model(rows).square().mean().backward()
        optimizer.step()

    batches = [torch.randn(rows, 8) for rows in (4, 4, 3, 4, 4, 3, 1)]
    run, every = RunCounter(model), OperationCounter(model)
    for batch in batches:
        with run.step(batch):
            step(batch)
    with every:
        for batch in batches:
            step(batch)
    result = run.count()
    assert result.count.work == every.count().work
    assert result.count.by_module == every.count().by_module
    assert (result.counted_steps, result.multiplied_steps) == (3, 4)
    assert [kind.counted + kind.multiplied for kind in result.kinds] == [4, 2, 1]


def test_known_steps_are_counted_again_now_and_then() -> None:
    seen = []
    with_counts = RunCounter(recount_every=10)
    for index in range(1, 41):
        counted = with_counts.count().counted_steps if index > 1 else 0
        with with_counts.step():
            _multiply(3)
        if with_counts.count().counted_steps > counted:
            seen.append(index)
    assert seen == [1, 5, 10, 20, 30, 40]
    assert with_counts.count().notes == ()
    assert RECOUNT_EVERY == 1000


def test_steps_that_differ_are_told_and_bounded() -> None:
    """The work grows by one product every ten steps; counted are the 1st, the 10th, and then every fourth."""
    result = _run(RunCounter(recount_every=20), 40, lambda index: _multiply(1, 1 + index // 10))
    true_flop = sum(1 + index // 10 for index in range(40)) * UNIT
    assert not result.is_constant
    assert result.executed.low_flop <= true_flop <= result.executed.high_flop
    assert result.executed.low_flop <= result.count.executed_flop <= result.executed.high_flop
    assert result.kinds[0].executed == Span(low_flop=UNIT, high_flop=4 * UNIT)
    assert [note.kind for note in result.notes] == ["work-varies"]
    assert result.counted_steps > 3


def test_steps_that_differ_are_counted_five_times_as_often() -> None:
    constant = _run(RunCounter(recount_every=50), 200, lambda _: _multiply(1))
    varying = _run(RunCounter(recount_every=50), 200, lambda index: _multiply(1, 1 + index % 2))
    assert constant.counted_steps == 1 + 1 + 4
    assert varying.counted_steps >= 3 * constant.counted_steps


def test_every_step_may_be_counted() -> None:
    result = _run(RunCounter(recount_every=1), 12, lambda index: _multiply(1, 1 + index))
    assert (result.counted_steps, result.multiplied_steps) == (12, 0)
    assert result.count.executed_flop == sum(range(1, 13)) * UNIT
    assert result.executed == Span(low_flop=78 * UNIT, high_flop=78 * UNIT)


def test_a_key_tells_kinds_apart() -> None:
    run = RunCounter()
    for index in range(10):
        with run.step(key=index % 2):
            _multiply(1, 1 + index % 2)
    assert run.count().count.executed_flop == (5 * 1 + 5 * 2) * UNIT
    assert run.count().is_constant


def test_training_and_evaluation_are_kinds() -> None:
    model, rows = nn.Sequential(nn.Linear(4, 4)), torch.ones(2, 4)
    run = RunCounter(model)
    for is_training in (True, False, True, False):
        model.train(is_training)
        with run.step(rows), torch.set_grad_enabled(is_training):
            loss = model(rows).sum()
            if is_training:
                loss.backward()
    assert run.count().count.executed_flop == 2 * (2 * 2 * UNIT) + 2 * (2 * UNIT)
    assert len(run.count().kinds) == 2


def test_formulas_reach_every_step() -> None:
    run = RunCounter(formulas={"aten::mm": lambda _call: Products(flop=5)})
    assert _run(run, 4, lambda _: _multiply(1)).count.executed_flop == 20


def _fail_in(run: RunCounter, times: int) -> None:
    with run.step():
        _multiply(1, times)
        raise KeyError("step")


def test_a_first_step_that_fails_keeps_what_ran_and_stands_for_none() -> None:
    run = RunCounter()
    with pytest.raises(KeyError):
        _fail_in(run, 3)
    result = _run(run, 5, lambda _: _multiply(1))
    assert result.count.executed_flop == (3 + 5) * UNIT
    assert result.executed == Span(low_flop=8 * UNIT, high_flop=8 * UNIT)
    assert (result.failed_steps, result.steps, result.counted_steps) == (1, 5, 1)
    assert not result.is_constant
    assert "step-failed" in [note.kind for note in result.notes]


def test_a_later_step_that_fails_is_known_to_the_upper_bound_only() -> None:
    run = RunCounter()
    _run(run, 4, lambda _: _multiply(1))
    with pytest.raises(KeyError):
        _fail_in(run, 1)
    result = _run(run, 2, lambda _: _multiply(1))
    assert result.count.executed_flop == 6 * UNIT
    assert result.executed == Span(low_flop=6 * UNIT, high_flop=7 * UNIT)
    assert (result.steps, result.failed_steps) == (6, 1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_run_that_is_stopped_can_still_be_read(stop: type[BaseException]) -> None:
    run = RunCounter()

    def stopped() -> None:
        with run.step():
            _multiply(1)
            raise stop

    with pytest.raises(stop):
        stopped()
    assert run.count().count.executed_flop == UNIT
    assert run.count().steps == 0


def test_steps_may_not_lie_inside_one_another() -> None:
    run = RunCounter()
    with run.step():
        _multiply(1)
        with pytest.raises(InputError, match="under way"), run.step():
            pass
        _multiply(1)
    with run.step():
        _multiply(1, 2)
    assert run.count().count.executed_flop == 4 * UNIT


def test_steps_of_two_threads_may_not_overlap() -> None:
    run, refused = RunCounter(), list[str]()

    def other() -> None:
        try:
            with run.step():
                pass
        except InputError as error:
            refused.append(error.message)

    with run.step():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(refused) == 1
    assert run.count().steps == 2


def test_a_batch_that_hides_its_size_is_refused_and_blocks_nothing() -> None:
    run = RunCounter()
    with pytest.raises(InputError, match="cannot be told"), run.step(object()):
        pass
    with run.step(None):
        _multiply(1)
    assert run.count().steps == 1


def test_a_step_that_cannot_be_counted_says_why() -> None:
    """Another thread is counting; the step does not run, and is none."""
    run, told = RunCounter(), list[str]()

    def other() -> None:
        try:
            with run.step():
                told.append("ran")
        except InputError as error:
            told.append(error.message)

    with OperationCounter():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(told) == 1
    assert told[0].startswith("another thread is counting")
    assert run.count().steps == run.count().failed_steps == 0


@pytest.mark.parametrize("every", [0, -5])
def test_how_often_must_be_positive(every: int) -> None:
    with pytest.raises(InputError, match="so often"):
        RunCounter(recount_every=every)


def test_a_run_without_steps_has_no_count() -> None:
    with pytest.raises(InputError, match="nothing was counted"):
        RunCounter().count()


def test_notes_of_steps_reach_the_run() -> None:
    query = torch.ones(1, 1, 4, 4)

    def attend(_: int) -> None:
        torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)

    result = _run(RunCounter(recount_every=2), 4, attend)
    assert [note.kind for note in result.notes] == ["masks-not-discounted"]


def test_what_is_unrecognised_in_a_step_is_so_in_the_run() -> None:
    result = _run(RunCounter(), 5, lambda _: torch.linalg.inv(torch.eye(3)))
    assert not result.count.is_complete
    assert [(row.name, row.calls) for row in result.count.unrecognised] == [("aten::linalg_inv_ex", 5)]


def test_the_front_loads_no_pytorch_by_itself() -> None:
    assert "torch" not in vars(run_counter)
