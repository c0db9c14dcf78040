"""The decoder's parameters by name: shape, what they belong to, how they start, and whether they learn.

A table, not a module: a checkpoint is held against it, a verifier makes the initial weights from it, and
neither needs PyTorch. Matrices lie as (outer, inner).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwitness.counting.model import Model, Norm, Part, Positions, Projection
from flopwitness.trainers.randomness import BELL_SD, Randomness

__all__ = ["INITIAL_SD", "Parameter", "Start", "initial_values", "list_parameters"]

INITIAL_SD: Final = 0.02  # GPT-2 (Radford et al. 2019); what writes into the stream is divided by sqrt(2 L)


class Start(StrEnum):
    """What a parameter holds before the first step."""

    NORMAL = "normal"
    ONES = "ones"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One named tensor of weights.

    Attributes:
        name: Its name, such as `layers.0.query.weight`.
        shape: Its shape; a matrix is (outer, inner).
        part: The part of the model that it belongs to.
        start: What it holds before the first step.
        initial_sd: The standard deviation of normal initial values.
        is_frozen: It has no gradient.
    """

    name: str
    shape: tuple[int, ...]
    part: Part
    start: Start = Start.NORMAL
    initial_sd: float = INITIAL_SD
    is_frozen: bool = False

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def has_decay(self) -> bool:
        """Whether weight decay acts on it: on matrices and tables, not on gains and biases."""
        return len(self.shape) > 1


def list_parameters(model: Model) -> tuple[Parameter, ...]:
    """All parameters of a decoder, in the order in which gradients are exchanged."""
    return tuple(_parameters(model))


def initial_values(parameter: Parameter, randomness: Randomness) -> npt.NDArray[np.float32]:
    """What a parameter holds before the first step, the same bits on every machine.

    A near-normal integer times one double, rounded to fp32 once: IEEE 754 leaves no choice in that.

    Returns:
        The values, of the parameter's shape.
    """
    if parameter.start is not Start.NORMAL:
        value = 1.0 if parameter.start is Start.ONES else 0.0
        return np.full(parameter.shape, value, dtype=np.float32)
    bells = randomness.bells(parameter.size, "initial weights", parameter.name)
    values = bells.astype(np.float64) * (parameter.initial_sd / BELL_SD)
    return values.astype(np.float32).reshape(parameter.shape)


def _parameters(model: Model) -> Iterator[Parameter]:
    is_frozen = Part.EMBEDDING in model.frozen
    for name, rows in (("embedding", model.vocabulary), ("positions", model.sequence)):
        if name == "embedding" or model.positions is Positions.LEARNED:
            yield Parameter(
                name=f"{name}.weight", shape=(rows, model.d_model), part=Part.EMBEDDING, is_frozen=is_frozen
            )
    if model.has_embedding_norm:
        yield from _norm(model, "embedding_norm")
    for index in range(model.layers):
        yield from _layer(model, index)
    if model.has_final_norm:
        yield from _norm(model, "final_norm")
    if not model.is_tied:
        shape = (model.outputs, model.d_model)
        yield Parameter(name="head.weight", shape=shape, part=Part.HEAD, is_frozen=Part.HEAD in model.frozen)


def _layer(model: Model, index: int) -> Iterator[Parameter]:
    below = index < model.frozen_layers
    yield from _norm(model, f"layers.{index}.attention_norm", is_frozen=below)
    width, query, key = model.d_model, model.query_width, model.key_width
    sizes = {
        Projection.QUERY: (query, width),
        Projection.KEY: (key, width),
        Projection.VALUE: (key, width),
        Projection.OUTPUT: (width, query),
    }
    for name, shape in sizes.items():
        yield from _projection(model, index, name, shape, Part.ATTENTION)
    yield from _norm(model, f"layers.{index}.feed_forward_norm", is_frozen=below)
    inward = (Projection.UP, Projection.GATE) if model.feed_forward.is_gated else (Projection.UP,)
    for name in inward:
        yield from _projection(model, index, name, (model.d_ff, width), Part.FEED_FORWARD)
    yield from _projection(model, index, Projection.DOWN, (width, model.d_ff), Part.FEED_FORWARD)


def _projection(
    model: Model, index: int, name: Projection, shape: tuple[int, int], part: Part
) -> Iterator[Parameter]:
    is_frozen = index < model.frozen_layers or part in model.frozen
    writes = name in (Projection.OUTPUT, Projection.DOWN)
    initial_sd = INITIAL_SD / math.sqrt(2 * model.layers) if writes else INITIAL_SD
    place = f"layers.{index}.{name}"
    yield Parameter(
        name=f"{place}.weight", shape=shape, part=part, initial_sd=initial_sd, is_frozen=is_frozen
    )
    if name in model.biases:
        yield Parameter(
            name=f"{place}.bias", shape=shape[:1], part=part, start=Start.ZEROS, is_frozen=is_frozen
        )


def _norm(model: Model, place: str, *, is_frozen: bool = False) -> Iterator[Parameter]:
    is_frozen = is_frozen or Part.NORM in model.frozen
    shape = (model.d_model,)
    yield Parameter(name=f"{place}.gain", shape=shape, part=Part.NORM, start=Start.ONES, is_frozen=is_frozen)
    if model.norm is Norm.LAYER:
        yield Parameter(
            name=f"{place}.bias", shape=shape, part=Part.NORM, start=Start.ZEROS, is_frozen=is_frozen
        )
