"""Telemetry in a Parquet file, its columns known by the rules of plain tables.

Bytes that lie about their lengths can end the whole process inside a Parquet library. The file is therefore
unpacked in a process of its own, which sends back plain buffers of the columns that are read and no other.
A trace file of this package is Parquet too, with notes of its own: it is read by `trace_file`.
"""

import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.encoding import decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.child import bound_memory, refuse_and_end, unpack_in_child
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import ColumnMap, Source
from flopwitness.measure.sources.table_columns import TablePlan, UnknownColumnError, plan_table
from flopwitness.measure.sources.table_rows import DeviceCells, TableRows
from flopwitness.measure.sources.table_times import TimeForm, TimeReader, settle_form, settle_number
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = [
    "FORMATS",
    "decode_parquet_table",
    "decode_unpacked_table",
    "is_parquet_table",
    "read_parquet_table",
    "unpack_table",
]

LARGEST_TABLE_BYTES: Final = 1 << 30
_MAGIC: Final = b"PAR1"
_EXPECTED: Final = (
    "a Parquet table with a time and a quantity with its unit (power_w, energy_j, gpu_util_pct)"
)
_MOST_ROWS: Final = 50_000_000
_MOST_COLUMNS: Final = 4_096
_ABSENT: Final = -(2**63)  # no clock shows it
_NO_NAME: Final = 2**32 - 1
_KINDS: Final = {"number": "<f8", "whole": "<i8", "utc": "<i8", "local": "<i8", "text": "<u4"}
_BROKEN: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
_MOST_NS: Final = 2**62


def is_parquet_table(head: bytes, name: str) -> bool:
    """Whether the bytes begin as Parquet does; the columns' names stand at its end."""
    del name
    return head.startswith(_MAGIC)


def read_parquet_table(source: Source) -> Trace:
    """The readings of a whole file.

    Raises:
        DecodeError: As `decode_parquet_table`.
    """
    return decode_parquet_table(source.whole(limit_bytes=LARGEST_TABLE_BYTES), source)


def decode_parquet_table(data: bytes, source: Source) -> Trace:
    """The readings of a Parquet table.

    Args:
        data: The file's bytes.
        source: Its place, and what the user says beside it.

    Raises:
        DecodeError: Not Parquet, too large, no column names that say a time and a quantity, or no row that
            can be read.

    Side effects:
        Starts one child process and waits for its end.
    """
    columns = source.options.columns or ColumnMap()
    request = json.dumps(asdict(columns)).encode() + b"\n"
    unpacked = unpack_in_child(unpack_table, request + data, where=source.where, expected=_EXPECTED)
    return decode_unpacked_table(unpacked, source)


def decode_unpacked_table(unpacked: bytes, source: Source) -> Trace:
    """The readings of a table that the child has unpacked: its notes, a line, and its columns, raw.

    Raises:
        DecodeError: Notes that are none or do not fit the columns, or no row that can be read.
    """
    head, _, body = unpacked.partition(b"\n")
    notes = decode_json(head, where=source.where)
    try:
        table = _rebuild(notes, body, source)
        return _read(table, source)
    except _BROKEN as error:
        raise DecodeError(
            "not an unpacked table", where=source.where, expected=_EXPECTED, found=repr(error)[:120]
        ) from None


def unpack_table() -> None:
    """Turn a request and a Parquet file on standard input into notes and columns on standard output.

    This is the whole life of the child process that `decode_parquet_table` starts.

    Side effects:
        Bounds this process's memory; ends it with one line on standard error on a refusal.
    """
    bound_memory()
    import polars as pl  # noqa: PLC0415 (slow to load, and only this process needs it)

    request, _, data = sys.stdin.buffer.read().partition(b"\n")
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(data)))
        n_rows = int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
        if len(names) > _MOST_COLUMNS or n_rows > _MOST_ROWS:
            refuse_and_end(f"{len(names)} columns of {n_rows} rows")
        plan = plan_table(names, _decode_map(request))
        if plan is None:
            refuse_and_end(f"columns {', '.join(names)[:120]}")
        wanted = [names[index] for index in plan.indexes] if plan else []
        frame = pl.read_parquet(io.BytesIO(data), columns=wanted)
        columns = [_unpack_column(frame[name]) for name in wanted]
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 (every reason is told alike)
        refuse_and_end(str(error))
    notes = {
        "names": names,
        "n_rows": n_rows,
        "columns": [{"kind": kind, "texts": texts} for kind, texts, _ in columns],
    }
    sys.stdout.buffer.write(json.dumps(notes).encode() + b"\n")
    for _, _, raw in columns:
        sys.stdout.buffer.write(raw)


