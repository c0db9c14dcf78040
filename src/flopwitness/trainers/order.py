"""Which rows a step takes: a pure function of the step, so that a resumed run cannot lose its place.

Loaders that keep their order in a generator's state start again with the first epoch's order when that state
is not in the checkpoint, and no loss shows it. Here there is no state: the order of an epoch follows from the
run's root and the epoch's number.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from flopwitness.trainers.config import Order, RunConfig
from flopwitness.trainers.randomness import Randomness
from flopwitness.trainers.rows import RowSource

__all__ = ["RowPlan"]

_KEPT_ORDERS: Final = 2  # a step may lie across the end of an epoch


class RowPlan:
    """The rows of every step, process and pass.

    A step takes the next `processes x accumulation x batch` rows; pass `j` of process `r` takes those from
    `(j x processes + r) x batch` on. So two processes take in one step what one process takes in two passes.
    """

    def __init__(self, run: RunConfig, source: RowSource, randomness: Randomness) -> None:
        self._run, self._source, self._randomness = run, source, randomness
        self._orders: dict[int, npt.NDArray[np.int64]] = {}

    def order(self, epoch: int) -> npt.NDArray[np.int64]:
        """The rows of an epoch in the order in which it visits them, shape (rows,).

        Raises:
            ValueError: Every number is a row, so there are no epochs.
        """
        count = self._source.count
        if not count:
            raise ValueError("rows without end have no epochs")
        if self._run.data.order is Order.SEQUENTIAL:
            return np.arange(count, dtype=np.int64)
        if epoch not in self._orders:
            for old in sorted(self._orders)[: 1 - _KEPT_ORDERS or None]:
                del self._orders[old]
            self._orders[epoch] = self._randomness.permutation(count, "data order", epoch)
        return self._orders[epoch]

    def rows(self, step: int) -> tuple[int, ...]:
        """The numbers of all rows of a step, over all processes, in the order of their use."""
        size = self._run.training.rows_per_step
        return tuple(self._row(position) for position in range(step * size, (step + 1) * size))

    def pass_rows(self, step: int, *, rank: int, index: int) -> tuple[int, ...]:
        """The numbers of the rows that one process takes in one pass of a step."""
        training = self._run.training
        start = step * training.rows_per_step + (index * training.processes + rank) * training.batch
        return tuple(self._row(position) for position in range(start, start + training.batch))

    def tokens(self, rows: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """The tokens of some rows, shape (rows, sequence + 1)."""
        return np.stack([self._source.row(index) for index in rows])

    def _row(self, position: int) -> int:
        if not self._source.count:
            return position
        epoch, place = divmod(position, self._source.count)
        return int(self.order(epoch)[place])
