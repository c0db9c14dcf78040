"""Whether a declared run fits this computer's memory, told before anything is allocated."""

import os

from flopwitness.foundation.errors import OutOfRangeError
from flopwitness.trainers.allowed import count_state_bytes, count_tensor_bytes
from flopwitness.trainers.config import Device, RunConfig

__all__ = ["check_memory"]


def check_memory(run: RunConfig) -> None:
    """Refuse a run on the processor whose weights, gradients, moments and largest result do not fit.

    Raises:
        OutOfRangeError: They need more than all the memory that there is.
    """
    needed = (count_state_bytes(run) + count_tensor_bytes(run)) * run.training.processes
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if run.device is Device.CPU and needed > present:
        raise OutOfRangeError(
            "does not fit this computer's memory",
            where="model",
            expected=f"at most {present} bytes of weights, gradients, moments and results",
            found=f"{needed} bytes",
        )
