"""Products of matrices and vectors, against arithmetic from the shapes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.formulas.products import PRODUCT_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _flop(call: OperatorCall) -> int:
    products = PRODUCT_FORMULAS[call.operator](call)
    assert products is not None
    assert products.recomputed_flop == 0
    return products.flop


@pytest.mark.parametrize(
    ("operator", "names", "shapes", "flop"),
    [
        ("aten::mm", ("self", "mat2"), ((3, 5), (5, 7)), 2 * 3 * 5 * 7),
        ("aten::addmm", ("mat1", "mat2"), ((3, 5), (5, 7)), 2 * 3 * 5 * 7),
        ("aten::bmm", ("self", "mat2"), ((4, 3, 5), (4, 5, 7)), 4 * 2 * 3 * 5 * 7),
        ("aten::baddbmm", ("batch1", "batch2"), ((4, 3, 5), (4, 5, 7)), 4 * 2 * 3 * 5 * 7),
        ("aten::addbmm", ("batch1", "batch2"), ((4, 3, 5), (4, 5, 7)), 4 * 2 * 3 * 5 * 7),
        ("aten::mv", ("self", "vec"), ((3, 5), (5,)), 2 * 3 * 5),
        ("aten::addmv", ("mat", "vec"), ((3, 5), (5,)), 2 * 3 * 5),
        ("aten::dot", ("self", "tensor"), ((9,), (9,)), 2 * 9),
        ("aten::vdot", ("self", "other"), ((9,), (9,)), 2 * 9),
        ("aten::addr", ("vec1", "vec2"), ((3,), (5,)), 2 * 3 * 5),
        ("aten::matmul", ("self", "other"), ((2, 3, 5), (5, 7)), 2 * 2 * 3 * 5 * 7),
        ("aten::_scaled_mm", ("self", "mat2"), ((16, 32), (32, 48)), 2 * 16 * 32 * 48),
        ("aten::_scaled_mm_v2", ("self", "mat2"), ((16, 32), (32, 48)), 2 * 16 * 32 * 48),
    ],
)
def test_dense_products(
    make_call: MakeCall,
    operator: str,
    names: tuple[str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    flop: int,
) -> None:
    arguments = {name: _meta(*shape) for name, shape in zip(names, shapes, strict=True)}
    assert _flop(make_call(operator, **arguments)) == flop


def test_an_empty_factor_is_no_work(make_call: MakeCall) -> None:
    assert _flop(make_call("aten::mm", self=_meta(0, 5), mat2=_meta(5, 7))) == 0
    assert _flop(make_call("aten::mm", self=_meta(3, 0), mat2=_meta(0, 7))) == 0


@pytest.mark.parametrize("operator", ["aten::mm", "aten::bmm"])
def test_factors_that_do_not_meet_are_refused(make_call: MakeCall, operator: str) -> None:
    call = make_call(operator, self=_meta(3, 5), mat2=_meta(6, 7))
    with pytest.raises(ValueError, match="do not meet"):
        PRODUCT_FORMULAS[operator](call)


@pytest.mark.parametrize("arguments", [{}, {"self": _meta(3, 5)}, {"self": _meta(3, 5), "mat2": 4}])
def test_a_call_without_its_factors_is_refused(make_call: MakeCall, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="without a tensor"):
        PRODUCT_FORMULAS["aten::mm"](make_call("aten::mm", **arguments))


def test_layers_with_packed_weights(make_call: MakeCall) -> None:
    packed = make_call("mkldnn::_linear_pointwise", _meta(4, 6, 8), X=_meta(4, 6, 10), W=object())
    assert _flop(packed) == 2 * 4 * 6 * 8 * 10
    with pytest.raises(ValueError, match="returned no tensor"):
        PRODUCT_FORMULAS["mkl::_mkl_linear"](make_call("mkl::_mkl_linear", X=_meta(4, 10)))


@pytest.mark.parametrize(
    ("mask", "products"), [([True, True, False], 2), ([False, True, True], 1), ([False] * 3, 0)]
)
def test_gradients_that_nobody_asked_for_are_not_counted(
    make_call: MakeCall, mask: list[bool], products: int
) -> None:
    call = make_call(
        "aten::mkldnn_linear_backward",
        self=_meta(4, 10),
        grad_output=_meta(4, 8),
        weight=_meta(8, 10),
        output_mask=mask,
    )
    assert _flop(call) == products * 2 * 4 * 8 * 10


def test_single_gradients_of_a_layer(make_call: MakeCall) -> None:
    grad, weight, inputs = _meta(4, 8), _meta(8, 10), _meta(4, 10)
    by_input = make_call("aten::mkldnn_linear_backward_input", grad_output=grad, weight=weight)
    by_weight = make_call("aten::mkldnn_linear_backward_weights", grad_output=grad, input=inputs)
    assert _flop(by_input) == _flop(by_weight) == 2 * 4 * 8 * 10


def test_lists_and_pairs_of_products(make_call: MakeCall) -> None:
    lists = {"self": [_meta(2, 3), _meta(4, 5)], "mat2": [_meta(3, 6), _meta(5, 7)]}
    assert _flop(make_call("aten::_foreach_mm", **lists)) == 2 * 2 * 3 * 6 + 2 * 4 * 5 * 7
    pair = {name: _meta(3, 3) for name in "abcd"}
    assert _flop(make_call("inductor::_mm_plus_mm", **pair)) == 2 * (2 * 3 * 3 * 3)
    with pytest.raises(ValueError, match="list of tensors"):
        PRODUCT_FORMULAS["aten::_foreach_mm"](make_call("aten::_foreach_mm", self=_meta(2, 3)))


@pytest.mark.parametrize(
    ("left", "right", "flop"),
    [
        ((10, 4), (3, 4, 6), 2 * 7 * 4 * 6),
        ((4, 10), (10, 6), 2 * 4 * 7 * 6),
        ((3, 5, 4), (4, 10), 2 * 5 * 4 * 7),
    ],
)
def test_groups_end_where_the_offsets_do(
    make_call: MakeCall, left: tuple[int, ...], right: tuple[int, ...], flop: int
) -> None:
    """Of ten places only seven belong to a group."""
    offsets = torch.tensor([2, 5, 7], dtype=torch.int32)
    call = make_call("aten::_grouped_mm", self=_meta(*left), mat2=_meta(*right), offs=offsets)
    assert _flop(call) == flop


@pytest.mark.parametrize(("flags", "products"), [((True, True), 3), ((False, True), 2), ((False, False), 1)])
def test_a_head_with_its_loss(make_call: MakeCall, flags: tuple[bool, bool], products: int) -> None:
    call = make_call(
        "torch_nn::_linear_cross_entropy_batch_chunked",
        input=_meta(10, 8),
        linear_weight=_meta(20, 8),
        compute_input_grad=flags[0],
        compute_linear_weight_grad=flags[1],
    )
    assert _flop(call) == products * 2 * 10 * 8 * 20


def test_groups_with_axes_of_their_own(make_call: MakeCall) -> None:
    call = make_call("aten::_grouped_mm", self=_meta(3, 5, 4), mat2=_meta(3, 4, 6))
    assert _flop(call) == 3 * 2 * 5 * 4 * 6


def test_three_factors_are_taken_two_at_a_time(make_call: MakeCall) -> None:
    """Bilinear: n=2 rows, i=3 and j=4 inputs, o=5 outputs; first over i, then over j."""
    call = make_call(
        "aten::_trilinear",
        i1=_meta(2, 3),
        i2=_meta(5, 3, 4),
        i3=_meta(2, 4),
        expand1=[1, 3],
        expand2=[0],
        expand3=[1, 2],
        sumdim=[2, 3],
    )
    assert _flop(call) == 2 * (2 * 5 * 3 * 4) + 2 * (2 * 5 * 4)


def test_distances(make_call: MakeCall) -> None:
    points, others, pairs = _meta(30, 4), _meta(40, 4), _meta(30, 40)
    by_matrix = make_call("aten::_euclidean_dist", pairs, x1=points, x2=others)
    one_by_one = make_call("aten::_cdist_forward", pairs, x1=points, x2=others)
    backward = make_call("aten::_cdist_backward", points, grad=pairs, x1=points, x2=others, cdist=pairs)
    within = make_call("aten::_pdist_forward", _meta(435), self=points)
    assert _flop(by_matrix) == 2 * 30 * 40 * (4 + 2)
    assert _flop(one_by_one) == _flop(backward) == 2 * 30 * 40 * 4
    assert _flop(within) == 2 * (30 * 29 // 2) * 4


def test_bags_are_products_only_with_weights(make_call: MakeCall) -> None:
    plain = {"weight": _meta(100, 8), "indices": _meta(12), "offsets": _meta(3)}
    weighted = make_call("aten::_embedding_bag", **plain, per_sample_weights=_meta(12))
    gradient = make_call("aten::_embedding_bag_per_sample_weights_backward", grad=_meta(3, 8), **plain)
    assert PRODUCT_FORMULAS["aten::_embedding_bag"](make_call("aten::_embedding_bag", **plain)) is None
    assert _flop(weighted) == _flop(gradient) == 2 * 12 * 8


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_jagged_products_component_by_component(make_call: MakeCall) -> None:
    jagged = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(5, 8)])
    turned = torch.nested.nested_tensor([torch.ones(8, 3), torch.ones(8, 5)])
    layer = make_call("aten::linear", input=jagged, weight=_meta(4, 8))
    square = make_call("aten::matmul", self=jagged, other=turned)
    by_matrix = make_call("aten::matmul", self=jagged, other=_meta(8, 4))
    assert _flop(layer) == 2 * (3 + 5) * 8 * 4
    assert _flop(square) == 2 * (3 * 8 * 3 + 5 * 8 * 5)
    assert _flop(by_matrix) == 2 * (3 + 5) * 8 * 4


def test_products_are_python_integers(make_call: MakeCall) -> None:
    """Beyond 64 bits nothing is lost."""
    long = 2**22
    call = make_call("aten::mm", self=_meta(long, long), mat2=_meta(long, long))
    products = PRODUCT_FORMULAS["aten::mm"](call)
    assert products == Products(flop=2 * long**3)
    assert products.flop > 2**66
