"""A trace kept as one Parquet file with its provenance: readings as rows, everything else as metadata.

Parquet, because telemetry lakes hold it and any tool reads it; one file, because readings without their
provenance are worth nothing. A year of a chip's readings is written and read a million rows at a time.
"""

import io
import json
import math
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from mmap import mmap
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from flopwitness.foundation.encoding import encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.child import bound_memory, map_from_child, refuse_and_end, spool
from flopwitness.measure.samples import Series, Trace
from flopwitness.measure.trace_columns import ABSENT, ColumnWriter, split_columns
from flopwitness.measure.trace_notes import SPEC, describe_trace, rebuild_trace

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = [
    "LARGEST_TRACE_BYTES",
    "decode_trace",
    "decode_trace_file",
    "decode_unpacked",
    "encode_trace",
    "holds_trace",
    "is_trace_file",
    "unpack_trace",
]

LARGEST_TRACE_BYTES: Final = 2 * 1024**3
_MAGIC: Final = b"PAR1"
_KEY: Final = "flopwitness"
_ENTRY: Final = b"\x18\x0b" + _KEY.encode() + b"\x18"  # Thrift: a key of 11 bytes, and then its value
_LARGEST_FOOTER_BYTES: Final = 256 * 1024**2
_SMALLEST_BYTES: Final = 12  # the mark, an empty footer's length, the mark
_SEARCHED_BYTES: Final = 1 << 20
_COLUMNS: Final = ("series", "utc_ns", "monotonic_ns", "value")
_GROUP_ROWS: Final = 1 << 20
_MOST_SERIES: Final = 1_000_000
_MOST_ROWS: Final = 500_000_000
_BROKEN: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def is_trace_file(head: bytes, name: str) -> bool:
    """Whether the bytes begin like a Parquet file that may hold a trace."""
    del name
    return head.startswith(_MAGIC)


def holds_trace(file: IO[bytes]) -> bool:
    """Whether a Parquet file carries a trace's notes: their key stands in the file's footer.

    No Parquet library is asked, because bytes that lie about their lengths can end it. A file made to look
    so is refused when it is read.

    Args:
        file: Readable and seekable; left at its start.

    Source:
        Apache Parquet format, file footer: 4-byte length, `PAR1`; Thrift compact protocol, strings.
    """
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(max(0, size_bytes - len(_MAGIC) - 4))
    end = file.read()
    footer_bytes = int.from_bytes(end[:4], "little")
    is_there = (
        size_bytes >= _SMALLEST_BYTES
        and end[4:] == _MAGIC
        and footer_bytes <= min(size_bytes - _SMALLEST_BYTES, _LARGEST_FOOTER_BYTES)
        and _finds_entry(file, size_bytes - len(end) - footer_bytes, footer_bytes)
    )
    file.seek(0)
    return is_there


def _finds_entry(file: IO[bytes], start: int, n_bytes: int) -> bool:
    """Whether the notes' key stands in so many bytes of the file, a piece at a time."""
    file.seek(start)
    kept = b""
    while n_bytes > 0 and (piece := file.read(min(_SEARCHED_BYTES, n_bytes))):
        kept += piece
        if _ENTRY in kept:
            return True
        kept = kept[-len(_ENTRY) :]
        n_bytes -= len(piece)
    return False


def encode_trace(trace: Trace) -> bytes:
    """The trace as Parquet bytes; `decode_trace` gives it back."""
    import polars as pl  # noqa: PLC0415 (slow to load, and only this function needs it here)

    schema = {"series": pl.UInt32, "utc_ns": pl.Int64, "monotonic_ns": pl.Int64, "value": pl.Float64}
    frames = [pl.DataFrame(schema=schema), *map(pl.DataFrame, _group_rows(trace.series))]
    notes = encode_canonical(describe_trace(trace)).decode()
    buffer = io.BytesIO()
    pl.concat(frames, how="diagonal", rechunk=False).write_parquet(
        buffer, compression="zstd", row_group_size=_GROUP_ROWS, metadata={_KEY: notes}
    )
    return buffer.getvalue()


def _group_rows(series: tuple[Series, ...]) -> "Iterator[dict[str, NDArray[Any]]]":
    """The columns of each group of rows; monotonic times that nobody recorded take no room."""
    pieces: list[tuple[int, slice]] = []
    n_free = _GROUP_ROWS
    for number, item in enumerate(series):
        start = 0
        while start < len(item):
            stop = min(len(item), start + n_free)
            pieces.append((number, slice(start, stop)))
            n_free -= stop - start
            start = stop
            if not n_free:
                yield _join_pieces(series, pieces)
                pieces, n_free = [], _GROUP_ROWS
    if pieces:
        yield _join_pieces(series, pieces)


