"""The rules, one calibration and one small evaluation of made-up runs."""

import pytest
from tests.made_runs import Cells, calibrate_cells, catalogue, make_cells, read_table

from flopwitness.catalogue.rules import Rule, load_rules
from flopwitness.challenge.evaluation.evaluation import Evaluation, Plan, evaluate_runs
from flopwitness.challenge.evaluation.table import gather_runs
from flopwitness.measure.calibration.calibrate import Calibrated
from flopwitness.measure.sources.workloads import workload_columns


@pytest.fixture(scope="session")
def known_cells() -> list[Cells]:
    """Twenty-four runs with every kind of traffic and declared steps."""
    return make_cells(24, seed=5)


@pytest.fixture(scope="session")
def calibrated(known_cells: list[Cells]) -> Calibrated:
    """What those runs teach."""
    return calibrate_cells(known_cells)


@pytest.fixture(scope="session")
def evaluation(known_cells: list[Cells]) -> Evaluation:
    """How well, with two runs done twice."""
    cells = [*known_cells, *({**known_cells[place], "net_energy_j": "20000"} for place in (0, 1))]
    rows = read_table(cells).rows
    runs = gather_runs(rows, columns=workload_columns(rows))
    plan = Plan(n_train=16, n_splits=5, seed=7, leave_out=("d_model",), curve=(5, 12))
    return evaluate_runs(runs, plan, catalogue=catalogue())


@pytest.fixture(scope="session")
def poor_evaluation() -> Evaluation:
    """Six runs of unknown hardware with power alone and no hyperparameter."""
    without = (
        "device", "world_size", "memory_traffic_tb", "link_traffic_tb", "host_traffic_tb", "optimizer",
        "d_model", "seq_len", "batch_size", "steps", "precision",
    )  # fmt: skip
    rows = read_table(make_cells(6, seed=5), without=without).rows
    return evaluate_runs(
        gather_runs(rows), Plan(n_train=5, n_splits=1, seed=7, curve=()), catalogue=catalogue()
    )


@pytest.fixture(scope="session")
def rules() -> dict[str, Rule]:
    """All rules by id."""
    return {rule.id: rule for rule in load_rules().rules}
