from collections.abc import Callable
from typing import Any

import pytest

from flopwitness.counting.model import Experts, FeedForward, Lora, Model, Projection, check_model
from flopwitness.foundation.errors import DecodeError

Make = Callable[..., Model]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kv_heads": 1},
        {"is_tied": True},
        {"outputs": 0},
        {"window": 3, "window_layers": 2},
        {"frozen_layers": 2},
        {"experts": Experts(count=1, active=1, d_ff=1, shared_d_ff=1)},
        {"lora": Lora(rank=1, on=frozenset({Projection.DOWN}))},
    ],
)
def test_sizes_that_fit_are_accepted(decoder: Make, changes: dict[str, Any]) -> None:
    check_model(decoder(**changes), place=lambda name: f"m.{name}")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"layers": 0}, "layers"),
        ({"layers": 100_001}, "layers"),
        ({"d_model": 0}, "d_model"),
        ({"d_ff": -1}, "d_ff"),
        ({"sequence": 1 << 41}, "sequence"),
        ({"heads": 0}, "heads"),
        ({"kv_heads": 0}, "kv_heads"),
        ({"kv_heads": 3}, "kv_heads"),
        ({"kv_heads": 8}, "kv_heads"),
        ({"vocabulary": 0}, "vocabulary"),
        ({"outputs": -1}, "outputs"),
        ({"is_tied": True, "outputs": 49}, "tied"),
        ({"window": -1}, "window"),
        ({"window_layers": 1}, "window_layers"),
        ({"window": 1, "window_layers": 3}, "window_layers"),
        ({"frozen_layers": 3}, "frozen_layers"),
        ({"position_rows": 15}, "sequence"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"experts": Experts(count=2, active=3, d_ff=1, shared_d_ff=1)}, "experts.active"),
        ({"experts": Experts(count=2, active=0, d_ff=1, shared_d_ff=1)}, "experts.active"),
        ({"experts": Experts(count=2, active=1, d_ff=0, shared_d_ff=1)}, "experts.d_ff"),
        ({"experts": Experts(count=2, active=1, shared=-1, d_ff=1, shared_d_ff=1)}, "experts.shared"),
        ({"experts": Experts(count=2, active=1, d_ff=1, shared_d_ff=1, every=3)}, "experts.every"),
        ({"lora": Lora(rank=0, on=frozenset({Projection.KEY}))}, "lora.rank"),
        ({"lora": Lora(rank=1, on=frozenset())}, "lora.on"),
        ({"lora": Lora(rank=1, on=frozenset({Projection.GATE}))}, "lora.on"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_by_their_key(
    decoder: Make, changes: dict[str, Any], key: str
) -> None:
    with pytest.raises(DecodeError) as refused:
        check_model(decoder(**changes), place=lambda name: f"m.{name}")
    assert refused.value.where == f"m.{key}"


def test_experts_stand_in_the_last_layer_of_each_group(decoder: Make) -> None:
    experts = Experts(count=4, active=1, d_ff=8, shared_d_ff=8, every=2, dense_first=2)
    model = decoder(layers=6, experts=experts)
    assert [model.has_experts(index) for index in range(6)] == [False, False, False, True, False, True]
    assert not decoder().has_experts(0)


@pytest.mark.parametrize("feed_forward", list(FeedForward))
def test_two_feed_forwards_have_a_gate(feed_forward: FeedForward) -> None:
    assert feed_forward.is_gated is feed_forward.value.endswith("glu")
