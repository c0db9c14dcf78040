"""The dispatch mode that sees every operator below autograd, and hands each to its formula or its list.

Operators that only call others are taken apart, so that inference mode, in which they arrive whole, gives
the same rows as training. Tensors of another class than PyTorch's go to that class first, and what it makes
of the call is counted. Fake tensors, by which such a class finds its shapes, do no work and count only where
the mode is made among fake tensors; met elsewhere they make the count incomplete. The operator always runs,
whatever becomes of its count.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from flopwitness.integrations.formulas.attention import has_mask
from flopwitness.integrations.formulas.formula import Formula, Products
from flopwitness.integrations.formulas.registry import FORMULAS, count_products
from flopwitness.integrations.module_places import ModulePlaces
from flopwitness.integrations.operation_count import NoteKind, UncountedReason, Work
from flopwitness.integrations.operator_call import OperatorCall, stored_elements
from flopwitness.integrations.operator_kind import OperatorKind, kind_of
from flopwitness.integrations.optimizer_steps import OPTIMIZER, is_optimizer_step
from flopwitness.integrations.recomputation import is_recomputation
from flopwitness.integrations.tally import Tally

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["CountingMode", "volume_of"]

_COMPOSITE: Final = DispatchKey.CompositeImplicitAutograd
_CONDITION: Final = "higher_order::cond"
_Condition = tuple[object, Callable[..., object], Callable[..., object], tuple[object, ...]]
_CONTROL_FLOW: Final = frozenset(
    f"higher_order::{name}" for name in ("while_loop", "map_impl", "invoke_subgraph")
)
_ATTENTION_ARGUMENTS: Final = ("query", "key", "value")
_BLOCK_MASK_AT: Final = 4
_NO_MASK: Final = "noop_mask"
_LISTS: Final = (list, tuple)
_FAKE: Final = "fake tensors: shapes alone"
_FAKE_WORK: Final = "fake tensors: nothing was computed"
_FAKE_WHY: Final = "work on fake tensors counts where the counter is entered among them, not the reverse"
_FAKE_CODE: Final = sys.modules[FakeTensorMode.__module__].__file__
_SHARDED: Final = f"torch{os.sep}distributed{os.sep}tensor{os.sep}"
_MASKS: Final = "attention masks, causal ones included, are not discounted: every score is counted"
_GRADIENTS: Final = (
    "products ran inside a backward pass with gradients on and outside PyTorch's checkpointing: second "
    "derivatives, or another library's checkpointing, whose recomputation then counts as backward work"
)
_OPTIMIZER: Final = (
    f"the optimizer does products of its own; they count as forward, in the module row {OPTIMIZER}"
)


def volume_of(values: Iterable[object]) -> int:
    """The elements of all tensors among the values and in lists among them; of sparse ones those stored."""
    volume = 0
    for value in values:
        if isinstance(value, Tensor):
            volume += value.numel() if value.layout is torch.strided else _stored(value)
        elif isinstance(value, _LISTS):
            volume += volume_of(value)
    return volume


def _is_nested(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_nested


def _stored(tensor: Tensor) -> int:
    try:
        return stored_elements(tensor)
    except (RuntimeError, NotImplementedError):
        return int(tensor.numel())


class CountingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds every operator that runs inside it to a tally.

    Args:
        tally: Where to add.
        places: Which modules are under way.
        declared: Formulas of the caller's, by namespace and name.
    """

    supports_higher_order_operators = True

    def __init__(self, tally: Tally, places: ModulePlaces, declared: Mapping[str, Formula]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tally = tally
        self._places = places
        self._declared = declared
        self._slots: dict[int, _Slot] = {}
        self._foreign: dict[type, bool] = {}
        self._counts_fake = any(
            isinstance(mode, FakeTensorMode) for mode in _get_current_dispatch_mode_stack()
        )
        self._shapes_row = tally.row_of(name=_FAKE, reason=UncountedReason.SHAPES, explanation="")

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No compiler runs in here, so none needs to be kept away (and loaded for it)."""
        return False

    def __torch_dispatch__(
        self,
        func: OpOverload | HigherOrderOperator,
        types: tuple[type, ...],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run the operator, in parts where it has any, and count it."""
        kwargs = kwargs or {}
        if types:
            if any(map(self._is_foreign, types)):
                return NotImplemented
            if not self._counts_fake and any(issubclass(kind, FakeTensor) for kind in types):
                self.note_fake()
                return func(*args, **kwargs)
        slot = self._slots.get(id(func))
        if slot is None:
            if isinstance(func, HigherOrderOperator):
                return self._dispatch_higher_order(func, args, kwargs)
            slot = self._slots[id(func)] = self._slot_of(func)
        if slot.is_composite and not any(map(_is_nested, args)):
            with self:  # PyTorch's own kernel: the public decompose() prefers Python code of other results
                return slot.overload._op_dk(_COMPOSITE, *args, **kwargs)  # noqa: SLF001 (see above)
        result = func(*args, **kwargs)
        if slot.row is None:
            self._add_counted(slot.kind, _call(slot, args, kwargs, result))
        elif slot.is_view:
            self._tally.add_to(slot.row, 0)
        else:
            self._tally.add_to(slot.row, volume_of(args) + volume_of((result, *kwargs.values())))
        return result

    def note_hidden(self, name: str, touched: tuple[object, ...]) -> None:
        """Code that no dispatcher sees has run; what runs inside an operator belongs to that operator."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (an operator under way has a frame)
        while frame is not None and frame.f_code is not _DISPATCH:
            frame = frame.f_back
        if frame is None:
            self._tally.add_uncounted(
                name=name,
                reason=UncountedReason.UNRECOGNISED,
                explanation="its operators cannot be seen",
                volume=volume_of(touched),
            )

    def note_fake(self) -> None:
        """A fake tensor was met: a class finds its shapes, or the caller computes nothing and must know."""
        if self._counts_fake:
            return
        if _finds_shapes():
            self._tally.add_to(self._shapes_row, 0)
        else:
            self._tally.add_uncounted(
                name=_FAKE_WORK, reason=UncountedReason.UNRECOGNISED, explanation=_FAKE_WHY, volume=1
            )

    def note_unseen(self, name: str, why: str) -> None:
        """Something may have run that the watch on hidden code could not see."""
        self._tally.add_uncounted(name=name, reason=UncountedReason.UNRECOGNISED, explanation=why, volume=1)

    def _slot_of(self, overload: OpOverload) -> "_Slot":
        kind = kind_of(overload, self._declared)
        row = None if kind.formula is not None else self._row_of(kind)
        return _Slot(
            overload=overload,
            kind=kind,
            is_composite=kind.is_composite,
            is_view=kind.reason is UncountedReason.VIEW,
            argument_names=tuple(argument.name for argument in overload._schema.arguments),  # noqa: SLF001
            row=row,
        )

    def _row_of(self, kind: OperatorKind) -> list[int]:
        return self._tally.row_of(name=kind.name, reason=kind.reason, explanation=kind.explanation)

    def _is_foreign(self, kind: type) -> bool:
        """Whether tensors of this class take operators apart themselves, and not only pretend to run."""
        known = self._foreign.get(kind)
        if known is None:
            handler = getattr(kind, "__torch_dispatch__", torch._C._disabled_torch_dispatch_impl)  # noqa: SLF001
            known = self._foreign[kind] = (
                handler is not torch._C._disabled_torch_dispatch_impl  # noqa: SLF001 (no public form)
                and not issubclass(kind, FakeTensor | FunctionalTensor)
            )
        return known

    def _add_counted(self, kind: OperatorKind, call: OperatorCall) -> None:
        """One call of an operator that has a formula, which may find no products or not fit."""
        volume = volume_of((*call.arguments.values(), *call.results))
        reason, explanation = kind.reason, kind.explanation
        try:
            products = None if kind.formula is None else count_products(kind.formula, call)
        except Exception as error:  # noqa: BLE001 (a run must not fail because its count does)
            products, reason = None, UncountedReason.UNRECOGNISED
            explanation = f"its formula does not fit this call: {error}"
        if products is None:
            self._tally.add_uncounted(name=kind.name, reason=reason, explanation=explanation, volume=volume)
            return
        work, module = self._placed(products)
        self._tally.add_counted(name=kind.name, module=module, volume=volume, work=work)
        self._note_call(kind, call)

    def _placed(self, products: Products) -> tuple[Work, str]:
        """The operations in their phase, and the module that they belong to."""
        if torch._C._current_graph_task_id() == -1:  # noqa: SLF001 (no public form says whether one runs)
            work = Work(forward_flop=products.flop + products.recomputed_flop)
            if is_optimizer_step():
                self._tally.add_note(NoteKind.OPTIMIZER_PRODUCTS, _OPTIMIZER)
                return work, OPTIMIZER
            return work, self._places.here
        if is_recomputation():
            return Work(recomputed_flop=products.flop + products.recomputed_flop), self._places.here
        if torch.is_grad_enabled():
            self._tally.add_note(NoteKind.GRADIENTS_IN_BACKWARD, _GRADIENTS)
        work = Work(backward_flop=products.flop, recomputed_flop=products.recomputed_flop)
        return work, self._places.of_node()

    def _note_call(self, kind: OperatorKind, call: OperatorCall) -> None:
        if kind.is_declared:
            self._tally.add_note(
                NoteKind.DECLARED_FORMULA, f"{kind.name} is counted by a formula that the caller declared"
            )
        if "attention" in kind.name and has_mask(call):
            self._tally.add_note(NoteKind.MASKS_NOT_DISCOUNTED, _MASKS)

    def _dispatch_higher_order(
        self, func: HigherOrderOperator, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Operators over functions: attention by its formula, control flow by what it runs."""
        name = f"higher_order::{func.name()}"  # type: ignore[no-untyped-call]
        if name == _CONDITION:
            condition, if_true, if_false, operands = cast("_Condition", args)
            with self:
                return (if_true if condition else if_false)(*operands)
        if name in _CONTROL_FLOW:
            with self:
                return func.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)
        result = func(*args, **kwargs)
        kind = OperatorKind(
            name=name,
            formula=self._declared.get(name) or FORMULAS.get(name),
            reason=UncountedReason.UNRECOGNISED,
            explanation="an operator over functions whose operators cannot be seen",
        )
        self._add_counted(kind, _attention_call(name, args, result))
        return result


