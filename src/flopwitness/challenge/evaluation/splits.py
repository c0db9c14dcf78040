"""Which runs teach and which ones judge: no workload ever does both.

Repeats of one workload are as good as copies of each other, so they go to one side together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import InputError

__all__ = ["Split", "check_split", "leave_one_value_out", "random_splits"]

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Places of runs in the table: those that teach, and those that judge."""

    train: Index
    test: Index


def check_split(workload: Index, n_train: int, *, where: str = "--train") -> int:
    """The number of workloads, where so many may teach.

    Args:
        workload: The number of each run's workload, shape (n,).
        n_train: How many workloads are to teach.
        where: The option to name in an error.

    Raises:
        InputError: No workload would be left to teach or to judge.
    """
    n_workloads = int(workload.max()) + 1 if workload.size else 0
    if not 0 < n_train < n_workloads:
        possible = f"1 to {n_workloads - 1} of {n_workloads} workloads"
        raise InputError(
            "no such split",
            where=where,
            expected=possible if n_workloads > 1 else "a table with two workloads or more",
            found=str(n_train),
        )
    return n_workloads


def random_splits(workload: Index, *, n_train: int, n_splits: int, seed: int) -> Iterator[Split]:
    """Random splits of the workloads; all other workloads judge.

    Args:
        workload: The number of each run's workload, shape (n,).
        n_train: How many workloads teach.
        n_splits: How many splits.
        seed: For `numpy.random.default_rng` (PCG64).

    Raises:
        InputError: No workload would be left to teach or to judge.
    """
    n_workloads = check_split(workload, n_train)
    generator = np.random.default_rng(seed)
    for _ in range(n_splits):
        order = generator.permutation(n_workloads)
        teaches = np.isin(workload, order[:n_train])
        yield Split(np.flatnonzero(teaches), np.flatnonzero(~teaches))


def leave_one_value_out(values: Sequence[str], workload: Index) -> Iterator[tuple[str, Split]]:
    """For each value of a column: the runs with it judge; other runs of no judging workload teach.

    Args:
        values: What each run says in the column, n of them.
        workload: The number of each run's workload, shape (n,).
    """
    column = np.array(values, dtype=object)
    for value in dict.fromkeys(values):
        judges = column == value
        teaches = ~judges & ~np.isin(workload, workload[judges])
        yield value, Split(np.flatnonzero(teaches), np.flatnonzero(judges))
