"""The decoder: what it computes, against properties that hold whatever the weights are."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from flopwitness.counting.training import Checkpointing
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.decoder import Decoder
from flopwitness.trainers.dropout import Dropout
from flopwitness.trainers.randomness import Randomness, derive_root
from flopwitness.trainers.state import initial_state

Make = Callable[..., RunConfig]

RANDOMNESS = Randomness(derive_root(7))
NO_DROPOUT = Dropout(probability=0.0, randomness=RANDOMNESS, step=0, rank=0, index=0, batch=2)
CPU = torch.device("cpu")


def _logits(run: RunConfig, tokens: torch.Tensor, **weights: torch.Tensor) -> torch.Tensor:
    decoder = Decoder(run.model, checkpointing=Checkpointing.NONE, device=CPU)
    state = initial_state(run, RANDOMNESS)
    large = {name: weight * 10 if weight.dim() > 1 else weight for name, weight in state.weights.items()}
    return decoder.logits({**large, **weights}, tokens, dropout=NO_DROPOUT)


def _tokens() -> torch.Tensor:
    return torch.from_numpy(RANDOMNESS.below(32, 16, "test tokens")).view(2, 8)


KINDS: list[dict[str, Any]] = [
    {},
    {"model__feed_forward": "relu"},
    {"model__feed_forward": "swiglu", "model__norm": "rms", "model__bias": False},
    {"model__feed_forward": "geglu", "model__pre_norm": False},
    {"model__positions": "rotary", "model__kv_heads": 1},
    {"model__positions": "none", "model__final_norm": False, "model__embedding_norm": True},
    {"model__tied": True, "model__head_dim": 4},
    {"model__window": 3, "training__masking": "dense"},
]


@pytest.mark.parametrize("changes", KINDS)
def test_a_token_sees_nothing_that_comes_after_it(make_run: Make, changes: dict[str, Any]) -> None:
    run, tokens = make_run(**changes), _tokens()
    before = _logits(run, tokens)
    assert before.shape == (2, 8, 32)
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 32
    after = _logits(run, changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-4)


def test_a_window_ends_what_a_token_sees(make_run: Make) -> None:
    run, tokens = make_run(model__window=3, model__layers=1, training__masking="dense"), _tokens()
    changed = tokens.clone()
    changed[:, 2] = (changed[:, 2] + 1) % 32
    before, after = _logits(run, tokens), _logits(run, changed)
    assert not torch.allclose(before[:, 4], after[:, 4], atol=1e-4)
    assert torch.allclose(before[:, 5:], after[:, 5:], atol=1e-6)


def test_only_so_many_layers_have_the_window(make_run: Make) -> None:
    run, tokens = make_run(model__window=1, model__window_layers=1, training__masking="dense"), _tokens()
    changed = tokens.clone()
    changed[:, 0] = (changed[:, 0] + 1) % 32
    assert not torch.allclose(_logits(run, tokens)[:, -1], _logits(run, changed)[:, -1], atol=1e-4)


def test_rotary_positions_are_relative(make_run: Make) -> None:
    run = make_run(model__positions="rotary", model__layers=1, model__window=3, training__masking="dense")
    tokens = torch.tensor([[1, 2, 3, 9, 9, 1, 2, 3]])
    logits = _logits(run, tokens)
    torch.testing.assert_close(logits[:, 7], logits[:, 2], rtol=1e-4, atol=1e-4)
    ordered = _logits(run, torch.tensor([[2, 1, 3]]))
    assert not torch.allclose(ordered[:, 2], logits[:, 2], atol=1e-4)


def test_without_positions_the_past_has_no_order(make_run: Make) -> None:
    run = make_run(model__positions="none", model__layers=1)
    one, other = _logits(run, torch.tensor([[1, 2, 3]])), _logits(run, torch.tensor([[2, 1, 3]]))
    torch.testing.assert_close(one[:, 2], other[:, 2], rtol=1e-4, atol=1e-5)


def test_grouped_queries_share_their_keys(make_run: Make) -> None:
    grouped, full = make_run(model__kv_heads=1), make_run()
    weights = {
        name: weight * 10 if weight.dim() > 1 else weight
        for name, weight in initial_state(grouped, RANDOMNESS).weights.items()
    }
    repeated = {
        name: torch.cat((weight, weight)) if ".key." in name or ".value." in name else weight
        for name, weight in weights.items()
    }
    one, other = _logits(grouped, _tokens(), **weights), _logits(full, _tokens(), **repeated)
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_the_loss_is_that_of_the_next_token(make_run: Make) -> None:
    run = make_run()
    decoder = Decoder(run.model, checkpointing=Checkpointing.NONE, device=CPU)
    weights, row = initial_state(run, RANDOMNESS).weights, torch.arange(9).repeat(2, 1)
    loss = decoder.loss(weights, row, dropout=NO_DROPOUT)
    logits = decoder.logits(weights, row[:, :-1], dropout=NO_DROPOUT)
    chosen = logits.log_softmax(-1).gather(-1, row[:, 1:, None]).mean()
    assert loss.item() == pytest.approx(-chosen.item(), rel=1e-6)
    assert loss.item() == pytest.approx(math.log(32), abs=0.1)


def test_dropout_acts_at_every_place(make_run: Make) -> None:
    run = make_run(model__dropout=0.5)
    places = []

    class _Noting(Dropout):
        def drop(self, x_BTD: torch.Tensor, place: str) -> torch.Tensor:  # noqa: N803 (shapes in names)
            places.append(place)
            return super().drop(x_BTD, place)

    dropout = _Noting(probability=0.5, randomness=RANDOMNESS, step=0, rank=0, index=0, batch=2)
    decoder = Decoder(run.model, checkpointing=Checkpointing.NONE, device=CPU)
    decoder.logits(initial_state(run, RANDOMNESS).weights, _tokens(), dropout=dropout)
    expected = ["embedding"] + [
        f"layers.{i}.{name}" for i in range(2) for name in ("attention", "feed_forward")
    ]
    assert places == expected