@dataclass(slots=True, kw_only=True)
class _Slot:
    """What an operator's every call needs, found once."""

    overload: OpOverload
    kind: OperatorKind
    is_composite: bool
    is_view: bool
    argument_names: tuple[str, ...]
    row: list[int] | None


_DISPATCH: Final = inspect.unwrap(CountingMode.__torch_dispatch__).__code__


def _finds_shapes() -> bool:
    """Whether fake tensors are used from inside an operator or by another class's handling of one."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the stack is the evidence)
    met = 0
    while frame is not None:
        code = frame.f_code
        if _SHARDED in code.co_filename:
            return True
        if code.co_name == _DISPATCH.co_name and code.co_filename != _FAKE_CODE:
            met += code is not _DISPATCH
        frame = frame.f_back
    return met > 0


def _call(slot: _Slot, args: tuple[object, ...], kwargs: dict[str, object], result: object) -> OperatorCall:
    """The call with its arguments by the schema's names."""
    return OperatorCall(
        operator=slot.kind.name,
        arguments={**dict(zip(slot.argument_names, args, strict=False)), **kwargs},
        results=tuple(result) if isinstance(result, list | tuple) else (result,),
    )


def _attention_call(name: str, args: tuple[object, ...], result: object) -> OperatorCall:
    """An operator over functions has no schema; attention's first three arguments are what counts."""
    mask = args[_BLOCK_MASK_AT] if len(args) > _BLOCK_MASK_AT else None
    kept = mask[-1] if isinstance(mask, tuple) and mask else None
    arguments = dict(zip(_ATTENTION_ARGUMENTS, args, strict=False))
    if callable(kept) and getattr(kept, "__name__", "") != _NO_MASK:
        arguments["block_mask"] = True
    return OperatorCall(
        operator=name,
        arguments=arguments,
        results=tuple(result) if isinstance(result, list | tuple) else (result,),
    )
