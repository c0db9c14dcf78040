"""Compiled code is counted uncompiled, or told where it cannot be."""

# mypy: disable-error-code="no-untyped-call"

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from flopwitness.integrations.hidden_code import (
    BACKWARD_CALL,
    ENTRIES,
    FAKE_MODE,
    SCRIPT_CALLS,
    watch_compiled_calls,
    watch_hidden_code,
)
from flopwitness.integrations.operation_count import OperationCount

Count = Callable[..., OperationCount]
LAYER = 2 * 3 * 4 * 5

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU())


@pytest.fixture
def rows() -> Tensor:
    return torch.ones(3, 4)


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> None:
    torch._dynamo.reset()


def _node(result: Tensor) -> str:
    assert result.grad_fn is not None
    return result.grad_fn.name()


def test_a_compiled_module_counts_like_a_plain_one(count: Count, model: nn.Module, rows: Tensor) -> None:
    compiled = torch.compile(model, backend="aot_eager")
    fresh = count(lambda: compiled(rows).sum().backward())
    compiled(rows).sum().backward()
    again = count(lambda: compiled(rows).sum().backward())
    plain = count(lambda: model(rows).sum().backward())
    assert fresh.work == again.work == plain.work
    assert fresh.by_module == again.by_module == plain.by_module
    assert fresh.is_complete
    assert again.is_complete
    assert [note.kind for note in again.notes] == ["compiled-run-eager"]
    assert plain.notes == ()


def test_counting_does_not_spoil_the_compiled_form(count: Count, model: nn.Module, rows: Tensor) -> None:
    compiled = torch.compile(model, backend="aot_eager")
    count(lambda: compiled(rows))
    assert _node(compiled(rows)) == "CompiledFunctionBackward"
    count(lambda: compiled(rows))
    assert _node(compiled(rows)) == "CompiledFunctionBackward"


def test_a_compiled_function_is_noticed(count: Count, rows: Tensor) -> None:
    compiled = torch.compile(lambda x: x @ x.t(), backend="aot_eager")
    counted = count(lambda: compiled(rows))
    assert counted.executed_flop == 2 * 3 * 4 * 3
    assert [note.kind for note in counted.notes] == ["compiled-run-eager"]


def test_backward_of_what_was_compiled_outside_is_told(count: Count, model: nn.Module, rows: Tensor) -> None:
    loss = torch.compile(model, backend="aot_eager")(rows).sum()
    counted = count(loss.backward)
    assert [row.name for row in counted.unrecognised] == ["torch.compile: code compiled before"]
    assert not counted.is_complete


def test_a_stance_taken_inside_is_told(count: Count, model: nn.Module, rows: Tensor) -> None:
    """Somebody who compiles in spite of the counter gets no silent zero."""
    compiled = torch.compile(model, backend="aot_eager")
    loss = compiled(rows).sum()

    def work() -> None:
        with torch.compiler.set_stance("default"):
            loss.backward()

    assert not count(work).is_complete


@pytest.mark.slow
def test_native_kernels_are_told(count: Count, model: nn.Module, rows: Tensor) -> None:
    compiled = torch.compile(model)
    try:
        loss = compiled(rows).sum()
    except RuntimeError as error:  # no C++ compiler, or one called wrongly where a path has a space
        pytest.skip(f"PyTorch's compiler does not work here: {str(error).splitlines()[0]}")
    assert not count(loss.backward).is_complete
    counted = count(lambda: compiled(rows).sum().backward())
    assert counted.work.forward_flop == LAYER
    assert counted.is_complete


