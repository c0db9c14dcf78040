"""Telemetry in a plain table: delimited text whose column names say times, quantities and units.

Every laboratory has a logger of its own, and most write this. What a name does not say is not guessed: the
user may say it (`--columns`, `--scope`, `--timezone`).

A batch in which every row is regular goes through lists and arrays as a whole; a batch with anything odd in
it goes row by row, so that an odd row is counted and located and its neighbours are kept.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.cells import split_cells
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES, LineBatch
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import ColumnMap, Source
from flopwitness.measure.sources.table_columns import TablePlan, UnknownColumnError, plan_table
from flopwitness.measure.sources.table_rows import DeviceCells, TableRows
from flopwitness.measure.sources.table_times import TimeForm, TimeReader, settle_form
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_plain_table", "is_plain_table"]

_DELIMITERS: Final = (b",", b";", b"\t")
_HEADER_LINES: Final = 20
_HEADER_BYTES: Final = 64 << 10
_LONGEST_CELL: Final = 64
_DIGITS: Final = b"0123456789.-+eE, "
_LONG_EXPONENT: Final = re.compile(rb"[eE][-+]?[0-9]{5}")
_EXPECTED: Final = (
    "a line of column names with a time (timestamp, time_s, epoch_ms) and a quantity with its unit "
    "(power_w, energy_j, gpu_util_pct)"
)
_NUMBER: Final = re.compile(rb"[-+]?[0-9][0-9.]*")  # no column is named so
_OF_A_TOOL: Final = re.compile(r"[a-z]+\.[a-z]|\b(?:pdu|outlet|inlet)\b", re.IGNORECASE)  # `power.draw`, PDUs
_ZONE: Final = re.compile(rb"package-[0-9]|intel-rapl")  # RAPL's, which lie inside each other


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """Where the names of the columns stand.

    Attributes:
        line: The number of the line.
        text: The line as it stands.
        delimiter: What parts its cells.
        plan: What the columns are.
    """

    line: int
    text: bytes
    delimiter: bytes
    plan: TablePlan


def is_plain_table(head: bytes, name: str) -> bool:
    """Whether the first lines name a time and a quantity with its unit, and are no known tool's."""
    del name
    if b"\0" in head[:2] or head.startswith((b"{", b"[", b"PAR1")):
        return False
    text = decode_head(head[:_HEADER_BYTES])
    if _ZONE.search(text):
        return False
    for line in text.split(b"\n")[:_HEADER_LINES]:
        header = _find_header(1, line.removesuffix(b"\r"), None)
        if header is not None:
            return not any(map(_OF_A_TOOL.search, header.plan.names))
    return False


def decode_plain_table(source: Source) -> Trace:
    """The readings of a plain table, in bounded memory.

    Raises:
        DecodeError: No column names that say a time and a quantity, the user's map names a column that is
            not there, or no row can be read.
    """
    reader = _Reader(source)
    for batch in source.lines():
        reader.read(batch)
    return reader.finish()


