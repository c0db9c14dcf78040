"""The processes of a data-parallel run, as a port: who plays which of them, and how gradients are added.

Gradients are added in the processes' order, never in whichever order a library finds fast. So one process can
play all of them one after the other and gets the same bits: a verifier needs no cluster.
"""

from collections.abc import Sequence
from typing import Protocol

import torch

__all__ = ["Group", "PlayedGroup"]


class Group(Protocol):
    """The processes of one run. Every process calls the same methods in the same order.

    Attributes:
        size: How many there are.
        ranks: Those that this process plays, in their order.
    """

    size: int
    ranks: Sequence[int]

    def sum_in_order(self, gradients: Sequence[torch.Tensor]) -> None:
        """Replace each tensor, which holds the sum over `ranks`, by the sum over all processes.

        The processes' shares are added in the order of their numbers; all get the same bits.

        Side effects:
            Changes the tensors in place.
        """

    def gather(self, values: Sequence[float]) -> list[float]:
        """What all processes hand in, one value for each rank, in their order."""


class PlayedGroup:
    """All processes of a run, played by this one."""

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.ranks: Sequence[int] = range(size)

    def sum_in_order(self, gradients: Sequence[torch.Tensor]) -> None:
        """Nothing: this process has added all of them."""

    def gather(self, values: Sequence[float]) -> list[float]:
        """What is handed in."""
        return list(values)
