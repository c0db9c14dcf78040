"""Attention in every form, against two products forward, four backward and a fifth where it is fused."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from flopwitness.integrations.formulas.attention import (
    ATTENTION_FORMULAS,
    FLEX_FORMULAS,
    attention_backward,
    attention_forward,
    has_mask,
)
from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.operator_call import OperatorCall

MakeCall = Callable[..., OperatorCall]

BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, SIZE, VALUE_SIZE = 2, 6, 2, 5, 7, 8, 10
PAIRS = BATCH * HEADS * QUERIES * KEYS
FORWARD = Products(flop=2 * PAIRS * SIZE + 2 * PAIRS * VALUE_SIZE)
BACKWARD = Products(
    flop=2 * (2 * PAIRS * SIZE) + 2 * (2 * PAIRS * VALUE_SIZE),
    recomputed_flop=2 * PAIRS * SIZE,
)
HEADS_FIRST = [
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_fused_attention_overrideable",
]


def _meta(*shape: int) -> Tensor:
    return torch.empty(shape, device="meta")


def _products(call: OperatorCall) -> Products | None:
    return {**ATTENTION_FORMULAS, **FLEX_FORMULAS}[call.operator](call)


def _heads_first(key_heads: int = HEADS) -> dict[str, Tensor]:
    return {
        "query": _meta(BATCH, HEADS, QUERIES, SIZE),
        "key": _meta(BATCH, key_heads, KEYS, SIZE),
        "value": _meta(BATCH, key_heads, KEYS, VALUE_SIZE),
    }


def _length_first() -> dict[str, Tensor]:
    return {name: tensor.transpose(1, 2) for name, tensor in _heads_first().items()}


def test_the_products_themselves() -> None:
    assert attention_forward(pairs=PAIRS, key_size=SIZE, value_size=VALUE_SIZE) == FORWARD
    assert attention_backward(pairs=PAIRS, key_size=SIZE, value_size=VALUE_SIZE) == BACKWARD


def test_equal_head_sizes_give_two_and_two_and_a_half_times() -> None:
    forward = attention_forward(pairs=PAIRS, key_size=SIZE, value_size=SIZE)
    backward = attention_backward(pairs=PAIRS, key_size=SIZE, value_size=SIZE)
    assert backward.flop == 2 * forward.flop
    assert 2 * (backward.flop + backward.recomputed_flop) == 5 * forward.flop


@pytest.mark.parametrize("operator", HEADS_FIRST)
@pytest.mark.parametrize("key_heads", [HEADS, KEY_HEADS])
def test_heads_first(make_call: MakeCall, operator: str, key_heads: int) -> None:
    """Fewer heads of keys and values are as many products."""
    assert _products(make_call(operator, **_heads_first(key_heads))) == FORWARD
    assert _products(make_call(f"{operator}_backward", **_heads_first(key_heads))) == BACKWARD


@pytest.mark.parametrize(
    "name", ["aten::_flash_attention", "aten::_efficient_attention", "aten::_cudnn_attention"]
)
def test_the_kernels_below(make_call: MakeCall, name: str) -> None:
    """The two older ones take the length before the heads."""
    tensors = _heads_first() if "cudnn" in name else _length_first()
    assert _products(make_call(f"{name}_forward", **tensors)) == FORWARD
    assert _products(make_call(f"{name}_backward", **tensors)) == BACKWARD


@pytest.mark.parametrize(
    ("name", "offsets", "has_batch"),
    [
        ("aten::_flash_attention_forward", "cum_seq", False),
        ("aten::_efficient_attention_forward", "cu_seqlens", True),
        ("aten::_cudnn_attention_forward", "cum_seq", False),
        ("torch_attn::_varlen_attn", "cu_seq", False),
    ],
)
def test_documents_meet_only_themselves(
    make_call: MakeCall, name: str, offsets: str, *, has_batch: bool
) -> None:
    """Documents of 3, 0 and 5 positions: 9 + 25 pairs for each head, not 64."""
    shape = (1, 8, HEADS, SIZE) if has_batch else (8, HEADS, SIZE)
    tensors = {part: _meta(*shape) for part in ("query", "key", "value")}
    ends = torch.tensor([0, 3, 3, 8], dtype=torch.int32)
    call = make_call(name, **tensors, **{f"{offsets}_q": ends, f"{offsets}_k": ends})
    assert _products(call) == Products(flop=2 * 2 * HEADS * (9 + 25) * SIZE)


def test_keys_of_documents_may_have_other_lengths_or_none_of_their_own(make_call: MakeCall) -> None:
    tensors = {part: _meta(8, HEADS, SIZE) for part in ("query", "key", "value")}
    queries, keys = torch.tensor([0, 3, 8]), torch.tensor([0, 6, 8])
    apart = make_call("torch_attn::_varlen_attn", **tensors, cu_seq_q=queries, cu_seq_k=keys)
    alike = make_call("torch_attn::_varlen_attn", **tensors, cu_seq_q=queries, cu_seq_k=None)
    assert _products(apart) == Products(flop=2 * 2 * HEADS * (3 * 6 + 5 * 2) * SIZE)
    assert _products(alike) == Products(flop=2 * 2 * HEADS * (9 + 25) * SIZE)


def test_empty_offsets_mean_no_documents(make_call: MakeCall) -> None:
    call = make_call(
        "aten::_scaled_dot_product_flash_attention_backward", **_heads_first(), cum_seq_q=_meta(0)
    )
    assert _products(call) == BACKWARD


def test_offsets_without_values_are_refused(make_call: MakeCall) -> None:
    tensors = {part: _meta(8, HEADS, SIZE) for part in ("query", "key", "value")}
    with pytest.raises(ValueError, match="hold no values"):
        _products(
            make_call("aten::_flash_attention_forward", **tensors, cum_seq_q=_meta(3), cum_seq_k=_meta(3))
        )


def test_documents_of_queries_and_keys_must_pair_up(make_call: MakeCall) -> None:
    tensors = {part: _meta(8, HEADS, SIZE) for part in ("query", "key", "value")}
    ends = {"cu_seq_q": torch.tensor([0, 3, 8]), "cu_seq_k": torch.tensor([0, 8])}
    with pytest.raises(ValueError, match="zip"):
        _products(make_call("torch_attn::_varlen_attn", **tensors, **ends))


@pytest.mark.parametrize("part", ["key", "value"])
def test_tensors_that_do_not_fit_are_refused(make_call: MakeCall, part: str) -> None:
    tensors = {**_heads_first(), part: _meta(BATCH, HEADS, KEYS + 1, SIZE + 1)}
    with pytest.raises(ValueError, match="do not fit"):
        _products(make_call(HEADS_FIRST[0], **tensors))


def test_attention_over_functions(make_call: MakeCall) -> None:
    assert _products(make_call("higher_order::flex_attention", **_heads_first(KEY_HEADS))) == FORWARD
    assert _products(make_call("higher_order::flex_attention_backward", **_heads_first())) == BACKWARD


def test_arguments_of_one_letter(make_call: MakeCall) -> None:
    tensors = dict(zip("qkv", _heads_first().values(), strict=True))
    assert _products(make_call("aten::_triton_scaled_dot_attention", **tensors)) == FORWARD


def test_multi_head_attention_in_one_operator(make_call: MakeCall) -> None:
    """Two sequences of five, width 16: four projections and two products of scores."""
    sequence = _meta(2, 5, 16)
    call = make_call(
        "aten::_native_multi_head_attention", query=sequence, key=sequence, value=sequence, embed_dim=16
    )
    assert _products(call) == Products(flop=4 * 2 * 10 * 16 * 16 + 2 * 2 * (2 * 25) * 16)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_layer_in_one_operator(make_call: MakeCall) -> None:
    """Width 16, feed-forward 32; padded two sequences of five, or jagged ones of three and five."""
    jagged = torch.nested.nested_tensor([torch.ones(3, 16), torch.ones(5, 16)])
    rest = {"embed_dim": 16, "ffn_weight_1": _meta(32, 16), "ffn_weight_2": _meta(16, 32)}
    token = 2 * (4 * 16 * 16 + 2 * 16 * 32)
    padded = make_call("aten::_transformer_encoder_layer_fwd", src=_meta(2, 5, 16), **rest)
    packed = make_call("aten::_transformer_encoder_layer_fwd", src=jagged, **rest)
    assert _products(padded) == Products(flop=10 * token + 2 * 2 * (2 * 25) * 16)
    assert _products(packed) == Products(flop=8 * token + 2 * 2 * (9 + 25) * 16)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({}, False),
        ({"is_causal": False, "attn_mask": None, "custom_mask_type": 0}, False),
        ({"is_causal": True}, True),
        ({"attn_bias": _meta(5, 7)}, True),
        ({"window_size_left": 128}, True),
        ({"window_size": [-1, -1]}, False),
        ({"window_size": [128, 0]}, True),
    ],
)
def test_masks_are_noticed(make_call: MakeCall, arguments: dict[str, object], *, answer: bool) -> None:
    assert has_mask(make_call(HEADS_FIRST[0], **_heads_first(), **arguments)) is answer
