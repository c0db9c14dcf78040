"""A table of runs as the user asks for it: what fills its gaps, and what is told of it as a whole."""

from dataclasses import replace

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunTable
from flopwitness.measure.sources.selection import Selection
from flopwitness.present.safe_text import name_count

__all__ = ["check_readable", "fill_scope", "table_findings"]


def check_readable(table: RunTable) -> None:
    """Refuse a table that gave no row: an empty answer would look as if something had been judged.

    Raises:
        DecodeError: No row, with the first reason.
    """
    if table.rows:
        return
    if not table.skipped:
        raise DecodeError("a table without runs", where=table.provenance.path, expected="one row a run")
    first = table.skipped[0]
    raise DecodeError("no row could be read", where=first.where, expected=first.expected, found=first.found)


def table_findings(table: RunTable, selection: Selection) -> list[Finding]:
    """What could not be read, and what was left out and why."""
    findings = []
    if table.n_skipped:
        first = table.skipped[0]
        findings.append(
            Finding(
                code="cells-skipped",
                severity=Severity.WARNING,
                message=(
                    f"{table.n_skipped} cells or rows could not be read and count as missing, first "
                    f"{first.where}"
                ),
                where=first.where,
                expected=first.expected,
                found=first.found,
                count=table.n_skipped,
            )
        )
    left_out = (
        (selection.n_unmatched, "misses a condition", "miss a condition"),
        (selection.n_below_gate, "stays below the gate", "stay below the gate"),
        (
            selection.n_without_utilisation,
            "records no utilisation and cannot pass the gate",
            "record no utilisation and cannot pass the gate",
        ),
    )
    findings += [
        Finding(
            code="rows-left-out",
            severity=Severity.NOTE,
            message=f"{name_count(count, 'row')} {one if count == 1 else many}",
            count=count,
        )
        for count, one, many in left_out
        if count
    ]
    return [*findings, *_scope_findings(selection)]


def fill_scope(table: RunTable, scope: Scope | None) -> RunTable:
    """The table, with what the user says that energy covers in the rows that do not say it themselves."""
    if scope is None:
        return table
    rows = (replace(row, scope=scope) if row.scope is Scope.UNKNOWN else row for row in table.rows)
    return replace(table, rows=tuple(rows))


def _scope_findings(selection: Selection) -> list[Finding]:
    """The energy that stays unused because nobody says what it covers."""
    count = sum(1 for row in selection.rows if row.energy_j is not None and row.scope is Scope.UNKNOWN)
    if not count:
        return []
    return [
        Finding(
            code="scope-unrecorded",
            severity=Severity.NOTE,
            message=(
                f"energy of {name_count(count, 'row')} bounds nothing: nothing says what it covers; "
                "--scope names it"
            ),
            expected="a scope, such as gpu or node-ac",
            count=count,
        )
    ]
