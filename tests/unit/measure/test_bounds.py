"""The upper bound: the lower of energy and time, of whatever the chips could do at best."""

from dataclasses import replace
from fractions import Fraction

import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision
from flopwitness.measure.bounds import SAFETY_DEFAULT, SAFETY_HOSTILE, BoundBy, bound_from_above

HOUR_S = 3_600.0


@pytest.fixture
def h100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find("h100-sxm")
    return chip


def test_without_energy_time_bounds(h100: Chip) -> None:
    upper = bound_from_above([h100], count=8, duration_s=HOUR_S, energy_j=None)
    assert upper is not None
    precision, peak = h100.peak_best
    assert upper.flop == upper.time_flop == 8 * 3_600 * int(peak.value)
    assert upper.by is BoundBy.TIME
    assert upper.energy_flop is None
    assert (upper.peak_precision, upper.peak_flop_per_s, upper.chip) == (precision, peak.value, "h100-sxm")


def test_little_energy_bounds(h100: Chip) -> None:
    assert h100.power_limit_w is not None
    at_limit_j = 8 * HOUR_S * h100.power_limit_w.value
    upper = bound_from_above([h100], count=8, duration_s=HOUR_S, energy_j=at_limit_j / 4)
    assert upper is not None
    assert upper.time_flop is not None
    assert upper.by is BoundBy.ENERGY
    assert upper.flop == upper.energy_flop
    assert upper.flop == pytest.approx(upper.time_flop / 2, rel=1e-12)


def test_much_energy_never_raises_the_time_bound(h100: Chip) -> None:
    upper = bound_from_above([h100], count=8, duration_s=HOUR_S, energy_j=1e15)
    assert upper is not None
    assert upper.by is BoundBy.TIME
    assert upper.flop == upper.time_flop


def test_the_bound_rounds_up(h100: Chip) -> None:
    upper = bound_from_above([h100], count=1, duration_s=Fraction(1, 10**16), energy_j=None)
    assert upper is not None
    assert upper.flop == 1
    by_energy = bound_from_above([h100], count=None, duration_s=None, energy_j=1e-15)
    assert by_energy is not None
    assert by_energy.flop >= 1


def test_a_hostile_prover_gets_a_looser_energy_bound(h100: Chip) -> None:
    kind = bound_from_above([h100], count=None, duration_s=None, energy_j=1e6)
    hostile = bound_from_above([h100], count=None, duration_s=None, energy_j=1e6, safety=SAFETY_HOSTILE)
    assert kind is not None
    assert hostile is not None
    assert (kind.safety, hostile.safety) == (SAFETY_DEFAULT, SAFETY_HOSTILE)
    assert hostile.flop == pytest.approx(kind.flop * 5 / 3, rel=1e-12)


def test_every_precision_counts_for_the_peak(h100: Chip) -> None:
    upper = bound_from_above([h100], count=1, duration_s=1.0, energy_j=None)
    assert upper is not None
    assert all(upper.flop >= peak.value for peak in h100.peak_flop_per_s.values())
    only_bf16 = replace(h100, peak_flop_per_s={Precision.BF16: h100.peak(Precision.BF16)})
    narrowed = bound_from_above([only_bf16], count=1, duration_s=1.0, energy_j=None)
    assert narrowed is not None
    assert narrowed.flop < upper.flop


def test_a_name_that_several_chips_share_takes_the_fastest(chips: ChipCatalogue) -> None:
    family = chips.find("H100")
    assert len(family) > 1
    together = bound_from_above(family, count=4, duration_s=HOUR_S, energy_j=1e6)
    assert together is not None
    for chip in family:
        alone = bound_from_above([chip], count=4, duration_s=HOUR_S, energy_j=1e6)
        assert alone is not None
        assert alone.flop <= together.flop


def test_one_unknown_power_limit_takes_the_energy_bound_away(h100: Chip) -> None:
    unlimited = replace(h100, power_limit_w=None)
    upper = bound_from_above([h100, unlimited], count=8, duration_s=HOUR_S, energy_j=1.0)
    assert upper is not None
    assert upper.energy_flop is None
    assert upper.by is BoundBy.TIME
    assert bound_from_above([unlimited], count=None, duration_s=HOUR_S, energy_j=1.0) is None


@pytest.mark.parametrize(("count", "duration_s"), [(None, None), (8, None), (None, HOUR_S)])
def test_where_neither_is_known_nothing_bounds(
    h100: Chip, count: int | None, duration_s: float | None
) -> None:
    assert bound_from_above([h100], count=count, duration_s=duration_s, energy_j=None) is None


@pytest.mark.parametrize("safety", [Fraction(0), Fraction(-1, 2), Fraction(11, 10), Fraction(2)])
def test_a_safety_factor_out_of_range_is_refused(h100: Chip, safety: Fraction) -> None:
    with pytest.raises(ValueError, match="safety"):
        bound_from_above([h100], count=8, duration_s=HOUR_S, energy_j=None, safety=safety)


def test_without_a_chip_nothing_can_be_bounded() -> None:
    with pytest.raises(ValueError, match="empty"):
        bound_from_above([], count=8, duration_s=HOUR_S, energy_j=None)


def test_counts_beyond_a_double_stay_exact(h100: Chip) -> None:
    upper = bound_from_above([h100], count=10**9 + 1, duration_s=Fraction(10**9), energy_j=None)
    assert upper is not None
    assert upper.flop == (10**9 + 1) * 10**9 * int(h100.peak_best[1].value)
