"""Products with sparse factors: only stored values are multiplied.

    stored A (z values) by dense B (k, n)        2 z n
    dense A (m, k) by stored B                   2 m z
    stored by stored                             2 sum over k of (A's stored in column k) (B's in row k)
    sampled at z places, inner length k          2 z k

Of the 2:4 structured form half the factors are stored, and half the operations are done.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.operator_call import OperatorCall, stored_elements

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SPARSE_FORMULAS", "is_sparse", "sparse_product"]


def is_sparse(tensor: "Tensor") -> bool:
    """Whether only some of the tensor's values are stored."""
    return str(tensor.layout).startswith("torch.sparse")


def sparse_product(left: "Tensor", right: "Tensor") -> int:
    """The operations of a product of which at least one factor is sparse [FLOP].

    Raises:
        ValueError: Both are sparse and one of them in blocks or batches.
    """
    if is_sparse(left) and is_sparse(right):
        meetings = _stored_along(left, axis=1) * _stored_along(right, axis=0)
        return 2 * int(meetings.sum().item())
    if is_sparse(left):
        return 2 * stored_elements(left) * (int(right.shape[-1]) if right.dim() > 1 else 1)
    return 2 * stored_elements(right) * int(left.shape[-2])


def _stored_along(tensor: "Tensor", *, axis: int) -> "Tensor":
    """How many values are stored at each index of one axis of a sparse matrix."""
    layout = str(tensor.layout)
    length = int(tensor.shape[axis])
    if tensor.dim() != 2:  # noqa: PLR2004 (a matrix)
        raise ValueError("the stored values of a batch of sparse matrices cannot be matched")
    if layout == "torch.sparse_coo":
        return tensor._indices()[axis].bincount(minlength=length)  # noqa: SLF001 (also of uncoalesced ones)
    if layout == "torch.sparse_csr":
        return tensor.crow_indices().diff() if axis == 0 else tensor.col_indices().bincount(minlength=length)
    if layout == "torch.sparse_csc":
        return tensor.ccol_indices().diff() if axis == 1 else tensor.row_indices().bincount(minlength=length)
    raise ValueError(f"the stored values of the layout {layout} cannot be matched")


def _product(left: str, right: str) -> Formula:
    def formula(call: OperatorCall) -> Products:
        return Products(flop=sparse_product(call.tensor(left), call.tensor(right)))

    return formula


def _sampled(call: OperatorCall) -> Products:
    """Only at the places that the sparse matrix stores, each over the inner length."""
    inner = int(call.tensor("mat1").shape[-1])
    return Products(flop=2 * stored_elements(call.tensor("self")) * inner)


def _reduced_backward(call: OperatorCall) -> Products:
    """Both gradients, where asked for, touch each stored value once for each column."""
    wanted = sum(map(bool, call.numbers("output_mask")))
    columns = int(call.tensor("grad_out").shape[-1])
    return Products(flop=wanted * 2 * stored_elements(call.tensor("self")) * columns)


def _half_stored(compressed: str, dense: str) -> Formula:
    def formula(call: OperatorCall) -> Products:
        factor, columns = call.tensor(compressed), int(call.tensor(dense).shape[-1])
        return Products(flop=2 * int(factor.numel()) * columns)

    return formula


def _half_stored_layer(call: OperatorCall) -> Products:
    weight, rows = call.tensor("weight"), call.tensor("input")
    return Products(flop=2 * int(weight.numel()) * int(rows.numel()) // int(rows.shape[-1]))


def _half_stored_opaque(call: OperatorCall) -> Products:
    """The compressed factor also holds its metadata, so the shapes of the result and the other count."""
    return Products(flop=int(call.result().numel()) * int(call.tensor("dense_B").shape[0]))


SPARSE_FORMULAS: Final[Mapping[str, Formula]] = {
    "aten::_sparse_addmm": _product("mat1", "mat2"),
    "aten::sspaddmm": _product("mat1", "mat2"),
    "aten::hspmm": _product("mat1", "mat2"),
    "aten::_sparse_sparse_matmul": _product("self", "other"),
    "aten::_sparse_mm_reduce_impl": _product("self", "other"),
    "aten::_sparse_mm_reduce_impl_backward": _reduced_backward,
    "aten::sparse_sampled_addmm": _sampled,
    "aten::_sparse_semi_structured_mm": _half_stored("mat1", "mat2"),
    "aten::_sparse_semi_structured_addmm": _half_stored("mat1", "mat2"),
    "aten::_sparse_semi_structured_linear": _half_stored_layer,
    "aten::_cslt_sparse_mm": _half_stored_opaque,
}
