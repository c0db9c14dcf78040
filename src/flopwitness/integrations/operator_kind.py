"""What to do with an operator: take it apart, count it, or know why not.

The order is one of trust. A formula of the caller's comes first; then ours; then what PyTorch says of its own
operators (tags and schemas), which an operator that somebody else registered, even among PyTorch's own, could
claim falsely and is not believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch._ops import OpOverload

from flopwitness.integrations.formulas.formula import Formula
from flopwitness.integrations.formulas.registry import FORMULAS
from flopwitness.integrations.known_operators import KNOWN_OPERATORS, reason_of_foreach
from flopwitness.integrations.operation_count import UncountedReason

__all__ = ["OperatorKind", "kind_of"]

_OWN: Final = "aten"
_FOREACH: Final = "aten::_foreach_"
_COMPOSITE: Final = "CompositeImplicitAutograd"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKind:
    """How one operator is treated.

    Attributes:
        name: Namespace and name, without the overload.
        is_composite: It only calls other operators, which are counted in its place.
        formula: How many operations a call is; None where it is not counted.
        is_declared: The formula is the caller's.
        reason: Why it is not counted, also where a formula finds no products in a call.
        explanation: Why it is not recognised; "" where it is.
    """

    name: str
    is_composite: bool = False
    formula: Formula | None = None
    is_declared: bool = False
    reason: UncountedReason
    explanation: str = ""


def kind_of(overload: OpOverload, declared: Mapping[str, Formula]) -> OperatorKind:
    """How calls of this operator are treated.

    Args:
        overload: The operator.
        declared: Formulas of the caller's, by namespace and name.
    """
    name = overload._schema.name  # noqa: SLF001 (the public name lacks the namespace's separator)
    if name in declared:
        return OperatorKind(
            name=name, formula=declared[name], is_declared=True, reason=UncountedReason.UNRECOGNISED
        )
    base = _base_name(name)
    reason = KNOWN_OPERATORS.get(name) or KNOWN_OPERATORS.get(base) or _told_by_torch(overload, base)
    is_foreign = _is_foreign(name)
    return OperatorKind(
        name=name,
        is_composite=_is_composite(overload),
        formula=None if is_foreign else FORMULAS.get(name) or FORMULAS.get(base),
        reason=UncountedReason.UNRECOGNISED if reason is None or is_foreign else reason,
        explanation=""
        if reason is not None and not is_foreign
        else _explanation(name, is_foreign=is_foreign),
    )


def _is_composite(overload: OpOverload) -> bool:
    """Whether the operator only calls others; questions about a tensor's shape have no kernels to ask for."""
    name = overload.name()  # type: ignore[no-untyped-call]
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(name, _COMPOSITE)  # noqa: SLF001 (no public form)
    except RuntimeError:
        return False


def _base_name(name: str) -> str:
    """PyTorch's own in-place operators end in an underscore and do what the plain ones do."""
    return name[:-1] if name.startswith(f"{_OWN}::") and name.endswith("_") else name


def _is_foreign(name: str) -> bool:
    """Whether a name among PyTorch's own was added by Python code, PyTorch's or not."""
    return name.startswith(f"{_OWN}::") and name in torch.library._defs  # noqa: SLF001 (the only record of it)


def _told_by_torch(overload: OpOverload, base: str) -> UncountedReason | None:
    if overload.namespace != _OWN:
        return None
    if base.startswith(_FOREACH):
        return reason_of_foreach(base.removeprefix(_FOREACH))
    if torch.Tag.pointwise in overload.tags:
        return UncountedReason.ELEMENTWISE
    if torch.Tag.reduction in overload.tags:
        return UncountedReason.REDUCTION
    if torch.Tag.view_copy in overload.tags:
        return UncountedReason.MOVEMENT
    return UncountedReason.VIEW if overload.is_view or torch.Tag.inplace_view in overload.tags else None


def _explanation(name: str, *, is_foreign: bool) -> str:
    if is_foreign:
        return "registered by code outside PyTorch under one of its own names"
    return (
        "no formula, and not known to do no products" if name.startswith(f"{_OWN}::") else "not PyTorch's own"
    )
