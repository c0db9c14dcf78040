"""How the reference classes are made: groups weigh alike, and a judge leaves sources out."""

import math
from collections.abc import Sequence

import pytest

from flopwitness.challenge.evaluation.reference_fit import EvidenceRow, fit_classes, judge_classes
from flopwitness.measure.reference import Load, Quantity, ReferenceClass, Unit, Workload


def _row(
    group: str,
    mfu: float,
    *,
    power_share: float | None = 0.8,
    source: str = "",
    is_transformer: bool = True,
    unit: Unit = Unit.MATRIX,
) -> EvidenceRow:
    return EvidenceRow(
        source=source or group,
        group=group,
        is_transformer=is_transformer,
        unit=unit,
        mfu=mfu,
        power_share=power_share,
    )


def _fit(rows: Sequence[EvidenceRow]) -> tuple[ReferenceClass, ...]:
    return fit_classes(rows, near_limit_from=0.55, published_load=0.75)


def _find(rows: Sequence[EvidenceRow], load: Load, quantity: Quantity) -> ReferenceClass:
    (item,) = (
        item
        for item in _fit(rows)
        if (item.workload, item.load, item.unit, item.quantity) == (Workload.ANY, load, Unit.MATRIX, quantity)
    )
    return item


FOUR = [_row(name, mfu) for name, mfu in zip("abcd", (0.2, 0.3, 0.4, 0.5), strict=True)]


def test_fewer_than_four_groups_make_no_class() -> None:
    assert _fit(FOUR[:3]) == ()
    assert _fit([]) == ()
    assert _fit([*FOUR[:3], FOUR[2]]) == ()


def test_a_class_is_the_mean_and_spread_of_its_groups() -> None:
    logs = [math.log(row.mfu) for row in FOUR]
    mean = sum(logs) / 4
    sd = math.sqrt(sum((value - mean) ** 2 for value in logs) / 3)
    spread = _find(FOUR, Load.UNKNOWN, Quantity.MFU).spread
    assert spread.mean == pytest.approx(mean, abs=1e-6)
    assert spread.sd == pytest.approx(sd, abs=1e-6)
    assert spread.n_groups == 4


def test_rho_is_the_power_share_over_the_utilisation() -> None:
    rho = _find(FOUR, Load.UNKNOWN, Quantity.RHO).spread
    mfu = _find(FOUR, Load.UNKNOWN, Quantity.MFU).spread
    assert rho.mean == pytest.approx(math.log(0.8) - mfu.mean, abs=2e-6)
    assert rho.sd == mfu.sd


def test_many_rows_of_one_group_weigh_as_one() -> None:
    crowded = [*FOUR, *[FOUR[0]] * 100]
    assert _find(crowded, Load.UNKNOWN, Quantity.MFU).spread.mean == pytest.approx(
        _find(FOUR, Load.UNKNOWN, Quantity.MFU).spread.mean, abs=1e-6
    )


def test_spread_within_groups_is_added() -> None:
    noisy = [_row(row.group, row.mfu * factor) for row in FOUR for factor in (0.5, 2)]
    wide, narrow = (_find(rows, Load.UNKNOWN, Quantity.MFU).spread for rows in (noisy, FOUR))
    assert wide.mean == pytest.approx(narrow.mean, abs=1e-6)
    within = 2 * math.log(2) ** 2
    assert wide.sd == pytest.approx(math.sqrt(narrow.sd**2 + within), abs=1e-5)


def test_load_is_told_by_power_and_published_runs_have_one() -> None:
    resting = [_row(f"r{i}", 0.1 + i / 50, power_share=0.3) for i in range(4)]
    published = [_row(f"p{i}", 0.3 + i / 50, power_share=None) for i in range(4)]
    rows = [*resting, *published]
    assert _find(rows, Load.PART_LOAD, Quantity.MFU).spread.n_groups == 4
    assert _find(rows, Load.NEAR_LIMIT, Quantity.MFU).spread.n_groups == 4
    assert _find(rows, Load.UNKNOWN, Quantity.MFU).spread.n_groups == 8
    near = _find(rows, Load.NEAR_LIMIT, Quantity.RHO).spread
    mfu = _find(rows, Load.NEAR_LIMIT, Quantity.MFU).spread
    assert near.mean == pytest.approx(math.log(0.75) - mfu.mean, abs=2e-6)


def test_units_and_workloads_are_kept_apart() -> None:
    vector = [_row(f"v{i}", 0.5, unit=Unit.VECTOR) for i in range(4)]
    vision = [_row(f"w{i}", 0.1, is_transformer=False) for i in range(4)]
    classes = {
        (item.workload, item.unit): item.spread.n_groups
        for item in _fit([*FOUR, *vector, *vision])
        if (item.load, item.quantity) == (Load.UNKNOWN, Quantity.MFU)
    }
    assert classes == {
        (Workload.ANY, Unit.MATRIX): 8,
        (Workload.ANY, Unit.VECTOR): 4,
        (Workload.TRANSFORMER, Unit.MATRIX): 4,
        (Workload.TRANSFORMER, Unit.VECTOR): 4,
    }


def test_the_judge_leaves_whole_sources_out() -> None:
    rows = [_row(f"g{i}", 0.2 + i / 40, source=f"s{i}") for i in range(8)]
    outlier = _row("g9", 0.0001, source="s9")
    for item in judge_classes([*rows, outlier], near_limit_from=0.55, published_load=0.75):
        assert item.judged == 9
        assert item.covered == 8  # the outlier's own row must not widen the interval it is judged by
        assert item.ratio > 1


def test_what_cannot_be_judged_is_not() -> None:
    rows = [_row(f"g{i}", 0.2 + i / 40, source="one") for i in range(5)]
    for item in judge_classes(rows, near_limit_from=0.55, published_load=0.75):
        assert (item.covered, item.judged) == (0, 0)
        assert math.isnan(item.ratio)


def test_the_judge_leaves_out_what_it_is_told() -> None:
    rows = [_row(f"g{i}", 0.2 + i / 40, source="one") for i in range(6)]
    by_group = judge_classes(rows, near_limit_from=0.55, published_load=0.75, leave_out=lambda row: row.group)
    assert {item.judged for item in by_group} == {6}
    wider = judge_classes(
        rows, near_limit_from=0.55, published_load=0.75, level=0.99, leave_out=lambda row: row.group
    )
    assert all(more.ratio > less.ratio for more, less in zip(wider, by_group, strict=True))
