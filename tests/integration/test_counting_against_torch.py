# ruff: noqa: ANN401
"""The closed form beside what autograd really does, on a model written for this test alone.

PyTorch's own counter is right where attention is not fused, so attention is taken apart here. Nothing is
shared with the counted code but the record of sizes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Part,
    Positions,
    Projection,
)
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.step import count_step
from flopwitness.counting.training import AttentionKernel, Training

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

BASE: Final = Model(
    kind=ModelKind.DECODER,
    layers=3,
    d_model=16,
    heads=4,
    kv_heads=4,
    head_dim=4,
    d_ff=40,
    feed_forward=FeedForward.GELU,
    sequence=12,
    vocabulary=30,
    outputs=30,
    biases=frozenset(Projection),
)


class Adapted(nn.Module):
    """A matrix, its bias, and an adapter where there is one."""

    def __init__(self, model: Model, name: Projection, inner: int, outer: int, *, adapts: bool) -> None:
        super().__init__()
        self.base = nn.Linear(inner, outer, bias=name in model.biases)
        lora = model.lora
        self.has_adapter = lora is not None and name in lora.on
        if lora is not None and self.has_adapter:
            self.down = nn.Linear(inner, lora.rank, bias=False)
            self.up = nn.Linear(lora.rank, outer, bias=False)
            self.down.requires_grad_(adapts)
            self.up.requires_grad_(adapts)

    def forward(self, x: Any) -> Any:
        y = self.base(x)
        return y + self.up(self.down(x)) if self.has_adapter else y


class Feed(nn.Module):
    """One feed-forward, gated or not."""

    def __init__(self, model: Model, d_ff: int, *, adapts: bool) -> None:
        super().__init__()
        self.up = Adapted(model, Projection.UP, model.d_model, d_ff, adapts=adapts)
        self.down = Adapted(model, Projection.DOWN, d_ff, model.d_model, adapts=adapts)
        self.gate = None
        if model.feed_forward.is_gated:
            self.gate = Adapted(model, Projection.GATE, model.d_model, d_ff, adapts=adapts)

    def forward(self, x: Any) -> Any:
        hidden = self.up(x)
        hidden = hidden * torch.sigmoid(self.gate(x)) if self.gate is not None else torch.relu(hidden)
        return self.down(hidden)


class Mixture(nn.Module):
    """Experts that tokens visit in turn, so that each has its share of them; and shared ones."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        experts = model.experts
        assert experts is not None
        self.active = experts.active
        self.router = nn.Linear(model.d_model, experts.count, bias=False)
        self.routed = nn.ModuleList(Feed(model, experts.d_ff, adapts=False) for _ in range(experts.count))
        self.shared = nn.ModuleList(
            Feed(model, experts.shared_d_ff, adapts=False) for _ in range(experts.shared)
        )

    def forward(self, x: Any) -> Any:
        flat = x.reshape(-1, x.shape[-1])
        weights = torch.softmax(self.router(flat), dim=-1)
        result = torch.zeros_like(flat)
        for rank in range(self.active):
            for index, expert in enumerate(self.routed):
                tokens = torch.arange((index + rank) % len(self.routed), len(flat), len(self.routed))
                mixed = expert(flat[tokens]) * weights[tokens, index : index + 1]
                result = result.index_add(0, tokens, mixed)
        for expert in self.shared:
            result = result + expert(flat)
        return result.reshape(x.shape)


class Layer(nn.Module):
    """Attention taken apart, then a feed-forward or a mixture."""

    def __init__(self, model: Model, index: int) -> None:
        super().__init__()
        self.model = model
        adapts = index >= model.frozen_layers
        width, keys = model.query_width, model.key_width
        self.query = Adapted(model, Projection.QUERY, model.d_model, width, adapts=adapts)
        self.key = Adapted(model, Projection.KEY, model.d_model, keys, adapts=adapts)
        self.value = Adapted(model, Projection.VALUE, model.d_model, keys, adapts=adapts)
        self.output = Adapted(model, Projection.OUTPUT, width, model.d_model, adapts=adapts)
        self.feed = Mixture(model) if model.has_experts(index) else Feed(model, model.d_ff, adapts=adapts)
        self.norms = nn.ModuleList(nn.LayerNorm(model.d_model) for _ in range(2))

    def attend(self, x: Any) -> Any:
        model = self.model
        rows, length, _ = x.shape

        def split(y: Any, heads: int) -> Any:
            return y.reshape(rows, length, heads, model.head_dim).transpose(1, 2)

        query = split(self.query(x), model.heads)
        key, value = split(self.key(x), model.kv_heads), split(self.value(x), model.kv_heads)
        groups = model.heads // model.kv_heads
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        weights = torch.softmax(query @ key.transpose(-1, -2), dim=-1)
        return self.output((weights @ value).transpose(1, 2).reshape(rows, length, -1))

    def forward(self, x: Any) -> Any:
        for block, norm in zip((self.attend, self.feed), self.norms, strict=True):
            x = x + block(norm(x)) if self.model.is_pre_norm else norm(x + block(x))
        return x


