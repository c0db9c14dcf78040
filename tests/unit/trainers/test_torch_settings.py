"""PyTorch's globals: as declared during a run, as before after it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from flopwitness.foundation.errors import SourceUnavailableError
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.execution import AttentionBackend, Execution
from flopwitness.trainers.torch_settings import choose_device, hold_settings
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]


def _read() -> tuple[object, ...]:
    return (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.get_deterministic_debug_mode(),
        torch.get_float32_matmul_precision(),
        torch.backends.mkldnn.enabled,
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
        torch.is_grad_enabled(),
        torch.initial_seed(),
        bool((torch.get_rng_state() == STATE).all()),
    )


STATE = torch.get_rng_state()


@pytest.fixture(autouse=True)
def odd_globals() -> Iterator[None]:
    """Settings that no run declares, so that putting them back can be seen."""
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    torch.set_default_dtype(torch.float64)
    torch.set_float32_matmul_precision("medium")
    torch.set_rng_state(STATE)
    yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")


def test_settings_are_as_declared_and_put_back(make_run: Make) -> None:
    run, before = make_run(training__threads=2), _read()
    execution = replace(Execution.declared(run), has_onednn=False, attention=AttentionBackend.MATH)
    with torch.no_grad(), hold_settings(run, execution):
        assert _read()[:8] == (2, torch.float32, 2, "highest", False, False, True, True)
    assert _read() == before


def test_settings_are_put_back_after_a_failure(make_run: Make) -> None:
    run, before = make_run(), _read()
    with pytest.raises(RuntimeError, match="odd"), hold_settings(run, Execution.declared(run)):
        raise RuntimeError("odd")
    assert _read() == before


@pytest.mark.parametrize("precision", ["fp32", "bf16", "bf16-weights"])
def test_training_leaves_no_trace(
    make_run: Make, make_trainer: Callable[..., Trainer], precision: str
) -> None:
    before = _read()
    run = make_run(training__precision=precision, model__dropout=0.2)
    make_trainer(run).train(stop=3)
    assert _read() == before


def test_the_cpu_is_always_there(make_run: Make) -> None:
    assert choose_device(make_run(), rank=5) == torch.device("cpu")


def test_a_device_that_is_not_there_is_refused(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(training__device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SourceUnavailableError, match=r"training\.device"):
        choose_device(run)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device(run, rank=1) == torch.device("cuda", 1)
    with pytest.raises(SourceUnavailableError, match="expected 3 CUDA devices; found 2"):
        choose_device(run, rank=2)
