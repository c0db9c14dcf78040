"""Convolutions, against the definition: every output element sums over one filter."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.convolutions import CONVOLUTION_FORMULAS, convolution_flop
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _flop(call: OperatorCall) -> int:
    products = CONVOLUTION_FORMULAS[call.operator](call)
    assert products is not None
    return products.flop


@pytest.mark.parametrize(
    ("weight", "output", "flop"),
    [
        ((8, 3, 5), (2, 8, 10), 2 * (2 * 8 * 10) * (3 * 5)),
        ((8, 3, 3, 3), (2, 8, 6, 6), 2 * (2 * 8 * 6 * 6) * (3 * 9)),
        ((8, 1, 3, 3), (2, 8, 6, 6), 2 * (2 * 8 * 6 * 6) * 9),
        ((4, 2, 1, 2, 3), (1, 4, 3, 3, 3), 2 * (4 * 27) * (2 * 6)),
    ],
)
def test_forward(make_call: MakeCall, weight: tuple[int, ...], output: tuple[int, ...], flop: int) -> None:
    call = make_call(
        "aten::convolution", _meta(*output), input=_meta(1), weight=_meta(*weight), transposed=False
    )
    assert _flop(call) == flop


def test_transposed_spreads_every_input(make_call: MakeCall) -> None:
    """Two images of 4 channels and 5 by 5 points, each point to 6 / 2 channels and 3 by 3 points."""
    call = make_call(
        "aten::convolution",
        _meta(2, 6, 11, 11),
        input=_meta(2, 4, 5, 5),
        weight=_meta(4, 3, 3, 3),
        transposed=True,
        groups=2,
    )
    assert _flop(call) == 2 * (2 * 4 * 5 * 5) * (3 * 9)


@pytest.mark.parametrize(
    ("mask", "gradients"), [([True, True, True], 2), ([False, True, True], 1), ([False] * 3, 0)]
)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_backward(make_call: MakeCall, mask: list[bool], gradients: int, *, is_transposed: bool) -> None:
    image, grad = _meta(2, 4, 5, 5), _meta(2, 6, 3, 3)
    weight = _meta(4, 6, 3, 3) if is_transposed else _meta(6, 4, 3, 3)
    call = make_call(
        "aten::convolution_backward",
        grad_output=grad,
        input=image,
        weight=weight,
        transposed=is_transposed,
        output_mask=mask,
    )
    once = 2 * (2 * 4 * 25) * (6 * 9) if is_transposed else 2 * (2 * 6 * 9) * (4 * 9)
    assert _flop(call) == gradients * once


@pytest.mark.parametrize("operator", ["aten::slow_conv_transpose2d", "aten::cudnn_convolution_transpose"])
def test_forms_that_are_always_transposed(make_call: MakeCall, operator: str) -> None:
    call = make_call(operator, _meta(2, 6, 7, 7), self=_meta(2, 4, 5, 5), weight=_meta(4, 6, 3, 3))
    assert _flop(call) == 2 * (2 * 4 * 25) * (6 * 9)


def test_time_first(make_call: MakeCall) -> None:
    """Time 10, batch 2, three inputs to eight outputs with kernels of five."""
    forward = make_call("aten::conv_tbc", _meta(10, 2, 8), self=_meta(14, 2, 3), weight=_meta(5, 3, 8))
    backward = make_call("aten::conv_tbc_backward", self=_meta(10, 2, 8), weight=_meta(5, 3, 8))
    assert _flop(forward) == 2 * (10 * 2 * 8) * (5 * 3)
    assert _flop(backward) == 2 * _flop(forward)


def test_filters_and_what_they_meet() -> None:
    assert convolution_flop(_meta(2, 8, 10), (8, 3, 5)) == 2 * 160 * 15


@pytest.mark.parametrize("missing", ["weight", "grad_output", "output_mask"])
def test_a_call_without_its_parts_is_refused(make_call: MakeCall, missing: str) -> None:
    arguments = {
        "grad_output": _meta(2, 6, 3, 3),
        "input": _meta(2, 4, 5, 5),
        "weight": _meta(6, 4, 3, 3),
        "output_mask": [True, True],
    }
    arguments[missing] = 5
    with pytest.raises(ValueError, match="was called without"):
        _flop(make_call("aten::convolution_backward", **arguments))
