from collections.abc import Callable

import pytest

from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    Norm,
    Part,
    Positions,
    Projection,
)
from flopwitness.counting.parameters import ParameterGroup, count_parameters

Make = Callable[..., Model]
ATTENTION = 4 * 8 * 8
FEED = 2 * 8 * 32


def test_every_group_of_a_dense_decoder(decoder: Make) -> None:
    parameters = count_parameters(decoder())
    assert parameters.stored == {
        ParameterGroup.EMBEDDING: 50 * 8,
        ParameterGroup.POSITIONS: 16 * 8,
        ParameterGroup.ATTENTION: 2 * ATTENTION,
        ParameterGroup.FEED_FORWARD: 2 * FEED,
        ParameterGroup.HEAD: 8 * 50,
        ParameterGroup.VECTORS: 2 * 2 * 16 + 16,  # two norms a layer and a final one, gain and bias each
    }
    assert parameters.active == parameters.stored
    assert parameters.learning == parameters.total == parameters.active_total


def test_a_tied_matrix_is_stored_once(decoder: Make) -> None:
    free, tied = count_parameters(decoder()), count_parameters(decoder(is_tied=True))
    assert free.total - tied.total == 8 * 50


def test_biases_are_counted_where_they_are(decoder: Make) -> None:
    bare = count_parameters(decoder()).total
    biases = frozenset(Projection)
    assert count_parameters(decoder(biases=biases)).total - bare == 2 * (4 * 8 + 32 + 8)
    without_key = count_parameters(decoder(biases=biases - {Projection.KEY}))
    assert without_key.total - bare == 2 * (3 * 8 + 32 + 8)
    gated = decoder(biases=biases, feed_forward=FeedForward.SWIGLU)
    assert count_parameters(gated).total - bare == 2 * (4 * 8 + 2 * 32 + 8 + 8 * 32)
    assert count_parameters(decoder(has_head_bias=True)).total - bare == 50


def test_grouped_queries_share_keys_and_values(decoder: Make) -> None:
    stored = count_parameters(decoder(kv_heads=1)).stored
    assert stored[ParameterGroup.ATTENTION] == 2 * (2 * 8 * 8 + 2 * 8 * 2)


@pytest.mark.parametrize(
    ("changes", "less"),
    [
        ({"norm": Norm.RMS}, 5 * 8),
        ({"has_final_norm": False}, 16),
        ({"positions": Positions.ROTARY}, 16 * 8),
        ({"outputs": 0}, 8 * 50),
        ({"inputs": ModelInput.FEATURES, "vocabulary": 0, "outputs": 50}, 50 * 8),
        ({"has_embedding_norm": True}, -16),
    ],
)
def test_what_is_not_there_is_not_counted(decoder: Make, changes: dict[str, object], less: int) -> None:
    assert count_parameters(decoder()).total - count_parameters(decoder(**changes)).total == less


def test_a_token_meets_its_experts_and_no_others(decoder: Make) -> None:
    experts = Experts(count=6, active=2, shared=1, d_ff=10, shared_d_ff=12)
    parameters = count_parameters(decoder(experts=experts))
    one, shared = 2 * 8 * 10, 2 * 8 * 12
    assert parameters.stored[ParameterGroup.FEED_FORWARD] == 2 * (6 * one + shared)
    assert parameters.active[ParameterGroup.FEED_FORWARD] == 2 * (2 * one + shared)
    assert parameters.stored[ParameterGroup.ROUTER] == 2 * 8 * 6


@pytest.mark.parametrize(
    ("changes", "with_experts"), [({}, 4), ({"every": 2}, 2), ({"dense_first": 3}, 1), ({"every": 4}, 1)]
)
def test_some_layers_may_stay_dense(decoder: Make, changes: dict[str, int], with_experts: int) -> None:
    experts = Experts(count=6, active=2, d_ff=10, shared_d_ff=10, **changes)
    stored = count_parameters(decoder(layers=4, experts=experts)).stored
    assert stored[ParameterGroup.ROUTER] == with_experts * 8 * 6
    assert stored[ParameterGroup.FEED_FORWARD] == with_experts * 6 * 160 + (4 - with_experts) * FEED


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (Part.EMBEDDING, 50 * 8 + 16 * 8),
        (Part.ATTENTION, 2 * ATTENTION),
        (Part.FEED_FORWARD, 2 * FEED),
        (Part.NORM, 5 * 16),
        (Part.HEAD, 8 * 50),
    ],
)
def test_a_frozen_part_does_not_learn(decoder: Make, part: Part, size: int) -> None:
    parameters = count_parameters(decoder(frozen=frozenset({part})))
    assert parameters.total - parameters.learning == size


def test_frozen_layers_do_not_learn(decoder: Make) -> None:
    parameters = count_parameters(decoder(frozen_layers=1))
    assert parameters.total - parameters.learning == ATTENTION + FEED + 2 * 16


def test_beside_adapters_nothing_learns(decoder: Make) -> None:
    lora = Lora(rank=3, on=frozenset({Projection.QUERY, Projection.DOWN}))
    parameters = count_parameters(decoder(lora=lora))
    adapters = 2 * 3 * ((8 + 8) + (32 + 8))
    assert parameters.stored[ParameterGroup.ADAPTERS] == adapters == parameters.learning
    assert count_parameters(decoder(lora=lora, frozen_layers=1)).learning == adapters // 2
