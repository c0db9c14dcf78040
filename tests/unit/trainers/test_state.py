"""The state between two steps."""

from collections.abc import Callable

import torch

from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.loss_scale import LossScale
from flopwitness.trainers.randomness import Randomness, derive_root
from flopwitness.trainers.state import initial_state, list_moments, weight_type

Make = Callable[..., RunConfig]
RANDOMNESS = Randomness(derive_root(7))


def test_the_initial_state_is_a_function_of_run_and_root(make_run: Make) -> None:
    one, other = (initial_state(make_run(), RANDOMNESS) for _ in range(2))
    assert (one.step, one.updates, one.scale) == (0, 0, None)
    for (name, tensor), (other_name, other_tensor) in zip(one.buffers(), other.buffers(), strict=True):
        assert name == other_name
        assert torch.equal(tensor, other_tensor)
    assert all((tensor == 0).all() for tensor in one.moments.values())


def test_moments_stand_beside_what_learns(make_run: Make) -> None:
    run = make_run(model__frozen=["embedding"])
    names = list_moments(run)
    assert "first/head.weight" in names
    assert names["second/head.weight"] == (32, 16)
    assert not any("embedding" in name for name in names)
    assert not list_moments(make_run(optimizer__name="sgd"))


def test_only_fp16_scales_its_loss(make_run: Make) -> None:
    assert initial_state(make_run(training__precision="fp16"), RANDOMNESS).scale == LossScale()
    assert initial_state(make_run(training__precision="bf16"), RANDOMNESS).scale is None


def test_only_one_precision_has_short_weights(make_run: Make) -> None:
    types = {
        name: weight_type(make_run(training__precision=name)) for name in ("fp32", "bf16", "bf16-weights")
    }
    assert types == {"fp32": torch.float32, "bf16": torch.float32, "bf16-weights": torch.bfloat16}
    state = initial_state(make_run(training__precision="bf16-weights"), RANDOMNESS)
    assert {tensor.dtype for _, tensor in state.buffers()} == {torch.bfloat16}


def test_a_copy_has_tensors_of_its_own(make_run: Make) -> None:
    state = initial_state(make_run(), RANDOMNESS)
    copy = state.copy()
    state.weights["head.weight"].zero_()
    assert copy.weights["head.weight"].abs().sum() > 0
    assert (copy.step, copy.updates, copy.scale) == (0, 0, None)


def test_a_callers_inference_mode_and_default_device_do_not_reach_it(make_run: Make) -> None:
    with torch.inference_mode(), torch.device("meta"):
        state = initial_state(make_run(), RANDOMNESS)
    assert all(tensor.device.type == "cpu" for _, tensor in state.buffers())
    assert not any(tensor.is_inference() for _, tensor in state.buffers())