def _decode_map(request: bytes) -> ColumnMap:
    said = json.loads(request)
    return ColumnMap(
        time=said["time"],
        channels=tuple((name, quantity) for name, quantity in said["channels"]),
        device=said["device"],
    )


def _unpack_column(column: Any) -> tuple[str, list[str], bytes]:  # noqa: ANN401 (a polars Series, loaded late)
    """The kind of a column, its texts where it holds text, and its cells, raw."""
    import polars as pl  # noqa: PLC0415 (loaded by now)

    kind = column.dtype
    if kind == pl.Datetime:
        whole = column.cast(pl.Datetime("ns", kind.time_zone)).cast(pl.Int64).fill_null(_ABSENT)
        return "utc" if kind.time_zone else "local", [], whole.to_numpy().astype("<i8").tobytes()
    if kind.is_integer():
        whole = column.cast(pl.Int64).fill_null(_ABSENT)
        return "whole", [], whole.to_numpy().astype("<i8").tobytes()
    if kind.is_numeric():
        number = column.cast(pl.Float64).fill_null(math.nan)
        return "number", [], number.to_numpy().astype("<f8").tobytes()
    text = column.cast(pl.String)
    names = text.drop_nulls().unique(maintain_order=True)
    places = {name: place for place, name in enumerate(names)}
    codes = np.array([places.get(cell, _NO_NAME) for cell in text], dtype="<u4")
    return "text", names.to_list(), codes.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnpackedColumn:
    """One column: its kind, its cells, and for text the texts that the cells number."""

    kind: str
    cells: NDArray[Any]
    texts: tuple[bytes, ...] = ()

    def text(self, row: int) -> bytes:
        """A cell as text, as a CSV file would hold it; b"" where there is none."""
        cell = self.cells[row]
        if self.kind == "text":
            return self.texts[cell] if cell < len(self.texts) else b""
        if self.kind == "number":
            return b"" if math.isnan(cell) else repr(float(cell)).encode()
        return b"" if cell == _ABSENT else str(int(cell)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnpackedTable:
    """A table: how it is read, and the columns that are read, by their place."""

    plan: TablePlan
    columns: dict[int, _UnpackedColumn]
    n_rows: int


def _rebuild(notes: dict[str, Any], body: bytes, source: Source) -> _UnpackedTable:
    names, n_rows = notes["names"], notes["n_rows"]
    if not isinstance(n_rows, int) or not 0 <= n_rows <= _MOST_ROWS or len(names) > _MOST_COLUMNS:
        raise ValueError(f"{n_rows} rows of {len(names)} columns")
    try:
        plan = plan_table([str(name) for name in names], source.options.columns)
    except UnknownColumnError as error:
        raise DecodeError("a column map that does not fit", where=source.where, expected=str(error)) from None
    if plan is None or len(notes["columns"]) != len(plan.indexes):
        raise ValueError("columns that are not those of the names")
    columns, start = {}, 0
    for index, note in zip(plan.indexes, notes["columns"], strict=True):
        kind = _KINDS[note["kind"]]
        cells = np.frombuffer(body, dtype=kind, count=n_rows, offset=start) if n_rows else np.zeros(0, kind)
        start += cells.nbytes
        if len(note["texts"]) > _MOST_ROWS:
            raise ValueError("more texts than rows")
        texts = tuple(str(text).encode("utf-8", "backslashreplace") for text in note["texts"])
        columns[index] = _UnpackedColumn(kind=note["kind"], cells=cells, texts=texts)
    if start != len(body):
        raise ValueError("columns of unlike length")
    return _UnpackedTable(plan=plan, columns=columns, n_rows=n_rows)


def _read(table: _UnpackedTable, source: Source) -> Trace:
    """The readings of all rows with a time."""
    plan = table.plan
    time = table.columns[plan.time.index]
    recording = Recording(source, times=Times.RELATIVE)
    form = _settle(time, plan)
    if form is None:
        raise DecodeError(
            "a table without a reading",
            where=f"{source.where}:1",
            expected=f"a time in {plan.names[plan.time.index][:80]}",
            found=f"{table.n_rows} rows without one",
        )
    recording.times = form.times
    times, is_timed = _read_times(time, form)
    for row in np.flatnonzero(~is_timed).tolist():
        recording.skip(
            row + 1, expected=f"a time in {plan.names[plan.time.index][:80]}", found=time.text(row)
        )
    values = [
        reading.factor * _read_values(table.columns[reading.index], recording) for reading in plan.readings
    ]
    rows = TableRows(source, plan, recording)
    for cells, indexes in _by_device(table, np.flatnonzero(is_timed)):
        rows.add(times[indexes], [value[indexes] for value in values], [cells] if cells else None)
    recording.check_size()
    return rows.finish(form)


def _by_device(
    table: _UnpackedTable, rows: NDArray[np.int64]
) -> Iterator[tuple[DeviceCells, NDArray[np.int64]]]:
    """The rows of each device with what they say of it, in the order in which the devices appear."""
    columns = [table.columns[index] for index in table.plan.device.indexes]
    if not columns or not rows.size:
        yield (), rows
        return
    codes = np.stack([np.unique(column.cells[rows], return_inverse=True)[1] for column in columns])
    _, first, groups = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    parts = np.split(rows[order], np.cumsum(np.bincount(groups.reshape(-1)))[:-1])
    for group in np.argsort(first).tolist():
        indexes = np.asarray(parts[group], dtype=np.int64)
        yield tuple(column.text(int(indexes[0])) for column in columns), indexes


def _settle(time: _UnpackedColumn, plan: TablePlan) -> TimeForm | None:
    """What the times are, by the first that can be read; None where there is none."""
    header = plan.time.header
    if time.kind in ("utc", "local"):
        is_utc = time.kind == "utc" or header.is_utc
        is_known = bool((time.cells != _ABSENT).any())
        return TimeForm(times=Times.UTC if is_utc else Times.LOCAL, unit_ns=1) if is_known else None
    if time.kind == "text":
        for text in time.texts:
            try:
                return settle_form(text, header)
            except Unreadable:
                continue
        return None
    known = np.isfinite(time.cells) if time.kind == "number" else time.cells != _ABSENT
    for value in time.cells[known][:1].tolist():
        try:
            return settle_number(math.floor(value), header)
        except Unreadable:
            return None
    return None


def _read_times(time: _UnpackedColumn, form: TimeForm) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The times [ns], and which rows have one."""
    match time.kind:
        case "text":
            return _read_text_times(time, form)
        case "number":
            return _scale_numbers(time.cells, form.unit_ns or 1)
        case _:
            return _scale_whole(time.cells, form.unit_ns or 1)


def _scale_numbers(cells: NDArray[np.float64], unit_ns: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Doubles as whole nanoseconds: whole units and the rest apart, so that no digit of either is lost."""
    is_known = np.isfinite(cells) & (np.abs(cells) < _MOST_NS / unit_ns)
    known = np.where(is_known, cells, 0.0)
    whole = np.floor(known)
    rest_ns = np.rint((known - whole) * unit_ns).astype(np.int64)
    return whole.astype(np.int64) * unit_ns + rest_ns, is_known


def _scale_whole(cells: NDArray[np.int64], unit_ns: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    most = _MOST_NS // unit_ns
    is_known = (cells > -most) & (cells < most)
    return np.where(is_known, cells, 0) * unit_ns, is_known


def _read_text_times(time: _UnpackedColumn, form: TimeForm) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    reader = TimeReader(form)
    read = np.full(len(time.texts) + 1, _ABSENT, dtype=np.int64)
    for place, text in enumerate(time.texts):
        with suppress(Unreadable):
            read[place] = reader.read(text)
    times = read[np.minimum(time.cells, len(time.texts)).astype(np.int64)]
    is_known = times != _ABSENT
    return np.where(is_known, times, 0), is_known


def _read_values(column: _UnpackedColumn, recording: Recording) -> NDArray[np.float64]:
    """The numbers of a column; NaN where a cell is empty, and where it holds none, which is told."""
    if column.kind == "number":
        return column.cells.astype(np.float64)
    if column.kind != "text":
        value = column.cells.astype(np.float64)
        value[column.cells == _ABSENT] = np.nan
        return value
    read = np.full(len(column.texts) + 1, np.nan)
    bad = np.zeros(len(column.texts) + 1, dtype=np.bool_)
    for place, text in enumerate(column.texts):
        try:
            read[place] = parse_number(text)
        except Unreadable:
            bad[place] = True
    places = np.minimum(column.cells, len(column.texts)).astype(np.int64)
    for row in np.flatnonzero(bad[places]).tolist():
        recording.skip(row + 1, expected="a number, or a marker for none", found=column.text(row))
    return np.asarray(read[places])


FORMATS: Final = (Format(name="parquet-table", is_it=is_parquet_table, decode=read_parquet_table),)
