"""A trace kept as one Parquet file with its provenance: readings as rows, everything else as metadata.

Parquet, because telemetry lakes hold it and any tool reads it; one file, because readings without their
provenance are worth nothing.
"""

import io
from typing import Any, Final

import numpy as np
import polars as pl

from flopwitness.foundation.digest import Digest, digest_bytes
from flopwitness.foundation.encoding import decode_json, encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import (
    Channel,
    Declaration,
    Mark,
    Provenance,
    RunWindow,
    Scope,
    Series,
    Skipped,
    Trace,
)

__all__ = ["decode_trace", "encode_trace", "is_trace_file"]

SPEC: Final = "flopwitness/trace/v1"
_MAGIC: Final = b"PAR1"
_KEY: Final = "flopwitness"
_COLUMNS: Final = {"series": pl.UInt32, "utc_ns": pl.Int64, "monotonic_ns": pl.Int64, "value": pl.Float64}
_LARGEST_BYTES: Final = 2 * 1024**3
_MOST_SERIES: Final = 1_000_000
_MOST_ROWS: Final = 500_000_000
_BROKEN: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, pl.exceptions.PolarsError)


def is_trace_file(head: bytes, name: str) -> bool:
    """Whether the bytes begin like a Parquet file that may hold a trace."""
    del name
    return head.startswith(_MAGIC)


def encode_trace(trace: Trace) -> bytes:
    """The trace as Parquet bytes; `decode_trace` gives it back."""
    frames = [
        pl.DataFrame(
            {
                "series": np.full(len(series), index, dtype=np.uint32),
                "utc_ns": series.utc_ns,
                "monotonic_ns": series.monotonic_ns
                if series.monotonic_ns is not None
                else [None] * len(series),
                "value": series.value,
            },
            schema=_COLUMNS,
        )
        for index, series in enumerate(trace.series)
    ]
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=_COLUMNS)
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer, compression="zstd", metadata={_KEY: encode_canonical(_describe(trace)).decode()}
    )
    return buffer.getvalue()


def _describe(trace: Trace) -> dict[str, Any]:
    """Everything but the readings; instants as decimal strings, because they pass 2^53."""
    declared = trace.declaration
    return {
        "spec": SPEC,
        "series": [
            {
                "device": item.device,
                "channel": str(item.channel),
                "scope": str(item.scope),
                "conversion": item.conversion,
                "is_estimate": item.is_estimate,
                "has_monotonic": item.monotonic_ns is not None,
            }
            for item in trace.series
        ],
        "marks": [{"name": m.name, "utc_ns": str(m.utc_ns), "where": m.where} for m in trace.marks],
        "windows": [
            {
                "start_utc_ns": str(w.start_utc_ns),
                "stop_utc_ns": None if w.stop_utc_ns is None else str(w.stop_utc_ns),
                "status": w.status,
            }
            for w in trace.windows
        ],
        "declaration": None
        if declared is None
        else {
            "benchmark": declared.benchmark,
            "platform": declared.platform,
            "nodes": declared.nodes,
            "chips": declared.chips,
            "chip_name": declared.chip_name,
        },
        "skipped": [{"where": s.where, "expected": s.expected, "found": s.found} for s in trace.skipped],
        "n_skipped": trace.n_skipped,
        "provenance": [
            {"path": p.path, "format": p.format, "digest": str(p.digest), "size_bytes": p.size_bytes}
            for p in trace.provenance
        ],
    }