def _join_pieces(series: tuple[Series, ...], pieces: list[tuple[int, slice]]) -> "dict[str, NDArray[Any]]":
    counts = [piece.stop - piece.start for _, piece in pieces]
    columns: dict[str, NDArray[Any]] = {
        "series": np.repeat(np.array([number for number, _ in pieces], dtype=np.uint32), counts),
        "utc_ns": np.concatenate([series[number].utc_ns[piece] for number, piece in pieces]),
        "value": np.concatenate([series[number].value[piece] for number, piece in pieces]),
    }
    clocks = [series[number].monotonic_ns for number, _ in pieces]
    if any(clock is not None for clock in clocks):
        columns["monotonic_ns"] = np.concatenate(
            [
                np.full(count, ABSENT) if clock is None else clock[piece]
                for clock, (_, piece), count in zip(clocks, pieces, counts, strict=True)
            ]
        )
    return columns


def decode_trace(data: bytes, *, where: str) -> Trace:
    """The trace that `encode_trace` wrote.

    Raises:
        DecodeError: Another Parquet file, one without the metadata, or metadata that does not fit the rows.
    """
    with spool([data], limit_bytes=LARGEST_TRACE_BYTES, where=where) as file:
        return decode_trace_file(file, where=where)


def decode_trace_file(file: IO[bytes], *, where: str) -> Trace:
    """The trace of a file that `spool` keeps: its readings stay in a file too, and are mapped.

    Args:
        file: At its start; with a file descriptor that a child process can take over.
        where: The path to name in an error.

    Raises:
        DecodeError: As `decode_trace`.

    Side effects:
        Starts one child process and waits for its end.
    """
    return decode_unpacked(map_from_child(unpack_trace, file, where=where, expected=SPEC), where=where)


def decode_unpacked(unpacked: bytes | mmap, *, where: str) -> Trace:
    """The trace that an unpacked trace file holds.

    Args:
        unpacked: What `unpack_trace` writes.
        where: The path to name in an error.

    Raises:
        DecodeError: Notes that are none, or that do not fit the columns.
    """
    try:
        notes, columns = split_columns(unpacked, where=where)
        return rebuild_trace(notes, columns, where=where)
    except _BROKEN as error:
        raise DecodeError("not a trace file", where=where, expected=SPEC, found=repr(error)[:120]) from None


def unpack_trace() -> None:
    """Turn the trace file that is standard input into columns in the file that is standard output.

    This is the whole life of the child process that `decode_trace` starts.

    Side effects:
        Bounds this process's memory; ends it with one line on standard error on a refusal.
    """
    bound_memory()
    import polars as pl  # noqa: PLC0415 (slow to load, and only this process needs it)

    try:
        with os.fdopen(sys.stdout.fileno(), "r+b", closefd=False) as out:
            _unpack(f"/dev/fd/{sys.stdin.fileno()}", out)
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 (every reason is told alike)
        refuse_and_end(str(error))


def _unpack(path: str, out: IO[bytes]) -> None:
    """Write the file's columns, a group of rows at a time.

    Raises:
        ValueError: No trace file, or one too large.
    """
    import polars as pl  # noqa: PLC0415 (slow to load, and only the child needs it)

    told = pl.read_parquet_metadata(path).get(_KEY)
    scan = pl.scan_parquet(path)
    n_rows = int(scan.select(pl.len()).collect().item())
    if told is None or n_rows > _MOST_ROWS:
        raise ValueError("another kind of Parquet file" if told is None else f"{n_rows} rows")
    schema = scan.collect_schema()
    kinds = [schema.get(name) for name in _COLUMNS]
    if kinds != [pl.UInt32, pl.Int64, pl.Int64, pl.Float64]:
        raise ValueError(f"columns {schema}")
    notes = json.loads(told)
    has_clocks = any(bool(note["has_monotonic"]) for note in notes["series"])
    if len(notes["series"]) > _MOST_SERIES:
        raise ValueError(f"{len(notes['series'])} series")
    writer = ColumnWriter(out, n_rows=n_rows, n_series=len(notes["series"]))
    for frame in _groups(scan, [name for name in _COLUMNS if has_clocks or name != "monotonic_ns"], n_rows):
        if frame["utc_ns"].null_count() or frame["series"].null_count():
            raise ValueError("rows without a time or a series")
        writer.add(
            frame["series"].to_numpy(),
            frame["utc_ns"].to_numpy(),
            frame["value"].fill_null(math.nan).to_numpy(),
            frame["monotonic_ns"].fill_null(ABSENT).to_numpy() if has_clocks else None,
        )
    writer.finish(notes)


def _groups(scan: "pl.LazyFrame", names: list[str], n_rows: int) -> Iterator["pl.DataFrame"]:
    """Some columns, a group of rows at a time; the next one is read while one is used.

    Raises:
        ValueError: A group that is shorter than the file says.
    """
    starts = range(0, n_rows, _GROUP_ROWS)
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = [pool.submit(_take_group, scan, names, start) for start in starts[:1]]
        for place, start in enumerate(starts):
            frame = coming.pop().result()
            coming += [
                pool.submit(_take_group, scan, names, after) for after in starts[place + 1 : place + 2]
            ]
            if frame.height != min(_GROUP_ROWS, n_rows - start):
                raise ValueError("fewer rows than the file says")
            yield frame


def _take_group(scan: "pl.LazyFrame", names: list[str], start: int) -> "pl.DataFrame":
    return scan.select(names).slice(start, _GROUP_ROWS).collect()
