"""Whether a declared run fits this computer's memory, told before anything is allocated."""

import os
from typing import Final

from flopwitness.foundation.errors import OutOfRangeError
from flopwitness.trainers.allowed import count_state_bytes, count_tensor_bytes
from flopwitness.trainers.config import Device, RunConfig

__all__ = ["check_memory"]

_DRAWN_BYTES: Final = 40  # a weight's random words, while they are added up
_ORDER_BYTES: Final = 32  # a row's random word and its place, while they are sorted
_MASK_BYTES: Final = 10  # a pair's distance, and whether it is seen


def check_memory(run: RunConfig) -> None:
    """Refuse a run on the processor whose weights, gradients, moments and largest result do not fit.

    Raises:
        OutOfRangeError: They need more than all the memory that there is.
    """
    needed = run.training.processes * (
        count_state_bytes(run) + count_tensor_bytes(run) + _count_setup_bytes(run)
    )
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if run.device is Device.CPU and needed > present:
        raise OutOfRangeError(
            "does not fit this computer's memory",
            where="model",
            expected=f"at most {present} bytes of weights, gradients, moments and results",
            found=f"{needed} bytes",
        )


def _count_setup_bytes(run: RunConfig) -> int:
    """What the largest matrix takes to draw, an epoch to order, and a window's mask to make."""
    model = run.model
    widest = max(model.vocabulary, model.d_ff, model.query_width, model.sequence)
    mask = model.sequence**2 if model.window_layers else 0
    return _DRAWN_BYTES * model.d_model * widest + _ORDER_BYTES * run.data.rows + _MASK_BYTES * mask
