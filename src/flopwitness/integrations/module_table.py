"""The total of a table by module whose parents contain their children, as other counters print it.

Adding its rows counts every operation once for each level, and a module that several places share once for
each of them. The total is one row: that of everything, or the only root. No row can exceed it; a row may
exceed its parent's, where it is shared. Where the total cannot be told, nothing is returned.

The rows of our own counts (`OperationCount.by_module`) hold no children and add up: they need none of this.
"""

from collections.abc import Mapping
from typing import Final

from flopwitness.foundation.errors import DecodeError, InputError

__all__ = ["GLOBAL_ROW", "total_of_module_table"]

GLOBAL_ROW: Final = "Global"
_LONGEST_NAME: Final = 2_000


def total_of_module_table(rows: Mapping[str, object], *, where: str = "module table") -> int:
    """The operations of everything [FLOP].

    Args:
        rows: By the module's dotted name, its operations with those of all inside it: a whole number, or
            whole numbers by operator. With or without a row `Global` of everything.
        where: The place to name in an error.

    Raises:
        DecodeError: The table is empty, or a row is not a count.
        InputError: There are several roots and no row of everything; or a row exceeds the total, so that
            the rows are not what they are taken for.
    """
    totals = {name: _row_total(name, row, where) for name, row in rows.items()}
    if not totals:
        raise DecodeError("no rows", where=where, expected="a row for each module")
    holder = _row_of_everything(totals, where)
    for name, flop in totals.items():
        if flop > totals[holder]:
            raise InputError(
                f"the row {name[:80]} exceeds the row {holder or 'of the root'}, which should contain it",
                where=where,
                expected=f"at most {totals[holder]}",
                found=str(flop),
            )
    return totals[holder]


def _row_of_everything(totals: Mapping[str, int], where: str) -> str:
    """The row that contains all others: the one of that name, or the only one without a parent."""
    if GLOBAL_ROW in totals:
        return GLOBAL_ROW
    roots = [name for name in totals if not _has_parent(name, totals)]
    if len(roots) != 1:
        raise InputError(
            "the total cannot be told: several roots, and no row of everything",
            where=where,
            expected=f"a row {GLOBAL_ROW}, or one root",
            found=", ".join(root[:80] for root in sorted(roots)[:5]),
        )
    return roots[0]


def _has_parent(name: str, totals: Mapping[str, int]) -> bool:
    """Whether any row stands for what contains this one; the root of all may have an empty name."""
    prefix = name
    for _ in range(name.count(".")):
        prefix = prefix.rpartition(".")[0]
        if prefix in totals:
            return True
    return name != "" and "" in totals


def _row_total(name: object, row: object, where: str) -> int:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        expected = f"text of at most {_LONGEST_NAME} characters"
        raise DecodeError("not a module's name", where=where, expected=expected, found=repr(name)[:80])
    parts = list(row.values()) if isinstance(row, Mapping) else [row]
    total = 0
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, int) or part < 0:
            raise DecodeError(
                "not a count of operations",
                where=f"{where}, row {name[:80]}",
                expected="a whole number, at least 0",
                found=repr(part)[:80],
            )
        total += part
    return total
