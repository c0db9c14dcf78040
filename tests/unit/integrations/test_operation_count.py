"""Counts add, multiply and say what they leave out."""

from fractions import Fraction

import pytest

from flopwitness.integrations.operation_count import (
    CountNote,
    ModuleCount,
    NoteKind,
    OperationCount,
    OperatorCount,
    UncountedOperator,
    UncountedReason,
    Work,
)

WORK = Work(forward_flop=10, backward_flop=20, recomputed_flop=5)
NOTE = CountNote(kind=NoteKind.MASKS_NOT_DISCOUNTED, message="told")


def _uncounted(
    name: str = "aten::relu",
    *,
    reason: UncountedReason = UncountedReason.ELEMENTWISE,
    calls: int = 1,
    volume: int = 30,
) -> UncountedOperator:
    return UncountedOperator(name=name, reason=reason, calls=calls, volume=volume)


def _count(*uncounted: UncountedOperator, work: Work = WORK) -> OperationCount:
    return OperationCount.of_rows(
        by_operator=[OperatorCount(name="aten::mm", calls=3, volume=70, work=work)],
        by_module=[ModuleCount(name="Net.a", work=work)],
        uncounted=uncounted,
        notes=[NOTE],
    )


def test_what_is_needed_and_what_ran() -> None:
    count = _count()
    assert (count.model_flop, count.executed_flop, count.recomputed_flop) == (30, 35, 5)


def test_known_operators_leave_a_count_complete() -> None:
    count = _count(_uncounted(), _uncounted("aten::view", reason=UncountedReason.VIEW, volume=0))
    assert count.completeness == 1
    assert count.is_complete
    assert count.unrecognised == ()


def test_an_unrecognised_operator_lowers_completeness_by_its_volume() -> None:
    count = _count(_uncounted(), _uncounted("mylib::op", reason=UncountedReason.UNRECOGNISED, volume=300))
    assert count.completeness == Fraction(70 + 30, 70 + 30 + 300)
    assert not count.is_complete
    assert [row.name for row in count.unrecognised] == ["mylib::op"]


def test_an_unrecognised_operator_without_volume_still_weighs() -> None:
    count = _count(_uncounted("mylib::op", reason=UncountedReason.UNRECOGNISED, calls=4, volume=0))
    assert count.completeness == Fraction(70, 74)
    assert not count.is_complete


def test_nothing_seen_is_not_ground_truth() -> None:
    assert not OperationCount(work=Work()).is_complete
    assert OperationCount(work=Work()).completeness == 1


def test_sums_merge_rows() -> None:
    both = _count(_uncounted()) + _count(_uncounted(), work=Work(forward_flop=1))
    assert both.work == Work(forward_flop=11, backward_flop=20, recomputed_flop=5)
    assert [(row.calls, row.volume, row.work) for row in both.by_operator] == [(6, 140, both.work)]
    assert [row.work for row in both.by_module] == [both.work]
    assert [(row.calls, row.volume) for row in both.uncounted] == [(2, 60)]
    assert both.notes == (NOTE,)


def test_different_explanations_stay_apart() -> None:
    one, other = (
        UncountedOperator(
            name="aten::mm",
            reason=UncountedReason.UNRECOGNISED,
            explanation=explanation,
            calls=1,
            volume=1,
        )
        for explanation in ("one", "other")
    )
    assert len((_count(one) + _count(other)).uncounted) == 2


def test_multiplication_is_repeated_addition() -> None:
    count = _count(_uncounted())
    assert count * 3 == count + count + count
    assert count * 1 == count


def test_counts_are_exact_beyond_floats() -> None:
    huge = _count(work=Work(forward_flop=10**26 + 1)) * 10**6
    assert huge.model_flop == 10**32 + 10**6
    assert isinstance(huge.model_flop, int)


def test_no_times_is_nothing() -> None:
    assert _count() * 0 == OperationCount(work=Work())
    assert not (_count() * 0).is_complete


@pytest.mark.parametrize("times", [-1, -(10**9)])
def test_negative_times_are_refused(times: int) -> None:
    with pytest.raises(ValueError, match="cannot be done"):
        _count() * times


def test_tables_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="different totals"):
        OperationCount.of_rows(
            by_operator=[OperatorCount(name="aten::mm", calls=1, volume=1, work=WORK)],
            by_module=[ModuleCount(name="Net", work=Work())],
            uncounted=[],
            notes=[],
        )
    with pytest.raises(ValueError, match="different totals"):
        OperationCount.of_rows(
            by_operator=[], by_module=[ModuleCount(name="Net", work=WORK)], uncounted=[], notes=[]
        )


def test_the_worst_and_largest_come_first() -> None:
    small, large = _uncounted("aten::a", volume=1), _uncounted("aten::b", volume=100)
    unknown = _uncounted("mylib::op", reason=UncountedReason.UNRECOGNISED, volume=5)
    assert [row.name for row in _count(small, large, unknown).uncounted] == [
        "mylib::op",
        "aten::b",
        "aten::a",
    ]


@pytest.mark.parametrize("times", [1.5, True, "2"])
def test_work_is_done_a_whole_number_of_times(times: int) -> None:
    with pytest.raises(TypeError, match="whole number"):
        OperationCount(work=Work()) * times


def test_shapes_alone_are_no_work() -> None:
    row = UncountedOperator(name="fake", reason=UncountedReason.SHAPES, calls=3, volume=0)
    assert not OperationCount(work=Work(), uncounted=(row,)).is_complete
