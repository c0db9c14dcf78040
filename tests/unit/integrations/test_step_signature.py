"""Equal shapes, types and state are one kind; anything that may change the work is another."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.step_signature import ModelState, describe_signature, signature_of


@dataclass
class _Batch:
    tokens: Tensor
    length: int = 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(2, 3),
        lambda: {"tokens": torch.rand(2, 3), "mask": [torch.rand(4), None]},
        lambda: _Batch(tokens=torch.rand(2, 3)),
        lambda: (torch.rand(2), np.random.default_rng().random((2, 3)), "text", 3, True),
        lambda: [float(torch.rand(1))],
    ],
)
def test_values_of_elements_and_floats_do_not_matter(make: Callable[[], object]) -> None:
    assert signature_of(make()) == signature_of(make())
    assert hash(signature_of(make())) == hash(signature_of(make()))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.ones(2, 3), torch.ones(3, 2)),
        (torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64)),
        (torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)),
        (torch.ones(2, 3), torch.ones(2, 3, device="meta")),
        ([torch.ones(2)], [torch.ones(2), torch.ones(2)]),
        ({"a": torch.ones(2)}, {"b": torch.ones(2)}),
        ([1], [2]),
        ([1], [True]),
        ([1], ["1"]),
        ([1], [1.0]),
        ([None], [0]),
        (_Batch(tokens=torch.ones(2)), _Batch(tokens=torch.ones(2), length=4)),
        (np.ones((2, 3)), np.ones((3, 2))),
        (np.ones(2), np.ones(2, dtype=np.float32)),
        (torch.eye(3).to_sparse_coo(), torch.ones(3, 3).to_sparse_coo()),
    ],
)
def test_what_may_change_the_work_matters(one: object, other: object) -> None:
    assert signature_of(one) != signature_of(other)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_lengths_of_jagged_tensors_matter(layout: torch.layout) -> None:
    def make(*lengths: int) -> Tensor:
        return torch.nested.nested_tensor([torch.ones(length, 2) for length in lengths], layout=layout)

    assert signature_of(make(3, 5)) == signature_of(make(3, 5))
    assert signature_of(make(3, 5)) != signature_of(make(4, 4))


@pytest.mark.parametrize(
    "value", [object(), SimpleNamespace(tokens=torch.ones(2)), [{1, 2}], iter([torch.ones(2)])]
)
def test_what_hides_its_size_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="cannot be told"):
        signature_of(value)


def test_a_bottomless_nest_is_refused() -> None:
    nest: list[object] = []
    nest.append(nest)
    with pytest.raises(InputError, match="nested too deeply"):
        signature_of(nest)


def test_the_models_state_matters() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    state = ModelState(model)
    seen = {state.signature()}
    model.eval()
    seen.add(state.signature())
    model[0].weight.requires_grad_(False)
    seen.add(state.signature())
    with torch.no_grad():
        seen.add(state.signature())
    with torch.inference_mode():
        seen.add(state.signature())
    with torch.autocast("cpu"):
        seen.add(state.signature())
    assert len(seen) >= 5
    model.train()
    model[0].weight.requires_grad_()
    assert state.signature() in seen


def test_a_model_that_grew_is_seen_at_once_and_one_that_was_rebuilt_after_a_refresh() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    state = ModelState(model)
    before = state.signature()
    model[0] = nn.Linear(2, 2)
    assert state.signature() == before
    assert state.refresh()
    assert not state.refresh()
    model.append(nn.Linear(2, 2))
    assert state.signature() != before
    assert not ModelState(None).refresh()


def test_values_of_numbers_and_texts_can_be_left_out() -> None:
    def loose(*values: object) -> object:
        return signature_of(values, has_values=False)

    assert loose(1, "a", b"a", True) == loose(2, "b", b"b", True)
    assert loose(True) != loose(False)
    assert loose(1) != loose("1")


def test_descriptions_are_short() -> None:
    assert describe_signature({"x": torch.ones(2, 3)}, None) == "(2, 3)"
    assert describe_signature([torch.ones(2)], "warm") == "(2,); key 'warm'"
    assert describe_signature(None, None) == "no inputs"
    assert len(describe_signature([torch.ones(2)] * 1000, None)) <= 120
