"""The shape of a transformer: all that decides how many operations it takes, and nothing else.

One record describes dense and expert feed-forwards, grouped queries, sliding windows, tied heads, low-rank
adapters and frozen parts, for decoders and encoders. It holds sizes only: no weights, no code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from flopwitness.foundation.errors import DecodeError

__all__ = [
    "LARGEST_SIZE",
    "MOST_LAYERS",
    "Experts",
    "FeedForward",
    "Lora",
    "Model",
    "ModelInput",
    "ModelKind",
    "Norm",
    "Part",
    "Positions",
    "Projection",
    "check_model",
]


class ModelKind(StrEnum):
    """Which keys a query sees."""

    DECODER = "decoder"  # itself and what lies before it
    ENCODER = "encoder"  # all of its document


class ModelInput(StrEnum):
    """What enters the first layer."""

    TOKENS = "tokens"  # rows of an embedding table
    FEATURES = "features"  # vectors of width d_model that need no gradient


class FeedForward(StrEnum):
    """The feed-forward's activation; a gated one has three matrices."""

    RELU = "relu"
    GELU = "gelu"
    SWIGLU = "swiglu"
    GEGLU = "geglu"

    @property
    def is_gated(self) -> bool:
        """Whether a third matrix gates the hidden layer."""
        return self in (FeedForward.SWIGLU, FeedForward.GEGLU)


class Norm(StrEnum):
    """The normalisation: with gain and bias, or with a gain alone."""

    LAYER = "layer"
    RMS = "rms"


class Positions(StrEnum):
    """How positions enter: only learned ones have parameters, and none has products."""

    LEARNED = "learned"
    ROTARY = "rotary"
    NONE = "none"


class Projection(StrEnum):
    """A matrix of a layer; adapters name the ones that they sit beside."""

    QUERY = "query"
    KEY = "key"
    VALUE = "value"
    OUTPUT = "output"
    UP = "up"
    GATE = "gate"
    DOWN = "down"


class Part(StrEnum):
    """A part of the model that may be frozen."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    NORM = "norm"
    HEAD = "head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts in place of the feed-forward.

    Attributes:
        count: Routed experts in a layer.
        active: Routed experts that a token visits.
        shared: Experts that every token visits besides.
        d_ff: Hidden width of one routed expert.
        shared_d_ff: Hidden width of one shared expert.
        every: One layer in so many has experts, the last of each group; the others are dense.
        dense_first: So many layers at the start are dense whatever `every` says.
    """

    count: int
    active: int
    shared: int = 0
    d_ff: int
    shared_d_ff: int
    every: int = 1
    dense_first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Low-rank adapters (Hu et al. 2021): `W x + B (A x)` with W frozen, A of `rank` rows.

    Attributes:
        rank: The inner width.
        on: The projections that have one, in every layer.
    """

    rank: int
    on: frozenset[Projection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A transformer's sizes.

    Attributes:
        kind: Decoder or encoder.
        layers: Transformer layers.
        d_model: Width of the residual stream.
        heads: Query heads.
        kv_heads: Key and value heads; fewer than `heads` is grouped-query attention.
        head_dim: Width of one head.
        d_ff: Hidden width of a dense feed-forward.
        feed_forward: Its activation.
        sequence: Longest row [token].
        position_rows: Rows of learned positions; 0 is one for each token of a row.
        vocabulary: Rows of the embedding table, and columns of a decoder's head; 0 with features.
        outputs: Width of the head's output; 0 is no head.
        is_tied: The head uses the embedding's matrix.
        inputs: What enters the first layer.
        window: Keys that a query sees at most, itself included (an encoder: that lie less than so far to
            either side); 0 is no limit.
        window_layers: How many layers have the window.
        experts: The mixture of experts, or None.
        lora: The adapters, or None.
        frozen: Parts without gradients in every layer.
        frozen_layers: So many layers from the bottom have no gradients at all.
        biases: The projections that have a bias.
        has_head_bias: The head has a bias.
        norm: The normalisation.
        is_pre_norm: Normalised before each block; else after it, as the first transformers.
        has_final_norm: A normalisation before the head.
        has_embedding_norm: A normalisation after the embedding.
        positions: How positions enter.
        dropout: Probability that an activation is dropped; takes no products.
    """

    kind: ModelKind
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    feed_forward: FeedForward
    sequence: int
    vocabulary: int
    outputs: int
    position_rows: int = 0
    is_tied: bool = False
    inputs: ModelInput = ModelInput.TOKENS
    window: int = 0
    window_layers: int = 0
    experts: Experts | None = None
    lora: Lora | None = None
    frozen: frozenset[Part] = frozenset()
    frozen_layers: int = 0
    biases: frozenset[Projection] = frozenset()
    has_head_bias: bool = False
    norm: Norm = Norm.LAYER
    is_pre_norm: bool = True
    has_final_norm: bool = True
    has_embedding_norm: bool = False
    positions: Positions = Positions.LEARNED
    dropout: float = 0.0

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        """Width of all key heads together; the values' as well."""
        return self.kv_heads * self.head_dim

    def has_experts(self, layer: int) -> bool:
        """Whether a layer, counted from 0 at the bottom, has experts."""
        experts = self.experts
        return experts is not None and layer >= experts.dense_first and (layer + 1) % experts.every == 0


