"""The total of a table whose parents contain their children, or a refusal."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.integrations.module_table import total_of_module_table


def test_the_row_of_everything() -> None:
    assert total_of_module_table({"Global": 12, "Net": 10, "Net.a": 4, "Other": 2}) == 12


def test_the_only_root() -> None:
    assert total_of_module_table({"Net": 10, "Net.a": 4, "Net.a.b": 4, "Net.c": 6}) == 10
    assert total_of_module_table({"": 10, "a": 4, "a.b": 4}) == 10


def test_rows_by_operator_are_added() -> None:
    assert total_of_module_table({"Net": {"mm": 10, "bmm": 2}, "Net.a": {"mm": 4}, "Net.b": {}}) == 12


def test_a_shared_module_may_exceed_its_parent() -> None:
    assert total_of_module_table({"Net": 12, "Net.a": 4, "Net.a.shared": 12}) == 12


def test_the_other_counters_own_table() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    with FlopCounterMode(display=False) as mode:
        model(torch.randn(3, 4))
    table = mode.get_flop_counts()
    assert total_of_module_table(table) == mode.get_total_flops() == 2 * 3 * 4 * 8 + 2 * 3 * 8 * 2
    assert sum(sum(row.values()) for row in table.values()) > mode.get_total_flops()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": 4, "b": 6}, "several roots"),
        ({"Net.a": 4, "Net.b": 6}, "several roots"),
        ({"Net": 10, "Net.a": 11}, "exceeds the row Net"),
        ({"Global": 5, "Net": 10}, "exceeds the row Global"),
        ({"": 5, "a": 10}, "exceeds the row of the root"),
    ],
)
def test_a_total_that_cannot_be_told_is_refused(rows: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        total_of_module_table(rows)


@pytest.mark.parametrize(
    "rows",
    [{}, {"Net": -1}, {"Net": 1.5}, {"Net": "12"}, {"Net": True}, {"Net": None}, {"Net": {"mm": -1}}, {3: 4}],
)
def test_what_is_no_table_of_counts_is_refused(rows: dict[str, object]) -> None:
    with pytest.raises(DecodeError) as caught:
        total_of_module_table(rows, where="flops.json")
    assert "flops.json" in caught.value.where


def test_a_deep_name_is_looked_up_prefix_by_prefix() -> None:
    deep = "a" + ".b" * 900
    assert total_of_module_table({"a": 7, deep: 3}) == 7
    with pytest.raises(DecodeError, match="not a module's name"):
        total_of_module_table({"a": 7, "a" + ".b" * 100_000: 3})
