"""What a run of many steps came to: a step of each kind counted, the others taken to be like it.

Two steps are of one kind if their inputs have the same shapes and types, and the model is in the same state.
That they do the same work is checked now and then, not proven: the bounds say what the check has seen.
"""

from dataclasses import dataclass

from flopwitness.integrations.operation_count import CountNote, OperationCount

__all__ = ["RunCount", "Span", "StepKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the least to the most [FLOP]."""

    low_flop: int
    high_flop: int

    def __add__(self, other: "Span") -> "Span":
        return Span(
            low_flop=self.low_flop + other.low_flop,
            high_flop=self.high_flop + other.high_flop,
        )

    def __mul__(self, times: int) -> "Span":
        return Span(low_flop=self.low_flop * times, high_flop=self.high_flop * times)

    def widened(self, flop: int) -> "Span":
        """The span with one more value in it."""
        return Span(low_flop=min(self.low_flop, flop), high_flop=max(self.high_flop, flop))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    """The steps of one kind.

    Attributes:
        description: What the steps have in common, for a person's eye.
        counted: How many of them were counted.
        multiplied: How many were taken to be like the last one counted before them.
        failed: How many ended in an exception.
        executed: The operations of one counted step, recomputation included, from least to most; None
            where none was counted to its end.
    """

    description: str
    counted: int
    multiplied: int
    failed: int
    executed: Span | None

    @property
    def is_checked(self) -> bool:
        """Whether a second step was counted before any was taken to be like the first."""
        return self.multiplied == 0 or self.counted > 1

    @property
    def is_constant(self) -> bool:
        """Whether every counted step of this kind came to the same, of multiplied ones at least two."""
        is_equal = self.executed is None or self.executed.low_flop == self.executed.high_flop
        return is_equal and self.is_checked


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """The operations of a run.

    Attributes:
        count: The sum: counted steps as they were, others like the last counted one of their kind.
        model: Bounds of the work without recomputation [FLOP], where counted steps differed or steps failed.
        executed: Bounds of all that ran [FLOP], likewise.
        kinds: The kinds of steps, in the order of their first one.
        notes: What a reader must know, those of the steps included.
    """

    count: OperationCount
    model: Span
    executed: Span
    kinds: tuple[StepKind, ...]
    notes: tuple[CountNote, ...]

    @property
    def steps(self) -> int:
        """How many steps ended without an exception."""
        return self.counted_steps + self.multiplied_steps

    @property
    def counted_steps(self) -> int:
        """How many steps were counted operator by operator."""
        return sum(kind.counted for kind in self.kinds)

    @property
    def multiplied_steps(self) -> int:
        """How many steps were taken to be like a counted one."""
        return sum(kind.multiplied for kind in self.kinds)

    @property
    def failed_steps(self) -> int:
        """How many steps ended in an exception."""
        return sum(kind.failed for kind in self.kinds)

    @property
    def is_checked(self) -> bool:
        """Whether no kind rests on a single counted step that others were taken to be like."""
        return all(kind.is_checked for kind in self.kinds)

    @property
    def is_constant(self) -> bool:
        """Whether no counted step contradicts the multiplication, and none failed."""
        return self.failed_steps == 0 and all(kind.is_constant for kind in self.kinds)
