"""The tables `[model]`, `[training]` and `[optimizer]` of a configuration, as far as they decide a count."""

from typing import Final, TypeVar

from flopwitness.counting.model import (
    LARGEST_SIZE,
    MOST_LAYERS,
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Norm,
    Part,
    Positions,
    Projection,
    check_model,
)
from flopwitness.counting.training import (
    AttentionKernel,
    Checkpointing,
    Masking,
    OptimizerKind,
    Training,
)
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.toml_table import TomlTable

__all__ = ["MOST_STEPS", "read_model", "read_training"]

MOST_STEPS: Final = 1 << 50

_Member = TypeVar("_Member", Part, Projection)


def read_model(table: TomlTable) -> Model:
    """The model that a table `[model]` describes.

    A projection has a bias where `bias` is true, but for the key's: its true gradient is zero, because a
    softmax ignores what is added to all of a row, so training it only collects rounding noise.

    Raises:
        DecodeError: A key is missing, unknown or of another kind, or the sizes do not fit each other.
    """

    def size(key: str, default: int | None = None) -> int:
        return table.whole(key, low=1, high=LARGEST_SIZE, default=default)

    kind = table.member("kind", ModelKind)
    d_model, heads = size("d_model"), size("heads")
    inputs = table.member("input", ModelInput, default=ModelInput.TOKENS)
    if inputs is ModelInput.FEATURES and table.has("vocabulary"):
        raise table.error("features have no vocabulary", key="vocabulary", expected="outputs in its place")
    vocabulary = size("vocabulary") if inputs is ModelInput.TOKENS else 0
    layers = table.whole("layers", low=1, high=MOST_LAYERS)
    window = table.whole("window", low=1, high=LARGEST_SIZE, default=0)
    d_ff = size("d_ff")
    model = Model(
        kind=kind,
        layers=layers,
        d_model=d_model,
        heads=heads,
        kv_heads=size("kv_heads", heads),
        head_dim=_head_dim(table, d_model=d_model, heads=heads),
        d_ff=d_ff,
        feed_forward=table.member("feed_forward", FeedForward, default=FeedForward.GELU),
        sequence=size("sequence"),
        vocabulary=vocabulary,
        outputs=table.whole("outputs", low=0, high=LARGEST_SIZE, default=vocabulary),
        is_tied=table.flag("tied"),
        inputs=inputs,
        window=window,
        window_layers=table.whole("window_layers", low=0, high=layers, default=layers if window else 0),
        experts=_read_experts(table, d_ff=d_ff),
        lora=_read_lora(table),
        frozen=frozenset(_members(table, "frozen", Part)),
        frozen_layers=table.whole("frozen_layers", low=0, high=layers, default=0),
        biases=_WITHOUT_KEY if table.flag("bias", default=True) else frozenset(),
        norm=table.member("norm", Norm, default=Norm.LAYER),
        is_pre_norm=table.flag("pre_norm", default=True),
        has_final_norm=table.flag("final_norm", default=True),
        has_embedding_norm=table.flag("embedding_norm"),
        positions=table.member("positions", Positions, default=Positions.LEARNED),
        dropout=table.number("dropout", low=0.0, high=0.99, default=0.0),
    )
    table.close()
    check_model(model, place=table.place)
    return model


_WITHOUT_KEY: Final = frozenset(Projection) - {Projection.KEY}


def _head_dim(table: TomlTable, *, d_model: int, heads: int) -> int:
    if not table.has("head_dim") and d_model % heads:
        raise table.error(
            "does not fit the model",
            key="heads",
            expected=f"a divisor of d_model ({d_model}), or head_dim beside it",
            found=str(heads),
        )
    return table.whole("head_dim", low=1, high=LARGEST_SIZE, default=d_model // heads)


def _read_experts(table: TomlTable, *, d_ff: int) -> Experts | None:
    if not table.has("experts"):
        return None
    inner = table.table("experts")
    routed_d_ff = inner.whole("d_ff", low=1, high=LARGEST_SIZE, default=d_ff)
    experts = Experts(
        count=inner.whole("count", low=1, high=LARGEST_SIZE),
        active=inner.whole("active", low=1, high=LARGEST_SIZE),
        shared=inner.whole("shared", low=0, high=LARGEST_SIZE, default=0),
        d_ff=routed_d_ff,
        shared_d_ff=inner.whole("shared_d_ff", low=1, high=LARGEST_SIZE, default=routed_d_ff),
        every=inner.whole("every", low=1, high=LARGEST_SIZE, default=1),
        dense_first=inner.whole("dense_first", low=0, high=LARGEST_SIZE, default=0),
    )
    inner.close()
    return experts


def _read_lora(table: TomlTable) -> Lora | None:
    if not table.has("lora"):
        return None
    inner = table.table("lora")
    lora = Lora(
        rank=inner.whole("rank", low=1, high=LARGEST_SIZE), on=frozenset(_members(inner, "on", Projection))
    )
    inner.close()
    return lora


def _members(table: TomlTable, key: str, kind: type[_Member]) -> list[_Member]:
    texts = table.texts(key)
    odd = next((text for text in texts if text not in list(kind)), None)
    if odd is not None:
        raise table.error("bad value", key=key, expected="some of " + ", ".join(kind), found=repr(odd))
    return [kind(text) for text in texts]


def read_training(table: TomlTable, *, optimizer: TomlTable, model: Model) -> Training:
    """What the table `[training]`, and of `[optimizer]` its name, momentum and decay, say of a run.

    Keys of the table that decide no count are left to other readers; nothing is closed here.

    Args:
        table: The table `[training]`.
        optimizer: The table `[optimizer]`; where it names nothing, AdamW.
        model: The model of the same configuration.

    Raises:
        DecodeError: A key is missing or of another kind, or the documents do not fit a row.
    """
    documents = table.integers("documents", low=1, high=model.sequence)
    if sum(documents) > model.sequence:
        raise DecodeError(
            "documents longer than a row",
            where=table.place("documents"),
            expected=f"at most {model.sequence} tokens in all",
            found=str(sum(documents)),
        )
    return Training(
        batch=table.whole("batch", low=1, high=LARGEST_SIZE),
        accumulation=table.whole("accumulation", low=1, high=LARGEST_SIZE, default=1),
        processes=table.whole("processes", low=1, high=LARGEST_SIZE, default=1),
        steps=table.whole("steps", low=1, high=MOST_STEPS),
        documents=documents,
        masking=table.member("masking", Masking, default=Masking.DOCUMENTS),
        checkpointing=table.member("checkpointing", Checkpointing, default=Checkpointing.NONE),
        kernel=table.member("attention", AttentionKernel, default=AttentionKernel.FUSED),
        optimizer=optimizer.member("name", OptimizerKind, default=OptimizerKind.ADAMW),
        has_momentum=optimizer.number("momentum", low=0.0, high=1.0, default=0.0) > 0,
        has_decay=optimizer.number("weight_decay", low=0.0, high=1e3, default=0.0) > 0,
    )
