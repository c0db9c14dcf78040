"""What makes two training steps one kind: the shapes and types of their inputs, and the model's state.

Values of whole numbers, flags and texts belong to it, because they may choose what runs (numbers and texts
can be left out, where they only tell each step from the next); values of floats and of tensors' elements do
not. Of jagged and sparse tensors the lengths and the stored elements belong to
it. An object that shows none of this is refused rather than taken to be like any other.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Final

import torch
from torch import Tensor, nn

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.operator_call import stored_elements

__all__ = ["ModelState", "describe_signature", "signature_of"]

_IS_TRAINING: Final = attrgetter("training")
_HAS_GRADIENT: Final = attrgetter("requires_grad")
_CHILDREN: Final = attrgetter("_modules")
_OWN_PARAMETERS: Final = attrgetter("_parameters")
_DEEPEST: Final = 50
_LONGEST_DESCRIPTION: Final = 120


class ModelState:
    """What of a model decides what runs: training or not, which parameters get a gradient, how many parts.

    Its modules and parameters are listed again by `refresh`, not at every step: that would cost more than
    the rest of a signature together. A part that was added or removed shows at once, in the number of parts
    of a listed module; one that was put in another's place shows when the model is listed again.
    """

    def __init__(self, model: nn.Module | None) -> None:
        self._model = model
        self._modules: list[nn.Module] = []
        self._parameters: list[nn.Parameter] = []
        self.refresh()

    def refresh(self) -> bool:
        """List the model's modules and parameters again.

        Returns:
            Whether they are others than before.
        """
        if self._model is None:
            return False
        before = [*map(id, self._modules), *map(id, self._parameters)]
        self._modules = list(self._model.modules())
        self._parameters = list(self._model.parameters())
        return before != [*map(id, self._modules), *map(id, self._parameters)]

    def signature(self) -> Hashable:
        """The flags of now."""
        return (
            tuple(map(len, map(_CHILDREN, self._modules))),
            tuple(map(len, map(_OWN_PARAMETERS, self._modules))),
            tuple(map(_IS_TRAINING, self._modules)),
            tuple(map(_HAS_GRADIENT, self._parameters)),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled(),
        )


def signature_of(value: object, *, has_values: bool = True) -> Hashable:
    """What the value has in common with others of its kind.

    Args:
        value: Tensors, arrays and plain values in any nest of sequences, mappings and records.
        has_values: Whether whole numbers, texts and bytes belong to it with their values, or by type alone.

    Raises:
        InputError: It holds something whose size cannot be told.
    """
    return _signature(value, _DEEPEST, has_values=has_values)


def _signature(value: object, depth: int, *, has_values: bool) -> Hashable:
    if isinstance(value, Tensor):
        return _tensor_signature(value)
    if value is None or isinstance(value, bool | Enum | torch.dtype | torch.device):
        return type(value).__name__, value
    if isinstance(value, int | str | bytes):
        return (type(value).__name__, value) if has_values else type(value).__name__
    if isinstance(value, float | complex):
        return type(value).__name__
    members = _members(value)
    if members is None:
        return _array_signature(value)
    if depth == 0:
        raise InputError("the inputs of a step are nested too deeply", expected=f"at most {_DEEPEST} levels")
    return type(value).__name__, tuple(
        [(name, _signature(member, depth - 1, has_values=has_values)) for name, member in members]
    )


def _members(value: object) -> list[tuple[Hashable, object]] | None:
    """What a container holds, by name or position; None where the value is no container."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return None


def _tensor_signature(tensor: Tensor) -> Hashable:
    plain = (tensor.dtype, tensor.device, tensor.requires_grad)
    if tensor.is_nested:
        return "jagged", _lengths(tensor), plain
    if tensor.layout is not torch.strided:
        return str(tensor.layout), tuple(tensor.shape), stored_elements(tensor), plain
    return tensor.shape, plain


def _lengths(tensor: Tensor) -> Hashable:
    """The length of every component, and the shape that they share."""
    return tuple(tuple(component.shape) for component in tensor.unbind())


def _array_signature(value: object) -> Hashable:
    """An array of another package, by its shape and type."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        raise InputError(
            f"the size of a {type(value).__name__} among the inputs of a step cannot be told",
            expected="tensors, arrays and plain values in sequences, mappings and records; or a key",
            found=type(value).__qualname__,
        )
    return "array", shape, str(dtype)


def describe_signature(value: object, key: Hashable) -> str:
    """The shapes and the key, for a person's eye."""
    shapes = ", ".join(
        str(tuple(tensor.shape)) for tensor in _tensors(value, _DEEPEST) if not tensor.is_nested
    )
    parts = [part for part in (shapes, "" if key is None else f"key {key!r}") if part]
    return ("; ".join(parts) or "no inputs")[:_LONGEST_DESCRIPTION]


def _tensors(value: object, depth: int) -> Iterable[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth:
        for _, member in _members(value) or []:
            yield from _tensors(member, depth - 1)
