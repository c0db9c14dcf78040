"""Convolutions in any number of dimensions, grouped, dilated and transposed.

    convolution      2 x (elements of the output) x (elements of one filter, c_in / groups x kernel)
    transposed       2 x (elements of the input)  x (elements one input spreads to, c_out / groups x kernel)

Each gradient that is asked for is as many operations again. Products with padding count in full.
"""

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.operator_call import OperatorCall

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CONVOLUTION_FORMULAS", "convolution_flop"]


def convolution_flop(spread: "Tensor", weight_shape: tuple[int, ...]) -> int:
    """The operations of one convolution [FLOP].

    Args:
        spread: What each filter meets element by element: the output, or the input of a transposed one.
        weight_shape: Shape of the filters, (outputs, inputs / groups, *kernel), or transposed (inputs,
            outputs / groups, *kernel).
    """
    return 2 * int(spread.numel()) * prod(weight_shape[1:])


def _shape(tensor: "Tensor") -> tuple[int, ...]:
    return tuple(map(int, tensor.shape))


def _forward(image: str, weight: str, *, is_transposed: bool = False) -> Formula:
    def formula(call: OperatorCall) -> Products:
        transposed = is_transposed or call.is_true("transposed")
        spread = call.tensor(image) if transposed else call.result()
        return Products(flop=convolution_flop(spread, _shape(call.tensor(weight))))

    return formula


def _backward(image: str, *, is_transposed: bool = False) -> Formula:
    def formula(call: OperatorCall) -> Products:
        transposed = is_transposed or call.is_true("transposed")
        spread = call.tensor(image if transposed else "grad_output")
        wanted = sum(map(bool, call.numbers("output_mask")[:2])) if "output_mask" in call.arguments else 2
        return Products(flop=wanted * convolution_flop(spread, _shape(call.tensor("weight"))))

    return formula


def _time_first(call: OperatorCall) -> Products:
    """The filters of this form are (kernel, inputs, outputs)."""
    kernel, inputs, _ = _shape(call.tensor("weight"))
    return Products(flop=2 * int(call.result().numel()) * kernel * inputs)


def _time_first_backward(call: OperatorCall) -> Products:
    kernel, inputs, _ = _shape(call.tensor("weight"))
    return Products(flop=2 * 2 * int(call.tensor("self").numel()) * kernel * inputs)


_PLAIN: Final = (
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_relu",
    "aten::cudnn_convolution_add_relu",
    "aten::miopen_convolution",
    "aten::miopen_convolution_relu",
    "aten::miopen_convolution_add_relu",
    "aten::miopen_depthwise_convolution",
    "aten::mkldnn_convolution",
    "aten::_mps_convolution",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d",
    "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d",
)
_TRANSPOSED: Final = (
    "aten::cudnn_convolution_transpose",
    "aten::miopen_convolution_transpose",
    "aten::_mps_convolution_transpose",
    "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d",
)

CONVOLUTION_FORMULAS: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(_PLAIN, _forward("self", "weight")),
    **dict.fromkeys(_TRANSPOSED, _forward("self", "weight", is_transposed=True)),
    "aten::convolution": _forward("input", "weight"),
    "aten::_convolution": _forward("input", "weight"),
    "aten::convolution_overrideable": _forward("input", "weight"),
    "aten::_nnpack_spatial_convolution": _forward("input", "weight"),
    "aten::conv_tbc": _time_first,
    "aten::conv_tbc_backward": _time_first_backward,
    "aten::convolution_backward": _backward("input"),
    "aten::convolution_backward_overrideable": _backward("input"),
    "aten::_slow_conv2d_backward": _backward("self"),
    "aten::mps_convolution_backward": _backward("self"),
    "aten::mps_convolution_transpose_backward": _backward("self", is_transposed=True),
    "mkldnn::_convolution_pointwise": _forward("X", "W"),
    "mkldnn::_convolution_pointwise_": _forward("X", "W"),
    "mkldnn::_convolution_transpose_pointwise": _forward("X", "W", is_transposed=True),
}
