"""A table as a whole: the scope that the user states, and what is told of rows without one."""

import pytest

from flopwitness.cli.whole_table import check_readable, fill_scope, table_findings
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunTable, decode_run_table
from flopwitness.measure.sources.selection import select

TABLE = (
    b"run_id,chip,count,duration_s,energy_j,scope\n"
    b"a,h100-sxm,8,3600,1e7,\n"
    b"b,h100-sxm,8,3600,1e7,gpu\n"
    b"c,h100-sxm,8,3600,,\n"
)


def _table(data: bytes = TABLE) -> RunTable:
    return decode_run_table(data, where="runs.csv")


def _codes(table: RunTable) -> dict[str, int | None]:
    return {f.code: f.count for f in table_findings(table, select(table.rows, [], None))}


def test_a_stated_scope_fills_what_is_empty_and_nothing_else() -> None:
    filled = fill_scope(_table(), Scope.NODE_AC)
    assert [row.scope for row in filled.rows] == [Scope.NODE_AC, Scope.GPU, Scope.NODE_AC]
    assert fill_scope(_table(), None) == _table()


def test_energy_without_a_scope_is_told_once_for_the_table() -> None:
    assert _codes(_table()) == {"scope-unrecorded": 1}
    assert _codes(fill_scope(_table(), Scope.GPU)) == {}


def test_a_table_without_rows_is_refused() -> None:
    check_readable(_table())
    with pytest.raises(DecodeError, match="a table without runs"):
        check_readable(_table(b"run_id,chip,count,duration_s\n"))
