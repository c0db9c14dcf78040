"""Dropout whose masks have names, so that nothing of them is stored.

A mask follows from the run's root, the step, the process, the pass and the place in the model. It is drawn
for the whole pass even where a verifier cuts the pass into parts, so the cut changes no mask; and a layer
that is computed again in the backward pass finds the same one. Attention's own probabilities are not dropped:
every kernel would draw its own masks for them.
"""

from dataclasses import dataclass

import torch

from flopwitness.trainers.randomness import Randomness

__all__ = ["Dropout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """The masks of one pass, or of a part of its rows.

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

        Args:
            x_BTD: Values, shape (rows of the part, tokens, width).
            place: The place in the model, which no other mask has.
        """
        if not self.probability:
            return x_BTD
        key = self.randomness.key("dropout", self.step, self.rank, self.index, place)
        generator = torch.Generator(device=x_BTD.device)
        generator.manual_seed(int.from_bytes(key[:8], "big") >> 1)
        shape = (self.batch, *x_BTD.shape[1:])
        drawn = torch.rand(shape, generator=generator, device=x_BTD.device, dtype=torch.float32)
        kept = drawn[self.first : self.first + len(x_BTD)] >= self.probability
        return x_BTD * (kept.to(x_BTD.dtype) * (1.0 / (1.0 - self.probability)))