LARGEST_SIZE: Final = 1 << 40
MOST_LAYERS: Final = 100_000


def check_model(model: Model, *, place: Callable[[str], str] = str) -> None:
    """Refuse sizes that describe no transformer.

    Args:
        model: The sizes.
        place: How to name a key in an error, such as `run.toml, model.heads`.

    Raises:
        DecodeError: The first size that does not fit the others, by its key.
    """
    for key, is_right, expected, found in _facts(model):
        if not is_right:
            raise DecodeError("does not fit the model", where=place(key), expected=expected, found=str(found))


def _facts(model: Model) -> list[tuple[str, bool, str, object]]:
    """What must hold of the sizes: key, whether it holds, what was expected, what was found."""
    sizes = ("d_model", "heads", "kv_heads", "head_dim", "d_ff", "sequence")
    facts: list[tuple[str, bool, str, object]] = [
        (key, 1 <= getattr(model, key) <= LARGEST_SIZE, f"1 to {LARGEST_SIZE}", getattr(model, key))
        for key in sizes
    ]
    has_tokens = model.inputs is ModelInput.TOKENS
    facts += [
        ("layers", 1 <= model.layers <= MOST_LAYERS, f"1 to {MOST_LAYERS}", model.layers),
        (
            "kv_heads",
            model.heads % max(model.kv_heads, 1) == 0,
            f"a divisor of heads ({model.heads})",
            model.kv_heads,
        ),
        (
            "vocabulary",
            has_tokens == (model.vocabulary > 0),
            "some with tokens, 0 with features",
            model.vocabulary,
        ),
        ("outputs", 0 <= model.outputs <= LARGEST_SIZE, f"0 to {LARGEST_SIZE}", model.outputs),
        (
            "tied",
            not model.is_tied or model.outputs == model.vocabulary > 0,
            f"a head of the vocabulary's width ({model.vocabulary}) to tie",
            model.outputs,
        ),
        (
            "sequence",
            model.position_rows == 0 or model.sequence <= model.position_rows,
            f"at most as many as there are positions ({model.position_rows})",
            model.sequence,
        ),
        ("window", 0 <= model.window <= LARGEST_SIZE, "0 (none) or a number of keys", model.window),
        (
            "window_layers",
            0 <= model.window_layers <= (model.layers if model.window else 0),
            "at most the layers, and 0 without a window",
            model.window_layers,
        ),
        (
            "frozen_layers",
            0 <= model.frozen_layers <= model.layers,
            f"0 to {model.layers}",
            model.frozen_layers,
        ),
        ("dropout", 0 <= model.dropout < 1, "0 to below 1", model.dropout),
    ]
    return facts + _adapter_facts(model) + _expert_facts(model)


def _adapter_facts(model: Model) -> list[tuple[str, bool, str, object]]:
    lora = model.lora
    if lora is None:
        return []
    in_feed_forward = lora.on & {Projection.UP, Projection.GATE, Projection.DOWN}
    needs_gate = Projection.GATE in lora.on
    return [
        ("lora.rank", 1 <= lora.rank <= LARGEST_SIZE, "1 or more", lora.rank),
        ("lora.on", bool(lora.on), "at least one projection", "none"),
        (
            "lora.on",
            not needs_gate or model.feed_forward.is_gated,
            "no gate in an ungated feed-forward",
            "gate",
        ),
        (
            "lora.on",
            model.experts is None or not in_feed_forward,
            "projections of the attention where the feed-forward has experts",
            ", ".join(sorted(in_feed_forward)),
        ),
    ]


def _expert_facts(model: Model) -> list[tuple[str, bool, str, object]]:
    experts = model.experts
    if experts is None:
        return []
    return [
        ("experts.count", 1 <= experts.count <= LARGEST_SIZE, "1 or more", experts.count),
        ("experts.active", 1 <= experts.active <= experts.count, f"1 to {experts.count}", experts.active),
        ("experts.shared", 0 <= experts.shared <= LARGEST_SIZE, "0 or more", experts.shared),
        ("experts.d_ff", 1 <= experts.d_ff <= LARGEST_SIZE, "1 or more", experts.d_ff),
        ("experts.shared_d_ff", 1 <= experts.shared_d_ff <= LARGEST_SIZE, "1 or more", experts.shared_d_ff),
        ("experts.every", 1 <= experts.every <= model.layers, f"1 to {model.layers}", experts.every),
        (
            "experts.dense_first",
            0 <= experts.dense_first <= model.layers,
            f"0 to {model.layers}",
            experts.dense_first,
        ),
    ]
