"""Whatever the sizes: what is needed is never more than what is executed, and differences add up."""

from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from flopwitness.counting.conventions import count_conventions
from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Part,
    Projection,
    check_model,
)
from flopwitness.counting.step import count_step
from flopwitness.counting.training import AttentionKernel, Checkpointing, Masking, Training

Member = TypeVar("Member")
IN_FEED_FORWARD = {Projection.UP, Projection.GATE, Projection.DOWN}


def some(draw: Random, members: type[Member], share: float) -> frozenset[Member]:
    return frozenset(member for member in members if draw.random() < share)  # type: ignore[attr-defined]


def made_model(draw: Random) -> Model:
    heads, layers, has_tokens = draw.choice([1, 2, 4, 8]), draw.randint(1, 6), draw.random() < 0.8
    vocabulary = draw.randint(1, 300) if has_tokens else 0
    is_tied = has_tokens and draw.random() < 0.3
    window = draw.choice([0, 0, draw.randint(1, 40)])
    model = Model(
        kind=draw.choice(list(ModelKind)),
        layers=layers,
        d_model=draw.randint(1, 64),
        heads=heads,
        kv_heads=draw.choice([count for count in (1, 2, 4, 8) if heads % count == 0]),
        head_dim=draw.randint(1, 20),
        d_ff=draw.randint(1, 99),
        feed_forward=draw.choice(list(FeedForward)),
        sequence=draw.randint(1, 40),
        vocabulary=vocabulary,
        outputs=vocabulary if is_tied else draw.choice([0, vocabulary, 7]),
        is_tied=is_tied,
        inputs=ModelInput.TOKENS if has_tokens else ModelInput.FEATURES,
        window=window,
        window_layers=draw.randint(0, layers) if window else 0,
        experts=made_experts(draw, layers) if draw.random() < 0.3 else None,
        frozen=some(draw, Part, 0.2),
        frozen_layers=draw.choice([0, 0, draw.randint(0, layers)]),
        biases=some(draw, Projection, 0.5),
        is_pre_norm=draw.random() < 0.5,
        has_final_norm=draw.random() < 0.5,
    )
    return replace(model, lora=made_lora(draw, model))


def made_experts(draw: Random, layers: int) -> Experts:
    count = draw.randint(1, 9)
    return Experts(
        count=count,
        active=draw.randint(1, count),
        shared=draw.randint(0, 2),
        d_ff=draw.randint(1, 50),
        shared_d_ff=draw.randint(1, 50),
        every=draw.randint(1, layers),
        dense_first=draw.randint(0, layers),
    )


def made_lora(draw: Random, model: Model) -> Lora | None:
    on = some(draw, Projection, 0.4) - (IN_FEED_FORWARD if model.experts else set())
    on -= set() if model.feed_forward.is_gated else {Projection.GATE}
    return Lora(rank=draw.randint(1, 5), on=on) if on and draw.random() < 0.3 else None


def made_training(draw: Random, row: int) -> Training:
    documents: list[int] = []
    while sum(documents) < row and draw.random() < 0.6:
        documents.append(draw.randint(1, row - sum(documents)))
    return Training(
        batch=draw.randint(1, 4),
        steps=draw.randint(1, 3),
        documents=tuple(documents),
        masking=draw.choice(list(Masking)),
        checkpointing=draw.choice(list(Checkpointing)),
        kernel=draw.choice(list(AttentionKernel)),
    )


@given(st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_what_is_needed_is_never_more_than_what_is_executed(draw: Random) -> None:
    model = made_model(draw)
    check_model(model)
    training = made_training(draw, model.sequence)
    step = count_step(model, training)
    assert 0 <= step.causal_flop <= step.model_flop <= step.once_flop <= step.executed_flop
    assert step.backward_flop <= 2 * step.forward_flop
    assert step.tokens <= step.executed_tokens
    for convention in count_conventions(model, training):
        apart = sum(part.flop for part in convention.differences)
        assert convention.flop == training.steps * step.model_flop + apart >= 0


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_freezing_a_part_never_adds_work(draw: Random) -> None:
    model = made_model(draw)
    part = draw.choice(list(Part))
    training = Training(batch=1, steps=1)
    free = count_step(replace(model, frozen=model.frozen - {part}), training)
    frozen = count_step(replace(model, frozen=model.frozen | {part}), training)
    assert frozen.forward_flop == free.forward_flop
    assert frozen.backward_flop <= free.backward_flop
    assert frozen.optimizer_flop <= free.optimizer_flop
