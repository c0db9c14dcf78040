"""Dropout whose masks have names, so that nothing of them is stored.

A mask follows from the run's root, the step, the process, the pass and the place in the model. It is drawn
for the whole pass even where a verifier cuts the pass into parts, so the cut changes no mask; and a layer
that is computed again in the backward pass finds the same one. Attention's own probabilities are not dropped:
every kernel would draw its own masks for them.
"""

from dataclasses import dataclass
from typing import Final

import torch

from flopwitness.trainers.randomness import Randomness

__all__ = ["Dropout"]

_WORD_VALUES: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """The masks of one pass, or of a part of its rows.

    On a CPU they come from the run's own generator with keys of 128 bits, by comparing integers: the same on
    every processor. On a GPU they come from PyTorch's generator there, because drawing them on the CPU would
    take longer than the step; its seed is 63 bits of the key, and the masks are not those of a CPU.

    Attributes:
        probability: How likely a number is dropped.
        randomness: The run's random numbers, which key the masks.
        step: The step, counted from 0.
        rank: The process.
        index: The pass within the step.
        batch: Rows of the whole pass.
        first: The part's first row.
    """

    probability: float
    randomness: Randomness
    step: int
    rank: int
    index: int
    batch: int
    first: int = 0

    def drop(self, x_BTD: torch.Tensor, place: str) -> torch.Tensor:  # noqa: N803 (shapes in names)
        """The values with some set to zero and the others scaled up; the same where nothing is dropped.

        The scale is a plain number, which PyTorch multiplies by in fp32 whatever the values' type.

        Args:
            x_BTD: Values, shape (rows of the part, tokens, width).
            place: The place in the model, which no other mask has.
        """
        if not self.probability:
            return x_BTD
        shape = (self.batch, *x_BTD.shape[1:])
        is_dropped = self._draw(shape, x_BTD.device, place)[self.first : self.first + len(x_BTD)]
        return (x_BTD * (1.0 / (1.0 - self.probability))).masked_fill(is_dropped, 0.0)

    def _draw(self, shape: tuple[int, ...], device: torch.device, place: str) -> torch.Tensor:
        """Which numbers of the whole pass are dropped: those whose 32 bits are below the probability's."""
        name = ("dropout", self.step, self.rank, self.index, place)
        if device.type == "cpu":
            count = torch.Size(shape).numel()
            halves = self.randomness.words((count + 1) // 2, *name).astype("<u8", copy=False).view("<u4")
            is_dropped = halves[:count] < int(self.probability * _WORD_VALUES)
            return torch.from_numpy(is_dropped).view(shape)
        generator = torch.Generator(device=device)
        generator.manual_seed(int.from_bytes(self.randomness.key(*name)[:8], "big") >> 1)
        return torch.rand(shape, generator=generator, device=device, dtype=torch.float32) < self.probability
