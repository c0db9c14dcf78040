"""The ways in which people count training compute, side by side, and why they differ.

Every convention is the same sum over components with some of them left out, halved, or counted as what they
are not. So each is written here as its components, and the difference of any two explains itself.

Rates of one run differ by a third between conventions; a rule that does not name one leaves that room.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from flopwitness.counting.gradients import Component
from flopwitness.counting.layers import Row, count_row
from flopwitness.counting.model import Model
from flopwitness.counting.parameters import ParameterGroup, Parameters, count_parameters
from flopwitness.counting.step import StepCount, count_step
from flopwitness.counting.training import Training

__all__ = ["Convention", "ConventionId", "Difference", "Share", "count_conventions"]


class ConventionId(StrEnum):
    """A way to count."""

    MODEL = "model"
    MODEL_MASKED = "model-masked"
    EXECUTED = "executed"
    EPOCH = "epoch"
    KAPLAN = "kaplan"
    NANOGPT = "nanogpt"
    TORCHTITAN = "torchtitan"
    MEGATRON = "megatron"
    MEGATRON_2021 = "megatron-2021"


class Share(StrEnum):
    """A part of a count; the components, and what some conventions add to them."""

    ATTENTION = "attention projections"
    SCORES = "attention scores"
    FEED_FORWARD = "feed-forward"
    ROUTER = "router"
    ADAPTERS = "adapters"
    HEAD = "head"
    EMBEDDING = "embedding lookup"
    VECTORS = "gains, biases and positions"
    TWICE = "computed twice"
    PADDING = "padding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a convention counts otherwise than `model` does.

    Attributes:
        share: The part.
        flop: More than `model`, or with a minus less.
        reason: Why, as a clause.
    """

    share: Share
    flop: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """One way to count the whole run.

    Attributes:
        id: Its name.
        flop: The count.
        says: What it takes for the count, in a line.
        source: Where it is written down.
        differences: Its distance from `model`, part by part; they add up to it.
    """

    id: ConventionId
    flop: int
    says: str
    source: str
    differences: tuple[Difference, ...]


_SAYS: Final[dict[ConventionId, tuple[str, str]]] = {
    ConventionId.MODEL: (
        "every product of the step once, attention in full, gradients where they are needed",
        "ours",
    ),
    ConventionId.MODEL_MASKED: (
        "the same with only the pairs that the mask leaves",
        "ours",
    ),
    ConventionId.EXECUTED: (
        "the same with all that is computed twice, and padding",
        "ours; what an instrumented counter sees",
    ),
    ConventionId.EPOCH: (
        "6 x parameters that a token meets x tokens, embeddings included",
        "Epoch AI, 'Data on AI Models: estimation'; EU guidelines' formula 6 P D",
    ),
    ConventionId.KAPLAN: (
        "6 x parameters of the layers' matrices x tokens",
        "Kaplan et al. 2020, section 2.1",
    ),
    ConventionId.NANOGPT: (
        "6 x parameters without positions, plus 12 x layers x width x row, a token",
        "nanoGPT model.py, estimate_mfu; Chowdhery et al. 2022 (PaLM), appendix B",
    ),
    ConventionId.TORCHTITAN: (
        "6 x active parameters without embedding tables, plus 12 x layers x width x row, a token",
        "torchtitan, get_dense_model_nparams_and_flops",
    ),
    ConventionId.MEGATRON: (
        "3 x the forward products, causal attention halved, no router",
        "Megatron-LM training.py, num_floating_point_operations (Megatron Core)",
    ),
    ConventionId.MEGATRON_2021: (
        "96 x row x layers x width^2 x (1 + row / 6 width + vocabulary / 16 layers width), a row",
        "Narayanan et al. 2021, Eq. 3; with every layer computed twice",
    ),
}

_Shares = Mapping[Share, int]