class Transformer(nn.Module):
    """The whole model, with its frozen parts frozen."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        if model.inputs is ModelInput.TOKENS:
            self.embedding = nn.Embedding(model.vocabulary, model.d_model)
        if model.positions is Positions.LEARNED:
            self.positions = nn.Embedding(model.sequence, model.d_model)
        self.layers = nn.ModuleList(Layer(model, index) for index in range(model.layers))
        self.final = nn.LayerNorm(model.d_model) if model.has_final_norm else nn.Identity()
        self.head = nn.Linear(model.d_model, model.outputs, bias=model.has_head_bias)
        if model.is_tied:
            self.head.weight = self.embedding.weight
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(parameter.requires_grad and not is_frozen(model, name))

    def forward(self, x: Any) -> Any:
        if self.model.inputs is ModelInput.TOKENS:
            x = self.embedding(x)
        if self.model.positions is Positions.LEARNED:
            x = x + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.final(x))


def is_frozen(model: Model, name: str) -> bool:
    """Whether a parameter of this name has no gradient."""
    parts = name.split(".")
    if model.lora is not None:
        return parts[-2] not in ("up", "down")  # a matrix itself is called "base"
    if parts[0] == "layers" and int(parts[1]) < model.frozen_layers:
        return True
    part = {
        "embedding": Part.EMBEDDING,
        "positions": Part.EMBEDDING,
        "final": Part.NORM,
        "head": Part.HEAD,
        "norms": Part.NORM,
        "feed": Part.FEED_FORWARD,
    }.get(parts[2] if parts[0] == "layers" else parts[0], Part.ATTENTION)
    return part in model.frozen


def seen_flop(model: Model, rows: int) -> tuple[int, int]:
    """Forward and step FLOP as PyTorch's counter sees them."""
    network = Transformer(model)
    assert sum(p.numel() for p in network.parameters()) == count_parameters(model).total
    learning = sum(p.numel() for p in network.parameters() if p.requires_grad)
    assert learning == count_parameters(model).learning
    if model.inputs is ModelInput.TOKENS:
        inputs = torch.zeros(rows, model.sequence, dtype=torch.long)
    else:
        inputs = torch.zeros(rows, model.sequence, model.d_model)
    with FlopCounterMode(display=False) as counter:
        loss = network(inputs).sum()
    forward = counter.get_total_flops()
    if not loss.requires_grad:
        return forward, forward
    with FlopCounterMode(display=False) as counter:
        network(inputs).sum().backward()
    return forward, counter.get_total_flops()


def features(**changes: Any) -> dict[str, Any]:
    return {
        "inputs": ModelInput.FEATURES,
        "vocabulary": 0,
        "outputs": 7,
        "positions": Positions.NONE,
        **changes,
    }


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "plain", {}
    yield "tied", {"is_tied": True}
    yield "grouped queries", {"kv_heads": 2}
    yield "one key head, wide heads", {"kv_heads": 1, "head_dim": 7}
    yield "gated", {"feed_forward": FeedForward.SWIGLU}
    yield (
        "encoder after its norms",
        {"kind": ModelKind.ENCODER, "is_pre_norm": False, "has_final_norm": False},
    )
    yield "features", features()
    yield "features, norms after", features(is_pre_norm=False)
    yield "features with positions", features(positions=Positions.LEARNED)
    yield "features, norms frozen", features(frozen=frozenset({Part.NORM}))
    yield "features, attention frozen", features(is_pre_norm=False, frozen=frozenset({Part.ATTENTION}))
    for part in Part:
        yield f"{part} frozen", {"frozen": frozenset({part})}
        yield f"all but {part} frozen", {"frozen": frozenset(Part) - {part}}
        yield f"tied, {part} frozen", {"is_tied": True, "frozen": frozenset({part})}
    yield "all frozen", {"frozen": frozenset(Part)}
    yield "two layers frozen", {"frozen_layers": 2, "frozen": frozenset({Part.EMBEDDING})}
    yield "three layers frozen", {"frozen_layers": 3, "frozen": frozenset({Part.EMBEDDING})}
    for name in Projection:
        gated = {"feed_forward": FeedForward.SWIGLU}
        yield f"adapter on {name}", {"lora": Lora(rank=3, on=frozenset({name})), **gated}
    everywhere = Lora(rank=2, on=frozenset(Projection) - {Projection.GATE})
    yield "adapters everywhere", {"lora": everywhere}
    yield "adapters above a frozen layer", {"lora": everywhere, "frozen_layers": 1}
    mixture = Experts(count=4, active=2, shared=1, d_ff=12, shared_d_ff=20)
    yield "experts", {"experts": mixture}
    yield "experts in some layers", {"experts": replace(mixture, every=2)}
    yield "experts frozen", {"experts": mixture, "frozen": frozenset({Part.FEED_FORWARD})}


@pytest.mark.parametrize(("name", "changes"), list(variants()), ids=[name for name, _ in variants()])
def test_the_closed_form_is_what_autograd_does(name: str, changes: dict[str, Any]) -> None:
    model = replace(BASE, **changes)
    step = count_step(model, Training(batch=2, kernel=AttentionKernel.UNFUSED))
    assert (step.forward_flop, step.model_flop) == seen_flop(model, rows=2), name
    assert step.executed_flop == step.model_flop
