"""The loss scale of fp16 training, as a pure function of what happened.

Small gradients vanish in fp16, so the loss is multiplied first and the gradient divided afterwards
(Micikevicius et al. 2018). The scale is a power of two, so both are exact, and it is kept as its exponent.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["GROWS_AFTER", "LARGEST_EXPONENT", "SMALLEST_EXPONENT", "LossScale"]

_FIRST_EXPONENT: Final = 16
GROWS_AFTER: Final = 2_000
LARGEST_EXPONENT: Final = 40
SMALLEST_EXPONENT: Final = -20


@dataclass(frozen=True, slots=True, kw_only=True)
class LossScale:
    """The scale between two steps.

    Attributes:
        exponent: The next loss is multiplied by two to this power.
        good_steps: Steps with a finite gradient since it last changed.
    """

    exponent: int = _FIRST_EXPONENT
    good_steps: int = 0

    @property
    def factor(self) -> float:
        """The scale itself, exactly."""
        return 2.0**self.exponent

    def after(self, *, is_finite: bool) -> "LossScale":
        """The scale after a step: halved where the gradient overflowed, doubled after 2,000 good steps."""
        if not is_finite:
            return LossScale(exponent=max(self.exponent - 1, SMALLEST_EXPONENT))
        if self.good_steps + 1 < GROWS_AFTER:
            return LossScale(exponent=self.exponent, good_steps=self.good_steps + 1)
        return LossScale(exponent=min(self.exponent + 1, LARGEST_EXPONENT))
