"""The frozen reference table is what its command makes, and it covers sources that it never saw."""

import importlib.resources
from pathlib import Path

import pytest
from campaigns.prior_reference import NEAR_LIMIT_FROM, PUBLISHED_LOAD, make_table, read_evidence_rows

from flopwitness.challenge.evaluation.reference_fit import judge_classes
from flopwitness.measure.reference import Load, Quantity, Unit, Workload, encode_reference

pytestmark = pytest.mark.shared_data


def test_the_frozen_table_is_made_from_the_recordings_at_hand(shared_data: Path) -> None:
    frozen = importlib.resources.files("flopwitness.measure").joinpath("reference.json").read_bytes()
    assert encode_reference(make_table(read_evidence_rows(shared_data))) == frozen


def test_no_judged_run_is_among_the_evidence(shared_data: Path) -> None:
    rows = read_evidence_rows(shared_data)
    assert {row.source for row in rows if not row.source.startswith("epoch")} == {
        "fowler-jetson",
        "fowler-v100",
        "zeus",
        "gaissa",
        "spar",
    }
    assert not any("h100" in row.group for row in rows)


@pytest.mark.parametrize("workload", Workload)
def test_classes_near_the_limit_cover_sources_left_out(workload: Workload, shared_data: Path) -> None:
    judged = judge_classes(
        read_evidence_rows(shared_data), near_limit_from=NEAR_LIMIT_FROM, published_load=PUBLISHED_LOAD
    )
    wanted = (workload, Load.NEAR_LIMIT, Unit.MATRIX, Quantity.RHO)
    (answer,) = [
        item
        for item in judged
        if (item.item.workload, item.item.load, item.item.unit, item.item.quantity) == wanted
    ]
    assert answer.judged >= 30
    assert answer.covered >= 0.9 * answer.judged
    assert answer.ratio <= 4.5
