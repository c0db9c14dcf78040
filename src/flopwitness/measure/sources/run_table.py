"""Tables in which one row is one training run: delimited text or Parquet, from many hands.

The header is understood through the vocabulary of `run_columns`; what it does not know is ignored by name.
A cell that cannot be read is missing and recorded, a row that cannot be read is skipped and recorded, and
only a table in which no run can be known at all is refused. A missing value is None, never zero.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Provenance, Scope, Skipped
from flopwitness.measure.sources.run_columns import (
    CellValue,
    Column,
    ColumnPlan,
    plan_columns,
    read_cell,
    split_chip,
)
from flopwitness.measure.sources.run_records import (
    LARGEST_TABLE_BYTES,
    MOST_ROWS,
    Records,
    check_limit,
    is_parquet,
    open_parquet,
    open_text,
)

__all__ = [
    "EnergyOrigin",
    "RunRow",
    "RunTable",
    "check_run_table",
    "decode_run_table",
    "is_run_table",
]

FORMAT: Final = "run-table"
MOST_SKIPPED_KEPT: Final = 1_000

_AGREEMENT: Final = 1e-3  # two columns for one quantity may differ by their rounding

_KNOWABLE: Final = ("chip_name", "duration_s", "energy_j", "net_energy_j", "mean_power_w")
_OF_A_WHOLE_RUN: Final = ("duration_s", "energy_j", "net_energy_j", "true_flop", "declared_flop")
_OF_ONE_READING: Final = frozenset(
    {"timestamp", "timestamp_utc", "timestamp_epoch", "time_s", "t_s", "gpu_uuid", "uuid", "rank"}
)


class EnergyOrigin(StrEnum):
    """Where the total energy of a run comes from."""

    RECORDED = "recorded"
    NET_PLUS_IDLE = "net-plus-idle"  # net_energy_j + idle_power_w * duration_s
    MEAN_POWER = "mean-power"  # mean_power_w * duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One training run as its table tells it; what the table does not tell is None, or "" for a text.

    Attributes:
        row: The line of the file on which the row begins, from 1 (so the first run is mostly on line 2);
            in Parquet, which has no lines, the number of the record, from 1.
        cells: Every cell as it stands, by column name.
        run_id: The run's or the model's name.
        chip_name: The accelerator as it stands, without a leading count.
        count: How many chips.
        duration_s: Length of the run [s], > 0.
        energy_j: Energy of all chips together, idle included [J], > 0.
        energy_origin: Whether that energy was recorded or derived; None where there is none.
        net_energy_j: Energy above idle [J], >= 0.
        idle_power_w: Power of all chips together at rest [W], >= 0.
        mean_power_w: Mean power of all chips together, idle included [W], > 0.
        scope: What energy and power cover.
        power_mode: The declared power mode or power limit, as it stands.
        clock_limit: The declared clock limits, as they stand.
        driver: The driver's version, as it stands.
        precisions: The declared number formats, in lower case.
        utilisation_pct: Mean utilisation [%], 0 to 100.
        memory_traffic_tb: Memory traffic [TB, or the counter's own unit where that is not calibrated].
        link_traffic_tb: Traffic between chips [TB].
        host_traffic_tb: Traffic with the host [TB].
        true_flop: The counted FLOP, only for judging an estimate.
        declared_flop: The published total FLOP: a claim.
        finetune_flop: The published FLOP of fine-tuning alone: a claim.
        base_model: The model that this run started from.
    """

    row: int
    cells: Mapping[str, str]
    run_id: str = ""
    chip_name: str = ""
    count: int | None = None
    duration_s: float | None = None
    energy_j: float | None = None
    energy_origin: EnergyOrigin | None = None
    net_energy_j: float | None = None
    idle_power_w: float | None = None
    mean_power_w: float | None = None
    scope: Scope = Scope.UNKNOWN
    power_mode: str = ""
    clock_limit: str = ""
    driver: str = ""
    precisions: tuple[str, ...] = ()
    utilisation_pct: float | None = None
    memory_traffic_tb: float | None = None
    link_traffic_tb: float | None = None
    host_traffic_tb: float | None = None
    true_flop: int | None = None
    declared_flop: int | None = None
    finetune_flop: int | None = None
    base_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """A table of runs, and what of it was not understood.

    Attributes:
        rows: The runs in the order of the table.
        columns: The columns that were understood: their names, and the field that each fills.
        ignored: The names of the columns that were not used.
        skipped: The first 1,000 refused columns, unreadable rows and unreadable cells, located.
        n_skipped: How many there are in all.
        provenance: Where the table came from.
    """

    rows: tuple[RunRow, ...]
    columns: Mapping[str, str]
    ignored: tuple[str, ...]
    provenance: Provenance
    skipped: tuple[Skipped, ...] = ()
    n_skipped: int = 0


@dataclass(slots=True)
class _Skips:
    """The growing list of what could not be read: the first of them kept, all of them counted."""

    kept: list[Skipped] = field(default_factory=list)
    total: int = 0

    def add(self, where: str, expected: str, found: str) -> None:
        self.total += 1
        if len(self.kept) < MOST_SKIPPED_KEPT:
            self.kept.append(Skipped(where=where, expected=expected, found=found))


