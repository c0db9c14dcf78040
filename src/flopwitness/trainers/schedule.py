"""The learning rate as a pure function of the step, with the same bits on every machine.

A cosine from the system's mathematical library may differ in the last bit from one machine to the next, and a
replay needs the very same rate. The one here is summed in decimal arithmetic, which is defined to the digit.
"""

from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from flopwitness.trainers.config import RunConfig, ScheduleKind

__all__ = ["learning_rate"]

_DIGITS: Final = Context(prec=40)
_PI: Final = Decimal("3.141592653589793238462643383279502884197169")
_TERMS: Final = 24


def learning_rate(run: RunConfig, step: int) -> float:
    """The rate of a step.

    Args:
        run: The run.
        step: The step, counted from 0.

    Returns:
        A straight line from 0 at step 0 up to the highest rate at step `warmup_steps`; then what `kind` says,
        down to `final_fraction` of the highest, which the last step has exactly, unless the warm-up
        leaves no step after its own.
    """
    schedule, highest = run.schedule, run.optimizer.learning_rate
    if step < schedule.warmup_steps:
        return highest * (step / schedule.warmup_steps)
    if schedule.kind is ScheduleKind.CONSTANT:
        return highest
    length = max(run.training.steps - 1 - schedule.warmup_steps, 1)
    done = Fraction(min(step - schedule.warmup_steps, length), length)
    left = float(1 - done) if schedule.kind is ScheduleKind.LINEAR else _half_cosine(done)
    final = schedule.final_fraction
    return highest * (final + (1.0 - final) * left)


def _half_cosine(done: Fraction) -> float:
    """`(1 + cos(pi x)) / 2` for x from 0 to 1, exactly rounded but for ties that do not occur."""
    if done > Fraction(1, 2):
        return float(_DIGITS.subtract(Decimal(1), _cosine_square(1 - done)))
    return float(_cosine_square(done))


def _cosine_square(done: Fraction) -> Decimal:
    """`cos(pi x / 2)^2` for x up to a half, by the cosine's power series to 40 digits."""
    angle = _DIGITS.divide(_DIGITS.multiply(_PI, Decimal(done.numerator)), Decimal(2 * done.denominator))
    square = _DIGITS.multiply(angle, angle)
    term, total = Decimal(1), Decimal(1)
    for index in range(1, _TERMS):
        term = _DIGITS.divide(_DIGITS.multiply(-term, square), Decimal((2 * index - 1) * 2 * index))
        total = _DIGITS.add(total, term)
    return _DIGITS.multiply(total, total)
