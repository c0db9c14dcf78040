"""Sums by operator and by module are of the same work, also from many threads."""

from concurrent.futures import ThreadPoolExecutor

from flopwitness.integrations.operation_count import NoteKind, OperationCount, UncountedReason, Work
from flopwitness.integrations.tally import Tally


def test_nothing_added_is_nothing() -> None:
    assert Tally().count() == OperationCount(work=Work())


def test_rows_by_operator_and_by_module() -> None:
    tally = Tally()
    tally.add_counted(name="aten::mm", module="a", volume=3, work=Work(forward_flop=10))
    tally.add_counted(name="aten::mm", module="b", volume=4, work=Work(backward_flop=20, recomputed_flop=1))
    count = tally.count()
    assert count.work == Work(forward_flop=10, backward_flop=20, recomputed_flop=1)
    assert [(row.calls, row.volume) for row in count.by_operator] == [(2, 7)]
    assert [(row.name, row.work.executed_flop) for row in count.by_module] == [("a", 10), ("b", 21)]


def test_a_row_that_was_asked_for_and_never_used_is_not_told() -> None:
    tally = Tally()
    row = tally.row_of(name="aten::relu", reason=UncountedReason.ELEMENTWISE, explanation="")
    assert tally.count().uncounted == ()
    tally.add_to(row, 5)
    assert [(seen.calls, seen.volume) for seen in tally.count().uncounted] == [(1, 5)]


def test_a_note_is_told_once() -> None:
    tally = Tally()
    for _ in range(3):
        tally.add_note(NoteKind.DECLARED_FORMULA, "told")
    assert len(tally.count().notes) == 1


def test_threads_lose_nothing() -> None:
    tally = Tally()
    row = tally.row_of(name="aten::relu", reason=UncountedReason.ELEMENTWISE, explanation="")

    def work(_: int) -> None:
        for _ in range(500):
            tally.add_to(row, 2)
            tally.add_counted(name="aten::mm", module="a", volume=1, work=Work(forward_flop=3))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    count = tally.count()
    assert count.executed_flop == 8 * 500 * 3
    assert [(seen.calls, seen.volume) for seen in count.uncounted] == [(4000, 8000)]
