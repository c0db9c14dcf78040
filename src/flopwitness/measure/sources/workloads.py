"""Which runs of a table repeat each other: the same workload, run again.

Hyperparameters tell workloads apart, and do nothing else: they decide which runs are pooled, never what is
predicted for one.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import InputError
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["HYPERPARAMETERS", "number_workloads", "workload_columns"]

HYPERPARAMETERS: Final = (
    "d_model",
    "n_layers",
    "n_heads",
    "d_ff",
    "seq_len",
    "batch_size",
    "vocab_size",
    "optimizer",
    "precision",
    "steps",
)
"""Columns that tell workloads apart, where a table has them and nobody names others."""

_SHAPES: Final = frozenset({"d_model", "n_layers", "n_heads", "d_ff", "seq_len", "batch_size"})
"""At least one of these must be there: runs of one precision are no repeats of each other."""


def workload_columns(rows: Sequence[RunRow], named: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that tell workloads apart: those named, else the known hyperparameters of the table.

    None where the table has no column of a shape.

    Raises:
        InputError: A named column that a table lacks.
    """
    shared = set.intersection(*(set(row.cells) for row in rows)) if rows else set()
    for column in named:
        if column not in shared:
            raise InputError(
                "no such column",
                where="--workload",
                expected=f"one of {', '.join(sorted(shared))}",
                found=repr(column[:80]),
            )
    if named:
        return tuple(named)
    return tuple(column for column in HYPERPARAMETERS if column in shared) if shared & _SHAPES else ()


def number_workloads(rows: Sequence[RunRow], columns: Sequence[str]) -> NDArray[np.intp]:
    """The number of each run's workload, shape (n,), in the order of their first runs.

    Runs are repeats where all columns and the true size agree; with no columns, every run stands alone.

    Args:
        rows: The runs.
        columns: The columns that tell workloads apart.
    """
    numbers: dict[tuple[object, ...], int] = {}
    keys = (
        (row.true_flop, *(row.cells[column].strip() for column in columns)) if columns else (place,)
        for place, row in enumerate(rows)
    )
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
