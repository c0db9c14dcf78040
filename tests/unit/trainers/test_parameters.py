"""The table of parameters, and initial weights whose bits are the same on every machine."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flopwitness.counting.model import Part
from flopwitness.counting.parameters import count_parameters
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.parameters import INITIAL_SD, initial_values, list_parameters
from flopwitness.trainers.randomness import Randomness, derive_root

Make = Callable[..., RunConfig]

SHAPES: list[dict[str, Any]] = [
    {},
    {"model__tied": True},
    {"model__kv_heads": 1},
    {"model__feed_forward": "swiglu"},
    {"model__norm": "rms", "model__bias": False},
    {"model__positions": "rotary"},
    {"model__positions": "none", "model__final_norm": False},
    {"model__embedding_norm": True, "model__frozen": ["norm"]},
    {"model__frozen_layers": 1, "model__frozen": ["embedding"]},
    {"model__frozen": ["attention", "feed_forward"]},
]

GOLDEN = "b578e8ac2933716db7fb557f32a13f8dd56db81b988662f9d44a9af4a1329d79"


def _digest(run: RunConfig) -> str:
    randomness = Randomness(derive_root(run.seed))
    digest = hashlib.sha256()
    for parameter in list_parameters(run.model):
        digest.update(parameter.name.encode())
        digest.update(initial_values(parameter, randomness).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("changes", SHAPES)
def test_the_table_has_as_many_numbers_as_are_counted(make_run: Make, changes: dict[str, Any]) -> None:
    model = make_run(**changes).model
    table = list_parameters(model)
    counted = count_parameters(model)
    assert sum(parameter.size for parameter in table) == counted.total
    assert sum(parameter.size for parameter in table if not parameter.is_frozen) == counted.learning
    assert len({parameter.name for parameter in table}) == len(table)


@pytest.mark.parametrize("changes", SHAPES)
def test_no_key_has_a_bias(make_run: Make, changes: dict[str, Any]) -> None:
    names = {parameter.name for parameter in list_parameters(make_run(**changes).model)}
    assert not any(name.endswith("key.bias") for name in names)
    assert "layers.0.key.weight" in names


def test_matrices_decay_and_vectors_do_not(make_run: Make) -> None:
    for parameter in list_parameters(make_run().model):
        is_vector = parameter.name.endswith((".bias", ".gain"))
        assert parameter.has_decay is not is_vector


def test_initial_values_are_those_of_their_kind(make_run: Make) -> None:
    run = make_run(model__d_model=64, model__heads=2, model__d_ff=256)
    randomness = Randomness(derive_root(run.seed))
    for parameter in list_parameters(run.model):
        values = initial_values(parameter, randomness)
        assert values.shape == parameter.shape
        if parameter.name.endswith(".gain"):
            assert (values == 1).all()
        elif parameter.name.endswith(".bias"):
            assert (values == 0).all()
        else:
            assert abs(values.std() / parameter.initial_sd - 1) < 0.1
    writes = {p.initial_sd for p in list_parameters(run.model) if p.name.endswith("down.weight")}
    assert writes == {INITIAL_SD / 2}


def test_initial_weights_of_a_known_run_do_not_change(make_run: Make) -> None:
    assert _digest(make_run()) == GOLDEN


def test_another_instruction_set_gives_the_same_initial_weights(config_bytes: Callable[..., bytes]) -> None:
    code = (
        "import hashlib, sys\n"
        "from flopwitness.trainers.config_file import decode_run\n"
        "from flopwitness.trainers.prepared import prepare_run\n"
        "from flopwitness.trainers.state import initial_state\n"
        "from pathlib import Path\n"
        "run = decode_run(sys.stdin.buffer.read())\n"
        "state = initial_state(run, prepare_run(run, folder=Path()).randomness)\n"
        "digest = hashlib.sha256()\n"
        "for name, tensor in state.weights.items():\n"
        "    digest.update(name.encode() + tensor.numpy().tobytes())\n"
        "print(digest.hexdigest())\n"
    )
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=config_bytes(), capture_output=True, env=environment, check=True
    )
    assert done.stdout.decode().strip() == GOLDEN


def test_a_parameter_starts_by_its_name_alone(make_run: Make) -> None:
    randomness = Randomness(derive_root(1))
    small, large = (list_parameters(make_run(model__layers=layers).model) for layers in (2, 3))
    name = "layers.1.query.weight"
    one, other = (
        initial_values(next(p for p in table if p.name == name), randomness) for table in (small, large)
    )
    assert np.array_equal(one, other)


def test_every_parameter_belongs_to_a_part(make_run: Make) -> None:
    parts = {parameter.part for parameter in list_parameters(make_run().model)}
    assert parts == set(Part)
