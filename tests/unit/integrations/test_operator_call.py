"""Arguments by name: what is there is returned, what is not raises one class."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable

import pytest
import torch

from flopwitness.integrations.operator_call import OperatorCall, is_jagged, is_tensor, stored_elements

TENSOR = torch.ones(2, 3)
CALL = OperatorCall(
    operator="aten::op",
    arguments={"x": TENSOR, "many": [TENSOR], "n": 4, "dims": (1, 2), "flag": True, "nothing": None},
    results=(TENSOR, 3),
)


def test_what_is_there() -> None:
    assert CALL.tensor("x") is TENSOR
    assert CALL.optional_tensor("x") is TENSOR
    assert CALL.optional_tensor("nothing") is CALL.optional_tensor("other") is None
    assert CALL.tensors("many") == [TENSOR]
    assert CALL.number("n") == 4
    assert CALL.numbers("dims") == [1, 2]
    assert CALL.is_true("flag")
    assert not CALL.is_true("other")
    assert CALL.result() is TENSOR


@pytest.mark.parametrize(
    "ask",
    [
        lambda: CALL.tensor("other"),
        lambda: CALL.tensor("n"),
        lambda: CALL.optional_tensor("n"),
        lambda: CALL.tensors("x"),
        lambda: CALL.tensors("dims"),
        lambda: CALL.number("dims"),
        lambda: CALL.number("other"),
        lambda: CALL.numbers("n"),
        lambda: CALL.result(1),
        lambda: CALL.result(2),
    ],
)
def test_what_is_not_there(ask: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="aten::op"):
        ask()


def test_what_a_tensor_is() -> None:
    assert is_tensor(TENSOR)
    assert not is_tensor([TENSOR])
    assert not is_tensor(3)
    assert not is_jagged(TENSOR)


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
def test_what_a_tensor_stores() -> None:
    assert stored_elements(TENSOR) == 6
    assert stored_elements(torch.eye(3).to_sparse_coo()) == 3
    assert stored_elements(torch.eye(3).to_sparse_csr()) == 3
    assert stored_elements(torch.eye(4).to_sparse_bsr((2, 2))) == 8
