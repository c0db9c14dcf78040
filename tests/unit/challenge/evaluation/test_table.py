"""Runs of known size: sensors on one side, workloads and claims on the other."""

import numpy as np
from tests.made_runs import make_cells, read_table

from flopwitness.challenge.evaluation.table import KnownRuns, gather_runs
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.declared_steps import declare_steps

CELLS = make_cells(6, optimizer="adamw", note=" x ", d_model=lambda n: ("256 ", "512", "256")[n % 3])
ROWS = read_table(CELLS).rows


def gather(*columns: str) -> KnownRuns:
    return gather_runs(ROWS, columns=columns)


def test_all_sides_of_a_run_stand_in_the_order_of_the_table() -> None:
    runs = gather("d_model")
    assert runs.rows == ROWS
    assert runs.flop.tolist() == [float(row.true_flop or 0) for row in ROWS]
    np.testing.assert_array_equal(runs.observed.energy_j, observe(ROWS).energy_j)
    np.testing.assert_array_equal(runs.declared.tokens, declare_steps(ROWS).tokens)
    assert runs.columns == ("d_model",)


def test_values_are_the_cells_without_outer_white_space() -> None:
    assert gather().values("d_model") == ("256", "512", "256", "256", "512", "256")
    assert gather().values("note") == ("x",) * 6


def test_repeats_share_a_workload() -> None:
    repeated = gather_runs([*ROWS, ROWS[2], ROWS[0]], columns=["d_model", "seq_len", "batch_size"])
    assert repeated.n_workloads == 6
    assert repeated.workload.tolist() == [0, 1, 2, 3, 4, 5, 2, 0]


def test_without_columns_every_run_is_its_own_workload() -> None:
    assert gather_runs([ROWS[0], ROWS[0]]).n_workloads == 2


def test_axes_are_the_columns_that_vary_step_counts_aside() -> None:
    assert gather("d_model", "optimizer", "steps", "batch_size").axes() == ("d_model", "batch_size")
    assert gather("optimizer", "note", "steps").axes() == ()


def test_no_rows_are_no_runs() -> None:
    runs = gather_runs([], columns=["d_model"])
    assert runs.n_workloads == 0
    assert runs.values("d_model") == ()
    assert runs.axes() == ()
    assert len(runs.observed) == runs.flop.size == 0
