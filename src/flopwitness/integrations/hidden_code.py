"""Code that runs operators where no dispatcher sees them: told, because it cannot be counted.

What torch.compile has made runs kernels of its own, as do Triton functions, packaged models and replayed
CUDA graphs, and what TorchScript has fused. While a counter is on, each of these entries is watched, if the
module that has it was loaded; a call of it is noted with the elements that it is given and gives, and makes
the count incomplete. So does a module with such an entry that was loaded meanwhile.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final

__all__ = [
    "BACKWARD_CALL",
    "COMPILED_CALL",
    "ENTRIES",
    "FAKE_MODE",
    "SCRIPT_CALLS",
    "watch_calls",
    "watch_compiled_calls",
    "watch_hidden_code",
    "watch_script_calls",
]

_PACKAGED: Final = "AOTInductor: packaged model"
ENTRIES: Final = (
    (
        "torch._functorch._aot_autograd.runtime_wrappers",
        "call_func_at_runtime_with_args",
        "torch.compile: code compiled before",
    ),
    ("torch._C", "_aoti.AOTIModelPackageLoader.run", _PACKAGED),
    ("torch._C", "_aoti.AOTIModelPackageLoader.boxed_run", _PACKAGED),
    ("torch._C", "_aoti.AOTIModelContainerRunnerCpu.run", _PACKAGED),
    ("torch._C", "_aoti.AOTIModelContainerRunnerCuda.run", _PACKAGED),
    ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner.run", "triton: compiled kernel"),
    ("triton.runtime.jit", "JITFunction.run", "triton: kernel"),
    ("torch.cuda.graphs", "CUDAGraph.replay", "torch.cuda: graph replay"),
)
"""Module, attribute and the name under which a call of it is told."""

COMPILED_CALL: Final = ("torch._dynamo.eval_frame", "_callback_from_stance")
"""What every call of a compiled function asks: whether to compile, given what would."""


BACKWARD_CALL: Final = ("torch.autograd", "_engine_run_backward")
"""What starts every backward pass that Python code asks for."""

FAKE_MODE: Final = ("torch._subclasses.fake_tensor", "FakeTensorMode.__enter__")
"""What makes tensors fake from here on."""

_SCRIPT: Final = "TorchScript: fused code"
SCRIPT_CALLS: Final = (
    ("torch._C", "ScriptMethod.__call__", _SCRIPT),
    ("torch._C", "ScriptFunction.__call__", _SCRIPT),
)
"""What runs a method or a function of TorchScript."""

_LATE: Final = "its module was loaded while counting: what it ran since cannot be seen"
_HIDING: Final = ("mkldnn", "MKLDNN", "Group")

Note = Callable[[str, tuple[object, ...]], None]


@contextmanager
def watch_compiled_calls(note: Callable[[], None]) -> Iterator[None]:
    """Call `note` whenever a function that torch.compile wraps is called, compiled or not; undone on leaving.

    Side effects:
        An attribute of the compiler's front is replaced for the time.
    """

    def told(_name: str, touched: tuple[object, ...]) -> None:
        if callable(touched[0]):
            note()

    with _watching([(*COMPILED_CALL, "")], told):
        yield


@contextmanager
def watch_calls(entry: tuple[str, str], note: Callable[[], None]) -> Iterator[None]:
    """Call `note` whenever the entry was called; undone on leaving.

    Side effects:
        The entry is replaced for the time.
    """
    with _watching([(*entry, "")], lambda _name, _touched: note()):
        yield


@contextmanager
def watch_hidden_code(note: Note, note_unseen: Callable[[str, str], None] | None = None) -> Iterator[None]:
    """Call `note` with a name and the values touched whenever hidden code runs; undone on leaving.

    Args:
        note: Given a name and the values touched.
        note_unseen: Given a name and a reason on leaving, where a module came too late to be watched.

    Side effects:
        Attributes of the watched modules are replaced for the time.
    """
    absent = {module for module, _, _ in ENTRIES if module not in sys.modules}
    with _watching(ENTRIES, note):
        yield
    for module, _, told in ENTRIES:
        if note_unseen is not None and module in absent and module in sys.modules:
            note_unseen(told, _LATE)


@contextmanager
def watch_script_calls(note: Note) -> Iterator[None]:
    """Call `note` when TorchScript ran a graph with fused parts, which no dispatcher sees.

    Side effects:
        Two methods of PyTorch's are replaced for the time.
    """

    def told(name: str, touched: tuple[object, ...]) -> None:
        if _hides_work():
            note(name, touched)

    with _watching(SCRIPT_CALLS, told):
        yield


def _hides_work() -> bool:
    """Whether the graph that TorchScript ran last has fused parts; one that cannot be read is taken to."""
    try:
        return _has_fused(sys.modules["torch._C"]._last_executed_optimized_graph())  # noqa: SLF001 (no public form)
    except (AttributeError, RuntimeError):
        return True


def _has_fused(block: Any) -> bool:  # noqa: ANN401 (a graph or a block of one, both PyTorch's own)
    for node in block.nodes():
        kind = node.kind()
        if kind.startswith("prim::") and any(part in kind for part in _HIDING):
            return True
        if any(map(_has_fused, node.blocks())):
            return True
    return False


@contextmanager
def _watching(entries: Iterable[tuple[str, str, str]], note: Note) -> Iterator[None]:
    undo: list[Callable[[], None]] = []
    try:
        for module_name, path, told in entries:
            owner, attribute = _owner(module_name, path)
            original = None if owner is None else getattr(owner, attribute, None)
            if owner is not None and callable(original):
                undo.append(_replace(owner, attribute, original, _watched(original, told, note)))
        yield
    finally:
        for restore in reversed(undo):
            restore()


def _owner(module_name: str, path: str) -> tuple[object | None, str]:
    """The loaded module or class that has the attribute; None where it was not loaded or lacks the class."""
    owner: object | None = sys.modules.get(module_name)
    *classes, attribute = path.split(".")
    for name in classes:
        owner = getattr(owner, name, None)
    return owner, attribute


def _replace(
    owner: object, attribute: str, original: Callable[..., object], replacement: Callable[..., object]
) -> Callable[[], None]:
    original = vars(owner).get(attribute, original)
    setattr(owner, attribute, replacement)
    return lambda: setattr(owner, attribute, original)


def _watched(original: Callable[..., object], told: str, note: Note) -> Callable[..., object]:
    @wraps(original)
    def watched(*args: object, **kwargs: object) -> object:
        touched = (*args, *kwargs.values())
        result = original(*args, **kwargs)
        note(told, (*touched, result))
        return result

    return watched
