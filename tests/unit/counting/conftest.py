"""Small models that the tests of counting share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flopwitness.counting.model import FeedForward, Model, ModelKind

DECODER = Model(
    kind=ModelKind.DECODER,
    layers=2,
    d_model=8,
    heads=4,
    kv_heads=4,
    head_dim=2,
    d_ff=32,
    feed_forward=FeedForward.GELU,
    sequence=16,
    vocabulary=50,
    outputs=50,
)


@pytest.fixture
def decoder() -> Callable[..., Model]:
    """A function that gives a small decoder with some of its sizes changed."""

    def make(**changes: Any) -> Model:  # noqa: ANN401 (any field)
        return replace(DECODER, **changes)

    return make
