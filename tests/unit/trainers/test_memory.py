from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flopwitness.foundation.errors import OutOfRangeError
from flopwitness.trainers.config import Device, RunConfig
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.memory import check_memory

TINY = Path(__file__).resolve().parents[3] / "examples" / "decoder_tiny.toml"


@pytest.fixture
def run() -> RunConfig:
    return decode_run(TINY.read_bytes())


def test_a_small_run_fits(run: RunConfig) -> None:
    check_memory(run)


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 1_000_000, "window": 8, "window_layers": 2},
        {"d_model": 1 << 20, "head_dim": 1 << 18},
        {"layers": 1 << 20},
        {"vocabulary": 1 << 34},
    ],
)
def test_a_model_larger_than_the_memory_is_refused(run: RunConfig, changes: dict[str, Any]) -> None:
    large = replace(run, model=replace(run.model, **changes))
    with pytest.raises(OutOfRangeError, match="does not fit this computer's memory"):
        check_memory(large)
    check_memory(replace(large, device=Device.CUDA))


def test_results_of_a_pass_count_and_so_does_every_process(run: RunConfig) -> None:
    with pytest.raises(OutOfRangeError, match="does not fit"):
        check_memory(replace(run, training=replace(run.training, batch=1 << 30)))
    with pytest.raises(OutOfRangeError, match="does not fit"):
        check_memory(replace(run, training=replace(run.training, processes=1 << 24)))
    with pytest.raises(OutOfRangeError, match="does not fit"):
        check_memory(replace(run, data=replace(run.data, rows=1 << 34)))
