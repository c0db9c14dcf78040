"""Every formula there is, under the operator's name.

A multiply-add of complex numbers is four multiply-adds of real ones, eight operations; the figure for Fourier
transforms is of complex numbers already.
"""

from collections.abc import Mapping
from typing import Final

from flopwitness.integrations.formulas.attention import ATTENTION_FORMULAS, FLEX_FORMULAS
from flopwitness.integrations.formulas.convolutions import CONVOLUTION_FORMULAS
from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.formulas.products import PRODUCT_FORMULAS
from flopwitness.integrations.formulas.quantised import QUANTISED_FORMULAS
from flopwitness.integrations.formulas.recurrent import RECURRENT_FORMULAS
from flopwitness.integrations.formulas.sparse import SPARSE_FORMULAS
from flopwitness.integrations.formulas.transforms import TRANSFORM_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall, is_tensor

__all__ = ["COMPLEX_FACTOR", "FORMULAS", "count_products"]

COMPLEX_FACTOR: Final = 4

FORMULAS: Final[Mapping[str, Formula]] = {
    **PRODUCT_FORMULAS,
    **SPARSE_FORMULAS,
    **CONVOLUTION_FORMULAS,
    **ATTENTION_FORMULAS,
    **FLEX_FORMULAS,
    **RECURRENT_FORMULAS,
    **QUANTISED_FORMULAS,
    **TRANSFORM_FORMULAS,
}


def count_products(formula: Formula, call: OperatorCall) -> Products | None:
    """The operations of one call in real numbers; None where it does no products.

    Raises:
        ValueError: The formula cannot judge this call.
    """
    products = formula(call)
    if products is None or call.operator in TRANSFORM_FORMULAS or not _is_complex(call):
        return products
    return products * COMPLEX_FACTOR


def _is_complex(call: OperatorCall) -> bool:
    """Whether any factor or result holds complex numbers."""
    values = (*call.arguments.values(), *call.results)
    flat = (item for value in values for item in (value if isinstance(value, list | tuple) else (value,)))
    return any(is_tensor(item) and item.dtype.is_complex for item in flat)
