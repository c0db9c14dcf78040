"""Is an operator inside a backward pass computing activations again?

Checkpointing runs a piece of the forward pass once more from inside the backward pass, so the Python stack
tells: below the operator lies a frame of PyTorch's checkpointing, and below that the backward pass. A
gradient that a re-entrant checkpoint takes of what it has just computed again lies directly above that
frame, and is backward work; a gradient that the model itself takes inside a checkpointed piece is computed
again like the rest of the piece.
"""

import sys
from types import FrameType
from typing import Final

import torch.autograd.graph
import torch.utils.checkpoint

__all__ = ["is_recomputation"]

_CHECKPOINT: Final = torch.utils.checkpoint.__file__
_ENGINE: Final = torch.autograd.graph.__file__
_AUTOGRAD: Final = torch.autograd.__file__
_RUN_ENGINE: Final = "_engine_run_backward"


def is_recomputation() -> bool:
    """Whether the operator that is now dispatched inside a backward pass computes activations again.

    A thread of the autograd engine's own has no frame of the pass that it works for; a checkpoint's frame
    there is enough.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the stack is the evidence)
    has_pass_above, above = False, ""
    while frame is not None and frame.f_code.co_filename != _CHECKPOINT:
        has_pass_above |= _is_pass(frame)
        above = frame.f_code.co_filename
        frame = frame.f_back
    if frame is None or above == _AUTOGRAD:
        return False
    return not has_pass_above or _lies_in_pass(frame)


def _is_pass(frame: FrameType) -> bool:
    return frame.f_code.co_name == _RUN_ENGINE and frame.f_code.co_filename == _ENGINE


def _lies_in_pass(frame: FrameType | None) -> bool:
    """Whether a backward pass lies further down the stack."""
    while frame is not None:
        if _is_pass(frame):
            return True
        frame = frame.f_back
    return False
