"""A group of processes that exchange gradients through `torch.distributed`."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import torch
import torch.distributed as dist

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers.config import Device, RunConfig
from flopwitness.trainers.torch_settings import choose_device

__all__ = ["JoinedGroup", "LostError"]

_EXCHANGED_NUMBERS: Final = 1 << 20  # at a time, so that many processes need little memory
_JOIN_LIMIT: Final = timedelta(seconds=300)
_LONGEST_NAP_S: Final = 0.002


class LostError(Exception):
    """Another process of the run went away; who knows why says so."""


class JoinedGroup:
    """One process among several."""

    def __init__(self, run: RunConfig, *, rank: int, store: Path, watch: Callable[[], None]) -> None:
        """Join the others; all have to come.

        Args:
            run: The run.
            rank: This process's number.
            store: A file in a private folder through which they find each other.
            watch: Called while this process waits; raises `LostError` where waiting is in vain.

        Raises:
            BackendError: This process belongs to another group already.
            LostError: The others did not come.
        """
        if dist.is_initialized():
            raise BackendError("this process belongs to another group of processes already")
        self.size: int = run.training.processes
        self.ranks: Sequence[int] = (rank,)
        self._watch, self._device = watch, choose_device(run, rank=rank)
        try:
            dist.init_process_group(
                "nccl" if run.device is Device.CUDA else "gloo",
                init_method=f"file://{store}",
                rank=rank,
                world_size=self.size,
                timeout=_JOIN_LIMIT,
            )
        except RuntimeError as error:
            raise LostError from error

    def sum_in_order(self, gradients: Sequence[torch.Tensor]) -> None:
        """Replace each tensor by the sum over all processes, in the order of their numbers.

        Raises:
            LostError: Another process went away.
        """
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        for piece in torch.split(flat, _EXCHANGED_NUMBERS):
            shares = self._gather(piece)
            total = shares[0]
            for share in shares[1:]:
                total.add_(share)
            piece.copy_(total)
        sums = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, total in zip(gradients, sums, strict=True):
            gradient.copy_(total.view_as(gradient))

    def gather(self, values: Sequence[float]) -> list[float]:
        """One value of each process, in the order of their numbers.

        Raises:
            LostError: Another process went away.
        """
        mine = torch.tensor(list(values), dtype=torch.float64, device=self._device)
        return [float(share) for share in self._gather(mine)]

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()

    def _gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        shares = [torch.empty_like(tensor) for _ in range(self.size)]
        try:
            work = dist.all_gather(shares, tensor, async_op=True)
            nap_s = 0.0
            while not work.is_completed():
                self._watch()
                time.sleep(nap_s)
                nap_s = min(nap_s + 0.0001, _LONGEST_NAP_S)
            work.wait()
        except RuntimeError as error:
            raise LostError from error
        return shares
