"""One clear error where PyTorch, an extra, is missing, or where a counter is given what it cannot use."""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, cast

from flopwitness.foundation.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from flopwitness.integrations.formulas.formula import Formula

__all__ = ["checked_formulas", "checked_model", "require_torch"]


def require_torch() -> ModuleType:
    """The `torch` module, loaded on first use.

    Raises:
        InputError: It is not installed, or does not load.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError(
            "this needs PyTorch: pip install 'flopwitness[torch]'",
            where="torch",
            found=str(error),
        ) from error


def checked_model(model: "nn.Module | None") -> "nn.Module | None":
    """The model as given.

    Raises:
        InputError: It is no module, or PyTorch is not installed.
    """
    if model is not None and not isinstance(model, require_torch().nn.Module):
        raise InputError(
            "what is counted by module must be one",
            expected="a torch.nn.Module or None",
            found=type(model).__qualname__,
        )
    return model


def checked_formulas(formulas: "Mapping[str, Formula] | None") -> "dict[str, Formula]":
    """The declared formulas by namespace and name; none where none were given.

    Raises:
        InputError: They are no mapping of names to functions.
    """
    if formulas is None:
        return {}
    if not isinstance(formulas, Mapping):
        raise InputError(
            "formulas are given by operator", expected="a mapping", found=type(formulas).__qualname__
        )
    for name, formula in formulas.items():
        is_name = isinstance(cast("object", name), str)
        if not is_name or not callable(formula):
            raise InputError(
                "a formula is a function of a call, under the operator's namespace and name",
                where=str(name),
                expected="a function",
                found=repr(formula),
            )
    return dict(formulas)
