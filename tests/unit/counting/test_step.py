import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from campaigns.counted_records import RECORDS, describe_row

from flopwitness.counting.gradients import Component
from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Part,
    Positions,
    Projection,
)
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.step import StepCount, count_step
from flopwitness.counting.training import (
    AttentionKernel,
    Checkpointing,
    Masking,
    OptimizerKind,
    Training,
)

Make = Callable[..., Model]
ONE = Training(batch=1)

# The small decoder: 2 layers, d = 8, d_ff = 32, 16 tokens, 50 words.
PROJECTIONS = 2 * 16 * (4 * 8 * 8)
SCORES = 2 * 2 * 16 * 16 * 8
FEED = 2 * 16 * (2 * 8 * 32)
HEAD = 2 * 16 * 8 * 50
FORWARD = 2 * (PROJECTIONS + SCORES + FEED) + HEAD


def flop_of(step: StepCount, component: Component) -> int:
    return step.components[component].flop


def test_where_everything_learns_a_step_is_three_forward_passes(decoder: Make) -> None:
    step = count_step(decoder(), ONE)
    assert step.forward_flop == FORWARD
    assert step.backward_flop == 2 * FORWARD
    assert step.model_flop == 3 * FORWARD
    assert step.tokens == step.executed_tokens == 16
    assert {component: count.forward_flop for component, count in step.components.items()} == {
        Component.ATTENTION: 2 * PROJECTIONS,
        Component.SCORES: 2 * SCORES,
        Component.FEED_FORWARD: 2 * FEED,
        Component.HEAD: HEAD,
    }


def test_rows_multiply(decoder: Make) -> None:
    step = count_step(decoder(), Training(batch=3, accumulation=5, processes=2, steps=7))
    assert step.model_flop == 30 * 3 * FORWARD
    assert step.tokens == 30 * 16


