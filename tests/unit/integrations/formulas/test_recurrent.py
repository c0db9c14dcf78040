"""Recurrent layers: every weight matrix meets every token."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.recurrent import RECURRENT_FORMULAS
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]

LENGTH, BATCH, INPUTS, HIDDEN = 5, 2, 8, 6
TOKENS = LENGTH * BATCH


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _flop(call: OperatorCall) -> int:
    products = RECURRENT_FORMULAS[call.operator](call)
    assert products is not None
    return products.flop


def test_one_lstm_layer(make_call: MakeCall) -> None:
    """The backward form calls the same two matrices the first and second weight."""
    inputs, by_input, by_state = _meta(LENGTH, BATCH, INPUTS), _meta(24, INPUTS), _meta(24, HIDDEN)
    once = 2 * TOKENS * 4 * HIDDEN * (INPUTS + HIDDEN)
    forward = make_call("aten::mkldnn_rnn_layer", input=inputs, weight0=by_input, weight1=by_state)
    backward = make_call("aten::mkldnn_rnn_layer_backward", input=inputs, weight1=by_input, weight2=by_state)
    assert _flop(forward) == once
    assert _flop(backward) == 2 * once


@pytest.mark.parametrize("name", ["aten::_cudnn_rnn", "aten::miopen_rnn"])
@pytest.mark.parametrize(("asks_for_weights", "products"), [(True, 2), (False, 1)])
def test_all_layers_at_once(make_call: MakeCall, name: str, products: int, *, asks_for_weights: bool) -> None:
    """Two GRU layers; biases are vectors and do no products."""
    gates = 3 * HIDDEN
    weights = [
        *(_meta(gates, INPUTS), _meta(gates, HIDDEN), _meta(gates), _meta(gates)),
        *(_meta(gates, HIDDEN), _meta(gates, HIDDEN), _meta(gates), _meta(gates)),
    ]
    inputs = _meta(LENGTH, BATCH, INPUTS)
    once = 2 * TOKENS * gates * (INPUTS + 3 * HIDDEN)
    mask = [True, True, True, asks_for_weights]
    assert _flop(make_call(name, input=inputs, weight=weights)) == once
    assert (
        _flop(make_call(f"{name}_backward", input=inputs, weight=weights, output_mask=mask))
        == products * once
    )


def test_packed_sequences_have_as_many_tokens_as_rows(make_call: MakeCall) -> None:
    weights = [_meta(6, INPUTS), _meta(6, HIDDEN)]
    assert _flop(make_call("aten::_cudnn_rnn", input=_meta(7, INPUTS), weight=weights)) == 2 * 7 * 6 * 14


@pytest.mark.parametrize(("name", "gates"), [("aten::quantized_lstm", 4), ("aten::quantized_gru", 3)])
def test_packed_weights(make_call: MakeCall, name: str, gates: int) -> None:
    """Two layers in both directions: 8 inputs in the first, 12 in the second."""
    call = make_call(
        name, _meta(LENGTH, BATCH, 12), input=_meta(LENGTH, BATCH, INPUTS), num_layers=2, bidirectional=True
    )
    first, second = gates * HIDDEN * (INPUTS + HIDDEN), gates * HIDDEN * (12 + HIDDEN)
    assert _flop(call) == 2 * TOKENS * 2 * (first + second)


@pytest.mark.parametrize(
    ("kind", "gates"),
    [("quantized_lstm", 4), ("quantized_gru", 3), ("quantized_rnn_relu", 1), ("quantized_rnn_tanh", 1)],
)
def test_packed_cells(make_call: MakeCall, kind: str, gates: int) -> None:
    call = make_call(f"quantized::{kind}_cell_dynamic", _meta(3, HIDDEN), input=_meta(3, INPUTS))
    assert _flop(call) == 2 * 3 * gates * HIDDEN * (INPUTS + HIDDEN)


@pytest.mark.parametrize("missing", ["input", "weight0", "weight1"])
def test_a_call_without_its_parts_is_refused(make_call: MakeCall, missing: str) -> None:
    arguments = {"input": _meta(5, 2, 8), "weight0": _meta(24, 8), "weight1": _meta(24, 6)}
    del arguments[missing]
    with pytest.raises(ValueError, match="without a tensor"):
        _flop(make_call("aten::mkldnn_rnn_layer", **arguments))
