"""The lists hold no product, no name twice, and no name that PyTorch does not have."""

import torch

from flopwitness.integrations import known_operators
from flopwitness.integrations.formulas.registry import FORMULAS
from flopwitness.integrations.known_operators import KNOWN_OPERATORS, reason_of_foreach
from flopwitness.integrations.operation_count import UncountedReason


def test_no_name_stands_in_two_lists() -> None:
    names = [name for listed in known_operators._LISTS.values() for name in listed.split()]
    assert sorted(names) == sorted(set(names))


def test_what_has_a_formula_is_listed_only_where_it_may_be_no_product() -> None:
    """A bag of embeddings is a product only with weights."""
    both = FORMULAS.keys() & KNOWN_OPERATORS.keys()
    assert both == {
        "aten::_embedding_bag",
        "aten::_embedding_bag_backward",
        "aten::_embedding_bag_dense_backward",
        "aten::_embedding_bag_forward_only",
    }


def test_names_are_real() -> None:
    known = {schema.name for schema in torch._C._jit_get_all_schemas()}
    in_place = {f"{name}_" for name in KNOWN_OPERATORS}
    questions = {name for name in KNOWN_OPERATORS if name.startswith(("prim::", "prims::", "profiler::"))}
    unknown = {name for name in KNOWN_OPERATORS if name not in known} - questions
    unknown -= {name.removesuffix("_") for name in in_place & known}
    assert {
        name for name in unknown if not name.startswith(("_c10d", "c10d", "_dtensor", "fsdp", "mkl::"))
    } == set()


def test_nothing_that_factors_or_solves_is_known() -> None:
    """How many operations these are depends on the algorithm."""
    names = {
        schema.name
        for schema in torch._C._jit_get_all_schemas()
        if any(
            part in schema.name
            for part in ("linalg_", "cholesky", "lu_solve", "triangular_solve", "svd", "lstsq")
        )
    }
    assert len(names) > 20
    allowed = {"aten::linalg_cross", "aten::_linalg_check_errors"}
    assert names & KNOWN_OPERATORS.keys() <= allowed
    assert not names & FORMULAS.keys()


def test_lists_of_tensors() -> None:
    assert reason_of_foreach("addcmul") is UncountedReason.ELEMENTWISE
    assert reason_of_foreach("norm") is UncountedReason.REDUCTION
    assert reason_of_foreach("copy") is UncountedReason.MOVEMENT
    assert reason_of_foreach("mm") is None
    assert reason_of_foreach("bmm") is None
