"""Products of quantised numbers: as many as of unquantised ones, whatever the weights are packed into.

A packed linear layer shows its inputs and its results; each result sums over the inputs' last axis. A packed
convolution is asked for its filters.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from flopwitness.integrations.formulas.convolutions import convolution_flop
from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.formulas.products import last_axis_product, product_of
from flopwitness.integrations.operator_call import OperatorCall, is_tensor

__all__ = ["QUANTISED_FORMULAS"]


def _filters(call: OperatorCall, name: str) -> tuple[int, ...]:
    """The shape of the filters, plain or packed.

    Raises:
        ValueError: What holds them does not show them.
    """
    held = call.arguments.get(name)
    unpack = getattr(held, "unpack", None)
    weight = cast("Callable[[], tuple[object, ...]]", unpack)()[0] if callable(unpack) else held
    if not is_tensor(weight):
        raise ValueError(f"{call.operator} does not show its filters")
    return tuple(map(int, weight.shape))


def _convolution(*weights: str, is_transposed: bool = False) -> Formula:
    """The formula of a convolution whose filters lie under the first of these names that was given."""

    def formula(call: OperatorCall) -> Products:
        name = next((name for name in weights if call.arguments.get(name) is not None), weights[0])
        spread = call.tensor("qx") if is_transposed else call.result()
        return Products(flop=convolution_flop(spread, _filters(call, name)))

    return formula


_LINEAR_X: Final = (
    "quantized::linear",
    "quantized::linear_relu",
    "quantized::linear_leaky_relu",
    "quantized::linear_tanh",
    "quantized::linear_dynamic",
    "quantized::linear_relu_dynamic",
    "quantized::linear_dynamic_fp16",
    "quantized::linear_relu_dynamic_fp16",
    "quantized::linear_dynamic_fp16_unpacked_weight",
    "quantized::linear_with_input_q_dq_qweight_dq_output_fp32",
    "quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32",
    "_quantized::linear",
    "_quantized::linear_dynamic",
    "_quantized::wrapped_quantized_linear",
    "_quantized::_wrapped_quantized_linear_prepacked",
    "_quantized::wrapped_fbgemm_linear_fp16_weight",
)
_CONVOLUTIONS: Final = tuple(
    f"{space}::conv{suffix}"
    for space in ("quantized", "_quantized")
    for n_axes in (1, 2, 3)
    for suffix in (
        f"{n_axes}d",
        f"{n_axes}d_relu",
        f"{n_axes}d_dynamic",
        f"{n_axes}d_add",
        f"{n_axes}d_add_relu",
    )
)
_TRANSPOSED: Final = tuple(
    f"{space}::conv_transpose{n_axes}d{suffix}"
    for space in ("quantized", "_quantized")
    for n_axes in (1, 2, 3)
    for suffix in ("", "_dynamic")
)
_ONEDNN_CONVOLUTIONS: Final = (
    "onednn::qconv1d_pointwise",
    "onednn::qconv2d_pointwise",
    "onednn::qconv3d_pointwise",
    "onednn::qconv_pointwise",
)

QUANTISED_FORMULAS: Final[Mapping[str, Formula]] = {
    "aten::_int_mm": product_of("self", "mat2"),
    "aten::_weight_int8pack_mm": last_axis_product("self"),
    "aten::_weight_int4pack_mm": last_axis_product("self"),
    "aten::_weight_int4pack_mm_for_cpu": last_axis_product("self"),
    "aten::_weight_int4pack_mm_with_scales_and_zeros": last_axis_product("self"),
    "aten::_dyn_quant_matmul_4bit": last_axis_product("inp"),
    "aten::_mixed_dtypes_linear": last_axis_product("input"),
    "quantized::int4mm_packed_weight_cpu": last_axis_product("x"),
    "quantized::matmul": last_axis_product("qa"),
    **dict.fromkeys(_LINEAR_X, last_axis_product("X")),
    "onednn::qlinear_pointwise": last_axis_product("qx"),
    "onednn::linear_dynamic_fp16": last_axis_product("x"),
    "onednn::linear_relu_dynamic_fp16": last_axis_product("x"),
    **dict.fromkeys(_CONVOLUTIONS, _convolution("packed_weight", "weight")),
    **dict.fromkeys(_TRANSPOSED, _convolution("packed_weight", "weight", is_transposed=True)),
    **dict.fromkeys(_ONEDNN_CONVOLUTIONS, _convolution("qw")),
}
