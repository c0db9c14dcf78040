"""Products of matrices and vectors: (m, k) by (k, n) is 2 m k n operations."""

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.formulas.sparse import is_sparse, sparse_product
from flopwitness.integrations.operator_call import OperatorCall, is_jagged

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["PRODUCT_FORMULAS", "last_axis_product", "product_of"]


def product_of(left: str, right: str) -> Formula:
    """The formula of an operator that multiplies the matrices, vectors or batches of these two names."""

    def formula(call: OperatorCall) -> Products:
        return Products(flop=_product(call.tensor(left), call.tensor(right)))

    return formula


def _product(left: "Tensor", right: "Tensor") -> int:
    """Dense, sparse or jagged factors, of one or two axes behind any number of batch axes."""
    if is_sparse(left) or is_sparse(right):
        return sparse_product(left, right)
    if is_jagged(left) or is_jagged(right):
        return _jagged_product(left, right)
    if left.shape[-1] != right.shape[-2 if right.dim() > 1 else 0]:
        raise ValueError(f"factors of shapes {tuple(left.shape)} and {tuple(right.shape)} do not meet")
    return 2 * int(left.numel()) * (int(right.shape[-1]) if right.dim() > 1 else 1)


def _jagged_product(left: "Tensor", right: "Tensor") -> int:
    """Component by component; a regular factor stands beside every component."""
    sizes = left._nested_tensor_size() if is_jagged(left) else right._nested_tensor_size()  # noqa: SLF001
    rows = sizes.tolist()
    left_rows = rows if is_jagged(left) else [list(left.shape[1:])] * len(rows)
    right_rows = (
        right._nested_tensor_size().tolist()  # noqa: SLF001 (the only way to a jagged shape)
        if is_jagged(right)
        else [list(right.shape[-2:])] * len(rows)
    )
    pairs = zip(left_rows, right_rows, strict=True)
    return sum(2 * prod(left_size) * right_size[-1] for left_size, right_size in pairs)


def last_axis_product(factor: str) -> Formula:
    """The formula of a layer whose weights are packed: each result sums over the factor's last axis."""

    def formula(call: OperatorCall) -> Products:
        return Products(flop=2 * int(call.result().numel()) * int(call.tensor(factor).shape[-1]))

    return formula


def _linear(call: OperatorCall) -> Products:
    """Rows of any, also jagged, shape times a (outputs, inputs) matrix."""
    return Products(flop=2 * int(call.tensor("input").numel()) * int(call.tensor("weight").shape[0]))


def _linear_backward(call: OperatorCall) -> Products:
    """The gradients of input and weight that were asked for, each as many operations as the layer."""
    inputs = int(call.tensor("weight").shape[-1])
    wanted = sum(map(bool, call.numbers("output_mask")[:2]))
    return Products(flop=wanted * 2 * int(call.tensor("grad_output").numel()) * inputs)


def _linear_backward_input(call: OperatorCall) -> Products:
    inputs = int(call.tensor("weight").shape[-1])
    return Products(flop=2 * int(call.tensor("grad_output").numel()) * inputs)


def _linear_backward_weights(call: OperatorCall) -> Products:
    inputs = int(call.tensor("input").shape[-1])
    return Products(flop=2 * int(call.tensor("grad_output").numel()) * inputs)


def _inner(call: OperatorCall) -> Products:
    """Two vectors of n elements: 2 n."""
    return Products(flop=2 * int(call.tensor("self").numel()))


def _rank_one_update(call: OperatorCall) -> Products:
    """Every element of the matrix gets one multiply-add."""
    return Products(flop=2 * int(call.tensor("vec1").numel()) * int(call.tensor("vec2").numel()))


def _product_lists(call: OperatorCall) -> Products:
    pairs = zip(call.tensors("self"), call.tensors("mat2"), strict=True)
    return Products(flop=sum(_product(left, right) for left, right in pairs))


def _two_products(call: OperatorCall) -> Products:
    names = ("a", "b"), ("c", "d")
    return Products(flop=sum(_product(call.tensor(left), call.tensor(right)) for left, right in names))


def _grouped(call: OperatorCall) -> Products:
    """One product for each group; rows (or columns, or summands) behind the last group's end do not count.

    Either factor has a group axis of its own, or the offsets cut one of its other axes into groups.
    """
    left, right = call.tensor("self"), call.tensor("mat2")
    offsets = call.optional_tensor("offs")
    if offsets is None:
        return Products(flop=_product(left, right))
    used = int(offsets.reshape(-1)[-1].item())
    rows = used if (left.dim(), right.dim()) == (2, 3) else int(left.shape[-2])
    inner = used if (left.dim(), right.dim()) == (2, 2) else int(left.shape[-1])
    columns = used if (left.dim(), right.dim()) == (3, 2) else int(right.shape[-1])
    return Products(flop=2 * rows * inner * columns)