def decode_trace(data: bytes, *, where: str) -> Trace:
    """The trace that `encode_trace` wrote, with the file itself added to its provenance.

    Raises:
        DecodeError: Another Parquet file, one without the metadata, or metadata that does not fit the rows.
    """
    if len(data) > _LARGEST_BYTES:
        raise DecodeError(
            "too large", where=where, expected=f"at most {_LARGEST_BYTES} bytes", found=f"{len(data)}"
        )
    try:
        notes = pl.read_parquet_metadata(io.BytesIO(data)).get(_KEY)
        n_rows = int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
        is_readable = notes is not None and n_rows <= _MOST_ROWS
        frame = pl.read_parquet(io.BytesIO(data), columns=list(_COLUMNS)) if is_readable else None
    except Exception as error:  # noqa: BLE001 (polars raises many kinds on broken bytes)
        raise _refuse(where, repr(error)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # and panics on some
            raise
        raise _refuse(where, "a broken Parquet file") from None
    if notes is None or frame is None:
        raise _refuse(where, "another kind of Parquet file" if notes is None else f"{n_rows} rows")
    try:
        return _rebuild(frame, decode_json(notes.encode(), where=where), data, where)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        pl.exceptions.PolarsError,
    ) as error:
        raise _refuse(where, repr(error)) from None


def _refuse(where: str, found: str) -> DecodeError:
    return DecodeError("not a trace file", where=where, expected=SPEC, found=found[:120])


def _rebuild(frame: pl.DataFrame, notes: dict[str, Any], data: bytes, where: str) -> Trace:
    if notes["spec"] != SPEC:
        raise DecodeError("another format", where=where, expected=SPEC, found=str(notes["spec"])[:80])
    if dict(frame.schema) != _COLUMNS or len(notes["series"]) > _MOST_SERIES:
        raise DecodeError(
            "other columns", where=where, expected=", ".join(_COLUMNS), found=str(frame.schema)[:120]
        )
    own = Provenance(path=where, format="flopwitness-trace", digest=digest_bytes(data), size_bytes=len(data))
    return Trace(
        series=_rebuild_series(frame, notes["series"], where),
        marks=tuple(Mark(name=m["name"], utc_ns=int(m["utc_ns"]), where=m["where"]) for m in notes["marks"]),
        windows=tuple(
            RunWindow(
                start_utc_ns=int(w["start_utc_ns"]),
                stop_utc_ns=None if w["stop_utc_ns"] is None else int(w["stop_utc_ns"]),
                status=w["status"],
            )
            for w in notes["windows"]
        ),
        declaration=None if notes["declaration"] is None else Declaration(**notes["declaration"]),
        skipped=tuple(Skipped(**s) for s in notes["skipped"]),
        n_skipped=int(notes["n_skipped"]),
        provenance=(
            *(
                Provenance(
                    path=p["path"],
                    format=p["format"],
                    digest=Digest.parse(p["digest"], where=where),
                    size_bytes=int(p["size_bytes"]),
                )
                for p in notes["provenance"]
            ),
            own,
        ),
    )


def _rebuild_series(frame: pl.DataFrame, notes: list[dict[str, Any]], where: str) -> tuple[Series, ...]:
    index = frame["series"].to_numpy()
    counts = np.bincount(index, minlength=len(notes)) if index.size else np.zeros(len(notes), dtype=np.int64)
    if counts.size != len(notes) or bool(np.any(np.diff(index.astype(np.int64)) < 0)):
        raise DecodeError(
            "rows that belong to no series", where=where, expected=f"{len(notes)} series in order"
        )
    stops = np.cumsum(counts)
    utc_ns, value = frame["utc_ns"].to_numpy(), frame["value"].to_numpy()
    monotonic = frame["monotonic_ns"]
    return tuple(
        Series(
            device=str(note["device"]),
            channel=Channel(note["channel"]),
            scope=Scope(note["scope"]),
            utc_ns=utc_ns[stop - count : stop].astype(np.int64),
            value=value[stop - count : stop].astype(np.float64),
            monotonic_ns=monotonic[int(stop - count) : int(stop)].to_numpy().astype(np.int64)
            if note["has_monotonic"]
            else None,
            conversion=float(note["conversion"]),
            is_estimate=bool(note["is_estimate"]),
        )
        for note, count, stop in zip(notes, counts, stops, strict=True)
    )
