"""Fourier transforms by the customary figure."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.transforms import TRANSFORM_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _flop(call: OperatorCall) -> int:
    products = TRANSFORM_FORMULAS[call.operator](call)
    assert products is not None
    return products.flop


@pytest.mark.parametrize(
    ("shape", "axes", "flop"),
    [
        ((8,), [0], 5 * 8 * 3),
        ((4, 8), [1], 4 * (5 * 8 * 3)),
        ((4, 8, 8), [1, 2], 4 * (5 * 64 * 6)),
        ((4, 8), [-1], 4 * (5 * 8 * 3)),
        ((3, 1), [1], 0),
        ((0, 8), [0], 0),
    ],
)
def test_complex(make_call: MakeCall, shape: tuple[int, ...], axes: list[int], flop: int) -> None:
    assert _flop(make_call("aten::_fft_c2c", self=_meta(*shape), dim=axes)) == flop


def test_real_transforms_are_half(make_call: MakeCall) -> None:
    there = make_call("aten::_fft_r2c", _meta(4, 5), self=_meta(4, 8), dim=[1])
    back = make_call("aten::_fft_c2r", _meta(4, 8), self=_meta(4, 5), dim=[1])
    assert _flop(there) == _flop(back) == 4 * (5 * 8 * 3) // 2


def test_other_lengths_round_up_for_each_transform(make_call: MakeCall) -> None:
    """5 x 3 x log2(3) is 23.77..."""
    assert _flop(make_call("aten::_fft_c2c", self=_meta(7, 3), dim=[1])) == 7 * 24


@pytest.mark.parametrize("arguments", [{"self": _meta(8)}, {"dim": [0]}, {"self": _meta(8), "dim": 0}])
def test_a_call_without_its_parts_is_refused(make_call: MakeCall, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="was called without"):
        _flop(make_call("aten::_fft_c2c", **arguments))
