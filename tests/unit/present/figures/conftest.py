"""One small evaluation of made-up runs, and how a test reads a picture."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping

import pytest
from tests.made_runs import catalogue, make_cells, read_table

from flopwitness.challenge.evaluation.evaluation import Evaluation, Plan, evaluate_runs
from flopwitness.challenge.evaluation.table import gather_runs
from flopwitness.measure.samples import Channel, RunWindow, Series, Trace
from flopwitness.measure.sources.workloads import workload_columns
from flopwitness.present.figures.evaluation import draw_evaluation

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Words = Callable[[Mapping[str, bytes] | None], str]


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
def trace(make_series: MakeSeries, make_window: MakeWindow) -> Trace:
    """Power and memory traffic of 20 s, one run marked."""
    traffic = make_series([1e9] * 20, channel=Channel.MEMORY_TRAFFIC_BYTE_PER_S)
    return Trace(series=(make_series(range(20)), traffic), windows=(make_window(3, 19),))


@pytest.fixture(scope="session")
def drawn(evaluation: Evaluation, trace: Trace) -> dict[str, bytes]:
    """All figures of the evaluation."""
    return draw_evaluation(evaluation, trace=trace, title="made up")


@pytest.fixture(scope="session")
def parts(drawn: dict[str, bytes], words: Words) -> Callable[[str], list[str]]:
    """What one of those figures says, piece by piece."""
    return lambda name: words({form: drawn[f"{name}.{form}"] for form in ("svg", "png")}).split(" | ")


@pytest.fixture(scope="session")
def words() -> Words:
    """All text of a figure's SVG."""

    def _words(drawn: Mapping[str, bytes] | None) -> str:
        assert drawn is not None
        assert set(drawn) == {"svg", "png"}
        root = ET.fromstring(drawn["svg"].decode())  # noqa: S314 (drawn by this test)
        return " | ".join(part.strip() for part in root.itertext() if part.strip())

    return _words
