"""The composed norms against the framework's own, and their independence of the number of threads."""

from collections.abc import Callable, Iterator

import pytest
import torch

from flopwitness.trainers.norms import NORM_EPS, normalise_layer, normalise_rms


@pytest.fixture(autouse=True)
def keep_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def _inputs(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 5, 16), (16,), (16,))
    return [torch.randn(shape, generator=generator, dtype=dtype) * 2 + 1 for shape in shapes]


def _with_gradients(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    weights = torch.linspace(-1, 1, result.numel()).view_as(result).to(result.dtype)
    return [result.detach(), *torch.autograd.grad((result * weights).sum(), leaves)]


def test_the_layer_norm_is_the_frameworks() -> None:
    ours = _with_gradients(normalise_layer, _inputs(torch.float32))
    theirs = _with_gradients(
        lambda x, gain, bias: torch.nn.functional.layer_norm(x, (16,), gain, bias, NORM_EPS),
        _inputs(torch.float32),
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


def test_the_rms_norm_is_the_frameworks() -> None:
    ours = _with_gradients(normalise_rms, _inputs(torch.float32)[:2])
    theirs = _with_gradients(
        lambda x, gain: torch.nn.functional.rms_norm(x, (16,), gain, NORM_EPS), _inputs(torch.float32)[:2]
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)


def test_short_types_are_computed_in_long_ones_and_given_back() -> None:
    inputs = _inputs(torch.bfloat16)
    assert normalise_layer(*inputs).dtype is torch.bfloat16
    assert normalise_rms(*inputs[:2]).dtype is torch.bfloat16


@pytest.mark.parametrize("function", [normalise_layer, normalise_rms])
def test_gradients_do_not_depend_on_the_number_of_threads(function: Callable[..., torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(1)
    count = 3 if function is normalise_layer else 2
    inputs = [torch.randn(shape, generator=generator) for shape in ((64, 64, 64), (64,), (64,))][:count]
    results = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        results.append(_with_gradients(function, inputs))
    for others in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(results[0], others, strict=True))
