"""A Hugging Face `config.json` as a model of ours: sizes are read, nothing is imported or run.

Only architectures whose layers are known here are read; another one is refused, because a count of the wrong
layers would look as sure as a right one. Such files leave most keys out where they have their usual value;
the values that are filled in are those of the architecture's own published configuration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from flopwitness.counting.model import (
    LARGEST_SIZE,
    Experts,
    FeedForward,
    Model,
    ModelKind,
    Norm,
    Positions,
    Projection,
    check_model,
)
from flopwitness.foundation.encoding import decode_json
from flopwitness.foundation.errors import DecodeError

__all__ = ["HUGGING_FACE_TYPES", "decode_hugging_face"]

_QKV: Final = frozenset({Projection.QUERY, Projection.KEY, Projection.VALUE})
_ALL: Final = frozenset(Projection)
_ACTIVATIONS: Final = {
    "gelu": FeedForward.GELU,
    "gelu_new": FeedForward.GELU,
    "gelu_fast": FeedForward.GELU,
    "gelu_pytorch_tanh": FeedForward.GELU,
    "relu": FeedForward.RELU,
    "silu": FeedForward.SWIGLU,
    "swish": FeedForward.SWIGLU,
}


def decode_hugging_face(data: bytes, *, where: str = "", sequence: int | None = None) -> Model:
    """The model that a `config.json` describes.

    Args:
        data: The file; strict JSON.
        where: The file to name in an error.
        sequence: The row's length [token] in place of the longest that the model takes.

    Raises:
        DecodeError: Not JSON, an architecture that is not known here, a size that is missing or no whole
            number in range, an activation that is not known, or sizes that do not fit each other.
    """
    record = decode_json(data, where=where)
    if not isinstance(record, dict):
        raise DecodeError("not a configuration", where=where, expected="a JSON object")
    keys = _Keys(record, where)
    kind = record.get("model_type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise DecodeError(
            "an architecture that is not known here",
            where=f"{where}, model_type",
            expected="one of " + ", ".join(HUGGING_FACE_TYPES),
            found=repr(kind)[:80],
        )
    keys.refuse(_FOREIGN if kind != "mixtral" else _FOREIGN - _MIXTRALS)
    model = _READERS[kind](keys, sequence)
    check_model(model, place=lambda key: f"{where}, {_NAMES.get(key, key)}")
    return model


@dataclass(frozen=True, slots=True)
class _Keys:
    """The file's keys, read by kind."""

    record: Mapping[str, object]
    where: str

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number above zero; null counts as missing."""
        value = self.record.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or not 1 <= value <= LARGEST_SIZE:
            raise DecodeError(
                "bad value" if value is not None else "missing key",
                where=f"{self.where}, {name}",
                expected=f"a whole number from 1 to {LARGEST_SIZE}",
                found="" if value is None else repr(value)[:80],
            )
        return value

    def head_dim(self, d_model: int, heads: int, heads_name: str) -> int:
        """The width that heads share out, where they share out all of it."""
        if d_model % heads:
            raise DecodeError(
                "does not fit the model",
                where=f"{self.where}, {heads_name}",
                expected=f"a divisor of the width ({d_model})",
                found=str(heads),
            )
        return d_model // heads

    def refuse(self, names: frozenset[str]) -> None:
        """Refuse a key that belongs to another architecture, unless it is null, false or 0."""
        odd = sorted(name for name in names if self.record.get(name))
        if odd:
            raise DecodeError(
                "a key of another architecture",
                where=f"{self.where}, {odd[0]}",
                expected="none, or null",
                found=repr(self.record[odd[0]])[:80],
            )

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.record.get(name, default)
        if not isinstance(value, bool):
            raise DecodeError(
                "bad value", where=f"{self.where}, {name}", expected="true or false", found=repr(value)[:80]
            )
        return value

    def activation(self, name: str, default: str) -> FeedForward:
        value = self.record.get(name, default)
        if not isinstance(value, str) or value not in _ACTIVATIONS:
            raise DecodeError(
                "an activation that is not known here",
                where=f"{self.where}, {name}",
                expected="one of " + ", ".join(_ACTIVATIONS),
                found=repr(value)[:80],
            )
        return _ACTIVATIONS[value]


def _gpt2(keys: _Keys, sequence: int | None) -> Model:
    d_model, heads = keys.size("n_embd", 768), keys.size("n_head", 12)
    vocabulary = keys.size("vocab_size", 50257)
    return Model(
        kind=ModelKind.DECODER,
        layers=keys.size("n_layer", 12),
        d_model=d_model,
        heads=heads,
        kv_heads=heads,
        head_dim=keys.head_dim(d_model, heads, "n_head"),
        d_ff=keys.size("n_inner", 4 * d_model),
        feed_forward=_ungated(keys.activation("activation_function", "gelu_new")),
        sequence=keys.size("n_positions", 1024) if sequence is None else sequence,
        position_rows=keys.size("n_positions", 1024),
        vocabulary=vocabulary,
        outputs=vocabulary,
        is_tied=keys.flag("tie_word_embeddings", default=True),
        biases=_ALL,
    )


def _gpt_neox(keys: _Keys, sequence: int | None) -> Model:
    d_model, heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    vocabulary = keys.size("vocab_size")
    return Model(
        kind=ModelKind.DECODER,
        layers=keys.size("num_hidden_layers"),
        d_model=d_model,
        heads=heads,
        kv_heads=heads,
        head_dim=keys.head_dim(d_model, heads, "num_attention_heads"),
        d_ff=keys.size("intermediate_size"),
        feed_forward=_ungated(keys.activation("hidden_act", "gelu")),
        sequence=keys.size("max_position_embeddings", 2048) if sequence is None else sequence,
        vocabulary=vocabulary,
        outputs=vocabulary,
        is_tied=keys.flag("tie_word_embeddings", default=False),
        biases=_ALL if keys.flag("attention_bias", default=True) else _ALL - _QKV - {Projection.OUTPUT},
        positions=Positions.ROTARY,
    )


def _ungated(feed_forward: FeedForward) -> FeedForward:
    """SiLU without a gate costs what any ungated activation does."""
    return FeedForward.GELU if feed_forward.is_gated else feed_forward


def _gated(keys: _Keys) -> FeedForward:
    named = keys.activation("hidden_act", "silu")
    return FeedForward.SWIGLU if named is FeedForward.SWIGLU else FeedForward.GEGLU


def _llama(
    keys: _Keys,
    sequence: int | None,
    *,
    biases: frozenset[Projection] = frozenset(),
    experts: Experts | None = None,
    window: int = 0,
) -> Model:
    """The layers that Llama began: RMS norms, rotary positions, a gated feed-forward, grouped queries."""
    d_model, heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    layers, vocabulary = keys.size("num_hidden_layers"), keys.size("vocab_size")
    return Model(
        kind=ModelKind.DECODER,
        layers=layers,
        d_model=d_model,
        heads=heads,
        kv_heads=keys.size("num_key_value_heads", heads),
        head_dim=keys.size("head_dim")
        if keys.record.get("head_dim") is not None
        else keys.head_dim(d_model, heads, "num_attention_heads"),
        d_ff=keys.size("intermediate_size"),
        feed_forward=_gated(keys),
        sequence=keys.size("max_position_embeddings") if sequence is None else sequence,
        vocabulary=vocabulary,
        outputs=vocabulary,
        is_tied=keys.flag("tie_word_embeddings", default=False),
        window=window,
        window_layers=layers if window else 0,
        experts=experts,
        biases=biases,
        norm=Norm.RMS,
        positions=Positions.ROTARY,
    )


def _plain_llama(keys: _Keys, sequence: int | None) -> Model:
    attention = _QKV | {Projection.OUTPUT} if keys.flag("attention_bias", default=False) else frozenset()
    feed = _ALL - _QKV - {Projection.OUTPUT} if keys.flag("mlp_bias", default=False) else frozenset()
    return _llama(keys, sequence, biases=attention | feed)


def _mistral(keys: _Keys, sequence: int | None) -> Model:
    return _llama(keys, sequence, window=_window(keys))


def _mixtral(keys: _Keys, sequence: int | None) -> Model:
    d_ff = keys.size("intermediate_size")
    experts = Experts(
        count=keys.size("num_local_experts", 8),
        active=keys.size("num_experts_per_tok", 2),
        d_ff=d_ff,
        shared_d_ff=d_ff,
    )
    return _llama(keys, sequence, experts=experts, window=_window(keys))


def _qwen2(keys: _Keys, sequence: int | None) -> Model:
    """Biases at queries, keys and values; the window is off unless `use_sliding_window` says otherwise."""
    if keys.flag("use_sliding_window", default=False):
        raise DecodeError(
            "a window on some layers", where=f"{keys.where}, use_sliding_window", expected="false"
        )
    return _llama(keys, sequence, biases=_QKV)


def _window(keys: _Keys) -> int:
    return 0 if keys.record.get("sliding_window") is None else keys.size("sliding_window")


_NAMES: Final = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "experts.active": "num_experts_per_tok",
    "experts.count": "num_local_experts",
    "sequence": "n_positions",
}
"""The files' own names for sizes that do not fit each other."""

_MIXTRALS: Final = frozenset({"num_local_experts", "num_experts_per_tok"})
_FOREIGN: Final = _MIXTRALS | {"num_experts", "n_routed_experts", "moe_intermediate_size", "kv_lora_rank"}

_READERS: Final[dict[str, Callable[[_Keys, int | None], Model]]] = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _plain_llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
}

HUGGING_FACE_TYPES: Final = tuple(_READERS)
"""The architectures that are read."""
