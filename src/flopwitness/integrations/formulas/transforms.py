"""Fourier transforms by the customary figure: 5 n log2 n for n complex points, half of that for real ones.

The figure is a convention for comparing programs (M. Frigo, S. G. Johnson, "The design and implementation of
FFTW3", Proc. IEEE 93, 2005, section VI), not what a given algorithm does. n is the product of all
transformed axes; each transform is rounded up to a whole number of operations.
"""

from collections.abc import Mapping
from math import ceil, log2, prod
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.operator_call import OperatorCall

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TRANSFORM_FORMULAS"]


def _transforms(call: OperatorCall, grid: "Tensor", *, per_point: float) -> Products:
    """All transforms of one call; `grid` is the side that has all n points."""
    points = prod(int(grid.shape[axis]) for axis in call.numbers("dim"))
    if points == 0:
        return Products(flop=0)
    return Products(flop=int(grid.numel()) // points * ceil(per_point * points * log2(points)))


def _complex(call: OperatorCall) -> Products:
    return _transforms(call, call.tensor("self"), per_point=5)


def _from_real(call: OperatorCall) -> Products:
    return _transforms(call, call.tensor("self"), per_point=2.5)


def _to_real(call: OperatorCall) -> Products:
    return _transforms(call, call.result(), per_point=2.5)


TRANSFORM_FORMULAS: Final[Mapping[str, Formula]] = {
    "aten::_fft_c2c": _complex,
    "aten::_fft_r2c": _from_real,
    "aten::_fft_c2r": _to_real,
}