class _Reader:
    """Reads a table batch by batch."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recording = Recording(source, times=Times.RELATIVE)
        self._header: _Header | None = None
        self._form: TimeForm | None = None
        self._times: TimeReader | None = None
        self._rows: TableRows | None = None
        self._first_line = b""

    def read(self, batch: LineBatch) -> None:
        first, lines = batch.first, batch.lines
        if self._header is None:
            taken = self._seek_header(batch)
            first, lines = first + taken, lines[taken:]
        if self._header is None or not lines:
            return
        if self._form is None:
            self._settle_form(lines)
        if self._form is None or not self._read_together(lines):
            self._read_apart(first, lines)
        self._recording.check_size()

    def finish(self) -> Trace:
        """The trace.

        Raises:
            DecodeError: No header, or no row that can be read.
        """
        where = f"{self._source.where}:1"
        if self._header is None or self._rows is None:
            raise DecodeError(
                "no plain table",
                where=where,
                expected=_EXPECTED,
                found=excerpt(self._first_line) or "nothing",
            )
        if self._form is None or not self._recording.n_readings:
            raise DecodeError(
                "a table without a reading",
                where=f"{self._source.where}:{self._header.line + 1}",
                expected=f"rows of {len(self._header.plan.names)} cells with a time",
                found=excerpt(self._first_line) or "no row",
            )
        return self._rows.finish(self._form)

    def _seek_header(self, batch: LineBatch) -> int:
        """Take the header from the first lines; how many lines were taken."""
        for taken, (number, line) in enumerate(batch, start=1):
            if not line.strip():
                continue
            self._first_line = self._first_line or line
            header = self._try_header(number, line)
            if header is not None:
                self._header, self._first_line = header, b""
                self._rows = TableRows(self._source, header.plan, self._recording)
                return taken
            if number > _HEADER_LINES:
                raise DecodeError(
                    "no plain table",
                    where=f"{self._source.where}:1",
                    expected=_EXPECTED,
                    found=excerpt(self._first_line),
                )
            if not line.startswith(b"#"):
                self._recording.skip(number, expected="the names of the columns", found=line)
        return len(batch.lines)

    def _try_header(self, number: int, line: bytes) -> _Header | None:
        try:
            return _find_header(number, line, self._source.options.columns)
        except UnknownColumnError as error:
            raise DecodeError(
                "a column map that does not fit",
                where=f"{self._source.where}:{number}",
                expected=str(error),
                found=excerpt(line),
            ) from None

    def _settle_form(self, lines: Sequence[bytes]) -> None:
        """Learn from the first readable cell what the times are."""
        header = self._known_header()
        for line in lines:
            cells = self._split(line)
            if len(cells) != len(header.plan.names):
                continue
            try:
                form = settle_form(cells[header.plan.time.index], header.plan.time.header)
            except Unreadable:
                continue
            self._form, self._times = form, TimeReader(form)
            self._recording.times = form.times
            return

    def _known_header(self) -> _Header:
        if self._header is None:
            raise ValueError("no header")  # read() has seen to that
        return self._header

    def _known_times(self) -> TimeReader:
        if self._times is None:
            raise Unreadable("a time of no known form")
        return self._times

    def _split(self, line: bytes) -> list[bytes]:
        return split_cells(line, self._known_header().delimiter)

    def _read_together(self, lines: Sequence[bytes]) -> bool:
        """Read a batch as a whole; False, with nothing taken, where anything in it is irregular."""
        header = self._known_header()
        plan, delimiter = header.plan, header.delimiter
        if b'"' in b"\n".join(lines):
            return False
        rows = [line.split(delimiter) for line in lines]
        if {len(row) for row in rows} != {len(plan.names)}:
            return False
        columns = list(zip(*rows, strict=True))
        values = [_parse_together(columns[reading.index]) for reading in plan.readings]
        if any(value is None for value in values):
            return False
        try:
            times = self._known_times().read_all(columns[plan.time.index])
        except Unreadable:
            return False
        told = [columns[index] for index in plan.device.indexes]
        self._take(times, [value for value in values if value is not None], list(zip(*told, strict=True)))
        return True

    def _read_apart(self, first: int, lines: Sequence[bytes]) -> None:
        """Read a batch row by row, and count what cannot be read."""
        plan = self._known_header().plan
        times: list[int] = []
        values: list[list[float]] = []
        told: list[DeviceCells] = []
        for number, line in enumerate(lines, start=first):
            if self._is_no_row(line):
                continue
            cells = self._split(line)
            if len(line) > LONGEST_LINE_BYTES or len(cells) != len(plan.names):
                self._skip(number, f"{len(plan.names)} cells", line)
                continue
            try:
                times.append(self._known_times().read(cells[plan.time.index]))
            except Unreadable:
                self._skip(number, f"a time in {plan.names[plan.time.index][:_LONGEST_CELL]}", line)
                continue
            values.append([self._read_value(number, cells[reading.index]) for reading in plan.readings])
            told.append(tuple(cells[index] for index in plan.device.indexes))
        if times:
            table = np.array(values, dtype=np.float64)
            self._take(np.array(times, dtype=np.int64), list(table.T), told)

    def _take(
        self, times: NDArray[np.int64], values: Iterable[NDArray[np.float64]], told: Sequence[DeviceCells]
    ) -> None:
        plan = self._known_header().plan
        scaled = [
            value if reading.factor == 1 else value * reading.factor
            for reading, value in zip(plan.readings, values, strict=True)
        ]
        if self._rows is not None:
            self._rows.add(times, scaled, told if plan.device.indexes else None)

    def _is_no_row(self, line: bytes) -> bool:
        """Whether a line is blank, a comment, or the header again."""
        return not line.strip() or line.startswith(b"#") or line == self._known_header().text

    def _read_value(self, number: int, cell: bytes) -> float:
        try:
            return parse_number(cell)
        except Unreadable:
            self._skip(number, "a number, or a marker for none", cell)
            return np.nan

    def _skip(self, number: int, expected: str, found: bytes) -> None:
        self._first_line = self._first_line or found
        self._recording.skip(number, expected=expected, found=found)


def _find_header(number: int, line: bytes, columns: ColumnMap | None) -> _Header | None:
    """The header that a line is, under the delimiter that gives it the most readings."""
    if len(line) > _HEADER_BYTES:
        return None
    best: _Header | None = None
    refusal: UnknownColumnError | None = None
    for delimiter in _DELIMITERS:
        cells = split_cells(line, delimiter)
        if len(cells) < 2 or any(map(_NUMBER.fullmatch, cells)):  # noqa: PLR2004 (a time and a reading)
            continue
        names = [cell.decode("utf-8", "backslashreplace") for cell in cells]
        try:
            plan = plan_table(names, columns)
        except UnknownColumnError as error:
            refusal = error
            continue
        if plan is not None and (best is None or len(plan.readings) > len(best.plan.readings)):
            best = _Header(line=number, text=line, delimiter=delimiter, plan=plan)
    if best is None and refusal is not None:
        raise refusal
    return best


def _parse_together(cells: Sequence[bytes]) -> NDArray[np.float64] | None:
    """The numbers of a column, as `parse_number` reads each; None where it refuses one."""
    text = b",".join(cells)
    is_plain = not text.translate(None, _DIGITS) and max(map(len, cells)) <= _LONGEST_CELL
    parse = float if is_plain and not _LONG_EXPONENT.search(text) else parse_number
    try:
        values = np.array([parse(cell) for cell in cells], dtype=np.float64)
        if parse is float and not np.isfinite(values).all():
            return None
    except ValueError:
        return None
    return values


FORMATS: Final = (Format(name="plain-table", is_it=is_plain_table, decode=decode_plain_table),)
