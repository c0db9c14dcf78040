"""Declared runs that are small enough to be trained many times."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.trainer import Trainer

BASE: Final[dict[str, Any]] = {
    "spec": "flopwitness/run/v1",
    "model": {
        "kind": "decoder",
        "layers": 2,
        "d_model": 16,
        "heads": 2,
        "d_ff": 32,
        "sequence": 8,
        "vocabulary": 32,
    },
    "training": {
        "batch": 4,
        "steps": 24,
        "seed": 7,
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
    },
    "optimizer": {"name": "adamw", "learning_rate": 0.01},
    "data": {"kind": "random", "rows": 12},
}

DROP: Final = object()
"""A value that takes its key away."""


def make_table(changes: dict[str, Any]) -> dict[str, Any]:
    """The base with values put in by their dotted keys, such as `{"model.layers": 1}`."""
    table = copy.deepcopy(BASE)
    for path, value in changes.items():
        *above, key = path.split(".")
        inner = table
        for name in above:
            inner = inner.setdefault(name, {})
        if value is DROP:
            inner.pop(key, None)
        else:
            inner[key] = value
    return table


def write_toml(table: dict[str, Any]) -> str:
    """A table of tables as TOML."""
    plain = [f"{key} = {write_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    inner = [(key, value) for key, value in table.items() if isinstance(value, dict)]
    for name, values in inner:
        plain.append(f"[{name}]")
        plain += [f"{key} = {write_value(value)}" for key, value in values.items()]
    return "\n".join(plain) + "\n"


def write_value(value: object) -> str:
    """A value as TOML; a table in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(write_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {write_value(item)}" for key, item in value.items()) + "}"
    return repr(value)


def toml(**changes: Any) -> bytes:  # noqa: ANN401 (any value of TOML)
    """The base with changes, `__` in place of the dot."""
    return write_toml(make_table({key.replace("__", "."): value for key, value in changes.items()})).encode()


@pytest.fixture(scope="session")
def config_bytes() -> Callable[..., bytes]:
    """A function that gives a small configuration with some keys changed: `model__layers=1`."""
    return toml


@pytest.fixture(scope="session")
def make_run() -> Callable[..., RunConfig]:
    """The same, decoded."""

    def make(**changes: Any) -> RunConfig:  # noqa: ANN401
        return decode_run(toml(**changes), where="run.toml")

    return make


@pytest.fixture(scope="session")
def make_trainer() -> Callable[..., Trainer]:
    """A function that sets up a trainer for a run."""

    def make(run: RunConfig, **settings: Any) -> Trainer:  # noqa: ANN401
        prepared = prepare_run(run, folder=Path())
        return Trainer(run, prepared.source, prepared.randomness, **settings)

    return make


@pytest.fixture(scope="session")
def drop() -> object:
    """The value that takes a key away."""
    return DROP
