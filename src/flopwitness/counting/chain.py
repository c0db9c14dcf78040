"""A chain of linear layers, some frozen, some with adapters: what such a step takes.

"Three times the forward pass" is wrong as soon as something is frozen: a frozen matrix needs no gradient of
its own, and below the lowest layer that learns nothing needs any.
"""

from dataclasses import dataclass

from flopwitness.counting.gradients import Component, Tally
from flopwitness.counting.model import LARGEST_SIZE
from flopwitness.foundation.toml_table import TomlTable

__all__ = ["Chain", "ChainCount", "ChainLayer", "count_chain", "read_chain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLayer:
    """One linear layer; an activation after it takes no products.

    Attributes:
        inner: Width of what comes in.
        outer: Width of what goes out.
        rank: The adapter's inner width; 0 is no adapter.
        is_frozen: The matrix (not the adapter) has no gradient.
    """

    inner: int
    outer: int
    rank: int = 0
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Layers, each of which takes what the one before gives.

    Attributes:
        tokens: Rows that go through in a step.
        steps: Updates of the weights.
        input_learns: The chain's input needs a gradient, as above an embedding that learns.
        layers: From the bottom.
    """

    tokens: int
    steps: int
    input_learns: bool
    layers: tuple[ChainLayer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCount:
    """What one step takes [FLOP]."""

    forward_flop: int
    backward_flop: int

    @property
    def step_flop(self) -> int:
        """Forward and backward."""
        return self.forward_flop + self.backward_flop


def count_chain(chain: Chain) -> ChainCount:
    """The products of one step through the chain, with the gradients that are needed.

    Returns:
        Exact counts; a multiply-add is 2.
    """
    tally = Tally()
    learns = chain.input_learns
    for layer in chain.layers:
        learns = tally.adapted(
            Component.FEED_FORWARD,
            rows=chain.tokens,
            shape=(layer.inner, layer.outer),
            rank=layer.rank,
            weight_learns=not layer.is_frozen,
            adapter_learns=True,
            input_learns=learns,
        )
    return ChainCount(
        forward_flop=sum(count.forward_flop for count in tally.counts.values()),
        backward_flop=sum(count.backward_flop for count in tally.counts.values()),
    )


def read_chain(table: TomlTable) -> Chain:
    """The chain that a table `[chain]` describes.

    Raises:
        DecodeError: A key is missing, unknown or of another kind, or a layer does not fit the one below it.
    """
    layers: list[ChainLayer] = []
    for inner in table.tables("layer"):
        layers.append(_read_layer(inner, below=layers[-1].outer if layers else 0))
    if not layers:
        raise table.error("no layers", key="layer", expected="at least one [[chain.layer]]")
    chain = Chain(
        tokens=table.whole("tokens", low=1, high=LARGEST_SIZE),
        steps=table.whole("steps", low=1, high=LARGEST_SIZE, default=1),
        input_learns=table.flag("input_learns"),
        layers=tuple(layers),
    )
    table.read.add("layer")
    table.close()
    return chain


def _read_layer(table: TomlTable, *, below: int) -> ChainLayer:
    layer = ChainLayer(
        inner=table.whole("in", low=1, high=LARGEST_SIZE),
        outer=table.whole("out", low=1, high=LARGEST_SIZE),
        rank=table.whole("lora_rank", low=1, high=LARGEST_SIZE, default=0),
        is_frozen=table.flag("frozen"),
    )
    table.close()
    if below and layer.inner != below:
        raise table.error(
            "does not fit the layer below", key="in", expected=str(below), found=str(layer.inner)
        )
    return layer
