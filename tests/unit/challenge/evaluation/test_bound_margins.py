"""How far the bound lies above runs of known size, beside the bound's own formula."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from flopwitness.catalogue.chips import Chip, ChipCatalogue
from flopwitness.challenge.evaluation.bound_margins import BoundScore, judge_bounds
from flopwitness.measure.sources.run_table import RunRow

ROW = RunRow(
    row=2,
    cells={},
    chip_name="v100-sxm2-16gb",
    count=2,
    duration_s=100.0,
    energy_j=40_000.0,
    net_energy_j=20_000.0,
    true_flop=4 * 10**15,
)


@pytest.fixture
def v100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find_all("v100-sxm2-16gb")
    return chip


def with_fields(**values: Any) -> RunRow:  # noqa: ANN401 (the fields of a row)
    return replace(ROW, **values)


def limit_w(chip: Chip) -> float:
    assert chip.power_limit_w is not None
    return chip.power_limit_w.value


def test_margins_are_bound_over_truth(chips: ChipCatalogue, v100: Chip) -> None:
    found = judge_bounds([ROW], chips)
    peak = v100.peak_best[1].value
    assert found.safety == Fraction(1, 2)
    assert found.time is not None
    assert found.time.least == pytest.approx(2 * 100 * peak / 4e15)
    assert found.total_energy is not None
    assert found.total_energy.least == pytest.approx(40_000 / (0.5 * limit_w(v100) / peak) / 4e15)
    assert found.net_energy is not None
    assert found.net_energy.least == pytest.approx(found.total_energy.least / 2)


def test_another_safety_factor_moves_the_energy_bounds_alone(chips: ChipCatalogue) -> None:
    usual, hostile = judge_bounds([ROW], chips), judge_bounds([ROW], chips, safety=Fraction(3, 10))
    assert hostile.time == usual.time
    assert hostile.total_energy is not None
    assert usual.total_energy is not None
    assert hostile.total_energy.least == pytest.approx(usual.total_energy.least * 5 / 3)
    assert hostile.safety == Fraction(3, 10)


def test_margins_are_gathered_over_runs(chips: ChipCatalogue) -> None:
    rows = [with_fields(true_flop=n * 10**15) for n in (1, 2, 4)]
    found = judge_bounds(rows, chips).time
    each = [judge_bounds([row], chips).time for row in rows]
    assert found is not None
    ratios = [margin.least for margin in each if margin is not None]
    assert found.n_runs == 3
    assert found.least == ratios[2]
    assert found.median == ratios[1]
    assert found.n_violated == 0


def test_a_run_above_the_bound_is_a_violation(chips: ChipCatalogue) -> None:
    found = judge_bounds([ROW, with_fields(true_flop=10**17)], chips)
    for margin in (found.time, found.total_energy, found.net_energy):
        assert margin is not None
        assert (margin.n_runs, margin.n_violated) == (2, 1)
        assert margin.least < 1


@pytest.mark.parametrize(("ratio", "n_violated"), [(1.001, 0), (0.999, 1)])
def test_a_violation_begins_at_the_bound_itself(
    ratio: float, n_violated: int, chips: ChipCatalogue, v100: Chip
) -> None:
    most = 2 * 100 * v100.peak_best[1].value
    margin = judge_bounds([with_fields(true_flop=round(most / ratio))], chips).time
    assert margin is not None
    assert margin.n_violated == n_violated


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"count": None}, ("total_energy", "net_energy")),
        ({"duration_s": None}, ("total_energy", "net_energy")),
        ({"energy_j": None}, ("net_energy", "time")),
        ({"net_energy_j": None}, ("total_energy", "time")),
        ({"true_flop": None}, ()),
        ({"chip_name": ""}, ()),
        ({"chip_name": "Abacus 9000"}, ()),
    ],
)
def test_what_a_row_does_not_tell_is_not_judged(
    fields: dict[str, Any], parts: tuple[str, ...], chips: ChipCatalogue
) -> None:
    found = judge_bounds([with_fields(**fields)], chips)
    judged = {part for part in ("total_energy", "net_energy", "time") if getattr(found, part) is not None}
    assert judged == set(parts)
    both = judge_bounds([with_fields(**fields), ROW], chips)
    for part in parts:
        assert getattr(both, part).n_runs == 2


def test_no_rows_have_no_margins(chips: ChipCatalogue) -> None:
    assert judge_bounds([], chips) == BoundScore(
        safety=Fraction(1, 2), total_energy=None, net_energy=None, time=None
    )


def test_a_name_that_leaves_the_variant_open_takes_the_highest_bound(chips: ChipCatalogue) -> None:
    exact, family = judge_bounds([ROW], chips), judge_bounds([with_fields(chip_name="V100")], chips)
    for part in ("total_energy", "time"):
        assert getattr(family, part).least >= getattr(exact, part).least


def test_a_run_without_energy_above_idle_says_nothing_of_the_bound(chips: ChipCatalogue) -> None:
    found = judge_bounds([with_fields(net_energy_j=0.0)], chips)
    assert found.net_energy is None or found.net_energy.n_violated == 0
