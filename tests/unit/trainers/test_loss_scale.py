"""The loss scale as a function of what happened."""

from flopwitness.trainers.loss_scale import GROWS_AFTER, LARGEST_EXPONENT, SMALLEST_EXPONENT, LossScale


def test_it_starts_at_two_to_the_sixteenth() -> None:
    assert LossScale().factor == 65536.0


def test_an_overflow_halves_it_and_counts_anew() -> None:
    after = LossScale(exponent=5, good_steps=100).after(is_finite=False)
    assert after == LossScale(exponent=4, good_steps=0)


def test_it_doubles_after_many_good_steps() -> None:
    scale = LossScale(exponent=5, good_steps=GROWS_AFTER - 2).after(is_finite=True)
    assert scale == LossScale(exponent=5, good_steps=GROWS_AFTER - 1)
    assert scale.after(is_finite=True) == LossScale(exponent=6, good_steps=0)


def test_it_stays_within_its_limits() -> None:
    low = LossScale(exponent=SMALLEST_EXPONENT).after(is_finite=False)
    high = LossScale(exponent=LARGEST_EXPONENT, good_steps=GROWS_AFTER - 1).after(is_finite=True)
    assert (low.exponent, high.exponent) == (SMALLEST_EXPONENT, LARGEST_EXPONENT)
