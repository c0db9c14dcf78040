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
from flopwitness.integrations.run_counter import MOST_VARIANTS, RECOUNT_EVERY, RunCounter

UNIT = 2 * 4 * 4


def _multiply(rows: int, times: int = 1) -> None:
    for _ in range(times):
        torch.ones(rows, 4) @ torch.ones(4, 4)


def _run(run: RunCounter, steps: int, work: Callable[[int], object], batch: object = "all") -> RunCount:
    for index in range(steps):
        with run.step(batch):
            work(index)
    return run.count()


def test_equal_steps_are_counted_three_times_and_multiplied() -> None:
    result = _run(RunCounter(), 300, lambda _: _multiply(3), torch.ones(3, 4))
    assert (result.counted_steps, result.multiplied_steps, result.steps) == (3, 297, 300)
    assert result.count.executed_flop == 300 * 3 * UNIT
    assert result.executed == result.model == Span(low_flop=300 * 3 * UNIT, high_flop=300 * 3 * UNIT)
    assert result.is_constant
    assert result.is_checked
    assert result.notes == ()


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
    assert (result.counted_steps, result.multiplied_steps) == (5, 2)
    assert [kind.counted + kind.multiplied for kind in result.kinds] == [4, 2, 1]


def test_known_steps_are_counted_again_now_and_then() -> None:
    seen = []
    with_counts = RunCounter(recount_every=10)
    for index in range(1, 41):
        counted = with_counts.count().counted_steps if index > 1 else 0
        with with_counts.step(key="all"):
            _multiply(3)
        if with_counts.count().counted_steps > counted:
            seen.append(index)
    assert seen == [1, 2, 5, 10, 20, 30, 40]
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
    assert constant.counted_steps == len([1, 2, 25, 32, 50, 100, 150, 200])
    assert varying.counted_steps == len([1, 2, 32, *range(10, 201, 10)])


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
    with run.step("all"):
        _multiply(1, times)
        raise KeyError("step")


def test_a_first_step_that_fails_keeps_what_ran_and_stands_for_none() -> None:
    run = RunCounter()
    with pytest.raises(KeyError):
        _fail_in(run, 3)
    result = _run(run, 5, lambda _: _multiply(1))
    assert result.count.executed_flop == (3 + 5) * UNIT
    assert result.executed == Span(low_flop=8 * UNIT, high_flop=8 * UNIT)
    assert (result.failed_steps, result.steps, result.counted_steps) == (1, 5, 2)
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


@pytest.mark.parametrize("every", [0, -5, 2.5, "2", True])
def test_how_often_must_be_a_positive_whole_number(every: int) -> None:
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


def test_what_differs_after_the_first_step_is_seen_at_once() -> None:
    result = _run(RunCounter(), 10, lambda index: _multiply(1, 5 if index == 0 else 1))
    assert not result.is_constant
    assert result.count.executed_flop == (5 + 9) * UNIT
    assert result.executed.low_flop <= result.count.executed_flop < result.executed.high_flop


def test_what_two_steps_stand_for_is_told() -> None:
    result = _run(RunCounter(), 20, lambda _: _multiply(1))
    assert (result.is_checked, result.is_constant) == (True, True)
    assert [note.kind for note in result.notes] == ["counted-seldom"]
    assert "18 are taken to be like the 2 counted" in result.notes[0].message


def test_steps_that_nothing_tells_apart_are_told() -> None:
    run = RunCounter()
    with run.step():
        _multiply(1)
    assert run.count().notes == ()
    with run.step():
        _multiply(9)
    assert "steps-indistinct" in [note.kind for note in run.count().notes]


def test_a_model_that_grows_is_counted_again_at_once_and_told() -> None:
    model, rows = nn.Sequential(nn.Linear(4, 4, bias=False)), torch.ones(1, 4)
    run = RunCounter(model)
    for index in range(20):
        if index == 10:
            model.append(nn.Linear(4, 4, bias=False))
        with run.step(rows), torch.no_grad():
            model(rows)
    result = run.count()
    assert result.count.executed_flop == (10 + 10 * 2) * UNIT
    assert "model-changed" in [note.kind for note in result.notes]


def test_a_part_in_anothers_place_is_told_when_a_step_is_counted_again() -> None:
    model, rows = nn.Sequential(nn.Linear(4, 4)), torch.ones(1, 4)
    run = RunCounter(model, recount_every=10)
    for index in range(10):
        if index == 6:
            model[0] = nn.Linear(4, 4)
        with run.step(rows):
            model(rows)
    assert [note.kind for note in run.count().notes] == ["model-changed"]


@pytest.mark.parametrize("name", [str, int])
def test_numbers_and_texts_that_only_tell_steps_apart_are_given_up(name: Callable[[int], object]) -> None:
    run, rows = RunCounter(), torch.ones(1, 4)
    for index in range(200):
        with run.step({"x": rows, "step": name(index)}):
            _multiply(1)
    result = run.count()
    assert result.count.executed_flop == 200 * UNIT
    assert len(result.kinds) == MOST_VARIANTS + 1
    assert result.counted_steps == MOST_VARIANTS + 3
    assert [note.kind for note in result.notes] == ["values-ignored"]


def test_the_number_of_kinds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_counter, "MOST_KINDS", 5)
    run = RunCounter()
    for index in range(40):
        with run.step(torch.ones(1 + index)):
            _multiply(1 + index)
    result = run.count()
    assert result.count.executed_flop == sum(range(1, 41)) * UNIT
    assert len(result.kinds) == 6
    assert (result.counted_steps, result.kinds[-1].counted) == (40, 35)
    assert "kinds-bounded" in [note.kind for note in result.notes]


def test_a_key_must_be_comparable() -> None:
    run = RunCounter()
    with pytest.raises(InputError, match="key"), run.step(key=[1]):  # type: ignore[arg-type]
        pass
    with run.step(key=(1,)):
        _multiply(1)
    assert run.count().steps == 1


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="by module"):
        RunCounter("x")  # type: ignore[arg-type]