def _trilinear(call: OperatorCall) -> Products:
    """The sum over some axes of three factors' product, taken as the kernel does: two factors at a time."""
    factors = [call.tensor(name) for name in ("i1", "i2", "i3")]
    expands = [call.numbers(name) for name in ("expand1", "expand2", "expand3")]
    n_axes = factors[0].dim() + len(expands[0])
    held = [set(range(n_axes)) - set(expand) for expand in expands]
    size: dict[int, int] = {}
    for factor, axes in zip(factors, held, strict=True):
        size.update(zip(sorted(axes), map(int, factor.shape), strict=True))
    early = set(call.numbers("sumdim")) - held[2]
    first = held[0] | held[1]
    second = (first - early) | held[2]
    return Products(flop=sum(2 * prod(size[axis] for axis in axes) for axes in (first, second)))


def _matrix_distances(call: OperatorCall) -> Products:
    """|x - y|^2 as one product of rows with two more entries each, which hold the squares and ones."""
    left, right = call.tensor("x1"), call.tensor("x2")
    pairs = int(call.result().numel())
    if left.shape[-1] != right.shape[-1]:
        raise ValueError("points of different dimensions have no distance")
    return Products(flop=2 * pairs * (int(left.shape[-1]) + 2))


def _distances(call: OperatorCall) -> Products:
    """One multiply-add for each coordinate of each pair."""
    pairs = int(call.tensor("cdist").numel() if "cdist" in call.arguments else call.result().numel())
    return Products(flop=2 * pairs * int(call.tensor("x1").shape[-1]))


def _distances_within(call: OperatorCall) -> Products:
    points = call.tensor("self")
    n_points = int(points.shape[0])
    return Products(flop=n_points * (n_points - 1) * int(points.shape[-1]))


def _weighted_bags(call: OperatorCall) -> Products | None:
    """Rows gathered and summed are movement; with a weight for each they are a sparse product."""
    if call.optional_tensor("per_sample_weights") is None:
        return None
    rows = call.tensor("grad") if "grad" in call.arguments else call.tensor("weight")
    return Products(flop=2 * int(call.tensor("indices").numel()) * int(rows.shape[-1]))


def _bag_weight_gradient(call: OperatorCall) -> Products:
    """One inner product for each index."""
    return Products(flop=2 * int(call.tensor("indices").numel()) * int(call.tensor("weight").shape[-1]))


def _head_and_loss(call: OperatorCall) -> Products:
    """A linear head with its loss: the logits, and in the same pass the gradients that will be asked for."""
    flags = ("compute_input_grad", "compute_linear_weight_grad")
    products = 1 + sum(call.is_true(flag) for flag in flags)
    outputs = int(call.tensor("linear_weight").shape[0])
    return Products(flop=products * 2 * int(call.tensor("input").numel()) * outputs)


PRODUCT_FORMULAS: Final[Mapping[str, Formula]] = {
    "aten::mm": product_of("self", "mat2"),
    "aten::bmm": product_of("self", "mat2"),
    "aten::addmm": product_of("mat1", "mat2"),
    "aten::_addmm_activation": product_of("mat1", "mat2"),
    "aten::addbmm": product_of("batch1", "batch2"),
    "aten::baddbmm": product_of("batch1", "batch2"),
    "aten::mv": product_of("self", "vec"),
    "aten::addmv": product_of("mat", "vec"),
    "aten::dot": _inner,
    "aten::vdot": _inner,
    "aten::addr": _rank_one_update,
    "aten::linear": _linear,
    "aten::linear_backward": _linear_backward,
    "aten::matmul": product_of("self", "other"),
    "aten::mkldnn_linear": last_axis_product("self"),
    "aten::mkldnn_linear_backward": _linear_backward,
    "aten::mkldnn_linear_backward_input": _linear_backward_input,
    "aten::mkldnn_linear_backward_weights": _linear_backward_weights,
    "aten::_scaled_mm": product_of("self", "mat2"),
    "aten::_scaled_mm_v2": product_of("self", "mat2"),
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm_v2": _grouped,
    "aten::_foreach_mm": _product_lists,
    "_native::_foreach_mm_native_0": _product_lists,
    "inductor::_mm_plus_mm": _two_products,
    "mkldnn::_linear_pointwise": last_axis_product("X"),
    "mkl::_mkl_linear": last_axis_product("X"),
    "torch_nn::_linear_cross_entropy_batch_chunked": _head_and_loss,
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": _head_and_loss,
    "aten::_trilinear": _trilinear,
    "aten::_euclidean_dist": _matrix_distances,
    "aten::_cdist_forward": _distances,
    "aten::_cdist_backward": _distances,
    "aten::_pdist_forward": _distances_within,
    "aten::_pdist_backward": _distances_within,
    "aten::_embedding_bag": _weighted_bags,
    "aten::_embedding_bag_forward_only": _weighted_bags,
    "aten::_embedding_bag_backward": _weighted_bags,
    "aten::_embedding_bag_dense_backward": _weighted_bags,
    "aten::_embedding_bag_per_sample_weights_backward": _bag_weight_gradient,
}
