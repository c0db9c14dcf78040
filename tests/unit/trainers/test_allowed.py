"""The allow-list's sizes; what it refuses by key stands with the configuration's tests."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.trainers.allowed import check_allowed, count_state_bytes, count_tensor_bytes
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.parameters import list_parameters

Make = Callable[..., RunConfig]


def test_state_is_weights_gradients_and_moments(make_run: Make) -> None:
    run = make_run()
    size = sum(parameter.size for parameter in list_parameters(run.model))
    assert count_state_bytes(run) == 4 * 4 * size
    assert count_state_bytes(make_run(optimizer__name="sgd")) == 4 * 2 * size
    assert count_state_bytes(make_run(training__precision="bf16-weights")) == 2 * 4 * size
    assert count_state_bytes(make_run(training__processes=2)) == 4 * 5 * size


def test_frozen_weights_have_no_gradients(make_run: Make) -> None:
    run = make_run(model__frozen_layers=2)
    table = list_parameters(run.model)
    frozen = sum(parameter.size for parameter in table if parameter.is_frozen)
    learning = sum(parameter.size for parameter in table if not parameter.is_frozen)
    assert count_state_bytes(run) == 4 * (frozen + 4 * learning)


def test_the_largest_result_is_logits_hidden_or_kept_scores(make_run: Make) -> None:
    assert count_tensor_bytes(make_run()) == 4 * 4 * 8 * 32
    assert count_tensor_bytes(make_run(model__d_ff=100)) == 4 * 4 * 8 * 100
    kept = make_run(training__attention="unfused", model__sequence=64)
    assert count_tensor_bytes(kept) == 4 * 4 * 64 * 2 * 64


def test_without_a_file_the_key_stands_alone(make_run: Make) -> None:
    run = make_run()
    check_allowed(run)
    with pytest.raises(DecodeError, match=r"^model\.layers: not trained here"):
        check_allowed(replace(run, model=replace(run.model, layers=2_000)))
