"""What was counted, what was seen and not counted, and what a reader must know of both.

Plain records without PyTorch: they add and multiply exactly, so that steps make up a run. Every operation
stands in one phase, one operator's row and one module's row; rows add up to the total and parents do not
contain their children.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Self, TypeVar

__all__ = [
    "CountNote",
    "ModuleCount",
    "NoteKind",
    "OperationCount",
    "OperatorCount",
    "UncountedOperator",
    "UncountedReason",
    "Work",
]


class UncountedReason(StrEnum):
    """Why an operator that ran has no count. All but the last are known to do no products."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    RESAMPLING = "resampling"
    MOVEMENT = "movement"
    COMMUNICATION = "communication"
    VIEW = "view"
    SHAPES = "shapes"
    UNRECOGNISED = "unrecognised"


class NoteKind(StrEnum):
    """What a count can have to say about itself."""

    MASKS_NOT_DISCOUNTED = "masks-not-discounted"
    COMPILED_RUN_EAGER = "compiled-run-eager"
    GRADIENTS_IN_BACKWARD = "gradients-in-backward"
    DECLARED_FORMULA = "declared-formula"
    WORK_VARIES = "work-varies"
    COUNTED_SELDOM = "counted-seldom"
    STEP_FAILED = "step-failed"
    STEPS_INDISTINCT = "steps-indistinct"
    VALUES_IGNORED = "values-ignored"
    KINDS_BOUNDED = "kinds-bounded"
    MODEL_CHANGED = "model-changed"
    OPTIMIZER_PRODUCTS = "optimizer-products"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class CountNote:
    """One thing that a reader of the count must know, as a whole sentence."""

    kind: NoteKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Operations by phase [FLOP]; a multiply-add is two.

    Attributes:
        forward_flop: What ran outside any backward pass.
        backward_flop: What a backward pass needs once every activation is at hand.
        recomputed_flop: What a backward pass computed again: checkpointed activations, and the scores that
            fused attention does not keep.
    """

    forward_flop: int = 0
    backward_flop: int = 0
    recomputed_flop: int = 0

    @property
    def model_flop(self) -> int:
        """What the algorithm needs: without recomputation."""
        return self.forward_flop + self.backward_flop

    @property
    def executed_flop(self) -> int:
        """What ran, recomputation included."""
        return self.model_flop + self.recomputed_flop

    def __add__(self, other: "Work") -> "Work":
        return Work(
            forward_flop=self.forward_flop + other.forward_flop,
            backward_flop=self.backward_flop + other.backward_flop,
            recomputed_flop=self.recomputed_flop + other.recomputed_flop,
        )

    def __mul__(self, times: int) -> "Work":
        return Work(
            forward_flop=self.forward_flop * times,
            backward_flop=self.backward_flop * times,
            recomputed_flop=self.recomputed_flop * times,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCount:
    """One operator that has a formula.

    Attributes:
        name: Namespace and name, without the overload: `aten::mm`.
        calls: How often it ran.
        volume: Elements read and written.
        work: Its operations.
    """

    name: str
    calls: int
    volume: int
    work: Work

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows one."""
        return (self.name,)

    def __add__(self, other: "OperatorCount") -> "OperatorCount":
        return replace(
            self,
            calls=self.calls + other.calls,
            volume=self.volume + other.volume,
            work=self.work + other.work,
        )

    def __mul__(self, times: int) -> "OperatorCount":
        return replace(self, calls=self.calls * times, volume=self.volume * times, work=self.work * times)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCount:
    """The operations of one module itself, without those of the modules inside it."""

    name: str
    work: Work

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows one."""
        return (self.name,)

    def __add__(self, other: "ModuleCount") -> "ModuleCount":
        return replace(self, work=self.work + other.work)

    def __mul__(self, times: int) -> "ModuleCount":
        return replace(self, work=self.work * times)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedOperator:
    """One operator that ran and was not counted.

    Attributes:
        name: Namespace and name, without the overload.
        reason: Its class; only `unrecognised` makes a count incomplete.
        explanation: Why it is not recognised; "" for the other classes.
        calls: How often it ran.
        volume: Elements read and written; a view reads and writes none.
    """

    name: str
    reason: UncountedReason
    explanation: str = ""
    calls: int
    volume: int

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows one."""
        return self.name, self.reason, self.explanation

    def __add__(self, other: "UncountedOperator") -> "UncountedOperator":
        return replace(self, calls=self.calls + other.calls, volume=self.volume + other.volume)

    def __mul__(self, times: int) -> "UncountedOperator":
        return replace(self, calls=self.calls * times, volume=self.volume * times)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCount:
    """The operations of whatever ran inside a counter.

    Attributes:
        work: The total, by phase.
        by_operator: The total by operator, largest first; its rows add up to `work`.
        by_module: The total by module, in the order of first use; its rows add up to `work`.
        uncounted: Every operator that ran and was not counted; unrecognised ones first, then by volume.
        notes: What a reader must know.
    """

    work: Work
    by_operator: tuple[OperatorCount, ...] = ()
    by_module: tuple[ModuleCount, ...] = ()
    uncounted: tuple[UncountedOperator, ...] = ()
    notes: tuple[CountNote, ...] = ()

    @property
    def model_flop(self) -> int:
        """What the algorithm needs: without recomputation [FLOP]."""
        return self.work.model_flop

    @property
    def executed_flop(self) -> int:
        """What ran, recomputation included [FLOP]."""
        return self.work.executed_flop

    @property
    def recomputed_flop(self) -> int:
        """What a backward pass computed again [FLOP]."""
        return self.work.recomputed_flop

    @property
    def unrecognised(self) -> tuple[UncountedOperator, ...]:
        """The operators that may hide products."""
        return tuple(row for row in self.uncounted if row.reason is UncountedReason.UNRECOGNISED)

    @property
    def completeness(self) -> Fraction:
        """The share of all elements read and written by operators that are understood.

        Below one wherever an operator is unrecognised, however little it touched: such a call weighs at
        least one element. One where nothing ran at all; then `is_complete` is False all the same.
        """
        hidden = sum(max(row.volume, row.calls) for row in self.unrecognised)
        understood = sum(row.volume for row in self.by_operator) + sum(
            row.volume for row in self.uncounted if row.reason is not UncountedReason.UNRECOGNISED
        )
        return Fraction(understood, understood + hidden) if hidden else Fraction(1)

    @property
    def is_complete(self) -> bool:
        """Whether the count may be called ground truth: something ran, and all of it is understood.

        Shapes that were only asked for are nothing that ran.
        """
        ran = any(row.reason is not UncountedReason.SHAPES for row in self.uncounted)
        return (ran or bool(self.by_operator)) and not self.unrecognised

    def __add__(self, other: "OperationCount") -> "OperationCount":
        return self.of_rows(
            by_operator=(*self.by_operator, *other.by_operator),
            by_module=(*self.by_module, *other.by_module),
            uncounted=(*self.uncounted, *other.uncounted),
            notes=(*self.notes, *other.notes),
        )

    def __mul__(self, times: int) -> "OperationCount":
        """The same work so many times over; nothing at all where `times` is zero.

        Raises:
            TypeError: `times` is no whole number.
            ValueError: `times` is negative: a count never is.
        """
        if isinstance(times, bool) or not isinstance(times, int):
            raise TypeError(f"work is done a whole number of times, not {times!r}")
        if times < 0:
            raise ValueError(f"work cannot be done {times} times")
        if times == 0:
            return OperationCount(work=Work())
        return replace(
            self,
            work=self.work * times,
            by_operator=tuple(row * times for row in self.by_operator),
            by_module=tuple(row * times for row in self.by_module),
            uncounted=tuple(row * times for row in self.uncounted),
        )

    @classmethod
    def of_rows(
        cls,
        *,
        by_operator: Iterable[OperatorCount],
        by_module: Iterable[ModuleCount],
        uncounted: Iterable[UncountedOperator],
        notes: Iterable[CountNote],
    ) -> Self:
        """The count that these rows make up; rows of one key are added, each table in its order.

        Raises:
            ValueError: The operators' rows and the modules' rows do not add up to the same work.
        """
        operators, modules = _merged(by_operator), _merged(by_module)
        work = sum((row.work for row in operators), Work())
        if work != sum((row.work for row in modules), Work()):
            raise ValueError("the rows by operator and the rows by module add up to different totals")
        return cls(
            work=work,
            by_operator=tuple(sorted(operators, key=_operator_rank)),
            by_module=tuple(modules),
            uncounted=tuple(sorted(_merged(uncounted), key=_uncounted_rank)),
            notes=tuple(dict.fromkeys(notes)),
        )


_Row = TypeVar("_Row", OperatorCount, ModuleCount, UncountedOperator)


def _merged(rows: Iterable[_Row]) -> list[_Row]:
    """One row for each key, in the order of first appearance."""
    merged: dict[tuple[str, ...], _Row] = {}
    for row in rows:
        seen = merged.get(row.key)
        merged[row.key] = row if seen is None else seen + row
    return list(merged.values())


def _operator_rank(row: OperatorCount) -> tuple[int, str]:
    return -row.work.executed_flop, row.name


def _uncounted_rank(row: UncountedOperator) -> tuple[bool, int, str]:
    return row.reason is not UncountedReason.UNRECOGNISED, -row.volume, row.name