def count_conventions(model: Model, training: Training) -> tuple[Convention, ...]:
    """What a whole run takes in every convention.

    Args:
        model: Sizes that `check_model` accepts.
        training: The run; all of its steps are counted.

    Returns:
        The conventions, ours first. Formulas that know no documents take the row's length for theirs; what
        they count of tokens is the documents' tokens.
    """
    step = count_step(model, training)
    run = _Run(
        model=model,
        tokens=step.tokens * training.steps,
        rows=training.rows,
        parameters=count_parameters(model),
    )
    ours = _ours(step, training.steps)
    made: dict[ConventionId, _Shares] = {
        ConventionId.MODEL: ours,
        ConventionId.MODEL_MASKED: ours
        | {Share.SCORES: ours[Share.SCORES] - training.steps * (step.model_flop - step.causal_flop)},
        ConventionId.EXECUTED: ours
        | {
            Share.TWICE: training.steps * (step.recomputed_flop + step.again_flop),
            Share.PADDING: training.steps * step.padding_flop,
        },
        ConventionId.EPOCH: _epoch(run),
        ConventionId.KAPLAN: _kaplan(run),
        ConventionId.NANOGPT: _nanogpt(run),
        ConventionId.TORCHTITAN: _torchtitan(run),
        ConventionId.MEGATRON: _megatron(run),
        ConventionId.MEGATRON_2021: _megatron_2021(run),
    }
    return tuple(_tell(name, shares, ours) for name, shares in made.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    model: Model
    tokens: int
    rows: int
    parameters: Parameters

    def active(self, *groups: ParameterGroup) -> int:
        """6 x active parameters of the groups x tokens."""
        return 6 * self.tokens * sum(self.parameters.active.get(group, 0) for group in groups)

    def stored(self, *groups: ParameterGroup) -> int:
        """6 x stored parameters of the groups x tokens."""
        return 6 * self.tokens * sum(self.parameters.stored.get(group, 0) for group in groups)


def _ours(step: StepCount, steps: int) -> dict[Share, int]:
    shares = {Share[component.name]: steps * count.flop for component, count in step.components.items()}
    return {Share.SCORES: 0} | shares


def _matrices(run: _Run) -> dict[Share, int]:
    """6 N D of the layers' matrices, each as if it learned."""
    return {
        Share[group.name]: run.active(group)
        for group in (
            ParameterGroup.ATTENTION,
            ParameterGroup.FEED_FORWARD,
            ParameterGroup.ROUTER,
            ParameterGroup.ADAPTERS,
        )
    }


def _epoch(run: _Run) -> _Shares:
    tied = run.model.is_tied
    table = run.active(ParameterGroup.EMBEDDING)
    return _matrices(run) | {
        Share.HEAD: table if tied else run.active(ParameterGroup.HEAD),
        Share.EMBEDDING: 0 if tied else table,
        Share.VECTORS: run.active(ParameterGroup.VECTORS, ParameterGroup.POSITIONS),
    }


def _kaplan(run: _Run) -> _Shares:
    return _matrices(run)


def _nanogpt(run: _Run) -> _Shares:
    """N is every stored parameter but the positions: nanoGPT has no experts, and would count them all."""
    epoch = dict(_epoch(run))
    epoch[Share.FEED_FORWARD] = run.stored(ParameterGroup.FEED_FORWARD)
    epoch[Share.VECTORS] = run.stored(ParameterGroup.VECTORS)
    return epoch | {Share.SCORES: _palm_scores(run)}


def _torchtitan(run: _Run) -> _Shares:
    """Tables of embeddings are taken off, a tied head with them."""
    return _matrices(run) | {
        Share.HEAD: run.active(ParameterGroup.HEAD),
        Share.VECTORS: run.active(ParameterGroup.VECTORS),
        Share.SCORES: _palm_scores(run),
    }


def _palm_scores(run: _Run) -> int:
    return 12 * run.model.layers * run.model.query_width * run.model.sequence * run.tokens


def _megatron(run: _Run) -> _Shares:
    """Attention counts half of a full row's square; every matrix learns; the router is not counted."""
    model = run.model
    full = Row(tokens=0, pairs=model.sequence**2, window_pairs=model.sequence**2)
    per_row = 3 * count_row(model, full).layers[Component.SCORES].forward_flop
    head = model.d_model * model.outputs
    return _matrices(run) | {
        Share.ROUTER: 0,
        Share.ADAPTERS: 0,
        Share.HEAD: 6 * run.tokens * head,
        Share.SCORES: per_row // 2 // model.sequence * run.tokens,
    }


def _megatron_2021(run: _Run) -> _Shares:
    """Eq. 3, term by term: of 24 d^2 a token and layer a third is attention's, two thirds are the rest's."""
    model = run.model
    square = model.layers * model.d_model**2 * run.tokens
    scores = 4 * model.layers * model.d_model * model.sequence * run.tokens
    return {
        Share.ATTENTION: 3 * 8 * square,
        Share.FEED_FORWARD: 3 * 16 * square,
        Share.SCORES: 3 * scores,
        Share.HEAD: 6 * model.d_model * model.vocabulary * run.tokens,
        Share.TWICE: 24 * square + scores,
    }


def _tell(name: ConventionId, shares: _Shares, ours: _Shares) -> Convention:
    differences = []
    for share in Share:
        more = shares.get(share, 0) - ours.get(share, 0)
        if more:
            differences.append(
                Difference(share=share, flop=more, reason=_explain(name, share, shares.get(share, 0), more))
            )
    says, source = _SAYS[name]
    return Convention(
        id=name,
        flop=sum(shares.values()),
        says=says,
        source=source,
        differences=tuple(sorted(differences, key=lambda difference: -abs(difference.flop))),
    )


_REASONS: Final[dict[Share, str]] = {
    Share.EMBEDDING: "the embedding's lookup is counted as a product",
    Share.VECTORS: "gains, biases and positions are counted as matrices",
    Share.TWICE: "what is computed twice is counted twice",
    Share.PADDING: "padding and pairs that the mask throws away are counted",
}
_OWN_REASONS: Final[dict[tuple[ConventionId, Share], str]] = {
    (ConventionId.MODEL_MASKED, Share.SCORES): "only the pairs that the mask leaves are counted",
    (ConventionId.MEGATRON, Share.SCORES): "half of the row's square is counted, whatever the mask",
    (
        ConventionId.MEGATRON_2021,
        Share.ATTENTION,
    ): "every head is taken to have keys of its own, d wide in all",
    (
        ConventionId.MEGATRON_2021,
        Share.FEED_FORWARD,
    ): "the feed-forward is taken to be 4 d wide, without a gate",
}


def _explain(name: ConventionId, share: Share, counted: int, more: int) -> str:
    """Why a convention's share differs from that of `model`."""
    reason = _REASONS.get(share) or (_OWN_REASONS.get((name, share)) if counted else None)
    if counted == 0 and (name, share) == (ConventionId.TORCHTITAN, Share.HEAD):
        return "a tied head is taken off with the embedding's table"
    if reason is None and counted == 0:
        return f"the {share} are left out" if share.endswith("s") else f"the {share} is left out"
    if reason is None and share is Share.SCORES:
        return "the row's square is counted" if more > 0 else "heads are taken to be d wide in all"
    if reason is None and (name, share) == (ConventionId.NANOGPT, Share.FEED_FORWARD):
        return "every expert is counted, as if it learned"
    return reason or "every matrix is counted as if it learned"