def test_a_fused_kernel_computes_its_scores_again(decoder: Make) -> None:
    fused = count_step(decoder(), ONE)
    assert fused.again_flop == 2 * (SCORES // 2)
    assert fused.executed_flop == fused.model_flop + fused.again_flop
    unfused = count_step(decoder(), Training(batch=1, kernel=AttentionKernel.UNFUSED))
    assert unfused.executed_flop == unfused.model_flop == fused.model_flop


@pytest.mark.parametrize(
    ("checkpointing", "again"),
    [
        (Checkpointing.NONE, 0),
        (Checkpointing.ATTENTION, 2 * SCORES),
        (Checkpointing.LAYERS, 2 * (PROJECTIONS + SCORES + FEED)),
    ],
)
def test_checkpointing_adds_to_what_is_executed_alone(
    decoder: Make, checkpointing: Checkpointing, again: int
) -> None:
    step = count_step(
        decoder(), Training(batch=1, checkpointing=checkpointing, kernel=AttentionKernel.UNFUSED)
    )
    assert step.recomputed_flop == again
    assert step.model_flop == 3 * FORWARD
    assert step.executed_flop == 3 * FORWARD + again


def test_a_layer_without_a_backward_pass_is_not_run_again(decoder: Make) -> None:
    model = decoder(frozen=frozenset({Part.EMBEDDING}), frozen_layers=1)
    step = count_step(model, Training(batch=1, checkpointing=Checkpointing.LAYERS))
    assert step.recomputed_flop == PROJECTIONS + SCORES + FEED


def test_causal_attention_is_counted_in_full_and_with_its_mask(decoder: Make) -> None:
    step = count_step(decoder(), ONE)
    pairs_left_out = 16 * 16 - 16 * 17 // 2
    assert step.model_flop - step.causal_flop == 2 * 3 * 2 * 2 * pairs_left_out * 8
    encoder = count_step(decoder(kind=ModelKind.ENCODER), ONE)
    assert encoder.causal_flop == encoder.model_flop == step.model_flop


def test_grouped_queries_take_fewer_projections_and_the_same_scores(decoder: Make) -> None:
    step = count_step(decoder(kv_heads=2), ONE)
    assert step.components[Component.ATTENTION].forward_flop == 2 * 2 * 16 * (2 * 8 * 8 + 2 * 8 * 4)
    assert step.components[Component.SCORES].forward_flop == 2 * SCORES


def test_heads_need_not_be_as_wide_as_the_model(decoder: Make) -> None:
    step = count_step(decoder(head_dim=5), ONE)
    assert step.components[Component.ATTENTION].forward_flop == 2 * 2 * 16 * (4 * 8 * 20)
    assert step.components[Component.SCORES].forward_flop == 2 * 2 * 2 * 256 * 20


def test_a_window_bounds_the_keys_of_the_layers_that_have_it(decoder: Make) -> None:
    step = count_step(decoder(window=4, window_layers=1), ONE)
    assert step.components[Component.SCORES].forward_flop == SCORES + SCORES * 4 // 16
    left = (10 + 12 * 4) + 16 * 17 // 2
    assert step.model_flop - step.causal_flop == 3 * 2 * 2 * 8 * (16 * 4 + 256 - left)


def test_a_gated_feed_forward_has_three_matrices(decoder: Make) -> None:
    step = count_step(decoder(feed_forward=FeedForward.SWIGLU), ONE)
    assert step.components[Component.FEED_FORWARD].forward_flop == 2 * FEED * 3 // 2


def test_a_tied_head_costs_what_a_free_one_does(decoder: Make) -> None:
    assert count_step(decoder(is_tied=True), ONE).model_flop == 3 * FORWARD


def test_features_need_no_gradient_below_the_first_projection(decoder: Make) -> None:
    features = {"inputs": ModelInput.FEATURES, "vocabulary": 0, "positions": Positions.NONE}
    first = 2 * 16 * 3 * 8 * 8
    step = count_step(decoder(**features, is_pre_norm=False), ONE)
    assert step.model_flop == 3 * FORWARD - first
    normed = count_step(decoder(**features, is_pre_norm=True), ONE)
    assert normed.model_flop == 3 * FORWARD  # the first norm's gain learns
    frozen_norms = count_step(decoder(**features, frozen=frozenset({Part.NORM})), ONE)
    assert frozen_norms.model_flop == 3 * FORWARD - first


def test_a_frozen_matrix_still_passes_gradients_down(decoder: Make) -> None:
    step = count_step(decoder(frozen=frozenset({Part.FEED_FORWARD})), ONE)
    assert flop_of(step, Component.FEED_FORWARD) == 2 * 2 * FEED
    assert flop_of(step, Component.ATTENTION) == 3 * 2 * PROJECTIONS


def test_below_what_learns_there_is_no_backward_pass(decoder: Make) -> None:
    model = decoder(frozen=frozenset({Part.EMBEDDING}), frozen_layers=2)
    step = count_step(model, ONE)
    assert step.backward_flop == 2 * HEAD  # its matrix, and the final norm below it
    all_but_head = decoder(frozen=frozenset(Part) - {Part.HEAD}, frozen_layers=2)
    assert count_step(all_but_head, ONE).backward_flop == HEAD
    nothing = decoder(frozen=frozenset(Part))
    assert count_step(nothing, ONE).backward_flop == 0
    assert count_step(nothing, ONE).again_flop == 0


def test_a_tied_head_learns_where_the_embedding_does(decoder: Make) -> None:
    frozen = frozenset(Part) - {Part.HEAD}
    assert count_step(decoder(frozen=frozen, is_tied=True), ONE).backward_flop == 0


def test_adapters_learn_and_their_matrices_do_not(decoder: Make) -> None:
    model = decoder(layers=1, lora=Lora(rank=3, on=frozenset({Projection.QUERY, Projection.VALUE})))
    step = count_step(model, ONE)
    down, up = 2 * 16 * 8 * 3, 2 * 16 * 3 * 8
    # Below the first layer nothing learns: no input gradient for Q, K, V or for the adapters' first half.
    assert flop_of(step, Component.ADAPTERS) == 2 * ((down + up) + down + 2 * up)
    output = PROJECTIONS // 4
    assert flop_of(step, Component.ATTENTION) == PROJECTIONS + output
    # K does not learn: the weights' gradient, Q's and V's.
    assert flop_of(step, Component.SCORES) == SCORES + 3 * SCORES // 2
    assert flop_of(step, Component.FEED_FORWARD) == 2 * FEED
    assert flop_of(step, Component.HEAD) == 2 * HEAD


def test_experts_cost_what_a_token_visits(decoder: Make) -> None:
    experts = Experts(count=6, active=2, shared=1, d_ff=10, shared_d_ff=12)
    step = count_step(decoder(experts=experts), ONE)
    one, shared, router = 2 * 16 * 2 * 8 * 10, 2 * 16 * 2 * 8 * 12, 2 * 16 * 8 * 6
    assert flop_of(step, Component.FEED_FORWARD) == 3 * 2 * (2 * one + shared)
    assert flop_of(step, Component.ROUTER) == 3 * 2 * router


def test_case_h17_moe_active_experts(decoder: Make, cases: Path) -> None:
    folder = cases / "h17_moe_active_experts"
    config = json.loads((folder / "config.json").read_text())
    case = json.loads((folder / "expected.json").read_text())
    expect, wrong = case["expect"], case["wrong_answers"]
    experts = Experts(
        count=config["experts"],
        active=config["top_k"],
        shared=config["shared_experts"],
        d_ff=config["expert_ffn"],
        shared_d_ff=config["expert_ffn"],
    )
    model = decoder(
        layers=config["layers"],
        d_model=config["hidden"],
        feed_forward=FeedForward.SWIGLU,
        experts=experts,
        sequence=1000,
    )
    step = count_step(model, Training(batch=config["tokens"] // 1000))
    parts = [step.components[component] for component in (Component.FEED_FORWARD, Component.ROUTER)]
    total = sum(part.flop for part in parts)
    assert sum(part.forward_flop for part in parts) == expect["forward_flops_per_token"] * config["tokens"]
    assert total == expect["train_flops_total"]
    assert total == expect["train_flops_per_token"] * config["tokens"]
    assert total not in wrong.values()
    parameters = count_parameters(model)
    stored, active = (
        sum(count for group, count in groups.items() if group in ("feed_forward", "router"))
        for groups in (parameters.stored, parameters.active)
    )
    assert stored == expect["total_ffn_params"]
    assert active == expect["active_ffn_params"]


def test_packed_documents_cost_their_own_squares(decoder: Make) -> None:
    packed = count_step(decoder(), Training(batch=1, documents=(10, 6)))
    assert packed.components[Component.SCORES].forward_flop == 2 * 2 * 2 * (100 + 36) * 8
    assert packed.tokens == packed.executed_tokens == 16
    assert packed.padding_flop == 0


def test_a_dense_kernel_computes_padding_and_other_documents(decoder: Make) -> None:
    training = Training(batch=1, documents=(6, 3), masking=Masking.DENSE, kernel=AttentionKernel.UNFUSED)
    step = count_step(decoder(), training)
    assert (step.tokens, step.executed_tokens) == (9, 16)
    assert step.executed_flop == 3 * FORWARD
    useful = FORWARD - HEAD - 2 * SCORES
    assert step.model_flop == 3 * ((useful + HEAD) * 9 // 16 + 2 * 2 * 2 * (36 + 9) * 8)
    assert step.padding_flop == step.executed_flop - step.model_flop


def test_a_dense_kernel_computes_what_lies_beyond_a_window(decoder: Make) -> None:
    training = Training(batch=1, masking=Masking.DENSE, kernel=AttentionKernel.UNFUSED)
    step = count_step(decoder(window=4, window_layers=1), training)
    assert step.executed_flop == 3 * FORWARD
    assert step.padding_flop == 3 * (SCORES - SCORES * 4 // 16)


@pytest.mark.parametrize(
    ("training", "operations"),
    [
        (Training(batch=1), 13),
        (Training(batch=1, has_decay=True), 14),
        (Training(batch=1, optimizer=OptimizerKind.SGD), 2),
        (Training(batch=1, optimizer=OptimizerKind.SGD, has_momentum=True), 4),
        (Training(batch=1, optimizer=OptimizerKind.SGD, has_momentum=True, has_decay=True), 6),
    ],
)
def test_an_update_takes_so_many_operations_a_parameter(
    decoder: Make, training: Training, operations: int
) -> None:
    model = decoder(frozen=frozenset({Part.EMBEDDING}))
    step = count_step(model, training)
    assert step.optimizer_flop == operations * count_parameters(model).learning
    assert step.model_flop == count_step(model, ONE).model_flop


def test_counts_of_many_layers_are_exact(decoder: Make) -> None:
    deep = count_step(decoder(layers=10_000, d_model=2**20, head_dim=2**18, d_ff=2**22), ONE)
    per_layer = 2 * 16 * (4 * 2**40 + 2 * 2**42) + 2 * 2 * 256 * 2**20
    assert deep.forward_flop == 10_000 * per_layer + 2 * 16 * 2**20 * 50


# The public records: an encoder over random features, with a linear head, instrumented by its author.


@pytest.mark.shared_data
def test_every_recorded_run_is_counted_as_it_was_instrumented(shared_data: Path) -> None:
    rows = []
    for name in RECORDS:
        with (shared_data / "data" / name).open(newline="", encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    assert len(rows) == 38 + 26 + 26 + 91
    for row in rows:
        model, training = describe_row(row)
        step = count_step(model, training)
        flop = training.steps * step.executed_flop
        assert flop / 1e12 == pytest.approx(float(row["true_tflop"]), rel=1e-5), row["run_id"]
        d, d_ff, s = model.d_model, model.d_ff, model.sequence
        closed = model.layers * (24 * d * d + 12 * d * d_ff + 14 * s * d)
        assert flop == step.tokens * training.steps * closed, row["run_id"]
