"""What a table of runs declares of its training steps: claims, which are tested and estimate nothing."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from flopwitness.measure.estimators.link_operations import DeclaredSteps
from flopwitness.measure.sources.run_columns import is_plain_number
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["declare_steps"]

_BATCH: Final = ("batch_size", "micro_batch_size", "per_device_batch_size")
_LENGTH: Final = ("seq_len", "sequence_length", "seq_length")
_WIDTH: Final = ("d_model", "hidden_size", "n_embd")
_CHIPS: Final = ("data_parallel_size",)
_LARGEST: Final = 1e15  # no training has a step, sequence or width of so many
_ACCUMULATION: Final = ("gradient_accumulation_steps", "accumulation")


def declare_steps(rows: Sequence[RunRow], *, count: int | None = None) -> DeclaredSteps:
    """The declared steps of each run; NaN where a row does not declare one.

    Tokens for each all-reduce are batch size x sequence length x chips, times the accumulation where the
    table has it. The chips are those of a column data_parallel_size, or all; without them nothing is known.

    Args:
        rows: The rows.
        count: How many chips, where the user says so.
    """
    columns = [
        (
            _read(row.cells, _BATCH),
            _read(row.cells, _LENGTH),
            _read(row.cells, _WIDTH),
            _times(row.cells, count or row.count),
        )
        for row in rows
    ]
    batch, length, width, times = np.array(columns, dtype=np.float64).reshape(-1, 4).T
    return DeclaredSteps(tokens=batch * length * times, sequence_length=length, width=width)


def _times(cells: Mapping[str, str], count: int | None) -> float:
    """By how much a step of all chips is larger than one chip's batch; NaN where nobody counts them."""
    declared = _read(cells, _CHIPS)
    chips = declared if np.isfinite(declared) else float(count or "nan")
    accumulation = _read(cells, _ACCUMULATION)
    return chips * (accumulation if np.isfinite(accumulation) else 1.0)


def _read(cells: Mapping[str, str], names: Sequence[str]) -> float:
    """The first of the columns that holds a number above 0 and at most 1e15."""
    for name in names:
        text = cells.get(name, "").strip()
        if is_plain_number(text) and 0 < float(text) <= _LARGEST:
            return float(text)
    return float("nan")
