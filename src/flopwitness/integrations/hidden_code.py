"""Code that runs operators where no dispatcher sees them: told, because it cannot be counted.

What torch.compile has made runs kernels of its own, as do Triton functions, packaged models and replayed
CUDA graphs. While a counter is on, each of these entries is watched, if the module that has it was loaded;
a call of it is noted with the elements that it is given and gives, and makes the count incomplete.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final

__all__ = ["COMPILED_CALL", "ENTRIES", "watch_compiled_calls", "watch_hidden_code"]

ENTRIES: Final = (
    (
        "torch._functorch._aot_autograd.runtime_wrappers",
        "call_func_at_runtime_with_args",
        "torch.compile: code compiled before",
    ),
    ("torch.export.pt2_archive._package", "AOTICompiledModel.__call__", "torch.export: packaged model"),
    ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner.run", "triton: compiled kernel"),
    ("triton.runtime.jit", "JITFunction.run", "triton: kernel"),
    ("torch.cuda.graphs", "CUDAGraph.replay", "torch.cuda: graph replay"),
)
"""Module, attribute and the name under which a call of it is told."""

COMPILED_CALL: Final = ("torch._dynamo.eval_frame", "_callback_from_stance")
"""What every call of a compiled function asks: whether to compile, given what would."""


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
def watch_hidden_code(note: Callable[[str, tuple[object, ...]], None]) -> Iterator[None]:
    """Call `note` with a name and the values touched whenever hidden code runs; undone on leaving.

    Side effects:
        Attributes of the watched modules are replaced for the time.
    """
    with _watching(ENTRIES, note):
        yield


@contextmanager
def _watching(
    entries: Iterable[tuple[str, str, str]], note: Callable[[str, tuple[object, ...]], None]
) -> Iterator[None]:
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
    setattr(owner, attribute, replacement)
    return lambda: setattr(owner, attribute, original)


def _watched(
    original: Callable[..., object], told: str, note: Callable[[str, tuple[object, ...]], None]
) -> Callable[..., object]:
    @wraps(original)
    def watched(*args: object, **kwargs: object) -> object:
        touched = (*args, *kwargs.values())
        result = original(*args, **kwargs)
        note(told, (*touched, result))
        return result

    return watched
