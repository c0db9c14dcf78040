"""Which runs repeat each other, by their hyperparameters and their true size."""

import pytest

from flopwitness.foundation.errors import InputError
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.measure.sources.workloads import HYPERPARAMETERS, number_workloads, workload_columns


def row(flop: int | None = 10**15, **cells: str) -> RunRow:
    return RunRow(row=2, cells=cells, true_flop=flop)


def test_known_hyperparameters_tell_workloads_apart() -> None:
    rows = [row(run_id="a", d_model="1", steps="5", duration_s="9", precision="fp16")] * 2
    assert workload_columns(rows) == ("d_model", "precision", "steps")
    assert workload_columns([row(run_id="a", duration_s="9")]) == ()
    assert workload_columns([]) == ()
    every = RunRow(row=2, cells=dict.fromkeys(HYPERPARAMETERS, "1"))
    assert workload_columns([every]) == HYPERPARAMETERS


def test_columns_that_a_table_lacks_tell_nothing_apart() -> None:
    assert workload_columns([row(d_model="1", seq_len="2"), row(d_model="1")]) == ("d_model",)


def test_named_columns_stand_in_their_order() -> None:
    rows = [row(d_model="1", group="x", steps="5")]
    assert workload_columns(rows, ["group", "d_model"]) == ("group", "d_model")


@pytest.mark.parametrize("named", [["grope"], ["group", "D_MODEL"], [""]])
def test_a_named_column_that_is_not_there_is_refused(named: list[str]) -> None:
    with pytest.raises(InputError, match="no such column") as refusal:
        workload_columns([row(d_model="1", group="x")], named)
    assert refusal.value.where == "--workload"
    assert refusal.value.expected == "one of d_model, group"


def test_a_named_column_that_only_one_of_two_tables_has_is_refused() -> None:
    with pytest.raises(InputError):
        workload_columns([row(group="x"), row(d_model="1")], ["group"])


def test_runs_are_numbered_in_the_order_of_their_workloads_first_runs() -> None:
    rows = [row(d_model=text) for text in ("512", "256", "512 ", "128", " 256")]
    assert number_workloads(rows, ["d_model"]).tolist() == [0, 1, 0, 2, 1]


def test_all_columns_must_agree() -> None:
    rows = [row(a="1", b="1"), row(a="1", b="2"), row(a="1", b="1"), row(a="2", b="1")]
    assert number_workloads(rows, ["a", "b"]).tolist() == [0, 1, 0, 2]
    assert number_workloads(rows, ["a"]).tolist() == [0, 0, 0, 1]


def test_runs_of_another_size_are_no_repeats() -> None:
    rows = [row(10**15, a="1"), row(2 * 10**15, a="1"), row(10**15, a="1"), row(None, a="1")]
    assert number_workloads(rows, ["a"]).tolist() == [0, 1, 0, 2]


def test_columns_are_not_run_together() -> None:
    rows = [row(a="1", b="23"), row(a="12", b="3")]
    assert number_workloads(rows, ["a", "b"]).tolist() == [0, 1]


def test_without_columns_every_run_stands_alone() -> None:
    assert number_workloads([row(a="1")] * 4, []).tolist() == [0, 1, 2, 3]
    assert number_workloads([], ["a"]).tolist() == []
