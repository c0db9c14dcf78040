"""One clear error where PyTorch is missing: it is an extra, and most commands do without it."""

import importlib
from types import ModuleType

from flopwitness.foundation.errors import InputError

__all__ = ["require_torch"]


def require_torch() -> ModuleType:
    """The `torch` module, loaded on first use.

    Raises:
        InputError: It is not installed, or does not load.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError(
            "operations inside PyTorch cannot be counted without it: pip install 'flopwitness[torch]'",
            where="torch",
            found=str(error),
        ) from error
