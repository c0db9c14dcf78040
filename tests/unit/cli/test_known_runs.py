"""Tables of runs as `calibrate` and `evaluate` read them: the rows asked for, or the reason why not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from flopwitness.cli.known_runs import (
    ChosenRuns,
    choice_options,
    option_names,
    read_tables,
    tables_argument,
    workload_option,
)
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.measure.samples import Scope

Write = Callable[..., Path]

HEAD = "run_id,precision,duration_s,energy_j,utilisation_pct,true_tflop\n"
FIRST = HEAD + "a,fp32,60,6000,95,10\nb,fp16,60,6000,90,20\nc,fp32,60,6000,50,30\nd,fp32,60,6000,,40\n"
SECOND = HEAD + "e,fp32,60,6000,99,50\nf,fp16,60,6000,99,60\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_it(text: str = FIRST, name: str = "first.csv") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_it


def read(*paths: Path, **choice: Any) -> ChosenRuns:  # noqa: ANN401 (the options of a call)
    return read_tables(paths, **{"wheres": (), "gate_pct": None, "scope": None, **choice})


def names(chosen: ChosenRuns) -> str:
    return "".join(row.run_id for row in chosen.rows)


def codes(chosen: ChosenRuns) -> list[tuple[str, int]]:
    return [(finding.code, finding.count) for finding in chosen.findings]


def test_all_rows_of_all_tables_come_in_order(write: Write) -> None:
    first, second = write(), write(SECOND, "second.csv")
    chosen = read(second, first)
    assert names(chosen) == "efabcd"
    assert [table.provenance.path for table, _ in chosen.tables] == [str(second), str(first)]
    assert [len(rows) for _, rows in chosen.tables] == [2, 4]
    assert chosen.findings == ()


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ({"wheres": ("precision=fp32",)}, "acde"),
        ({"wheres": ("precision=fp32", "true_tflop=1e1")}, "a"),
        ({"gate_pct": 90}, "abef"),
        ({"gate_pct": 90, "wheres": ("precision=fp32",)}, "ae"),
        ({"gate_pct": 0}, "abcef"),
    ],
)
def test_conditions_and_gate_hold_for_every_table(write: Write, choice: dict[str, Any], left: str) -> None:
    assert names(read(write(), write(SECOND, "second.csv"), **choice)) == left


def test_what_was_left_out_is_counted_by_table_and_reason(write: Write) -> None:
    chosen = read(write(), write(SECOND, "second.csv"), wheres=("precision=fp32",), gate_pct=80)
    assert codes(chosen) == [("rows-left-out", 1)] * 4
    assert ["condition" in finding.message for finding in chosen.findings] == [True, False, False, True]
    assert "below the gate" in chosen.findings[1].message
    assert "no utilisation" in chosen.findings[2].message


def test_a_table_may_give_nothing_where_another_gives_something(write: Write) -> None:
    chosen = read(write(), write(SECOND, "second.csv"), wheres=("run_id=e",))
    assert names(chosen) == "e"
    assert [len(rows) for _, rows in chosen.tables] == [0, 1]


@pytest.mark.parametrize("choice", [{"wheres": ("precision=int8",)}, {"gate_pct": 100}])
def test_nothing_left_is_refused(write: Write, choice: dict[str, Any]) -> None:
    path = write()
    with pytest.raises(InputError, match="no row is left") as refusal:
        read(path, write(SECOND, "second.csv"), **choice)
    assert refusal.value.where == str(path)


def test_a_stated_scope_fills_what_a_table_does_not_say(write: Write) -> None:
    path = write(HEAD.replace("run_id", "run_id,scope") + "a,,fp32,60,6000,9,1\nb,gpu,fp32,60,6000,9,1\n")
    assert [row.scope for row in read(path, scope="node-ac").rows] == [Scope.NODE_AC, Scope.GPU]
    assert [row.scope for row in read(path).rows] == [Scope.UNKNOWN, Scope.GPU]


def test_energy_without_a_scope_is_not_told_where_no_bound_is_asked(write: Write) -> None:
    assert "scope-unrecorded" not in {code for code, _ in codes(read(write()))}


def test_cells_that_cannot_be_read_are_told(write: Write) -> None:
    chosen = read(write(FIRST.replace("b,fp16,60", "b,fp16,long")))
    assert codes(chosen) == [("cells-skipped", 1)]
    assert names(chosen) == "abcd"


def test_the_same_bytes_twice_are_refused_whatever_their_name(write: Write) -> None:
    first, twin = write(), write(name="twin.csv")
    for again in (first, twin):
        with pytest.raises(InputError, match="the same table twice") as refusal:
            read(first, write(SECOND, "second.csv"), again)
        assert refusal.value.where == str(again)
        assert refusal.value.found == str(first)


@pytest.mark.parametrize("where", ["colour=red", "precision"])
def test_a_condition_that_cannot_be_asked_is_refused(write: Write, where: str) -> None:
    with pytest.raises(InputError) as refusal:
        read(write(), wheres=(where,))
    assert refusal.value.where == "--where"


def test_a_condition_on_a_column_that_one_table_lacks_is_refused(write: Write) -> None:
    bare = write("run_id,duration_s,energy_j\ng,60,6000\n", "bare.csv")
    with pytest.raises(InputError, match="no such column"):
        read(write(), bare, wheres=("precision=fp32",))


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        read(tmp_path / "none.csv")
    assert refusal.value.where == str(tmp_path / "none.csv")


@pytest.mark.parametrize("text", ["", "not a table", "run_id,duration_s\n", '{"spec": 1}'])
def test_what_is_no_table_of_runs_is_refused(write: Write, text: str) -> None:
    with pytest.raises(DecodeError):
        read(write(), write(text, "odd.csv"))


def test_too_many_tables_are_refused_before_any_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too many tables") as refusal:
        read(*[tmp_path / f"{number}.csv" for number in range(101)])
    assert (refusal.value.expected, refusal.value.found) == ("at most 100", "101")


@click.command()
@tables_argument
@choice_options
@workload_option
def asked(**options: object) -> None:
    """Take the options and do nothing."""


def parsed(*words: str) -> dict[str, Any]:
    with asked.make_context("asked", list(words)) as context:
        return context.params


def test_options_are_open_by_default() -> None:
    assert parsed("a.csv", "b.csv") == {
        "tables": (Path("a.csv"), Path("b.csv")),
        "wheres": (),
        "gate_pct": None,
        "scope": None,
        "columns": (),
    }


def context() -> click.Context:
    return click.Context(asked)


def parameter() -> click.Parameter:
    return next(item for item in asked.params if item.name == "columns")


def test_options_are_read_as_values() -> None:
    found = parsed(
        "a.csv",
        "--where",
        "x=1",
        "--where",
        "y=a=b",
        "--gate",
        "80",
        "--scope",
        "gpu",
        "--workload",
        " d , n",
    )
    assert found["wheres"] == ("x=1", "y=a=b")
    assert (found["gate_pct"], found["scope"]) == (80.0, "gpu")
    assert found["columns"] == ("d", "n")


@pytest.mark.parametrize(
    "words", [(), ("a.csv", "--gate", "101"), ("a.csv", "--gate", "nan"), ("a.csv", "--scope", "sky")]
)
def test_options_out_of_range_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        parsed(*words)


@pytest.mark.parametrize("text", ["", ",", "a,", "a,,b", "a,a", "a, a"])
def test_a_list_of_columns_names_each_once(text: str) -> None:
    with pytest.raises(InputError, match="no list of columns") as refusal:
        option_names(context(), parameter(), text)
    assert refusal.value.where == "--workload"
    assert refusal.value.found == repr(text)


def test_a_list_of_columns_keeps_its_order() -> None:
    assert option_names(context(), parameter(), "b, a,c d") == ("b", "a", "c d")
    assert option_names(context(), parameter(), None) == ()
