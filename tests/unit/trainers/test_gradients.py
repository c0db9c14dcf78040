"""The gradient's norm and its limit, the same for every number of threads."""

import math
from collections.abc import Iterator

import pytest
import torch

from flopwitness.trainers.gradients import clip_gradients, gradient_norm


@pytest.fixture(autouse=True)
def keep_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def _tensors() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator) for shape in ((3,), (1024,), (7, 301), (1500, 1024))]


def test_the_norm_is_the_norm() -> None:
    tensors = _tensors()
    expected = torch.cat([tensor.double().reshape(-1) for tensor in tensors]).norm().item()
    assert gradient_norm(tensors) == pytest.approx(expected, rel=1e-6)
    assert gradient_norm([torch.tensor([3.0]), torch.tensor([[4.0]])]) == 5.0
    assert gradient_norm([]) == 0.0


def test_the_norm_of_short_types() -> None:
    assert gradient_norm([torch.full((2048,), 2.0, dtype=torch.bfloat16)]) == pytest.approx(math.sqrt(8192))


def test_the_norm_does_not_depend_on_the_number_of_threads() -> None:
    norms = set()
    for threads in (1, 2, 3, 4):
        torch.set_num_threads(threads)
        norms.add(gradient_norm(_tensors()))
    assert len(norms) == 1


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_the_norm_of_what_is_not_finite_is_not_finite(odd: float) -> None:
    tensors = _tensors()
    tensors[2][3, 5] = odd
    assert not math.isfinite(gradient_norm(tensors))


def test_gradients_are_cut_to_the_limit_alone() -> None:
    tensors = _tensors()
    norm = gradient_norm(tensors)
    clip_gradients(tensors, norm=norm, limit=1.0)
    assert gradient_norm(tensors) == pytest.approx(1.0, rel=1e-6)
    for limit in (0.0, 2.0):
        kept = _tensors()
        clip_gradients(kept, norm=1.5, limit=limit)
        assert all(torch.equal(one, other) for one, other in zip(kept, _tensors(), strict=True))
