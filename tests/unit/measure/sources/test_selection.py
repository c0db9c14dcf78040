"""Runs are chosen by their cells and by a gate, and what is left out is counted."""

import pytest

from flopwitness.foundation.errors import InputError
from flopwitness.measure.sources.run_table import RunRow, decode_run_table
from flopwitness.measure.sources.selection import Condition, Selection, parse_where, select

TABLE = b"""run_id,precision,batch size,duration_s,utilisation_pct
a,fp32,16,1,95
b,fp16,16.0,1,79.9
c,fp32,8,1,
d,fp32,16,1,80
e,FP32,,1,50
"""


@pytest.fixture
def rows() -> tuple[RunRow, ...]:
    return decode_run_table(TABLE, where="runs.csv").rows


def names(selection: Selection) -> str:
    return "".join(row.run_id for row in selection.rows)


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("precision=fp32", "precision", "fp32"),
        (" batch size = 16 ", "batch size", "16"),
        ("note=a=b", "note", "a=b"),
        ("note=", "note", ""),
    ],
)
def test_condition_is_parsed(text: str, column: str, value: str) -> None:
    assert parse_where(text) == Condition(column=column, value=value)


@pytest.mark.parametrize("text", ["", "precision", "=fp32", "  =x", "precision:fp32"])
def test_no_condition(text: str) -> None:
    with pytest.raises(InputError, match="column=value"):
        parse_where(text)


@pytest.mark.parametrize(
    ("wheres", "chosen"),
    [
        ([], "abcde"),
        (["precision=fp32"], "acd"),
        (["PRECISION=fp32"], "acd"),
        (["batch size=16"], "abd"),
        (["batch size=1.6e1"], "abd"),
        (["batch size="], "e"),
        (["precision=fp32", "batch size=16"], "ad"),
        (["precision=bf16"], ""),
    ],
)
def test_all_conditions_must_hold(rows: tuple[RunRow, ...], wheres: list[str], chosen: str) -> None:
    selection = select(rows, [parse_where(where) for where in wheres])
    assert names(selection) == chosen
    assert selection.n_unmatched == len(rows) - len(chosen)


def test_gate_keeps_its_own_value_and_counts_the_rest(rows: tuple[RunRow, ...]) -> None:
    selection = select(rows, [parse_where("precision=fp32")], 80)
    assert names(selection) == "ad"
    assert (selection.n_unmatched, selection.n_below_gate, selection.n_without_utilisation) == (2, 0, 1)
    selection = select(rows, gate_pct=80)
    assert (selection.n_unmatched, selection.n_below_gate, selection.n_without_utilisation) == (0, 2, 1)


def test_run_without_utilisation_does_not_pass_even_a_gate_of_zero(rows: tuple[RunRow, ...]) -> None:
    selection = select(rows, gate_pct=0)
    assert names(selection) == "abde"
    assert selection.n_without_utilisation == 1


def test_unknown_column_is_refused_with_the_columns_there_are(rows: tuple[RunRow, ...]) -> None:
    with pytest.raises(
        InputError, match="run_id, precision, batch size, duration_s, utilisation_pct"
    ) as caught:
        select(rows, [parse_where("colour=red")])
    assert caught.value.found == "'colour'"


def test_columns_that_differ_by_case_alone_need_the_exact_name() -> None:
    rows = decode_run_table(b"duration_s,x,X\n1,a,b\n", where="t").rows
    assert len(select(rows, [parse_where("X=b")]).rows) == 1
    rows = decode_run_table(b"duration_s,ab,AB\n1,a,b\n", where="t").rows
    with pytest.raises(InputError):
        select(rows, [parse_where("Ab=b")])


@pytest.mark.parametrize("gate_pct", [-0.1, 100.1, float("nan"), float("inf")])
def test_gate_that_is_no_share_is_refused(rows: tuple[RunRow, ...], gate_pct: float) -> None:
    with pytest.raises(InputError, match="a percentage"):
        select(rows, gate_pct=gate_pct)


def test_nothing_is_left_of_nothing() -> None:
    assert select((), [parse_where("colour=red")], 80) == Selection(rows=())
