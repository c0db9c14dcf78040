"""Which rows a step takes: every epoch in another order, and the same after any restart."""

from collections.abc import Callable

import pytest

from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.randomness import Randomness, derive_root
from flopwitness.trainers.rows import RandomRows

Make = Callable[..., RunConfig]


def _plan(run: RunConfig) -> RowPlan:
    randomness = Randomness(derive_root(run.seed))
    return RowPlan(run, RandomRows(run, randomness), randomness)


def _taken(plan: RowPlan, steps: range) -> list[int]:
    return [row for step in steps for row in plan.rows(step)]


def test_golden_orders(make_run: Make) -> None:
    plan = _plan(make_run())
    assert plan.order(0).tolist() == [0, 7, 4, 10, 6, 9, 1, 8, 2, 3, 5, 11]
    assert plan.order(1).tolist() == [1, 7, 11, 8, 0, 2, 6, 10, 3, 5, 4, 9]


def test_every_epoch_takes_every_row_once_and_in_another_order(make_run: Make) -> None:
    plan = _plan(make_run())
    taken = _taken(plan, range(12))  # four epochs of twelve rows, four rows a step
    epochs = [taken[start : start + 12] for start in range(0, 48, 12)]
    assert all(sorted(epoch) == list(range(12)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize("step", range(24))
def test_a_plan_made_anew_at_any_step_goes_on_where_the_old_one_stood(make_run: Make, step: int) -> None:
    """Loaders that lose their generator at a restart draw the first epoch's order again."""
    run = make_run(data__rows=10)  # epochs end within steps
    whole = _taken(_plan(run), range(24))
    restarted = _taken(_plan(run), range(step)) + _taken(_plan(run), range(step, 24))
    assert restarted == whole
    first, later = _plan(run).order(0).tolist(), _plan(run).order(1).tolist()
    assert first != later


def test_sequential_rows_start_again_in_the_same_order(make_run: Make) -> None:
    plan = _plan(make_run(data__order="sequential", data__rows=6))
    assert _taken(plan, range(3)) == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]


def test_rows_without_end_are_all_new(make_run: Make, drop: object) -> None:
    plan = _plan(make_run(data__rows=drop))
    assert _taken(plan, range(3)) == list(range(12))
    with pytest.raises(ValueError, match="no epochs"):
        plan.order(0)


def test_two_processes_share_the_rows_of_two_passes(make_run: Make) -> None:
    one = _plan(make_run(training__accumulation=2))
    two = _plan(make_run(training__processes=2))
    for step in range(5):
        assert one.rows(step) == two.rows(step)
        for index in range(2):
            assert one.pass_rows(step, rank=0, index=index) == two.pass_rows(step, rank=index, index=0)


def test_passes_and_processes_take_every_row_of_a_step_once(make_run: Make) -> None:
    plan = _plan(make_run(training__processes=3, training__accumulation=2, data__rows=100))
    shares = [plan.pass_rows(1, rank=rank, index=index) for index in range(2) for rank in range(3)]
    assert tuple(row for share in shares for row in share) == plan.rows(1)


def test_tokens_stand_row_by_row(make_run: Make) -> None:
    run = make_run()
    plan, randomness = _plan(run), Randomness(derive_root(run.seed))
    tokens = plan.tokens((3, 1))
    assert tokens.shape == (2, 9)
    assert (tokens[0] == RandomRows(run, randomness).row(3)).all()


def test_few_orders_are_kept(make_run: Make) -> None:
    plan = _plan(make_run())
    for epoch in range(10):
        plan.order(epoch)
    assert len(plan._orders) == 2
    assert plan.order(0).tolist() == _plan(make_run()).order(0).tolist()
