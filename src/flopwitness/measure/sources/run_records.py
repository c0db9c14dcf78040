"""The records of a table, located: delimited text (RFC 4180) or Parquet, as rows of text cells.

Text is split here and not by the standard library's reader, because a record must be found again by the
line on which it begins, a broken record must not swallow the next one, and a limit must hold before memory
is taken for what exceeds it. Every step moves forward only, so that the work is linear in the bytes.
"""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.child import bound_memory, refuse_and_end, unpack_in_child

__all__ = ["Record", "Records", "check_limit", "is_parquet", "open_parquet", "open_text", "unpack_parquet"]

LARGEST_CELL_BYTES: Final = 1024 * 1024
LARGEST_TABLE_BYTES: Final = 512 * 1024 * 1024
MOST_COLUMNS: Final = 4_096
MOST_ROWS: Final = 1_000_000

_DELIMITERS: Final = (",", ";", "\t")
_PARQUET_MAGIC: Final = b"PAR1"
_WIDEST_UTF8: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of a table.

    Attributes:
        line: The line of the file on which it begins, from 1; in Parquet its number, from 1.
        cells: Its cells as text; None where a quotation mark stands where none may.
    """

    line: int
    cells: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """A table that has been opened: its columns are known, its rows come as they are asked for.

    Attributes:
        line: The line of the header.
        names: The names of the columns, each once; those without one are named by their place.
        rows: The records after the header; may raise a DecodeError. To be walked once.
    """

    line: int
    names: tuple[str, ...]
    rows: Iterator[Record]


def check_limit(size: int, limit: int, unit: str, *, where: str) -> None:
    """Refuse what is larger than the reader takes.

    Raises:
        DecodeError: `size` exceeds `limit`.
    """
    if size > limit:
        raise DecodeError(
            "too large", where=where, expected=f"at most {limit} {unit}", found=f"{size} {unit}"
        )


def is_parquet(data: bytes) -> bool:
    """Whether the bytes begin as Parquet does."""
    return data.startswith(_PARQUET_MAGIC)


def open_text(data: bytes, judge: Callable[[Sequence[str]], int], *, where: str) -> Records:
    """The records of delimited text in UTF-8, with or without a byte order mark.

    Args:
        data: The file's bytes.
        judge: How many names of a header make sense; the delimiter (comma, semicolon, tab) under which
            most do is taken, and of equals the one that gives most names.
        where: The path to name in an error.

    Raises:
        DecodeError: Not UTF-8, no header, or a header with a name that stands twice.
    """
    text = _decode_utf8(data, where=where)
    chosen: tuple[int, Sequence[str], Iterator[Record]] | None = None
    best = (-1, -1)
    for delimiter in _DELIMITERS:
        rows = _split_text(text, delimiter, where=where)
        header = next((record for record in rows if record.cells != [""]), None)
        if header is None or header.cells is None:
            continue
        score = (judge(header.cells), len(header.cells))
        if score > best:
            best, chosen = score, (header.line, header.cells, rows)
    if chosen is None:
        raise DecodeError("not a table", where=f"{where}:1", expected="a line of column names", found="none")
    line, cells, rows = chosen
    return Records(line=line, names=_name_columns(cells, where=f"{where}:{line}"), rows=rows)


def open_parquet(data: bytes, *, where: str) -> Records:
    """The records of a Parquet file as text: floats in the shortest form that is exact, nulls empty.

    Bytes that lie about their own lengths can stop the whole process inside a Parquet library, where no
    exception comes back. The file is therefore unpacked in a process of its own, with bounded memory.

    Args:
        data: The file's bytes.
        where: The path to name in an error.

    Raises:
        DecodeError: Not Parquet, or beyond the limits on columns, rows, bytes or time.

    Side effects:
        Starts one child process and waits for its end.
    """
    text = unpack_in_child(unpack_parquet, data, where=where, expected="Apache Parquet").decode("utf-8")
    rows = _split_text(text, ",", where=where)
    header = next(rows)
    numbered = (Record(line=number, cells=row.cells) for number, row in enumerate(rows, start=1))
    return Records(line=1, names=_name_columns(header.cells or [], where=f"{where}:1"), rows=numbered)


def unpack_parquet() -> None:
    """Turn the Parquet file on standard input into delimited text on standard output.

    This is the whole life of the child process that `open_parquet` starts.

    Side effects:
        Bounds this process's memory; ends it with status 3 and one line on standard error on a refusal.
    """
    bound_memory()
    import polars as pl  # noqa: PLC0415 (slow to load, and only this process needs it)

    data = sys.stdin.buffer.read()
    try:
        check_limit(len(pl.read_parquet_schema(io.BytesIO(data))), MOST_COLUMNS, "columns", where="")
        lazy = pl.scan_parquet(io.BytesIO(data))
        check_limit(lazy.select(pl.len()).collect().item(), MOST_ROWS, "rows", where="")
        frame = lazy.collect()
        check_limit(int(frame.estimated_size()), LARGEST_TABLE_BYTES, "bytes unpacked", where="")
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 (every reason is told alike)
        refuse_and_end(str(error))
    with io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(frame.columns)
        writer.writerows(frame.iter_rows())


def _decode_utf8(data: bytes, *, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DecodeError(
            "not text", where=f"{where}:{line}", expected="UTF-8", found=repr(data[error.start :][:8])
        ) from None


def _name_columns(headers: Sequence[str], *, where: str) -> tuple[str, ...]:
    names = tuple(header.strip() or f"column {place}" for place, header in enumerate(headers, start=1))
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DecodeError(
                "a column name that stands twice",
                where=where,
                expected="names that differ",
                found=repr(name[:80]),
            )
        seen.add(name)
    return names


def _split_text(text: str, delimiter: str, *, where: str) -> Iterator[Record]:
    """The records one by one; after a broken record, reading resumes on the next line.

    Raises:
        DecodeError: A quoted cell that never closes, too many cells, or a cell too large.
    """
    position, line = 0, 1
    while position < len(text):
        place = f"{where}:{line}"
        end = _line_end(text, position)
        if text.find('"', position, end) < 0:
            check_limit(text.count(delimiter, position, end) + 1, MOST_COLUMNS, "columns", where=place)
            cells: list[str] | None = text[position:end].removesuffix("\r").split(delimiter)
        else:
            cells, end = _split_quoted(text, position, delimiter, where=place)
        if cells is not None and (end - position) * _WIDEST_UTF8 > LARGEST_CELL_BYTES:
            widest = max(len(cell.encode()) for cell in cells)
            check_limit(widest, LARGEST_CELL_BYTES, "bytes a cell", where=place)
        yield Record(line=line, cells=cells)
        line += text.count("\n", position, end) + 1
        position = end + 1


def _split_quoted(text: str, start: int, delimiter: str, *, where: str) -> tuple[list[str] | None, int]:
    """The cells of a record with quotation marks, and the end of its last line; None for a broken one."""
    cells: list[str] = []
    position, end = start, _line_end(text, start)
    while True:
        check_limit(len(cells) + 1, MOST_COLUMNS, "columns", where=where)
        if text.startswith('"', position):
            cell, position = _take_quoted(text, position, where=where)
            end = end if position <= end else _line_end(text, position)
        else:
            stop = text.find(delimiter, position, end)
            cell = text[position:stop] if stop >= 0 else text[position:end].removesuffix("\r")
            position += len(cell)
            if '"' in cell:
                return None, end
        cells.append(cell)
        if text.startswith(delimiter, position):
            position += 1
        else:
            return (cells if text[position:end] in ("", "\r") else None), end


def _take_quoted(text: str, start: int, *, where: str) -> tuple[str, int]:
    """What the quoted cell at `start` says, and the place after its closing mark."""
    end = text.find('"', start + 1)
    while end >= 0 and text.startswith('"', end + 1):
        end = text.find('"', end + 2)
    if end < 0:
        raise DecodeError(
            "a quoted cell that never closes", where=where, expected='"', found="the end of the file"
        )
    check_limit(end - start - 1, LARGEST_CELL_BYTES, "bytes a cell", where=where)
    return text[start + 1 : end].replace('""', '"'), end + 1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
