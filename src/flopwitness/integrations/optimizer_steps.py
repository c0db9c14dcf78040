"""Does an operator belong to the optimizer? Some orthogonalise or factorise by products (Muon, LBFGS).

The Python stack tells: PyTorch wraps every optimizer's step in one function of its own. A module that is
called in between, by the closure that LBFGS evaluates, does its own work; so does a closure without modules,
which runs with gradients on.
"""

import inspect
import sys
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.optim import Optimizer

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["OPTIMIZER", "is_optimizer_step"]

OPTIMIZER: Final = "(optimizer)"
_STEP: Final = inspect.getfile(Optimizer)
_STEP_NAME: Final = "wrapper"
_MODULES: Final = inspect.getfile(nn.Module)
_MODULE_CALL: Final = "_call_impl"


def is_optimizer_step() -> bool:
    """Whether the operator that is now dispatched outside a backward pass belongs to an optimizer's step."""
    if torch.is_grad_enabled():
        return False
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the stack is the evidence)
    while frame is not None:
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if name == _STEP_NAME and file == _STEP:
            return True
        if name == _MODULE_CALL and file == _MODULES:
            return False
        frame = frame.f_back
    return False
