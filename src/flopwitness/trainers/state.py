"""Everything that a step starts from and ends with, as buffers by name.

Data order, dropout and the learning rate are functions of the step, so there is nothing else: what stands
here and the declaration give all later steps.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from flopwitness.trainers.config import Precision, RunConfig
from flopwitness.trainers.loss_scale import LossScale
from flopwitness.trainers.parameters import initial_values, list_parameters
from flopwitness.trainers.randomness import Randomness

__all__ = ["TrainState", "initial_state", "list_moments", "weight_type"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """The state between two steps.

    Attributes:
        step: Steps done.
        updates: Steps that updated the weights; fewer than `step` where an fp16 gradient overflowed.
        weights: Parameters by name.
        moments: The optimizer's, by kind and parameter's name, such as `first/head.weight`.
        scale: The loss scale of an fp16 run, else None.
    """

    step: int
    updates: int
    weights: Mapping[str, torch.Tensor]
    moments: Mapping[str, torch.Tensor]
    scale: LossScale | None

    def buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """All tensors with their names, weights first."""
        yield from self.weights.items()
        yield from self.moments.items()

    def copy(self) -> "TrainState":
        """The same with tensors of its own."""
        return TrainState(
            step=self.step,
            updates=self.updates,
            weights={name: tensor.detach().clone() for name, tensor in self.weights.items()},
            moments={name: tensor.detach().clone() for name, tensor in self.moments.items()},
            scale=self.scale,
        )


def weight_type(run: RunConfig) -> torch.dtype:
    """The type of weights, gradients and moments."""
    return torch.bfloat16 if run.precision is Precision.BF16_WEIGHTS else torch.float32


def list_moments(run: RunConfig) -> dict[str, tuple[int, ...]]:
    """The moments that a run keeps, by name, with their shapes: one of each kind for what learns."""
    return {
        f"{kind}/{parameter.name}": parameter.shape
        for kind in run.optimizer.moments
        for parameter in list_parameters(run.model)
        if not parameter.is_frozen
    }


def initial_state(run: RunConfig, randomness: Randomness) -> TrainState:
    """The state before the first step: a pure function of the declaration and the root, on the CPU."""
    dtype = weight_type(run)
    with torch.inference_mode(mode=False):  # a caller's would keep these weights from ever learning
        weights = {
            parameter.name: torch.from_numpy(initial_values(parameter, randomness)).to(dtype)
            for parameter in list_parameters(run.model)
        }
        moments = {
            name: torch.zeros(shape, dtype=dtype, device="cpu") for name, shape in list_moments(run).items()
        }
    return TrainState(
        step=0,
        updates=0,
        weights=weights,
        moments=moments,
        scale=LossScale() if run.precision is Precision.FP16 else None,
    )
