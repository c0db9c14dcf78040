"""Attention: scores and weighted values, 2 x pairs x (head size of keys + head size of values).

A pair is one query position, one key position, one query head and one document. Grouped-query attention
has fewer key heads, and as many pairs. Masks, causal ones included, are not discounted. Forward is two
products. Backward needs four; fused kernels keep no scores and compute them again, a fifth.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Final

from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.operator_call import OperatorCall, is_jagged

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ATTENTION_FORMULAS", "FLEX_FORMULAS", "attention_backward", "attention_forward", "has_mask"]


def attention_forward(*, pairs: int, key_size: int, value_size: int) -> Products:
    """Scores, and values weighted by them."""
    return Products(flop=2 * pairs * (key_size + value_size))


def attention_backward(*, pairs: int, key_size: int, value_size: int) -> Products:
    """The gradients of scores, values, queries and keys, and the scores once more."""
    return Products(
        flop=4 * pairs * (key_size + value_size),
        recomputed_flop=2 * pairs * key_size,
    )


def _heads_first(call: OperatorCall) -> tuple[int, int, int]:
    """Pairs and head sizes of (..., heads, length, size)."""
    return _regular(call, length_axis=-2)


def _length_first(call: OperatorCall) -> tuple[int, int, int]:
    """Pairs and head sizes of (batch, length, heads, size), or of documents laid end to end."""
    return _documents(call) or _regular(call, length_axis=-3)


def _heads_first_or_documents(call: OperatorCall) -> tuple[int, int, int]:
    return _documents(call) or _heads_first(call)


_OFFSET_NAMES: Final = (
    ("cum_seq_q", "cum_seq_k"),
    ("cu_seqlens_q", "cu_seqlens_k"),
    ("cu_seq_q", "cu_seq_k"),
)
_MASK_NAMES: Final = (
    "is_causal",
    "attn_mask",
    "attn_bias",
    "bias",
    "mask",
    "custom_mask_type",
    "window_size",
    "window_size_left",
    "block_mask",
)


def has_mask(call: OperatorCall) -> bool:
    """Whether the call leaves out scores that its count holds."""
    return any(_masks(call.arguments.get(name)) for name in _MASK_NAMES)


def _masks(value: object) -> bool:
    """Whether a mask, a flag, a kind of mask or the sides of a window (-1: none) leave anything out."""
    if isinstance(value, int):
        return value > 0
    if isinstance(value, list | tuple):
        return any(map(_masks, value))
    return value is not None


def _regular(call: OperatorCall, *, length_axis: int) -> tuple[int, int, int]:
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    return _pairs_and_sizes(query, key, value, length_axis=length_axis)


def _pairs_and_sizes(
    query: "Tensor", key: "Tensor", value: "Tensor", *, length_axis: int
) -> tuple[int, int, int]:
    if query.shape[-1] != key.shape[-1] or key.shape[length_axis] != value.shape[length_axis]:
        raise ValueError("queries, keys and values do not fit each other")
    rows = int(query.numel()) // int(query.shape[-1])
    return rows * int(key.shape[length_axis]), int(key.shape[-1]), int(value.shape[-1])


def _documents(call: OperatorCall) -> tuple[int, int, int] | None:
    """Each document's queries meet its own keys alone; None where the call has no offsets of documents.

    Reads the offsets, so they must hold values.
    """
    query_lengths, key_lengths = (
        next(
            (_lengths(call.tensor(pair[side])) for pair in _OFFSET_NAMES if _is_given(call, pair[side])), None
        )
        for side in (0, 1)
    )
    if query_lengths is None:
        return None
    key_lengths = query_lengths if key_lengths is None else key_lengths
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    heads = int(query.shape[-2])
    pairs = heads * sum(a * b for a, b in zip(query_lengths, key_lengths, strict=True))
    return pairs, int(key.shape[-1]), int(value.shape[-1])


def _is_given(call: OperatorCall, name: str) -> bool:
    offsets = call.optional_tensor(name)
    return offsets is not None and offsets.numel() > 0


def _lengths(offsets: "Tensor") -> list[int]:
    if offsets.device.type == "meta":
        raise ValueError("the lengths of the documents hold no values here")
    values = [int(value) for value in offsets.tolist()]
    return [stop - start for start, stop in pairwise(values)]


def _forward_of(call: OperatorCall) -> Products:
    pairs, key_size, value_size = _LAYOUTS[call.operator](call)
    return attention_forward(pairs=pairs, key_size=key_size, value_size=value_size)


def _backward_of(call: OperatorCall) -> Products:
    pairs, key_size, value_size = _LAYOUTS[call.operator](call)
    return attention_backward(pairs=pairs, key_size=key_size, value_size=value_size)


def _renamed(call: OperatorCall) -> Products:
    """The Triton form, whose arguments are called q, k and v."""
    pairs, key_size, value_size = _pairs_and_sizes(
        call.tensor("q"), call.tensor("k"), call.tensor("v"), length_axis=-2
    )
    return attention_forward(pairs=pairs, key_size=key_size, value_size=value_size)


def _lengths_of_batch(tensor: "Tensor") -> Sequence[int]:
    """The length of every sequence of a (batch, length, width) tensor, jagged or padded."""
    if is_jagged(tensor):
        sizes = tensor._nested_tensor_size()  # noqa: SLF001 (the only way to a jagged shape)
        return [int(size[0]) for size in sizes.tolist()]
    batch, length = map(int, tensor.shape[:2])
    return [length] * batch


def _multi_head(call: OperatorCall) -> Products:
    """Three projections in, attention, one projection out, in one operator."""
    width = call.number("embed_dim")
    lengths = [_lengths_of_batch(call.tensor(name)) for name in ("query", "key", "value")]
    projections = 2 * (sum(map(sum, lengths)) + sum(lengths[0])) * width * width
    pairs = sum(a * b for a, b in zip(lengths[0], lengths[1], strict=True))
    return Products(flop=projections + 2 * 2 * pairs * width)


def _encoder_layer(call: OperatorCall) -> Products:
    """A whole encoder layer: attention with its four projections, and two feed-forward products."""
    width = call.number("embed_dim")
    lengths = _lengths_of_batch(call.tensor("src"))
    feed_forward = sum(prod(map(int, call.tensor(f"ffn_weight_{i}").shape)) for i in (1, 2))
    attention = 2 * 2 * sum(length * length for length in lengths) * width
    return Products(flop=2 * sum(lengths) * (4 * width * width + feed_forward) + attention)


_FORWARD_LAYOUTS: Final = {
    "aten::_scaled_dot_product_flash_attention": _heads_first,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _heads_first,
    "aten::_scaled_dot_product_efficient_attention": _heads_first,
    "aten::_scaled_dot_product_cudnn_attention": _heads_first,
    "aten::_scaled_dot_product_fused_attention_overrideable": _heads_first,
    "aten::_scaled_dot_product_attention_math_for_mps": _heads_first,
    "aten::_cudnn_attention_forward": _heads_first_or_documents,
    "aten::_flash_attention_forward": _length_first,
    "aten::_flash_attention_forward_no_dropout_inplace": _length_first,
    "aten::_efficient_attention_forward": _length_first,
    "torch_attn::_varlen_attn": _length_first,
    "torch_attn::_varlen_attn_out": _length_first,
}
_BACKWARD_LAYOUTS: Final = {
    "aten::_scaled_dot_product_flash_attention_backward": _heads_first_or_documents,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _heads_first,
    "aten::_scaled_dot_product_efficient_attention_backward": _heads_first,
    "aten::_scaled_dot_product_cudnn_attention_backward": _heads_first_or_documents,
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _heads_first_or_documents,
    "aten::_cudnn_attention_backward": _heads_first_or_documents,
    "aten::_flash_attention_backward": _length_first,
    "aten::_efficient_attention_backward": _length_first,
    "torch_attn::_varlen_attn_backward": _length_first,
}
_LAYOUTS: Final = {**_FORWARD_LAYOUTS, **_BACKWARD_LAYOUTS}

ATTENTION_FORMULAS: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(_FORWARD_LAYOUTS, _forward_of),
    **dict.fromkeys(_BACKWARD_LAYOUTS, _backward_of),
    "aten::_triton_scaled_dot_attention": _renamed,
    "aten::_native_multi_head_attention": _multi_head,
    "aten::_triton_multi_head_attention": _multi_head,
    "aten::_transformer_encoder_layer_fwd": _encoder_layer,
}


def _flex_forward(call: OperatorCall) -> Products:
    pairs, key_size, value_size = _heads_first(call)
    return attention_forward(pairs=pairs, key_size=key_size, value_size=value_size)


def _flex_backward(call: OperatorCall) -> Products:
    pairs, key_size, value_size = _heads_first(call)
    return attention_backward(pairs=pairs, key_size=key_size, value_size=value_size)


FLEX_FORMULAS: Final[Mapping[str, Formula]] = {
    "higher_order::flex_attention": _flex_forward,
    "higher_order::flex_attention_backward": _flex_backward,
}
