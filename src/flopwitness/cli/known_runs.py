"""Tables of runs as `calibrate` and `evaluate` read them: one or several, and the rows that are asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from flopwitness.cli.options import FiniteRange
from flopwitness.cli.whole_table import check_readable, fill_scope, table_findings
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import read_bounded
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_records import LARGEST_TABLE_BYTES
from flopwitness.measure.sources.run_table import RunRow, RunTable, decode_run_table
from flopwitness.measure.sources.selection import parse_where, select

__all__ = [
    "ChosenRuns",
    "choice_options",
    "option_names",
    "read_tables",
    "tables_argument",
    "workload_option",
]

_MOST_TABLES: Final = 100

tables_argument = click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--where`, `--gate` and `--scope`: which rows, and what their energy covers."""
    for option in (
        click.option(
            "--scope",
            type=click.Choice([str(scope) for scope in Scope]),
            help="What the energy covers, where the table does not say.",
        ),
        click.option(
            "--gate",
            "gate_pct",
            type=FiniteRange(0, 100),
            metavar="PERCENT",
            help="Only runs with a mean utilisation of at least this.",
        ),
        click.option(
            "--where",
            "wheres",
            multiple=True,
            metavar="COLUMN=VALUE",
            help="Only rows with this value; may be repeated.",
        ),
    ):
        command = option(command)
    return command


def option_names(_: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names of columns, separated by commas.

    Raises:
        InputError: A name that stands twice, or none.
    """
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            "no list of columns",
            where=parameter.opts[0],
            expected="COLUMN,COLUMN,... each once",
            found=repr(text[:80]),
        )
    return names


workload_option = click.option(
    "--workload",
    "columns",
    callback=option_names,
    metavar="COLUMN,...",
    help="The columns that make a workload; its repeats count once. [known hyperparameters]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRuns:
    """The chosen rows of all tables.

    Attributes:
        tables: Each table with its rows.
        findings: What could not be read, and what was left out.
    """

    tables: tuple[tuple[RunTable, tuple[RunRow, ...]], ...]
    findings: tuple[Finding, ...]

    @property
    def rows(self) -> tuple[RunRow, ...]:
        """All rows, table by table."""
        return tuple(row for _, rows in self.tables for row in rows)


def read_tables(
    paths: Sequence[Path], *, wheres: Sequence[str], gate_pct: float | None, scope: str | None
) -> ChosenRuns:
    """The chosen rows of one or several tables.

    Args:
        paths: The tables; none twice.
        wheres: Conditions that all must hold.
        gate_pct: The lowest mean utilisation [%].
        scope: What energy covers where a table does not say.

    Raises:
        InputError: A table that is missing or named twice, a condition on a column it lacks, or no row left.
        DecodeError: Not a table of runs.
    """
    if len(paths) > _MOST_TABLES:
        raise InputError("too many tables", expected=f"at most {_MOST_TABLES}", found=str(len(paths)))
    conditions = [parse_where(text) for text in wheres]
    chosen: list[tuple[RunTable, tuple[RunRow, ...]]] = []
    findings: list[Finding] = []
    for path in paths:
        data = read_bounded(path, limit_bytes=LARGEST_TABLE_BYTES)
        table = fill_scope(decode_run_table(data, where=str(path)), None if scope is None else Scope(scope))
        check_readable(table)
        twin = next(
            (other for other, _ in chosen if other.provenance.digest == table.provenance.digest), None
        )
        if twin is not None:
            raise InputError(
                "the same table twice",
                where=str(path),
                expected="each run once",
                found=twin.provenance.path,
            )
        selection = select(table.rows, conditions, gate_pct)
        findings += [item for item in table_findings(table, selection) if item.code != "scope-unrecorded"]
        chosen.append((table, selection.rows))
    if not any(rows for _, rows in chosen):
        raise InputError("no row is left", where=str(paths[0]), expected="rows that meet --where and --gate")
    return ChosenRuns(tables=tuple(chosen), findings=tuple(findings))
