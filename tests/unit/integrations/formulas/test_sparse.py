"""Only stored values are multiplied."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.sparse import SPARSE_FORMULAS, is_sparse, sparse_product
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]

DENSE = torch.tensor([[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
STORED = 4
pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")


@pytest.fixture(params=["coo", "csr", "csc"])
def stored(request: pytest.FixtureRequest) -> Tensor:
    made: Tensor = {
        "coo": DENSE.to_sparse_coo,
        "csr": DENSE.to_sparse_csr,
        "csc": DENSE.to_sparse_csc,
    }[request.param]()
    return made


def test_which_tensors_are_sparse(stored: Tensor) -> None:
    assert is_sparse(stored)
    assert not is_sparse(DENSE)


def test_stored_by_dense(stored: Tensor) -> None:
    assert sparse_product(stored, torch.ones(4, 6)) == 2 * STORED * 6
    assert sparse_product(stored, torch.ones(4)) == 2 * STORED


def test_dense_by_stored(stored: Tensor) -> None:
    assert sparse_product(torch.ones(5, 3), stored) == 2 * 5 * STORED


def test_stored_by_stored_counts_meetings(stored: Tensor) -> None:
    """Columns of the left hold 1, 1, 2, 0 values; rows of its transpose as many: 1 + 1 + 4 meetings."""
    assert sparse_product(stored, DENSE.t().to_sparse_csr()) == 2 * (1 + 1 + 4)
    assert sparse_product(stored, DENSE.t().to_sparse_coo()) == 2 * (1 + 1 + 4)
    assert sparse_product(stored, DENSE.t().to_sparse_csc()) == 2 * (1 + 1 + 4)


def test_duplicates_are_work_too() -> None:
    twice = torch.sparse_coo_tensor(
        torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (3, 4), check_invariants=False
    )
    assert sparse_product(twice, torch.ones(4, 6)) == 2 * 2 * 6


def test_blocks_count_all_that_they_store() -> None:
    blocks = torch.eye(4).to_sparse_bsr((2, 2))
    assert sparse_product(blocks, torch.ones(4, 6)) == 2 * (2 * 4) * 6


def test_what_cannot_be_matched_is_refused() -> None:
    blocks = torch.eye(4).to_sparse_bsr((2, 2))
    with pytest.raises(ValueError, match="cannot be matched"):
        sparse_product(blocks, torch.eye(4).to_sparse_csr())
    batch = torch.ones(2, 4, 4).to_sparse_coo()
    with pytest.raises(ValueError, match="batch"):
        sparse_product(batch, torch.eye(4).to_sparse_coo())


def test_sampled_products(make_call: MakeCall) -> None:
    call = make_call(
        "aten::sparse_sampled_addmm",
        self=DENSE.to_sparse_csr(),
        mat1=torch.ones(3, 7),
        mat2=torch.ones(7, 4),
    )
    products = SPARSE_FORMULAS[call.operator](call)
    assert products is not None
    assert products.flop == 2 * STORED * 7


@pytest.mark.parametrize(("mask", "gradients"), [([True, True], 2), ([False, True], 1)])
def test_reduced_products(make_call: MakeCall, mask: list[bool], gradients: int) -> None:
    matrix = DENSE.to_sparse_csr()
    forward = make_call("aten::_sparse_mm_reduce_impl", self=matrix, other=torch.ones(4, 6))
    backward = make_call(
        "aten::_sparse_mm_reduce_impl_backward", self=matrix, grad_out=torch.ones(3, 6), output_mask=mask
    )
    done = [SPARSE_FORMULAS[call.operator](call) for call in (forward, backward)]
    assert [products.flop for products in done if products] == [2 * STORED * 6, gradients * 2 * STORED * 6]


@pytest.mark.parametrize(
    ("operator", "arguments", "flop"),
    [
        ("aten::_sparse_semi_structured_mm", {"mat1": (32, 32), "mat2": (64, 16)}, 2 * 32 * 64 * 16 // 2),
        ("aten::_sparse_semi_structured_addmm", {"mat1": (32, 32), "mat2": (64, 16)}, 2 * 32 * 64 * 16 // 2),
        (
            "aten::_sparse_semi_structured_linear",
            {"input": (5, 64), "weight": (32, 32)},
            2 * 5 * 64 * 32 // 2,
        ),
        ("aten::_cslt_sparse_mm", {"compressed_A": (1152,), "dense_B": (64, 16)}, 2 * 32 * 64 * 16 // 2),
    ],
)
def test_two_of_four_is_half(
    make_call: MakeCall, operator: str, arguments: dict[str, tuple[int, ...]], flop: int
) -> None:
    tensors = {name: torch.empty(shape, device="meta") for name, shape in arguments.items()}
    products = SPARSE_FORMULAS[operator](make_call(operator, torch.empty(32, 16, device="meta"), **tensors))
    assert products is not None
    assert products.flop == flop
