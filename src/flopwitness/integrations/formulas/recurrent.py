"""Recurrent layers in one operator: every weight matrix meets every token once.

    forward     2 x tokens x (elements of the weight matrices); the weights of one layer and direction are
                gates x hidden x (inputs + hidden), and hidden x projected where the state is projected
    backward    as many for the gradients of inputs and states, as many for those of the weights

Gates: four in an LSTM, three in a GRU, one in a plain cell. What is fused only behind the products
(`_thnn_fused_*`) does none itself.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.operator_call import OperatorCall

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RECURRENT_FORMULAS"]

_MATRIX_AXES: Final = 2


def _tokens(call: OperatorCall, name: str = "input") -> int:
    """All vectors of an input, of whatever batch and length, padded or packed."""
    inputs = call.tensor(name)
    return int(inputs.numel()) // int(inputs.shape[-1])


def _matrix_elements(weights: "Iterable[Tensor]") -> int:
    """The elements of the matrices among the weights; biases are vectors."""
    return sum(int(weight.numel()) for weight in weights if weight.dim() == _MATRIX_AXES)


def _one_layer(*names: str, products: int) -> Formula:
    """One layer and direction, its two matrices under these names."""

    def formula(call: OperatorCall) -> Products:
        elements = sum(int(call.tensor(name).numel()) for name in names)
        return Products(flop=products * 2 * _tokens(call) * elements)

    return formula


def _all_layers(weights: str) -> Formula:
    def formula(call: OperatorCall) -> Products:
        return Products(flop=2 * _tokens(call) * _matrix_elements(call.tensors(weights)))

    return formula


def _all_layers_backward(weights: str) -> Formula:
    """The gradients of the weights only where they are asked for."""

    def formula(call: OperatorCall) -> Products:
        asked = call.numbers("output_mask")[-1] if "output_mask" in call.arguments else True
        products = 2 if asked else 1
        return Products(flop=products * 2 * _tokens(call) * _matrix_elements(call.tensors(weights)))

    return formula


def _packed_layers(gates: int) -> Formula:
    """Layers whose weights are packed away: their sizes follow from input, state and result."""

    def formula(call: OperatorCall) -> Products:
        name = "input" if "input" in call.arguments else "data"
        inputs, layers = int(call.tensor(name).shape[-1]), call.number("num_layers")
        directions = 2 if call.is_true("bidirectional") else 1
        hidden = int(call.result().shape[-1]) // directions
        deeper = (layers - 1) * (directions * hidden + hidden)
        return Products(
            flop=2 * _tokens(call, name) * directions * gates * hidden * (inputs + hidden + deeper)
        )

    return formula


def _packed_cell(gates: int) -> Formula:
    """One step of a cell whose weights are packed away."""

    def formula(call: OperatorCall) -> Products:
        hidden = int(call.result().shape[-1])
        inputs = int(call.tensor("input").shape[-1])
        return Products(flop=2 * _tokens(call) * gates * hidden * (inputs + hidden))

    return formula


RECURRENT_FORMULAS: Final[Mapping[str, Formula]] = {
    "aten::mkldnn_rnn_layer": _one_layer("weight0", "weight1", products=1),
    "aten::mkldnn_rnn_layer_backward": _one_layer("weight1", "weight2", products=2),
    "aten::_cudnn_rnn": _all_layers("weight"),
    "aten::_cudnn_rnn_backward": _all_layers_backward("weight"),
    "aten::miopen_rnn": _all_layers("weight"),
    "aten::miopen_rnn_backward": _all_layers_backward("weight"),
    "aten::_lstm_mps": _all_layers("params"),
    "aten::lstm_mps_backward": _all_layers_backward("params"),
    "aten::quantized_lstm": _packed_layers(4),
    "aten::quantized_gru": _packed_layers(3),
    "quantized::quantized_lstm_cell_dynamic": _packed_cell(4),
    "quantized::quantized_gru_cell_dynamic": _packed_cell(3),
    "quantized::quantized_rnn_relu_cell_dynamic": _packed_cell(1),
    "quantized::quantized_rnn_tanh_cell_dynamic": _packed_cell(1),
}
