"""Quantised products are as many as any, whatever hides the weights."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.quantised import QUANTISED_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]


class _Packed:
    """Filters as a packed convolution holds them."""

    def __init__(self, weight: object) -> None:
        self._weight = weight

    def unpack(self) -> tuple[object, None]:
        return self._weight, None


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _flop(call: OperatorCall) -> int:
    products = QUANTISED_FORMULAS[call.operator](call)
    assert products is not None
    return products.flop


@pytest.mark.parametrize(
    ("operator", "factor"),
    [
        ("aten::_weight_int8pack_mm", "self"),
        ("aten::_weight_int4pack_mm", "self"),
        ("aten::_weight_int4pack_mm_for_cpu", "self"),
        ("aten::_dyn_quant_matmul_4bit", "inp"),
        ("aten::_mixed_dtypes_linear", "input"),
        ("quantized::linear", "X"),
        ("quantized::linear_relu_dynamic", "X"),
        ("quantized::linear_dynamic_fp16", "X"),
        ("quantized::matmul", "qa"),
        ("onednn::qlinear_pointwise", "qx"),
        ("onednn::linear_dynamic_fp16", "x"),
    ],
)
def test_results_sum_over_the_last_axis(make_call: MakeCall, operator: str, factor: str) -> None:
    assert _flop(make_call(operator, _meta(16, 24), **{factor: _meta(16, 32)})) == 2 * 16 * 24 * 32


def test_whole_numbers(make_call: MakeCall) -> None:
    call = make_call("aten::_int_mm", self=_meta(32, 16), mat2=_meta(16, 8))
    assert _flop(call) == 2 * 32 * 16 * 8


@pytest.mark.parametrize(
    "operator", ["quantized::conv2d", "quantized::conv2d_relu", "quantized::conv2d_dynamic"]
)
def test_packed_convolutions(make_call: MakeCall, operator: str) -> None:
    packed = _Packed(_meta(8, 3, 3, 3))
    call = make_call(operator, _meta(2, 8, 6, 6), qx=_meta(2, 3, 8, 8), packed_weight=packed)
    assert _flop(call) == 2 * (2 * 8 * 36) * 27


def test_packed_transposed_convolutions(make_call: MakeCall) -> None:
    packed = _Packed(_meta(4, 6, 3, 3))
    call = make_call(
        "quantized::conv_transpose2d", _meta(2, 6, 7, 7), qx=_meta(2, 4, 5, 5), packed_weight=packed
    )
    assert _flop(call) == 2 * (2 * 4 * 25) * (6 * 9)


def test_convolutions_with_plain_filters(make_call: MakeCall) -> None:
    call = make_call(
        "onednn::qconv2d_pointwise", _meta(2, 8, 6, 6), qx=_meta(2, 3, 8, 8), qw=_meta(8, 3, 3, 3)
    )
    assert _flop(call) == 2 * (2 * 8 * 36) * 27


@pytest.mark.parametrize("held", [None, object(), _Packed("nothing")])
def test_filters_that_nobody_shows_are_refused(make_call: MakeCall, held: object) -> None:
    call = make_call("quantized::conv2d", _meta(2, 8, 6, 6), qx=_meta(2, 3, 8, 8), packed_weight=held)
    with pytest.raises(ValueError, match="does not show its filters"):
        _flop(call)