def decode_run_table(data: bytes, *, where: str) -> RunTable:
    """The runs of a table: delimited text in UTF-8 (comma, semicolon or tab), or Parquet.

    Where a row has no total energy, it is derived from net energy, idle power and duration, or else from
    mean power and duration, and its origin says so.

    Args:
        data: The file's bytes: at most 512 MiB, 4,096 columns, 1,000,000 rows, 1 MiB a cell.
        where: The path to name in errors and in `skipped`.

    Returns:
        The table; a row that is blank throughout is no run.

    Raises:
        DecodeError: Not such a file, beyond those limits, a column name that stands twice, a quoted cell
            that never closes, no column from which a chip, a duration or an energy can be known, or
            single readings in place of whole runs.
    """
    check_limit(len(data), LARGEST_TABLE_BYTES, "bytes", where=where)
    records = _open(data, where=where)
    plan = plan_columns(records.names, where=f"{where}:{records.line}")
    if not plan.has(*_KNOWABLE) or (_holds_readings(plan) and not plan.has(*_OF_A_WHOLE_RUN)):
        raise _refuse_header(records, where=where)
    skips = _Skips()
    for refusal in plan.refused:
        skips.add(refusal.where, refusal.expected, refusal.found)
    return RunTable(
        rows=tuple(_read_rows(records, plan, skips, where=where)),
        columns=MappingProxyType({column.header: column.field for column in plan.columns}),
        ignored=plan.ignored,
        skipped=tuple(skips.kept),
        n_skipped=skips.total,
        provenance=Provenance(path=where, format=FORMAT, digest=digest_bytes(data), size_bytes=len(data)),
    )


def is_run_table(head: bytes, name: str) -> bool:
    """Whether a file that begins so is a table of runs.

    Its header must name a quantity of a whole run (a duration, an energy, a count of operations) and one
    thing more, and nothing that belongs to single readings or single processes, such as a timestamp.
    A Parquet file keeps its column names at its end, so that it is known only where `head` is all of it.

    Args:
        head: The file's first bytes, with its whole first line.
        name: The file's name.
    """
    try:
        return check_run_table(head, where=name)
    except DecodeError:
        return False


def check_run_table(head: bytes, *, where: str) -> bool:
    """Whether a file that begins so is a table of runs, as `is_run_table` tells; a near miss is told.

    A header that names what only a table of runs names was meant for one. Its owner must learn what is
    wrong with it, and not that the file is unknown.

    Args:
        head: The file's first bytes, with its whole first line; all of a Parquet file.
        where: The path to name in an error.

    Returns:
        True for a table of runs, False for a file that has nothing of one.

    Raises:
        DecodeError: Nearly a table of runs: a column name that stands twice, a quantity without a known
            unit, no time and no energy, or single readings in place of runs.
    """
    if not is_parquet(head):
        head = head[: head.rfind(b"\n") + 1]
    known: set[str] = set()

    def judge(names: Sequence[str]) -> int:
        columns = plan_columns(names, where=where).columns
        known.update(column.field for column in columns)
        return len(columns)

    try:
        records = open_parquet(head, where=where) if is_parquet(head) else open_text(head, judge, where=where)
    except DecodeError:
        if known:
            raise
        return False
    plan = plan_columns(records.names, where=f"{where}:{records.line}")
    fields = {column.field for column in plan.columns}
    if plan.has(*_OF_A_WHOLE_RUN) and len(fields) > 1 and not _holds_readings(plan):
        return True
    if len(fields) > 1 or plan.refused:
        raise _near_miss(records, plan, where=where)
    return False


def _near_miss(records: Records, plan: ColumnPlan, *, where: str) -> DecodeError:
    """Why a table that names quantities of runs is no table of runs."""
    if _holds_readings(plan):
        single = next(name for name in plan.ignored if name.strip().lower() in _OF_ONE_READING)
        return DecodeError(
            "single readings or processes in place of whole runs",
            where=f"{where}:{records.line}",
            expected="one row a run",
            found=f"a column {single.strip()}",
        )
    if plan.refused:
        first = plan.refused[0]
        return DecodeError(
            "not a table of runs", where=first.where, expected=first.expected, found=first.found
        )
    return DecodeError(
        "a table of runs without time or energy",
        where=f"{where}:{records.line}",
        expected="a column such as duration_s, energy_j or declared_flop, and one thing more",
        found=", ".join(name[:40] for name in records.names[:20]),
    )


def _holds_readings(plan: ColumnPlan) -> bool:
    """Whether a column belongs to single readings or single processes, not to whole runs."""
    return any(header.strip().lower() in _OF_ONE_READING for header in plan.ignored)


def _open(data: bytes, *, where: str) -> Records:
    if is_parquet(data):
        return open_parquet(data, where=where)
    return open_text(data, lambda names: len(plan_columns(names, where=where).columns), where=where)


