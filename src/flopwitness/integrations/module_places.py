"""In which module does an operator run? Forward by the calls under way, backward by when its node was made.

Every node of the autograd graph carries the number of its making. Each entry into a module and each exit
notes the next number; a node met in a backward pass belongs to the module that was innermost then. Numbers
are counted per thread, so where several threads made nodes and their notes disagree, nothing is guessed. Nor
is it of nodes so old that their notes were dropped.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakKeyDictionary

import torch
from torch import nn

if TYPE_CHECKING:
    from torch.autograd.graph import Node

__all__ = ["BACKWARD", "OUTSIDE", "ModulePlaces"]

OUTSIDE: Final = "(outside any module)"
BACKWARD: Final = "(backward, module unknown)"
_MOST_NOTES: Final = 400_000
_WRAPPED: Final = "_orig_mod"


class ModulePlaces:
    """The modules under way in each thread, and the innermost one at each number of the autograd graph.

    Args:
        model: The module whose names to use; others are named from the outermost one that is called.

    Attributes:
        saw_other_thread: Whether modules were called, or a backward pass was started, in a thread that is
            not counted.
    """

    def __init__(self, model: nn.Module | None) -> None:
        self.saw_other_thread = False
        self._names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self._roots: dict[str, int] = {}
        self._here: dict[int, str] = {}
        self._notes: dict[int, tuple[list[int], list[str]]] = {}
        self._owner = 0
        if model is not None:
            self._name_tree(getattr(model, _WRAPPED, model))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follow every call of a module; this thread is the one that is counted.

        Hooks on all modules would do the same, but PyTorch warns of them where a module is compiled.

        Side effects:
            `nn.Module.__call__` is replaced for the time.
        """
        original = nn.Module.__call__

        def call(module: nn.Module, *args: object, **kwargs: object) -> object:
            thread = self._thread()
            if thread is None:
                return original(module, *args, **kwargs)
            outer = self._enter(thread, module)
            try:
                return original(module, *args, **kwargs)
            finally:
                self._leave(thread, outer)

        self._owner = get_ident()
        self._here = {}
        self._note(self._owner, OUTSIDE)
        nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            yield
        finally:
            nn.Module.__call__ = original  # type: ignore[method-assign]

    def note_backward(self) -> None:
        """A backward pass was started; what it runs in a thread that is not counted is not seen."""
        self._thread()

    @property
    def here(self) -> str:
        """The innermost module under way in this thread."""
        return self._here.get(get_ident(), OUTSIDE)

    def of_node(self) -> str:
        """The module in whose forward pass the node that is now evaluated was made."""
        node = cast("Node | None", torch._C._current_autograd_node())  # noqa: SLF001 (no public form)
        if node is None:
            return BACKWARD
        number = node._sequence_nr()  # noqa: SLF001 (as the profiler pairs forward and backward)
        found = {self._at(number, *notes) for notes in self._notes.values()} - {None}
        return (found.pop() or BACKWARD) if len(found) == 1 else BACKWARD

    @staticmethod
    def _at(number: int, starts: list[int], names: list[str]) -> str | None:
        index = bisect_right(starts, number) - 1
        return names[index] if index >= 0 else None

    def _enter(self, thread: int, module: nn.Module) -> str:
        """Go into a module; returns the name of the one around it."""
        outer = self._here.get(thread, OUTSIDE)
        inner = getattr(module, _WRAPPED, module)
        if inner not in self._names:
            self._name_tree(inner, within="" if outer == OUTSIDE else outer)
        name = self._here[thread] = self._names[inner]
        self._note(thread, name)
        return outer

    def _leave(self, thread: int, outer: str) -> None:
        self._here[thread] = outer
        self._note(thread, outer)

    def _thread(self) -> int | None:
        """This thread where it is counted: the one that started, or one that runs a backward pass."""
        thread = get_ident()
        if thread == self._owner or torch._C._current_graph_task_id() != -1:  # noqa: SLF001
            return thread
        self.saw_other_thread = True
        return None

    def _note(self, thread: int, name: str) -> None:
        starts, names = self._notes.setdefault(thread, ([], []))
        number = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]  # noqa: SLF001
        if starts and starts[-1] == number:
            names[-1] = name
        else:
            starts.append(number)
            names.append(name)
        if len(starts) > _MOST_NOTES:
            del starts[: _MOST_NOTES // 2], names[: _MOST_NOTES // 2]

    def _name_tree(self, module: nn.Module, *, within: str = "") -> None:
        """Name a module and all inside it; one that is shared keeps the first name."""
        name = f"{within}.{type(module).__name__}" if within else type(module).__name__
        self._roots[name] = self._roots.get(name, 0) + 1
        root = name if self._roots[name] == 1 else f"{name} ({self._roots[name]})"
        for path, member in module.named_modules():
            steps = [step for step in path.split(".") if step and step != _WRAPPED]
            self._names.setdefault(member, ".".join([root, *steps]))
