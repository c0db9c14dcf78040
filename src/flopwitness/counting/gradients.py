"""Matrix products and the gradients that they need: the rule that all counts here are made of.

A product y = W x takes 2 operations a multiply-add. Its backward pass takes as many for the gradient of x,
where something below x learns, and as many for the gradient of W, where W learns. "Three times the forward
pass" is what comes out when everything learns; with frozen parts or adapters it is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Component", "ComponentCount", "Tally", "add_counts", "scale_counts"]


class Component(StrEnum):
    """What a product is for."""

    ATTENTION = "attention"  # the projections to queries, keys and values, and the output's
    SCORES = "scores"  # queries with keys, and their weights with values
    FEED_FORWARD = "feed_forward"  # dense or of experts
    ROUTER = "router"
    ADAPTERS = "adapters"
    HEAD = "head"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCount:
    """FLOP of one component.

    Attributes:
        forward_flop: The forward pass.
        backward_flop: The backward pass as the algorithm needs it.
        again_flop: What a fused attention kernel computes a second time in its backward pass.
    """

    forward_flop: int = 0
    backward_flop: int = 0
    again_flop: int = 0

    @property
    def flop(self) -> int:
        """Forward and backward, nothing twice."""
        return self.forward_flop + self.backward_flop


Counts = Mapping[Component, ComponentCount]


def add_counts(*many: Counts) -> dict[Component, ComponentCount]:
    """The sum, component by component."""
    return {
        component: ComponentCount(
            forward_flop=sum(counts[component].forward_flop for counts in many if component in counts),
            backward_flop=sum(counts[component].backward_flop for counts in many if component in counts),
            again_flop=sum(counts[component].again_flop for counts in many if component in counts),
        )
        for component in Component
        if any(component in counts for counts in many)
    }


def scale_counts(counts: Counts, times: int) -> dict[Component, ComponentCount]:
    """So many times the counts."""
    return {
        component: ComponentCount(
            forward_flop=times * count.forward_flop,
            backward_flop=times * count.backward_flop,
            again_flop=times * count.again_flop,
        )
        for component, count in counts.items()
    }


@dataclass(slots=True)
class Tally:
    """Products as they come, with whether the gradients are needed; each call says whether its result learns.

    Attributes:
        counts: What was counted so far.
    """

    counts: dict[Component, ComponentCount] = field(default_factory=dict)

    def linear(
        self, component: Component, multiply_adds: int, *, weight_learns: bool, input_learns: bool
    ) -> bool:
        """Count y = W x.

        Args:
            component: What it is for.
            multiply_adds: Rows x inner x outer.
            weight_learns: W needs a gradient.
            input_learns: Something below x needs one.

        Returns:
            Whether something below y needs a gradient.
        """
        flop = 2 * multiply_adds
        self._add(component, forward=flop, backward=flop * (int(weight_learns) + int(input_learns)))
        return weight_learns or input_learns

    def adapted(
        self,
        component: Component,
        *,
        rows: int,
        shape: tuple[int, int],
        rank: int,
        weight_learns: bool,
        adapter_learns: bool,
        input_learns: bool,
    ) -> bool:
        """Count y = W x, and beside it B (A x) where there is an adapter.

        Args:
            component: What the matrix is for.
            rows: Tokens.
            shape: Inner and outer width of W.
            rank: The adapter's inner width; 0 is no adapter.
            weight_learns: W needs a gradient.
            adapter_learns: A and B need one.
            input_learns: Something below x needs one.

        Returns:
            Whether something below y needs a gradient.
        """
        inner, outer = shape
        learns = self.linear(
            component, rows * inner * outer, weight_learns=weight_learns, input_learns=input_learns
        )
        if not rank:
            return learns
        adapters = Component.ADAPTERS
        down = self.linear(
            adapters, rows * inner * rank, weight_learns=adapter_learns, input_learns=input_learns
        )
        up = self.linear(adapters, rows * rank * outer, weight_learns=adapter_learns, input_learns=down)
        return learns or up

    def scores(self, pair_width: int, *, query_learns: bool, key_learns: bool, value_learns: bool) -> bool:
        """Count softmax(Q K^T) V.

        The backward pass needs the weights' gradient and from it that of Q and of K, where either learns, and
        that of V; a fused kernel computes all four products and the scores once more.

        Args:
            pair_width: Pairs of a query and a key x head width x heads; the multiply-adds of one product.
            query_learns: Something below Q needs a gradient.
            key_learns: The same of K.
            value_learns: The same of V.

        Returns:
            Whether something below the result needs a gradient.
        """
        product = 2 * pair_width
        weights_learn = query_learns or key_learns
        needed = int(weights_learn) + int(query_learns) + int(key_learns) + int(value_learns)
        learns = weights_learn or value_learns
        again = (5 - needed) * product if learns else 0
        self._add(Component.SCORES, forward=2 * product, backward=needed * product, again=again)
        return learns

    def _add(self, component: Component, *, forward: int, backward: int, again: int = 0) -> None:
        old = self.counts.get(component, ComponentCount())
        self.counts[component] = ComponentCount(
            forward_flop=old.forward_flop + forward,
            backward_flop=old.backward_flop + backward,
            again_flop=old.again_flop + again,
        )
