"""Count the operations of whatever PyTorch runs inside a `with`.

The counter that ships with PyTorch has no formula for many operators and says nothing when it meets one; on
a CPU all fused attention counts as zero. This one lists every operator that it has seen and not counted.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.formulas.formula import Formula
from flopwitness.integrations.hidden_code import (
    BACKWARD_CALL,
    FAKE_MODE,
    watch_calls,
    watch_compiled_calls,
    watch_hidden_code,
    watch_script_calls,
)
from flopwitness.integrations.operation_count import NoteKind, OperationCount, UncountedReason
from flopwitness.integrations.requirement import checked_formulas, checked_model, require_torch
from flopwitness.integrations.tally import Tally

if TYPE_CHECKING:
    from torch import nn

    from flopwitness.integrations.counting_mode import CountingMode
    from flopwitness.integrations.module_places import ModulePlaces

__all__ = ["OperationCounter"]

_PROCESS_LOCK: Final = RLock()
"""Counters of one thread lie inside one another; those of two would undo each other's changes to PyTorch."""
_EAGER: Final = (
    "compiled code ran uncompiled inside the counter and is counted in that form; a compiler fuses "
    "the same operations; what it would compute again in a backward pass cannot be seen"
)


class OperationCounter:
    """A context manager; what runs inside it is counted, forward and backward.

    Compiled functions run uncompiled inside (their compiled form stays and is used again afterwards). May be
    entered again after it was left; the counts add up. Counters of one thread may lie inside one another.

    Args:
        model: The module whose names the rows by module carry; without it, rows are named from the class of
            the outermost module called.
        formulas: Formulas for operators that this package does not know, by namespace and name, such as
            `mylib::fused_mlp`; each that is used is told in a note.

    Raises:
        InputError: PyTorch is not installed, `model` is no module, or a formula is none.
    """

    def __init__(
        self, model: "nn.Module | None" = None, *, formulas: Mapping[str, Formula] | None = None
    ) -> None:
        require_torch()
        self._model = checked_model(model)
        self._formulas = checked_formulas(formulas)
        self._tally = Tally()
        self._places: ModulePlaces | None = None
        self._active: ExitStack | None = None

    def __enter__(self) -> Self:
        """Count from here on.

        Raises:
            InputError: This counter is counting already, or one in another thread is.
        """
        if self._active is not None:
            raise InputError("this counter is counting already; use another one inside it")
        from flopwitness.integrations.counting_mode import CountingMode  # noqa: PLC0415 (loads PyTorch)
        from flopwitness.integrations.module_places import ModulePlaces  # noqa: PLC0415 (see above)

        if self._places is None:
            self._places = ModulePlaces(self._model)
        mode = CountingMode(self._tally, self._places, self._formulas)
        with ExitStack() as stack:
            if not _PROCESS_LOCK.acquire(blocking=False):
                raise InputError("another thread is counting; what a counter changes holds for all threads")
            stack.callback(_PROCESS_LOCK.release)
            stack.enter_context(require_torch().compiler.set_stance("force_eager"))
            self._watch(stack, mode, self._places)
            stack.enter_context(self._places.watched())
            stack.enter_context(mode)
            self._active = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        active, self._active = self._active, None
        if active is not None:
            active.close()

    def count(self) -> OperationCount:
        """Everything counted so far.

        Raises:
            InputError: The counter was never entered, so there is nothing that could be zero.
        """
        if self._places is None:
            raise InputError("nothing was counted: run the work inside `with counter:`")
        if self._places.saw_other_thread:
            self._note_other_thread()
            self._places.saw_other_thread = False
        return self._tally.count()

    def _watch(self, stack: ExitStack, mode: "CountingMode", places: "ModulePlaces") -> None:
        """Watch what no dispatcher sees."""
        stack.enter_context(watch_compiled_calls(self._note_compiled))
        stack.enter_context(watch_hidden_code(mode.note_hidden, mode.note_unseen))
        stack.enter_context(watch_script_calls(mode.note_hidden))
        stack.enter_context(watch_calls(FAKE_MODE, mode.note_fake))
        stack.enter_context(watch_calls(BACKWARD_CALL, places.note_backward))

    def _note_compiled(self) -> None:
        self._tally.add_note(NoteKind.COMPILED_RUN_EAGER, _EAGER)

    def _note_other_thread(self) -> None:
        self._tally.add_uncounted(
            name="threads: modules called or gradients taken in a thread that is not counted",
            reason=UncountedReason.UNRECOGNISED,
            explanation="a counter sees the thread that entered it, and its backward passes",
            volume=1,
        )
