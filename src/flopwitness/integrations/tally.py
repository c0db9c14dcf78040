"""The running sums behind a count; several threads of a backward pass may add to them."""

from threading import Lock

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

__all__ = ["Tally"]

_FORWARD, _BACKWARD, _RECOMPUTED = range(3)


class Tally:
    """What was added so far, by operator and by module."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted: dict[str, list[int]] = {}
        self._modules: dict[str, list[int]] = {}
        self._uncounted: dict[tuple[str, UncountedReason, str], list[int]] = {}
        self._notes: dict[CountNote, None] = {}

    def add_counted(self, *, name: str, module: str, volume: int, work: Work) -> None:
        """One call of an operator that has a formula."""
        by_phase = (work.forward_flop, work.backward_flop, work.recomputed_flop)
        with self._lock:
            row = self._counted.setdefault(name, [0, 0, 0, 0, 0])
            module_row = self._modules.setdefault(module, [0, 0, 0])
            row[3] += 1
            row[4] += volume
            for phase, flop in enumerate(by_phase):
                row[phase] += flop
                module_row[phase] += flop

    def add_uncounted(self, *, name: str, reason: UncountedReason, explanation: str, volume: int) -> None:
        """One call of an operator that is not counted."""
        self.add_to(self.row_of(name=name, reason=reason, explanation=explanation), volume)

    def row_of(self, *, name: str, reason: UncountedReason, explanation: str) -> list[int]:
        """The row of an operator that is not counted, to be kept and handed to `add_to`."""
        with self._lock:
            return self._uncounted.setdefault((name, reason, explanation), [0, 0])

    def add_to(self, row: list[int], volume: int) -> None:
        """One call in a row of `row_of`: this comes once for every operator, so nothing is looked up."""
        with self._lock:
            row[0] += 1
            row[1] += volume

    def add_note(self, kind: NoteKind, message: str) -> None:
        """One thing that a reader must know; said once."""
        with self._lock:
            self._notes[CountNote(kind=kind, message=message)] = None

    def count(self) -> OperationCount:
        """Everything added so far."""
        with self._lock:
            return OperationCount.of_rows(
                by_operator=[
                    OperatorCount(name=name, calls=row[3], volume=row[4], work=_work(row))
                    for name, row in self._counted.items()
                ],
                by_module=[ModuleCount(name=name, work=_work(row)) for name, row in self._modules.items()],
                uncounted=[
                    UncountedOperator(
                        name=name, reason=reason, explanation=explanation, calls=row[0], volume=row[1]
                    )
                    for (name, reason, explanation), row in self._uncounted.items()
                    if row[0]
                ],
                notes=list(self._notes),
            )


def _work(row: list[int]) -> Work:
    return Work(forward_flop=row[_FORWARD], backward_flop=row[_BACKWARD], recomputed_flop=row[_RECOMPUTED])
