"""Every formula is there under a name that PyTorch has, and complex numbers weigh four times."""

from collections.abc import Callable

import torch
import torch.nn.attention.varlen
import torch.nn.modules.linear_cross_entropy

from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.formulas.products import PRODUCT_FORMULAS
from flopwitness.integrations.formulas.registry import COMPLEX_FACTOR, FORMULAS, count_products
from flopwitness.integrations.formulas.transforms import TRANSFORM_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]


def test_most_formulas_stand_under_names_that_this_pytorch_has() -> None:
    """Names of other versions and platforms are few: a misspelt one would never count anything."""
    known = {schema.name for schema in torch._C._jit_get_all_schemas()}
    chunks = ("_linear_cross_entropy_batch_chunked", "_linear_cross_entropy_batch_chunked_no_reduction")
    known |= {f"torch_nn::{name}" for name in chunks if hasattr(torch.ops.torch_nn, name)}
    known |= {f"torch_attn::{name}" for name in ("_varlen_attn", "_varlen_attn_out", "_varlen_attn_backward")}
    missing = {name for name in FORMULAS if name not in known and not name.startswith("higher_order::")}
    generated = {name for name in missing if "quantized::conv" in name}
    assert missing - generated <= {
        "_native::_foreach_mm_native_0",
        "_quantized::_wrapped_quantized_linear_prepacked",
        "mkl::_mkl_linear",
        "aten::miopen_depthwise_convolution",
        "aten::miopen_rnn",
        "inductor::_mm_plus_mm",
    }


def test_real_factors_weigh_once(make_call: MakeCall) -> None:
    call = make_call("aten::mm", self=torch.ones(2, 3), mat2=torch.ones(3, 4))
    assert count_products(PRODUCT_FORMULAS["aten::mm"], call) == Products(flop=2 * 2 * 3 * 4)


def test_a_complex_multiply_add_is_eight_operations(make_call: MakeCall) -> None:
    factor = torch.ones(2, 2, dtype=torch.complex64)
    call = make_call("aten::mm", self=factor, mat2=factor)
    assert COMPLEX_FACTOR * 2 == 8
    assert count_products(PRODUCT_FORMULAS["aten::mm"], call) == Products(flop=8 * 2 * 2 * 2)


def test_complex_members_of_lists_count(make_call: MakeCall) -> None:
    factors = [torch.ones(2, 2, dtype=torch.complex64)]
    call = make_call("aten::_foreach_mm", self=factors, mat2=factors)
    assert count_products(PRODUCT_FORMULAS["aten::_foreach_mm"], call) == Products(flop=8 * 8)


def test_transforms_are_of_complex_numbers_already(make_call: MakeCall) -> None:
    call = make_call("aten::_fft_c2c", self=torch.ones(8, dtype=torch.complex64), dim=[0])
    assert count_products(TRANSFORM_FORMULAS["aten::_fft_c2c"], call) == Products(flop=5 * 8 * 3)


def test_a_call_without_products_stays_without(make_call: MakeCall) -> None:
    call = make_call("aten::_embedding_bag", weight=torch.ones(3, 2), indices=torch.ones(4))
    assert count_products(PRODUCT_FORMULAS["aten::_embedding_bag"], call) is None
