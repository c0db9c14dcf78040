"""One small evaluation of made-up runs, and how a test reads a picture."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping

import pytest
from tests.made_runs import catalogue, make_cells, read_table

from flopwitness.challenge.evaluation.evaluation import Evaluation, Plan, evaluate_runs
from flopwitness.challenge.evaluation.table import gather_runs
from flopwitness.measure.sources.workloads import workload_columns


@pytest.fixture(scope="session")
def evaluation() -> Evaluation:
    """All estimators on 24 runs with every kind of traffic and declared steps."""
    rows = read_table(make_cells(24, seed=5)).rows
    runs = gather_runs(rows, columns=workload_columns(rows))
    return evaluate_runs(runs, Plan(n_train=16, n_splits=6, seed=7, curve=(8, 14)), catalogue=catalogue())


@pytest.fixture(scope="session")
def poor_evaluation() -> Evaluation:
    """Six runs with power alone and no hyperparameter."""
    without = ("memory_traffic_tb", "link_traffic_tb", "host_traffic_tb")
    rows = read_table(make_cells(6, seed=5), without=without).rows
    return evaluate_runs(
        gather_runs(rows), Plan(n_train=4, n_splits=4, seed=7, curve=()), catalogue=catalogue()
    )


@pytest.fixture(scope="session")
def words() -> Callable[[Mapping[str, bytes] | None], str]:
    """All text of a figure's SVG."""

    def _words(drawn: Mapping[str, bytes] | None) -> str:
        assert drawn is not None
        assert set(drawn) == {"svg", "png"}
        root = ET.fromstring(drawn["svg"].decode())  # noqa: S314 (drawn by this test)
        return " | ".join(part.strip() for part in root.itertext() if part.strip())

    return _words
