"""The gradient as a whole: its norm, and cutting it to size, with the same bits for every number of threads.

A sum over a whole tensor is split among threads, so its last bits depend on their number. Norms of short rows
are not split, and the rest is added exactly.
"""

import math
from collections.abc import Sequence
from typing import Final

import torch

__all__ = ["clip_gradients", "gradient_norm"]

_ROW: Final = 1024


def gradient_norm(gradients: Sequence[torch.Tensor]) -> float:
    """The Euclidean norm of all gradients together; NaN or infinite where one of them is.

    Rows of 1,024 in fp32, their squares in fp64 and in a fixed order. A row whose squares do not fit fp32
    counts as infinite.
    """
    return math.sqrt(math.fsum(_square_norm(gradient) for gradient in gradients)) if gradients else 0.0


def _square_norm(gradient: torch.Tensor) -> float:
    flat = gradient.detach().reshape(-1)
    whole = len(flat) // _ROW * _ROW
    squares = [_row_norms(flat[:whole].view(-1, _ROW)), _row_norms(flat[whole:].view(1, -1))]
    values = torch.cat(squares).double().square()
    while len(values) > _ROW:
        rest = -len(values) % _ROW
        values = torch.nn.functional.pad(values, (0, rest)).view(-1, _ROW).sum(dim=1)
    total = float(values.sum())
    return total if math.isfinite(total) else math.inf


def _row_norms(rows: torch.Tensor) -> torch.Tensor:
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)
    return norms


def clip_gradients(gradients: Sequence[torch.Tensor], *, norm: float, limit: float) -> None:
    """Scale all gradients so that their norm is at most the limit.

    Args:
        gradients: The gradients.
        norm: Their norm, finite.
        limit: The largest norm; 0 is none.

    Side effects:
        Changes the gradients in place.
    """
    if limit and norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / norm)
