"""A transformer's products, from the bottom up, with the gradients that each needs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from flopwitness.counting.gradients import Component, ComponentCount, Tally, add_counts, scale_counts
from flopwitness.counting.model import Model, ModelInput, Part, Positions, Projection

__all__ = ["Row", "RowCounts", "count_row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How much of a row is computed.

    Attributes:
        tokens: Tokens that pass through the layers.
        pairs: Pairs of a query and a key in a layer without a window.
        window_pairs: The same in a layer with one.
    """

    tokens: int
    pairs: int
    window_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """What one row takes.

    Attributes:
        layers: All layers.
        head: The head.
        learning_layers: The forward pass of those layers that the backward pass goes through.
    """

    layers: dict[Component, ComponentCount]
    head: dict[Component, ComponentCount]
    learning_layers: dict[Component, ComponentCount]


@dataclass(frozen=True, slots=True)
class _Layer:
    """All in which two layers can differ; equal layers are counted once."""

    has_experts: bool
    has_window: bool
    is_frozen: bool
    input_learns: bool


def count_row(model: Model, row: Row) -> RowCounts:
    """The products of one row, forward and backward.

    Args:
        model: Sizes that `check_model` accepts.
        row: Tokens and pairs.

    Returns:
        Exact counts.
    """
    learns = _input_learns(model)
    kinds: Counter[_Layer] = Counter()
    made: dict[_Layer, tuple[dict[Component, ComponentCount], bool]] = {}
    for index in range(model.layers):
        layer = _Layer(
            has_experts=model.has_experts(index),
            has_window=index < model.window_layers,
            is_frozen=index < model.frozen_layers,
            input_learns=learns,
        )
        if layer not in made:
            tally = Tally()
            made[layer] = (tally.counts, _LayerCount(model, row, layer, tally).count())
        kinds[layer] += 1
        learns = made[layer][1]
    return RowCounts(
        layers=add_counts(*(scale_counts(made[layer][0], times) for layer, times in kinds.items())),
        head=_count_head(model, row, input_learns=learns),
        learning_layers=add_counts(
            *(scale_counts(made[layer][0], times) for layer, times in kinds.items() if made[layer][1])
        ),
    )


def _learns(model: Model, part: Part) -> bool:
    """Whether a part outside the layers learns; beside adapters, nothing else does."""
    return model.lora is None and part not in model.frozen


def _input_learns(model: Model) -> bool:
    has_table = model.inputs is ModelInput.TOKENS or model.positions is Positions.LEARNED
    return (has_table and _learns(model, Part.EMBEDDING)) or (
        model.has_embedding_norm and _learns(model, Part.NORM)
    )


def _count_head(model: Model, row: Row, *, input_learns: bool) -> dict[Component, ComponentCount]:
    if not model.outputs:
        return {}
    tally = Tally()
    tally.linear(
        Component.HEAD,
        row.tokens * model.d_model * model.outputs,
        weight_learns=_learns(model, Part.EMBEDDING if model.is_tied else Part.HEAD),
        input_learns=input_learns or (model.has_final_norm and _learns(model, Part.NORM)),
    )
    return tally.counts


@dataclass(slots=True)
class _LayerCount:
    """One layer's products, put into a tally in their order."""

    model: Model
    row: Row
    layer: _Layer
    tally: Tally

    def count(self) -> bool:
        """Count the layer; whether something below its result learns."""
        norm_learns = self._learns(Part.NORM)
        before = self.model.is_pre_norm and norm_learns
        after = not self.model.is_pre_norm and norm_learns
        stream = self.layer.input_learns
        stream = self._attention(input_learns=stream or before) or stream or after
        feed = self._experts if self.layer.has_experts else self._dense
        return feed(stream or before) or stream or after

    def _learns(self, part: Part) -> bool:
        return not self.layer.is_frozen and _learns(self.model, part)

    def _attention(self, *, input_learns: bool) -> bool:
        model, row = self.model, self.row
        project = self._projection(Component.ATTENTION, Part.ATTENTION)
        query = project(Projection.QUERY, model.d_model, model.query_width, input_learns)
        key = project(Projection.KEY, model.d_model, model.key_width, input_learns)
        value = project(Projection.VALUE, model.d_model, model.key_width, input_learns)
        pairs = row.window_pairs if self.layer.has_window else row.pairs
        mixed = self.tally.scores(
            pairs * model.query_width, query_learns=query, key_learns=key, value_learns=value
        )
        return project(Projection.OUTPUT, model.query_width, model.d_model, mixed)

    def _dense(self, input_learns: bool) -> bool:  # noqa: FBT001 (one of two ways to feed forward)
        return self._feed(self.row.tokens, self.model.d_ff, input_learns=input_learns)

    def _experts(self, input_learns: bool) -> bool:  # noqa: FBT001
        experts, row = self.model.experts, self.row
        assert experts is not None  # noqa: S101 (the layer says so)
        router = self.tally.linear(
            Component.ROUTER,
            row.tokens * self.model.d_model * experts.count,
            weight_learns=self._learns(Part.FEED_FORWARD),
            input_learns=input_learns,
        )
        routed = self._feed(row.tokens * experts.active, experts.d_ff, input_learns=input_learns)
        if not experts.shared:
            return routed or router
        shared = self._feed(row.tokens * experts.shared, experts.shared_d_ff, input_learns=input_learns)
        return routed or router or shared

    def _feed(self, tokens: int, d_ff: int, *, input_learns: bool) -> bool:
        model = self.model
        project = self._projection(Component.FEED_FORWARD, Part.FEED_FORWARD, tokens)
        hidden = project(Projection.UP, model.d_model, d_ff, input_learns)
        if model.feed_forward.is_gated:
            hidden = project(Projection.GATE, model.d_model, d_ff, input_learns) or hidden
        return project(Projection.DOWN, d_ff, model.d_model, hidden)

    def _projection(
        self, component: Component, part: Part, tokens: int | None = None
    ) -> Callable[[Projection, int, int, bool], bool]:
        """A function that counts one projection, its bias and its adapter, and says whether it learns."""
        lora = self.model.lora
        rows = self.row.tokens if tokens is None else tokens

        def count(name: Projection, inner: int, outer: int, input_learns: bool) -> bool:  # noqa: FBT001
            return self.tally.adapted(
                component,
                rows=rows,
                shape=(inner, outer),
                rank=lora.rank if lora is not None and name in lora.on else 0,
                weight_learns=self._learns(part),
                adapter_learns=not self.layer.is_frozen,
                input_learns=input_learns,
            )

        return count