def test_calls_of_watched_code_are_noted_and_the_watch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Triton, which has no CPU form."""
    module = ModuleType("triton.runtime.jit")

    class JITFunction:
        def run(self, x: Tensor, *, grid: int) -> str:
            return f"ran {grid}"

    module.JITFunction = JITFunction  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", module)
    original, noted = JITFunction.run, list[tuple[str, int]]()
    with watch_hidden_code(lambda name, touched: noted.append((name, len(touched)))):
        assert JITFunction().run(torch.ones(2), grid=3) == "ran 3"
    assert noted == [("triton: kernel", 4)]
    assert JITFunction.run is original
    JITFunction().run(torch.ones(2), grid=3)
    assert len(noted) == 1


def test_the_watch_ends_also_after_an_exception() -> None:
    module = sys.modules["torch._functorch._aot_autograd.runtime_wrappers"]
    original = module.call_func_at_runtime_with_args

    def failing() -> None:
        with watch_hidden_code(lambda *_: None):
            assert module.call_func_at_runtime_with_args is not original
            raise KeyError("work")

    with pytest.raises(KeyError):
        failing()
    assert module.call_func_at_runtime_with_args is original


def test_modules_that_are_not_loaded_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, _, _ in ENTRIES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(sys.modules, "torch._dynamo.eval_frame", raising=False)
    with watch_hidden_code(lambda *_: None), watch_compiled_calls(lambda: None):
        assert not {name for name, _, _ in ENTRIES} & sys.modules.keys()


def test_every_watched_entry_of_this_pytorch_exists() -> None:
    """A renamed entry would be watched in vain."""
    importlib.import_module("torch._inductor.runtime.triton_heuristics")  # loads the compiler
    for module_name, path, _ in (*ENTRIES, *SCRIPT_CALLS, (*FAKE_MODE, ""), (*BACKWARD_CALL, "")):
        if module_name.startswith("torch") and "Cuda" not in path:
            owner: object = sys.modules[module_name]
            for step in path.split("."):
                owner = getattr(owner, step)
            assert callable(owner)


def test_a_module_that_is_loaded_while_counting_is_told(
    monkeypatch: pytest.MonkeyPatch, count: Count
) -> None:
    monkeypatch.delitem(sys.modules, "triton.runtime.jit", raising=False)

    def work() -> None:
        monkeypatch.setitem(sys.modules, "triton.runtime.jit", ModuleType("triton.runtime.jit"))

    counted = count(work)
    assert [row.name for row in counted.unrecognised] == ["triton: kernel"]
    assert "loaded while counting" in counted.unrecognised[0].explanation
    assert count(lambda: None).unrecognised == ()


def test_packaged_models_are_told(monkeypatch: pytest.MonkeyPatch, count: Count) -> None:
    loader = type("Loader", (), {"run": lambda _self, rows: rows})
    monkeypatch.setattr(torch._C._aoti, "AOTIModelPackageLoader", loader)
    counted = count(lambda: loader().run([torch.ones(3)]))
    assert [(row.name, row.volume) for row in counted.unrecognised] == [("AOTInductor: packaged model", 6)]


def test_fused_torchscript_is_told_and_plain_is_counted(count: Count) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Linear(6, 4)).eval()
    image = torch.ones(1, 3, 8, 8)
    scripted = torch.jit.script(model)
    fused = torch.jit.optimize_for_inference(scripted)
    with torch.no_grad():
        told, plain, eager = (count(lambda m=m: m(image)) for m in (fused, scripted, model))
    assert "TorchScript: fused code" in [row.name for row in told.unrecognised]
    assert not told.is_complete
    assert plain.is_complete
    assert plain.work == eager.work


def test_a_traced_function_is_counted(count: Count) -> None:
    traced = torch.jit.trace(lambda x: torch.relu(x @ x.t()), torch.ones(3, 4))
    counted = count(lambda: traced(torch.ones(3, 4)))
    assert counted.executed_flop == 2 * 3 * 4 * 3
    assert counted.is_complete


def test_a_graph_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch, count: Count) -> None:
    traced = torch.jit.trace(lambda x: x + 1, torch.ones(3))
    monkeypatch.delattr(torch._C, "_last_executed_optimized_graph")
    assert not count(lambda: traced(torch.ones(3))).is_complete


def test_watched_methods_are_put_back(count: Count) -> None:
    owner = torch._C.ScriptMethod
    before = vars(owner)["__call__"]
    count(lambda: None)
    assert vars(owner)["__call__"] is before
