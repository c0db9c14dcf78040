"""What a calibration keeps of where it came from, and the gate that follows from it."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.made_runs import calibrate_cells, make_cells

from flopwitness.foundation.digest import digest_bytes
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration, CalibrationData
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.link_operations import gate


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(make_cells(12)).calibration


@pytest.mark.parametrize(
    ("rows", "n_runs"), [((), 0), (((),), 0), (((2, 3, 5),), 3), (((2, 3), (), (2,)), 3)]
)
def test_runs_are_counted_over_all_tables(rows: tuple[tuple[int, ...], ...], n_runs: int) -> None:
    data = CalibrationData(tables=(digest_bytes(b""),) * len(rows), rows=rows, n_workloads=1)
    assert data.n_runs == n_runs


def test_the_gate_is_that_of_its_own_errors(calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    assert calibration.link is not None
    assert calibration.link_gate == gate(calibration.link, model.errors)
    assert calibration.link_gate < 0


def test_without_link_or_efficiency_there_is_no_gate(calibration: Calibration) -> None:
    assert replace(calibration, link=None).link_gate is None
    models = dict(calibration.fitted.models)
    del models[Method.EFFICIENCY]
    bare = replace(calibration, fitted=replace(calibration.fitted, models=MappingProxyType(models)))
    assert bare.link_gate is None
