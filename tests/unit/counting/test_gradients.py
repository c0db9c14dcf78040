from collections.abc import Mapping

import pytest

from flopwitness.counting.gradients import (
    Component,
    ComponentCount,
    Tally,
    add_counts,
    scale_counts,
)


def only(counts: Mapping[Component, ComponentCount], component: Component) -> ComponentCount:
    assert list(counts) == [component]
    return counts[component]


@pytest.mark.parametrize(
    ("weight_learns", "input_learns", "products"),
    [(True, True, 2), (True, False, 1), (False, True, 1), (False, False, 0)],
)
def test_a_linear_layer_needs_a_product_for_each_gradient(
    *, weight_learns: bool, input_learns: bool, products: int
) -> None:
    tally = Tally()
    learns = tally.linear(Component.HEAD, 3 * 5 * 7, weight_learns=weight_learns, input_learns=input_learns)
    count = only(tally.counts, Component.HEAD)
    assert count == ComponentCount(forward_flop=210, backward_flop=210 * products)
    assert learns is (products > 0)


@pytest.mark.parametrize(
    ("learning", "needed"),
    [
        ("qkv", 4),  # the weights' gradient, then Q's, K's and V's
        ("qk", 3),
        ("q", 2),
        ("k", 2),
        ("v", 1),
        ("", 0),
    ],
)
def test_attention_needs_only_the_gradients_of_what_learns(learning: str, needed: int) -> None:
    tally = Tally()
    learns = tally.scores(
        10, query_learns="q" in learning, key_learns="k" in learning, value_learns="v" in learning
    )
    count = only(tally.counts, Component.SCORES)
    assert count.forward_flop == 2 * 20
    assert count.backward_flop == needed * 20
    assert count.backward_flop + count.again_flop == (5 * 20 if learning else 0)
    assert learns is bool(learning)


def test_counts_add_and_scale_component_by_component() -> None:
    one = {Component.HEAD: ComponentCount(forward_flop=1, backward_flop=2, again_flop=3)}
    other = {
        Component.HEAD: ComponentCount(forward_flop=10),
        Component.ROUTER: ComponentCount(backward_flop=4),
    }
    assert add_counts(one, other) == {
        Component.HEAD: ComponentCount(forward_flop=11, backward_flop=2, again_flop=3),
        Component.ROUTER: ComponentCount(backward_flop=4),
    }
    assert scale_counts(one, 5) == {
        Component.HEAD: ComponentCount(forward_flop=5, backward_flop=10, again_flop=15)
    }
    assert add_counts() == {}
