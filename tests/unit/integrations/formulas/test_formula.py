"""Operations of one call add and multiply, each kind for itself."""

from flopwitness.integrations.formulas.formula import Products


def test_products_add_and_multiply() -> None:
    once = Products(flop=10, recomputed_flop=3)
    assert once + Products(flop=1) == Products(flop=11, recomputed_flop=3)
    assert once * 4 == Products(flop=40, recomputed_flop=12)
