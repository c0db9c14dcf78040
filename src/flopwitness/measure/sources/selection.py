"""Which runs of a table are looked at: conditions on its cells, and a gate on utilisation.

A condition names a column of the table as it stands, so that every column can be asked for, those included
that never reach a prediction. What is left out is counted, by reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from flopwitness.foundation.errors import InputError
from flopwitness.measure.sources.run_columns import is_plain_number
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["Condition", "Selection", "parse_where", "select"]

_FULL_SHARE_PCT: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """That a column holds a value.

    Attributes:
        column: The column's name in the table; case and outer white space carry no meaning.
        value: The wanted value; compared as a number where both sides are numbers, else as text.
    """

    column: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The runs that are left, and how many were left out, by the first reason that applies.

    Attributes:
        rows: The runs in the order of the table.
        n_unmatched: Runs that miss a condition.
        n_below_gate: Runs that meet every condition, with a utilisation below the gate.
        n_without_utilisation: Runs that meet every condition, whose utilisation is not known; where there
            is a gate they do not pass it.
    """

    rows: tuple[RunRow, ...]
    n_unmatched: int = 0
    n_below_gate: int = 0
    n_without_utilisation: int = 0


def parse_where(text: str) -> Condition:
    """The condition that `column=value` asks for; the value may be empty, and may hold more equals signs.

    Raises:
        InputError: No equals sign, or no column before it.
    """
    column, equals, value = text.partition("=")
    if not equals or not column.strip():
        raise InputError("not a condition", where="--where", expected="column=value", found=repr(text[:80]))
    return Condition(column=column.strip(), value=value.strip())


def select(
    rows: Sequence[RunRow], conditions: Sequence[Condition] = (), gate_pct: float | None = None
) -> Selection:
    """The runs that meet every condition and whose utilisation is at least the gate.

    Args:
        rows: Runs of one table, which therefore share their columns.
        conditions: All must hold.
        gate_pct: The lowest mean utilisation [%], 0 to 100; None for no gate.

    Raises:
        InputError: A condition on a column that the table does not have, or a gate that is no share.
    """
    if gate_pct is not None and not 0 <= gate_pct <= _FULL_SHARE_PCT:
        raise InputError("not a gate", where="--gate", expected="a percentage", found=str(gate_pct))
    if not rows:
        return Selection(rows=())
    wanted = [(_find_column(rows[0].cells, each.column), each.value) for each in conditions]
    matched = [row for row in rows if all(_is_equal(row.cells[name], value) for name, value in wanted)]
    n_unmatched = len(rows) - len(matched)
    if gate_pct is None:
        return Selection(rows=tuple(matched), n_unmatched=n_unmatched)
    known = [(row, row.utilisation_pct) for row in matched if row.utilisation_pct is not None]
    passed = tuple(row for row, utilisation_pct in known if utilisation_pct >= gate_pct)
    return Selection(
        rows=passed,
        n_unmatched=n_unmatched,
        n_below_gate=len(known) - len(passed),
        n_without_utilisation=len(matched) - len(known),
    )


def _find_column(cells: Mapping[str, str], name: str) -> str:
    """The column of that name; where two differ by case alone, only the exact name finds one."""
    if name in cells:
        return name
    alike = [column for column in cells if column.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    raise InputError(
        "no such column", where="--where", expected=f"one of {', '.join(cells)}", found=repr(name[:80])
    )


def _is_equal(cell: str, value: str) -> bool:
    cell, value = cell.strip(), value.strip()
    if is_plain_number(cell) and is_plain_number(value):
        return Decimal(cell) == Decimal(value)
    return cell == value
