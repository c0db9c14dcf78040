"""Parameters from shapes: what is stored, what a token meets, and what learns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from flopwitness.counting.model import Model, ModelInput, Norm, Part, Positions, Projection

__all__ = ["ParameterGroup", "Parameters", "count_parameters"]


class ParameterGroup(StrEnum):
    """What parameters are for."""

    EMBEDDING = "embedding"  # a tied head is this matrix
    POSITIONS = "positions"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    ROUTER = "router"
    ADAPTERS = "adapters"
    HEAD = "head"
    VECTORS = "vectors"  # gains and biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How many parameters a model has.

    Attributes:
        stored: All, by group; a tied matrix once.
        active: Those that a token meets, by group: of experts the active and the shared ones.
        learning: Those with a gradient.
    """

    stored: Mapping[ParameterGroup, int]
    active: Mapping[ParameterGroup, int]
    learning: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.stored.values())

    @property
    def active_total(self) -> int:
        """All that a token meets."""
        return sum(self.active.values())


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Parameters of one purpose: how many there are, and how many of them a token meets."""

    group: ParameterGroup
    part: Part | None  # None: adapters, which are no part that can be frozen
    stored: int
    active: int


def count_parameters(model: Model) -> Parameters:
    """The parameters of a model.

    Args:
        model: Sizes that `check_model` accepts.

    Returns:
        Exact counts, as a framework's own sum over its tensors gives them.
    """
    stored: dict[ParameterGroup, int] = {}
    active: dict[ParameterGroup, int] = {}
    learning = 0
    for tensor, times, times_learning in _tensors(model):
        stored[tensor.group] = stored.get(tensor.group, 0) + times * tensor.stored
        active[tensor.group] = active.get(tensor.group, 0) + times * tensor.active
        learning += times_learning * tensor.stored if _learns(model, tensor) else 0
    return Parameters(stored=stored, active=active, learning=learning)


def _learns(model: Model, tensor: _Tensor) -> bool:
    if tensor.part is None:
        return True
    return model.lora is None and tensor.part not in model.frozen


def _tensors(model: Model) -> Iterator[tuple[_Tensor, int, int]]:
    """Every tensor with how often it occurs, and how often in a layer that is not frozen."""
    for tensor in _outside(model):
        yield tensor, 1, 1
    for has_experts in (False, True):
        places = [i for i in range(model.layers) if model.has_experts(i) is has_experts]
        free = sum(i >= model.frozen_layers for i in places)
        if places:
            for tensor in _layer(model, has_experts=has_experts):
                yield tensor, len(places), free


def _norm_size(model: Model) -> int:
    return model.d_model * (2 if model.norm is Norm.LAYER else 1)


def _outside(model: Model) -> Iterator[_Tensor]:
    table = model.vocabulary * model.d_model
    if model.inputs is ModelInput.TOKENS:
        yield _Tensor(ParameterGroup.EMBEDDING, Part.EMBEDDING, table, table)
    if model.positions is Positions.LEARNED:
        size = (model.position_rows or model.sequence) * model.d_model
        yield _Tensor(ParameterGroup.POSITIONS, Part.EMBEDDING, size, size)
    norms = int(model.has_embedding_norm) + int(model.has_final_norm)
    yield _Tensor(ParameterGroup.VECTORS, Part.NORM, norms * _norm_size(model), norms * _norm_size(model))
    if model.outputs and not model.is_tied:
        size = model.d_model * model.outputs
        yield _Tensor(ParameterGroup.HEAD, Part.HEAD, size, size)
    if model.has_head_bias:
        yield _Tensor(ParameterGroup.VECTORS, Part.HEAD, model.outputs, model.outputs)


def _layer(model: Model, *, has_experts: bool) -> Iterator[_Tensor]:
    attention = 2 * model.d_model * (model.query_width + model.key_width)
    yield _Tensor(ParameterGroup.ATTENTION, Part.ATTENTION, attention, attention)
    biases = sum(width for name, width in _attention_widths(model).items() if name in model.biases)
    yield _Tensor(ParameterGroup.VECTORS, Part.ATTENTION, biases, biases)
    vectors = 2 * _norm_size(model)
    yield _Tensor(ParameterGroup.VECTORS, Part.NORM, vectors, vectors)
    yield from _feed_forward(model) if not has_experts else _experts(model)
    if model.lora is not None:
        size = model.lora.rank * sum(sum(_shape(model, name)) for name in model.lora.on)
        yield _Tensor(ParameterGroup.ADAPTERS, None, size, size)


def _attention_widths(model: Model) -> dict[Projection, int]:
    return {
        Projection.QUERY: model.query_width,
        Projection.KEY: model.key_width,
        Projection.VALUE: model.key_width,
        Projection.OUTPUT: model.d_model,
    }


def _shape(model: Model, name: Projection) -> tuple[int, int]:
    """Inner and outer width of a projection."""
    if name is Projection.OUTPUT:
        return model.query_width, model.d_model
    if name is Projection.DOWN:
        return model.d_ff, model.d_model
    return model.d_model, _attention_widths(model).get(name, model.d_ff)


def _feed_sizes(model: Model, d_ff: int) -> tuple[int, int]:
    """Matrices and biases of one feed-forward."""
    inward = [Projection.UP, Projection.GATE] if model.feed_forward.is_gated else [Projection.UP]
    matrices = (len(inward) + 1) * model.d_model * d_ff
    biases = sum(d_ff for name in inward if name in model.biases)
    return matrices, biases + (model.d_model if Projection.DOWN in model.biases else 0)


def _feed_forward(model: Model) -> Iterator[_Tensor]:
    matrices, biases = _feed_sizes(model, model.d_ff)
    yield _Tensor(ParameterGroup.FEED_FORWARD, Part.FEED_FORWARD, matrices, matrices)
    yield _Tensor(ParameterGroup.VECTORS, Part.FEED_FORWARD, biases, biases)


def _experts(model: Model) -> Iterator[_Tensor]:
    experts = model.experts
    assert experts is not None  # noqa: S101 (a layer has experts only where the model has)
    routed, routed_biases = _feed_sizes(model, experts.d_ff)
    shared, shared_biases = _feed_sizes(model, experts.shared_d_ff)
    router = model.d_model * experts.count
    yield _Tensor(ParameterGroup.ROUTER, Part.FEED_FORWARD, router, router)
    yield _Tensor(
        ParameterGroup.FEED_FORWARD,
        Part.FEED_FORWARD,
        experts.count * routed + experts.shared * shared,
        experts.active * routed + experts.shared * shared,
    )
    yield _Tensor(
        ParameterGroup.VECTORS,
        Part.FEED_FORWARD,
        experts.count * routed_biases + experts.shared * shared_biases,
        experts.active * routed_biases + experts.shared * shared_biases,
    )
