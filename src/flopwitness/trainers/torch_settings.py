"""PyTorch's global settings, set for as long as a run lasts and put back afterwards.

A trainer that leaves them changed would change the bits of whatever runs next in the same process; one that
takes over its caller's would change its own.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from flopwitness.foundation.errors import SourceUnavailableError
from flopwitness.trainers.config import Device, Precision, RunConfig
from flopwitness.trainers.execution import AttentionBackend, Execution

__all__ = ["choose_device", "hold_settings"]

_CUBLAS_WORKSPACE: Final = "CUBLAS_WORKSPACE_CONFIG"
_FP32_LEVELS: Final = (
    ("generic", "all"),
    ("cuda", "all"),
    ("mkldnn", "all"),
    ("cuda", "matmul"),
    ("mkldnn", "matmul"),
)


def choose_device(run: RunConfig, *, rank: int = 0) -> torch.device:
    """The device of one process.

    Raises:
        SourceUnavailableError: There is no such device.
    """
    if run.device is Device.CPU:
        return torch.device("cpu")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found <= rank:
        raise SourceUnavailableError(
            "no such device", where="training.device", expected=f"{rank + 1} CUDA devices", found=str(found)
        )
    return torch.device("cuda", rank)


@contextmanager
def hold_settings(run: RunConfig, execution: Execution) -> Iterator[None]:
    """Everything global that decides a step's bits, as the run and its execution say.

    Side effects:
        Sets PyTorch's globals, and puts them back at the end whatever happens.
    """
    with ExitStack() as stack:
        stack.callback(torch.clear_autocast_cache)  # a caller's would keep casts of weights that then change
        stack.enter_context(_hold_products(is_tf32=run.precision is Precision.TF32))
        for read, write, value in _settings(run, execution):
            old = read()
            stack.callback(write, old)
            write(value)
        if run.device is Device.CUDA:
            os.environ.setdefault(_CUBLAS_WORKSPACE, ":4096:8")  # read once, before the first product
        stack.enter_context(sdpa_kernel(_attention_backends(execution)))
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        yield


def _attention_backends(execution: Execution) -> list[SDPBackend]:
    if execution.attention is AttentionBackend.MATH:
        return [SDPBackend.MATH]
    return [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]


_Setting = tuple[Callable[[], Any], Callable[[Any], None], Any]


def _settings(run: RunConfig, execution: Execution) -> list[_Setting]:
    """How each setting is read and written, and what it is to be."""
    settings: list[_Setting] = [
        (torch.get_num_threads, torch.set_num_threads, execution.threads),
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 2),
        _autocast("cpu"),
        _autocast("cuda"),
        _attribute(torch.backends.mkldnn, "enabled", value=execution.has_onednn),
    ]
    if run.device is Device.CUDA:
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        settings += [
            _attribute(cudnn, "benchmark", value=False),
            _attribute(matmul, "allow_fp16_reduced_precision_reduction", value=False),
            _attribute(matmul, "allow_bf16_reduced_precision_reduction", value=False),
        ]
    return settings


def _autocast(device: str) -> _Setting:
    """A caller's autocast is off; the trainer's own goes on inside."""
    return partial(torch.is_autocast_enabled, device), partial(torch.set_autocast_enabled, device), False


@contextmanager
def _hold_products(*, is_tf32: bool) -> Iterator[None]:
    """The precision of fp32 products, in both of PyTorch's interfaces for it.

    Each of the newer one's values is "none" where the one above it in `_FP32_LEVELS` holds, and reads as that
    one then; so they are read from the top, each set to "none" before the next. The older one can only be
    read when nothing contradicts it, as then.
    """
    levels = []
    for level in _FP32_LEVELS:
        levels.append(torch._C._get_fp32_precision_getter(*level))  # noqa: SLF001 (the public one sets another level)
        torch._C._set_fp32_precision_setter(*level, "none")  # noqa: SLF001
    older = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(older)
        for level, value in zip(_FP32_LEVELS, levels, strict=True):
            torch._C._set_fp32_precision_setter(*level, value)  # noqa: SLF001


def _attribute(owner: Any, name: str, *, value: object) -> _Setting:  # noqa: ANN401 (a module that acts as an object)
    def read() -> object:
        return getattr(owner, name)

    def write(new: object) -> None:
        setattr(owner, name, new)

    return read, write, value
