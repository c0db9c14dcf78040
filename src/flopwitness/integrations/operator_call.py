"""One call of an operator, its arguments by name: what a formula reads.

Positions differ between an operator's versions and overloads, names hardly do. Nothing here imports
PyTorch: a tensor is whatever has a shape and a number of elements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard, cast

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["OperatorCall", "is_jagged", "is_tensor", "stored_elements"]


def is_tensor(value: object) -> "TypeGuard[Tensor]":
    """Whether the value has a shape and a number of elements."""
    return hasattr(value, "numel") and hasattr(value, "layout")


def is_jagged(tensor: "Tensor") -> bool:
    """Whether the tensor is nested without a Python class of its own, so that it has no regular shape."""
    return bool(tensor.is_nested)


def stored_elements(tensor: "Tensor") -> int:
    """The elements that a tensor holds: of a sparse one the stored values, duplicates included."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return int(tensor._values().numel())  # noqa: SLF001 (the public form wants coalesced tensors)
    if layout.startswith("torch.sparse"):
        return int(tensor.values().numel())
    return int(tensor.numel())


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """One operator's name, arguments and results.

    Attributes:
        operator: Namespace and name, without the overload: `aten::mm`.
        arguments: What it was called with, by the schema's names; what was left at its default is missing.
        results: What it returned.
    """

    operator: str
    arguments: Mapping[str, object]
    results: tuple[object, ...] = ()

    def tensor(self, name: str) -> "Tensor":
        """The tensor of that name.

        Raises:
            ValueError: There is none.
        """
        value = self.arguments.get(name)
        if not is_tensor(value):
            raise ValueError(f"{self.operator} was called without a tensor {name}")
        return value

    def optional_tensor(self, name: str) -> "Tensor | None":
        """The tensor of that name, or None where it was not given."""
        return None if self.arguments.get(name) is None else self.tensor(name)

    def tensors(self, name: str) -> "list[Tensor]":
        """The tensors in the list of that name.

        Raises:
            ValueError: There is no such list.
        """
        value = self.arguments.get(name)
        if not isinstance(value, list | tuple) or not all(is_tensor(item) for item in value):
            raise ValueError(f"{self.operator} was called without a list of tensors {name}")
        return list(value)

    def number(self, name: str) -> int:
        """The whole number of that name.

        Raises:
            ValueError: There is none.
        """
        value = self.arguments.get(name)
        if not isinstance(value, int):
            raise ValueError(f"{self.operator} was called without a number {name}")  # noqa: TRY004 (one class)
        return int(value)

    def numbers(self, name: str) -> list[int]:
        """The whole numbers in the list of that name.

        Raises:
            ValueError: There is no such list.
        """
        value = self.arguments.get(name)
        if not isinstance(value, list | tuple):
            raise ValueError(f"{self.operator} was called without a list {name}")  # noqa: TRY004 (one class)
        return [int(cast("int", item)) for item in value]

    def is_true(self, name: str) -> bool:
        """Whether the flag of that name was given and set."""
        return bool(self.arguments.get(name))

    def result(self, index: int = 0) -> "Tensor":
        """One of the returned tensors.

        Raises:
            ValueError: Nothing of that kind was returned.
        """
        value = self.results[index] if index < len(self.results) else None
        if not is_tensor(value):
            raise ValueError(f"{self.operator} returned no tensor {index}")
        return value
