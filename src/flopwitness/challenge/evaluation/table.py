"""Runs of known size as a judge takes them: sensors on one side, workloads and claims on the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.estimators.link_operations import DeclaredSteps
from flopwitness.measure.observed import ObservedRuns, observe
from flopwitness.measure.sources.declared_steps import declare_steps
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.measure.sources.workloads import number_workloads

__all__ = ["KnownRuns", "gather_runs"]

_NO_AXIS: Final = frozenset({"steps"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownRuns:
    """Runs of known size.

    Attributes:
        rows: The rows, n of them.
        observed: What the sensors saw of them.
        flop: Their true operations, shape (n,).
        declared: What they declare of their steps.
        workload: The number of each run's workload, shape (n,); repeats share it.
        columns: The columns that tell workloads apart.
    """

    rows: tuple[RunRow, ...]
    observed: ObservedRuns
    flop: NDArray[np.float64]
    declared: DeclaredSteps
    workload: NDArray[np.intp]
    columns: tuple[str, ...]

    @property
    def n_workloads(self) -> int:
        """How many workloads."""
        return int(self.workload.max()) + 1 if self.rows else 0

    def values(self, column: str) -> tuple[str, ...]:
        """What each run says in a column."""
        return tuple(row.cells[column].strip() for row in self.rows)

    def axes(self, *, most: int | None = None) -> tuple[str, ...]:
        """The columns of workloads in which the runs differ, step counts aside.

        Args:
            most: Leave out columns with more values than this; None for no limit.
        """
        counts = {column: len(set(self.values(column))) for column in self.columns if column not in _NO_AXIS}
        return tuple(
            column for column, count in counts.items() if count > 1 and (most is None or count <= most)
        )


def gather_runs(rows: Sequence[RunRow], *, columns: Sequence[str] = ()) -> KnownRuns:
    """The runs of known size, each with its workload.

    Args:
        rows: Rows with a true size, an energy and a duration.
        columns: The columns that tell workloads apart; with none, every run is a workload of its own.
    """
    return KnownRuns(
        rows=tuple(rows),
        observed=observe(rows),
        flop=np.array([float(row.true_flop or 0) for row in rows]),
        declared=declare_steps(rows),
        workload=number_workloads(rows, columns),
        columns=tuple(columns),
    )
