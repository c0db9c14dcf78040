"""Where a run was carried out, as far as that can decide its bits: build, processor, device, settings."""

import os
import platform
from collections.abc import Mapping
from typing import Final

import numpy as np
import torch

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.encoding import JsonValue
from flopwitness.trainers.config import Device, RunConfig

__all__ = ["describe_environment"]

_DECIDING_VARIABLES: Final = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "OMP_NUM_THREADS",
)


def describe_environment(
    run: RunConfig, device: torch.device, *, variables: Mapping[str, str] = os.environ
) -> dict[str, JsonValue]:
    """What two carryings out must share to give the same bits without any doubt.

    Args:
        run: The run.
        device: The device of this process.
        variables: The environment's variables; only those that decide bits are kept.
    """
    is_cuda = run.device is Device.CUDA
    return {
        "torch": str(torch.__version__),
        "torch_build": str(digest_bytes(torch.__config__.show().encode())),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(device) if is_cuda else "cpu",
        "cuda": torch.version.cuda,
        "threads": run.threads,
        "interop_threads": torch.get_num_interop_threads(),
        "variables": {name: variables[name] for name in _DECIDING_VARIABLES if name in variables},
    }