def _read_rows(records: Records, plan: ColumnPlan, skips: _Skips, *, where: str) -> Iterator[RunRow]:
    """The runs, one by one; what cannot be read is added to `skips`."""
    expected = f"{len(records.names)} cells"
    for n_read, record in enumerate(records.rows, start=1):
        place, cells = f"{where}:{record.line}", record.cells
        check_limit(n_read, MOST_ROWS, "rows", where=place)
        if cells is None:
            skips.add(place, expected, "a quotation mark inside a cell")
        elif not any(cell.strip() for cell in cells):
            continue
        elif len(cells) != len(records.names):
            skips.add(place, expected, f"{len(cells)} cells")
        else:
            values = _read_values(plan.columns, cells, skips, place=place)
            named = MappingProxyType(dict(zip(records.names, cells, strict=True)))
            yield _build_row(record.line, named, values)


def _read_values(
    columns: Sequence[Column], cells: Sequence[str], skips: _Skips, *, place: str
) -> dict[str, CellValue]:
    """What a row says, by field; columns that contradict each other leave their field missing."""
    told: list[tuple[str, CellValue, str]] = []
    for column in columns:
        where = f"{place}, column {column.header}"
        try:
            value = read_cell(column, cells[column.index], where=where)
        except DecodeError as error:
            skips.add(where, error.expected, error.found)
            continue
        if column.field == "chip_name" and isinstance(value, str):
            count, value = split_chip(value)
            if count is not None:
                told.append(("count", count, where))
        if value is not None:
            told.append((column.field, value, where))
    return _reconcile(told, skips)


def _reconcile(told: Iterable[tuple[str, CellValue, str]], skips: _Skips) -> dict[str, CellValue]:
    """One value a field: the first told, or none where another contradicts it."""
    values: dict[str, CellValue] = {}
    contradicted = set()
    for name, value, where in told:
        held = values.setdefault(name, value)
        if not _agree(held, value):
            contradicted.add(name)
            skips.add(where, f"{name} {held}, as another column of this row says", str(value)[:80])
    return {name: value for name, value in values.items() if name not in contradicted}


def _agree(held: CellValue, value: CellValue) -> bool:
    if isinstance(held, float) and isinstance(value, float):
        return math.isclose(held, value, rel_tol=_AGREEMENT)
    return held == value


def _build_row(line: int, cells: Mapping[str, str], values: Mapping[str, CellValue]) -> RunRow:
    scope = values.get("scope")
    precisions = values.get("precisions")
    energy_j, origin = _total_energy(values)
    return RunRow(
        row=line,
        cells=cells,
        run_id=_text(values, "run_id"),
        chip_name=_text(values, "chip_name"),
        count=_whole(values, "count"),
        duration_s=_quantity(values, "duration_s"),
        energy_j=energy_j,
        energy_origin=origin,
        net_energy_j=_quantity(values, "net_energy_j"),
        idle_power_w=_quantity(values, "idle_power_w"),
        mean_power_w=_quantity(values, "mean_power_w"),
        scope=scope if isinstance(scope, Scope) else Scope.UNKNOWN,
        power_mode=_text(values, "power_mode"),
        clock_limit=_text(values, "clock_limit"),
        driver=_text(values, "driver"),
        precisions=precisions if isinstance(precisions, tuple) else (),
        utilisation_pct=_quantity(values, "utilisation_pct"),
        memory_traffic_tb=_quantity(values, "memory_traffic_tb"),
        link_traffic_tb=_quantity(values, "link_traffic_tb"),
        host_traffic_tb=_quantity(values, "host_traffic_tb"),
        true_flop=_whole(values, "true_flop"),
        declared_flop=_whole(values, "declared_flop"),
        finetune_flop=_whole(values, "finetune_flop"),
        base_model=_text(values, "base_model"),
    )


def _total_energy(values: Mapping[str, CellValue]) -> tuple[float | None, EnergyOrigin | None]:
    """The energy of a run with idle included [J], and where it comes from."""
    energy_j, duration_s = _quantity(values, "energy_j"), _quantity(values, "duration_s")
    net_energy_j, idle_power_w = _quantity(values, "net_energy_j"), _quantity(values, "idle_power_w")
    mean_power_w = _quantity(values, "mean_power_w")
    if energy_j is not None:
        return energy_j, EnergyOrigin.RECORDED
    if duration_s is not None and net_energy_j is not None and idle_power_w is not None:
        total_j = net_energy_j + idle_power_w * duration_s
        if total_j > 0:
            return total_j, EnergyOrigin.NET_PLUS_IDLE
    if duration_s is not None and mean_power_w is not None:
        return mean_power_w * duration_s, EnergyOrigin.MEAN_POWER
    return None, None


def _text(values: Mapping[str, CellValue], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _whole(values: Mapping[str, CellValue], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _quantity(values: Mapping[str, CellValue], name: str) -> float | None:
    value = values.get(name)
    return value if isinstance(value, float) else None


def _refuse_header(records: Records, *, where: str) -> DecodeError:
    return DecodeError(
        "not a table of runs",
        where=f"{where}:{records.line}",
        expected="a column for a chip, a duration or an energy, such as chip, duration_s, energy_j",
        found=", ".join(name[:40] for name in records.names[:20]),
    )
