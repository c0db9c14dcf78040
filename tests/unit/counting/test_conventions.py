from collections.abc import Callable

import pytest

from flopwitness.counting.conventions import Convention, ConventionId, Share, count_conventions
from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Norm,
    Part,
    Projection,
)
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.step import count_step
from flopwitness.counting.training import Checkpointing, Masking, Training

Make = Callable[..., Model]
RUN = Training(batch=2, steps=3)
TOKENS = 2 * 3 * 16


def counted(model: Model, training: Training = RUN) -> dict[ConventionId, Convention]:
    conventions = count_conventions(model, training)
    assert [convention.id for convention in conventions] == list(ConventionId)
    return {convention.id: convention for convention in conventions}


# Each formula as its authors write it, in their own letters.


def epoch(n_active: int) -> int:
    return 6 * n_active * TOKENS


def nanogpt(n: int, *, layers: int, heads: int, q: int, t: int) -> int:
    return (6 * n + 12 * layers * heads * q * t) * TOKENS


def megatron(*, s: int, layers: int, h: int, q: int, kv: int, ffn: int, matrices: int, v: int) -> int:
    per_layer = 3 * 2 * (h * (q + 2 * kv) + q * s // 2 * 2 + q * h) + 3 * 2 * h * ffn * matrices
    return TOKENS * (layers * per_layer + 3 * 2 * h * v)


def test_the_formulas_give_what_their_authors_give(decoder: Make) -> None:
    conventions = counted(decoder())
    parameters = count_parameters(decoder())
    n, table, positions = parameters.total, 50 * 8, 16 * 8
    assert conventions[ConventionId.EPOCH].flop == epoch(n)
    assert conventions[ConventionId.KAPLAN].flop == 6 * TOKENS * 2 * 8 * 2 * (2 * 8 + 32)
    assert conventions[ConventionId.NANOGPT].flop == nanogpt(n - positions, layers=2, heads=4, q=2, t=16)
    assert conventions[ConventionId.TORCHTITAN].flop == nanogpt(
        n - table - positions, layers=2, heads=4, q=2, t=16
    )
    assert conventions[ConventionId.MEGATRON].flop == megatron(
        s=16, layers=2, h=8, q=8, kv=8, ffn=32, matrices=2, v=50
    )
    square = 96 * 16 * 2 * 8 * 8
    assert conventions[ConventionId.MEGATRON_2021].flop == 6 * (
        square + square * 16 // (6 * 8) + square * 50 // (16 * 2 * 8)
    )


def test_ours_are_those_of_the_step(decoder: Make) -> None:
    training = Training(batch=2, steps=3, documents=(7, 5), masking=Masking.DENSE)
    step, conventions = count_step(decoder(), training), counted(decoder(), training)
    assert conventions[ConventionId.MODEL].flop == 3 * step.model_flop
    assert conventions[ConventionId.MODEL_MASKED].flop == 3 * step.causal_flop
    assert conventions[ConventionId.EXECUTED].flop == 3 * step.executed_flop
    assert conventions[ConventionId.EPOCH].flop == 6 * count_parameters(decoder()).total * 72


def test_with_grouped_queries_and_gates_the_formulas_still_hold(decoder: Make) -> None:
    model = decoder(kv_heads=2, feed_forward=FeedForward.SWIGLU, norm=Norm.RMS)
    assert counted(model)[ConventionId.MEGATRON].flop == megatron(
        s=16, layers=2, h=8, q=8, kv=4, ffn=32, matrices=3, v=50
    )


def test_a_tied_head_is_counted_by_some_and_taken_off_by_one(decoder: Make) -> None:
    model = decoder(is_tied=True)
    n = count_parameters(model).total
    conventions = counted(model)
    assert conventions[ConventionId.EPOCH].flop == epoch(n)
    assert conventions[ConventionId.NANOGPT].flop == nanogpt(n - 128, layers=2, heads=4, q=2, t=16)
    assert conventions[ConventionId.TORCHTITAN].flop == nanogpt(n - 400 - 128, layers=2, heads=4, q=2, t=16)
    told = {item.share: item.reason for item in conventions[ConventionId.TORCHTITAN].differences}
    assert "tied head" in told[Share.HEAD]


def test_of_experts_the_active_ones_count_but_for_one_convention(decoder: Make) -> None:
    experts = Experts(count=6, active=2, shared=1, d_ff=10, shared_d_ff=12)
    model = decoder(experts=experts)
    parameters, conventions = count_parameters(model), counted(model)
    assert conventions[ConventionId.EPOCH].flop == epoch(parameters.active_total)
    assert conventions[ConventionId.NANOGPT].flop == nanogpt(
        parameters.total - 128, layers=2, heads=4, q=2, t=16
    )
    told = {item.share: item.reason for item in conventions[ConventionId.NANOGPT].differences}
    assert told[Share.FEED_FORWARD] == "every expert is counted, as if it learned"
    left_out = {item.share: item for item in conventions[ConventionId.MEGATRON].differences}
    assert left_out[Share.ROUTER].reason == "the router is left out"
    assert left_out[Share.ROUTER].flop == -6 * TOKENS * 2 * 8 * 6


def test_formulas_take_frozen_matrices_for_learning_ones(decoder: Make) -> None:
    model = decoder(lora=Lora(rank=3, on=frozenset({Projection.QUERY})))
    conventions = counted(model)
    told = {item.share: item.reason for item in conventions[ConventionId.EPOCH].differences}
    assert told[Share.FEED_FORWARD] == "every matrix is counted as if it learned"
    assert conventions[ConventionId.EPOCH].flop > conventions[ConventionId.MODEL].flop


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"is_tied": True},
        {"kind": ModelKind.ENCODER},
        {"window": 4, "window_layers": 1},
        {"experts": Experts(count=6, active=2, d_ff=10, shared_d_ff=12)},
        {"lora": Lora(rank=3, on=frozenset({Projection.QUERY, Projection.DOWN}))},
        {"frozen": frozenset({Part.EMBEDDING, Part.NORM}), "frozen_layers": 1},
        {"inputs": ModelInput.FEATURES, "vocabulary": 0, "outputs": 0},
        {"head_dim": 3, "kv_heads": 1},
    ],
)
@pytest.mark.parametrize(
    "training",
    [
        RUN,
        Training(batch=1, checkpointing=Checkpointing.LAYERS, documents=(3, 9), masking=Masking.DENSE),
    ],
)
def test_the_differences_explain_the_whole_distance(
    decoder: Make, changes: dict[str, object], training: Training
) -> None:
    conventions = counted(decoder(**changes), training)
    ours = conventions[ConventionId.MODEL]
    assert ours.differences == ()
    for convention in conventions.values():
        assert sum(item.flop for item in convention.differences) == convention.flop - ours.flop
        assert all(item.reason for item in convention.differences)
        assert convention.says
        assert convention.source
