"""Which operators are taken apart, counted, known, or not believed."""

# mypy: disable-error-code="no-untyped-call"

import pytest
import torch
from torch._ops import OpOverload

from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.operation_count import UncountedReason
from flopwitness.integrations.operator_kind import kind_of

ATEN = torch.ops.aten


@pytest.fixture(scope="module")
def own() -> dict[str, OpOverload]:
    """Operators that a stranger registered: with and without a tag, and one among PyTorch's own."""
    library = torch.library.Library("kind_test", "DEF")
    library.define("tagged(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    library.define("plain(Tensor x) -> Tensor")
    library.define("alias(Tensor(a) x) -> Tensor(a)")
    intruder = torch.library.Library("aten", "FRAGMENT")
    intruder.define("kind_test_intruder(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    return {
        "tagged": torch.ops.kind_test.tagged.default,
        "plain": torch.ops.kind_test.plain.default,
        "alias": torch.ops.kind_test.alias.default,
        "intruder": ATEN.kind_test_intruder.default,
        "_libraries": (library, intruder),  # type: ignore[dict-item]  # they end with their last reference
    }


@pytest.mark.parametrize(
    ("overload", "name"),
    [
        (ATEN.mm.default, "aten::mm"),
        (ATEN.mm.out, "aten::mm"),
        (ATEN.addmm_.default, "aten::addmm_"),
        (ATEN.baddbmm_.default, "aten::baddbmm_"),
        (ATEN._foreach_mm.default, "aten::_foreach_mm"),
    ],
)
def test_formulas_hold_for_every_form(overload: OpOverload, name: str) -> None:
    kind = kind_of(overload, {})
    assert kind.name == name
    assert kind.formula is not None
    assert not kind.is_composite


@pytest.mark.parametrize(
    "overload", [ATEN.linear.default, ATEN.matmul.default, ATEN.lstm.input, ATEN.outer.default]
)
def test_what_only_calls_others_is_taken_apart(overload: OpOverload) -> None:
    assert kind_of(overload, {}).is_composite


@pytest.mark.parametrize(
    ("overload", "reason"),
    [
        (ATEN.relu.default, UncountedReason.ELEMENTWISE),
        (ATEN.add_.Tensor, UncountedReason.ELEMENTWISE),
        (ATEN._foreach_addcdiv_.Scalar, UncountedReason.ELEMENTWISE),
        (ATEN._fused_adamw_.default, UncountedReason.ELEMENTWISE),
        (ATEN.sum.dim_IntList, UncountedReason.REDUCTION),
        (ATEN._softmax.default, UncountedReason.REDUCTION),
        (ATEN.native_layer_norm.default, UncountedReason.REDUCTION),
        (ATEN.max_pool2d_with_indices.default, UncountedReason.RESAMPLING),
        (ATEN.upsample_bilinear2d.default, UncountedReason.RESAMPLING),
        (ATEN.embedding.default, UncountedReason.MOVEMENT),
        (ATEN.cat.default, UncountedReason.MOVEMENT),
        (ATEN.copy_.default, UncountedReason.MOVEMENT),
        (ATEN.view_copy.default, UncountedReason.MOVEMENT),
        (ATEN.view.default, UncountedReason.VIEW),
        (ATEN.t_.default, UncountedReason.VIEW),
    ],
)
def test_what_does_no_products(overload: OpOverload, reason: UncountedReason) -> None:
    kind = kind_of(overload, {})
    assert kind.formula is None
    assert kind.reason is reason
    assert kind.explanation == ""


@pytest.mark.parametrize(
    "overload",
    [
        ATEN.linalg_inv_ex.default,
        ATEN._linalg_svd.default,
        ATEN.cholesky.default,
        ATEN.triangular_solve.default,
        ATEN.linalg_matrix_exp.default,
        ATEN._compute_linear_combination.default,
    ],
)
def test_what_may_hide_products(overload: OpOverload) -> None:
    kind = kind_of(overload, {})
    assert kind.formula is None
    assert kind.reason is UncountedReason.UNRECOGNISED
    assert "no formula" in kind.explanation


@pytest.mark.parametrize("name", ["tagged", "plain", "alias"])
def test_a_strangers_tags_are_not_believed(own: dict[str, OpOverload], name: str) -> None:
    kind = kind_of(own[name], {})
    assert kind.reason is UncountedReason.UNRECOGNISED
    assert kind.explanation == "not PyTorch's own"


def test_nor_is_a_strangers_operator_among_our_own(own: dict[str, OpOverload]) -> None:
    kind = kind_of(own["intruder"], {})
    assert kind.reason is UncountedReason.UNRECOGNISED
    assert "outside PyTorch" in kind.explanation


def test_a_declared_formula_comes_first(own: dict[str, OpOverload]) -> None:
    def formula(_call: object) -> Products:
        return Products(flop=1)

    kind = kind_of(own["plain"], {"kind_test::plain": formula})
    assert kind.formula is formula
    assert kind.is_declared
    assert not kind_of(own["tagged"], {"kind_test::plain": formula}).is_declared
