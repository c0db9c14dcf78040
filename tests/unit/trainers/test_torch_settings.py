"""PyTorch's globals: as declared during a run, as before after it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from flopwitness.foundation.errors import SourceUnavailableError
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.execution import AttentionBackend, Execution
from flopwitness.trainers.torch_settings import choose_device, hold_settings
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]
MKLDNN: Any = torch.backends.mkldnn
CUDNN: Any = torch.backends.cudnn


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
        *(torch.is_autocast_enabled(device) for device in ("cpu", "cuda")),
        *_products(),
        torch.initial_seed(),
        bool((torch.get_rng_state() == STATE).all()),
    )


def _products() -> list[str]:
    owners: tuple[Any, ...] = (
        torch.backends,
        torch.backends.cudnn,
        torch.backends.mkldnn,
        torch.backends.cuda.matmul,
        MKLDNN.matmul,
        CUDNN.conv,
        MKLDNN.conv,
    )
    return [owner.fp32_precision for owner in owners]


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
    torch.backends.cuda.matmul.fp32_precision = "none"
    MKLDNN.matmul.fp32_precision = "none"


@pytest.mark.parametrize(
    ("level", "value"),
    [
        (("mkldnn", "matmul"), "bf16"),
        (("mkldnn", "matmul"), "none"),
        (("cuda", "matmul"), "tf32"),
        (("cuda", "matmul"), "none"),
        (("mkldnn", "all"), "tf32"),
        (("cuda", "all"), "tf32"),
        (("generic", "all"), "tf32"),
        (("generic", "all"), "bf16"),
    ],
)
@pytest.mark.parametrize("older", ["highest", "high", "medium"])
def test_every_precision_of_products_is_held_and_put_back(
    make_run: Make, older: str, level: tuple[str, str], value: str
) -> None:
    run = make_run()
    torch.set_float32_matmul_precision(older)
    for inner in ("cuda", "mkldnn"):
        torch._C._set_fp32_precision_setter(inner, "matmul", "none")
    torch._C._set_fp32_precision_setter(*level, value)
    try:
        before = _products()
        with hold_settings(run, Execution.declared(run)):
            assert torch.get_float32_matmul_precision() == "highest"
            assert _products()[3:5] == ["ieee", "ieee"]
        assert _products() == before
    finally:
        torch._C._set_fp32_precision_setter(*level, "none")
    assert torch.get_float32_matmul_precision() == older
    assert _products()[:5] == ["none"] * 5


def test_settings_are_as_declared_and_put_back(make_run: Make) -> None:
    run, before = make_run(training__threads=2), _read()
    execution = replace(Execution.declared(run), has_onednn=False, attention=AttentionBackend.MATH)
    with torch.no_grad(), hold_settings(run, execution):
        assert _read()[:10] == (2, torch.float32, 2, "highest", False, False, True, True, False, False)
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
