"""What a formula is: a function of one call that returns how many operations the call was."""

from collections.abc import Callable
from dataclasses import dataclass

from flopwitness.integrations.operator_call import OperatorCall

__all__ = ["Formula", "Products"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """The operations of one call [FLOP]; a multiply-add is two.

    Attributes:
        flop: What the algorithm needs.
        recomputed_flop: What the operator computes again because a forward pass did not keep it.
    """

    flop: int
    recomputed_flop: int = 0

    def __add__(self, other: "Products") -> "Products":
        return Products(
            flop=self.flop + other.flop, recomputed_flop=self.recomputed_flop + other.recomputed_flop
        )

    def __mul__(self, times: int) -> "Products":
        return Products(flop=self.flop * times, recomputed_flop=self.recomputed_flop * times)


Formula = Callable[[OperatorCall], Products | None]
"""The operations of a call; None where this call, unlike others of the operator, does no products.

A call that the formula cannot judge raises ValueError, and then counts as unrecognised.
"""
