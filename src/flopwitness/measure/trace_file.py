"""A trace kept as one Parquet file with its provenance: readings as rows, everything else as metadata.

Parquet, because telemetry lakes hold it and any tool reads it; one file, because readings without their
provenance are worth nothing.
"""

import io
import json
import math
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.digest import Digest
from flopwitness.foundation.encoding import decode_json, encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.child import bound_memory, refuse_and_end, unpack_in_child
from flopwitness.measure.samples import (
    Channel,
    Declaration,
    Device,
    Mark,
    Provenance,
    RunWindow,
    Scope,
    Series,
    Skipped,
    Timing,
    Trace,
)

__all__ = [
    "LARGEST_TRACE_BYTES",
    "decode_trace",
    "decode_unpacked",
    "encode_trace",
    "is_trace_file",
    "unpack_trace",
]

SPEC: Final = "flopwitness/trace/v1"
_MAGIC: Final = b"PAR1"
_KEY: Final = "flopwitness"
_COLUMNS: Final = {"series": "<u4", "utc_ns": "<i8", "monotonic_ns": "<i8", "value": "<f8"}
_CODE: Final = re.compile(r"[a-z][a-z-]{0,40}")
_ABSENT: Final = -(2**63)  # no clock shows it
LARGEST_TRACE_BYTES: Final = 2 * 1024**3
_MOST_SERIES: Final = 1_000_000
_MOST_DEVICES: Final = 10**18  # what nine digits of nodes times nine digits of chips a node make at most
_MOST_ROWS: Final = 500_000_000
_BROKEN: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def is_trace_file(head: bytes, name: str) -> bool:
    """Whether the bytes begin like a Parquet file that may hold a trace."""
    del name
    return head.startswith(_MAGIC)


def encode_trace(trace: Trace) -> bytes:
    """The trace as Parquet bytes; `decode_trace` gives it back."""
    import polars as pl  # noqa: PLC0415 (slow to load, and only this function needs it here)

    counts = [len(series) for series in trace.series]
    monotonic = [
        series.monotonic_ns
        if series.monotonic_ns is not None
        else np.full(len(series), _ABSENT, dtype=np.int64)
        for series in trace.series
    ]
    frame = pl.DataFrame(
        {
            "series": np.repeat(np.arange(len(counts), dtype=np.uint32), counts),
            "utc_ns": _joined([series.utc_ns for series in trace.series], np.int64),
            "monotonic_ns": _joined(monotonic, np.int64),
            "value": _joined([series.value for series in trace.series], np.float64),
        }
    )
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer, compression="zstd", metadata={_KEY: encode_canonical(_describe(trace)).decode()}
    )
    return buffer.getvalue()


def _joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


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
                "part": item.part,
                "timing": str(item.timing),
                "averaged_s": item.averaged_s,
                "counter_range_j": item.counter_range_j,
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
        "extent": None
        if trace.extent is None
        else {
            "start_utc_ns": str(trace.extent.start_utc_ns),
            "stop_utc_ns": str(trace.extent.stop_utc_ns),
        },
        "declaration": None
        if declared is None
        else {
            "benchmark": declared.benchmark,
            "platform": declared.platform,
            "nodes": declared.nodes,
            "chips": declared.chips,
            "chip_name": declared.chip_name,
            "other_chip_names": list(declared.other_chip_names),
            "differing": list(declared.differing),
        },
        "skipped": [{"where": s.where, "expected": s.expected, "found": s.found} for s in trace.skipped],
        "n_skipped": trace.n_skipped,
        "provenance": [
            {"path": p.path, "format": p.format, "digest": str(p.digest), "size_bytes": p.size_bytes}
            for p in trace.provenance
        ],
        "devices": [
            {
                "name": d.name,
                "chip_name": d.chip_name,
                "host": d.host,
                "driver": d.driver,
                "is_shared": d.is_shared,
            }
            for d in trace.devices
        ],
        "findings": [
            {
                "code": f.code,
                "severity": str(f.severity),
                "message": f.message,
                "where": f.where,
                "expected": f.expected,
                "found": f.found,
                "count": f.count,
            }
            for f in trace.findings
        ],
    }


def decode_trace(data: bytes, *, where: str) -> Trace:
    """The trace that `encode_trace` wrote.

    Raises:
        DecodeError: Another Parquet file, one without the metadata, or metadata that does not fit the rows.
    """
    if len(data) > LARGEST_TRACE_BYTES:
        raise DecodeError(
            "too large", where=where, expected=f"at most {LARGEST_TRACE_BYTES} bytes", found=f"{len(data)}"
        )
    return decode_unpacked(unpack_in_child(unpack_trace, data, where=where, expected=SPEC), where=where)


def decode_unpacked(unpacked: bytes, *, where: str) -> Trace:
    """The trace that an unpacked trace file holds: its notes, a line, and its columns, raw.

    Raises:
        DecodeError: Notes that are none, or that do not fit the columns.
    """
    head, _, body = unpacked.partition(b"\n")
    notes = decode_json(head, where=where)
    try:
        return _rebuild(_split_columns(body), notes, where)
    except _BROKEN as error:
        raise DecodeError("not a trace file", where=where, expected=SPEC, found=repr(error)[:120]) from None


def unpack_trace() -> None:
    """Turn the trace file on standard input into its notes, a line, and its columns, raw, on standard output.

    This is the whole life of the child process that `decode_trace` starts.

    Side effects:
        Bounds this process's memory; ends it with one line on standard error on a refusal.
    """
    bound_memory()
    import polars as pl  # noqa: PLC0415 (slow to load, and only this process needs it)

    data = sys.stdin.buffer.read()
    try:
        notes = pl.read_parquet_metadata(io.BytesIO(data)).get(_KEY)
        n_rows = int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
        if notes is None or n_rows > _MOST_ROWS:
            refuse_and_end("another kind of Parquet file" if notes is None else f"{n_rows} rows")
        frame = pl.read_parquet(io.BytesIO(data), columns=list(_COLUMNS))
        frame = frame.with_columns(
            pl.col("monotonic_ns").fill_null(_ABSENT), pl.col("value").fill_null(math.nan)
        )
        if frame.dtypes != [pl.UInt32, pl.Int64, pl.Int64, pl.Float64] or any(frame.null_count().row(0)):
            refuse_and_end(f"columns {frame.dtypes}, {frame.null_count().row(0)} cells of them empty")
        columns = [frame[name].to_numpy().astype(kind) for name, kind in _COLUMNS.items()]
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 (every reason is told alike)
        refuse_and_end(str(error))
    sys.stdout.buffer.write(json.dumps(json.loads(notes or "")).encode() + b"\n")
    for column in columns:
        sys.stdout.buffer.write(column.tobytes())


def _split_columns(body: bytes) -> dict[str, NDArray[Any]]:
    """The columns by name, from their raw bytes one after the other."""
    width = sum(np.dtype(kind).itemsize for kind in _COLUMNS.values())
    n_rows, rest = divmod(len(body), width)
    if rest:
        raise ValueError("columns of unlike length")
    columns, start = {}, 0
    for name, kind in _COLUMNS.items():
        columns[name] = np.frombuffer(body, dtype=kind, count=n_rows, offset=start)
        start += n_rows * np.dtype(kind).itemsize
    return columns


def _rebuild(columns: dict[str, NDArray[Any]], notes: dict[str, Any], where: str) -> Trace:
    if notes["spec"] != SPEC:
        raise DecodeError("another format", where=where, expected=SPEC, found=str(notes["spec"])[:80])
    return Trace(
        series=_rebuild_series(columns, notes["series"], where),
        marks=tuple(
            Mark(name=str(m["name"]), utc_ns=_instant(m["utc_ns"]), where=str(m["where"]))
            for m in notes["marks"]
        ),
        windows=tuple(
            RunWindow(
                start_utc_ns=_instant(w["start_utc_ns"]),
                stop_utc_ns=None if w["stop_utc_ns"] is None else _instant(w["stop_utc_ns"]),
                status=str(w["status"]),
            )
            for w in notes["windows"]
        ),
        extent=_rebuild_extent(notes.get("extent")),
        declaration=None if notes["declaration"] is None else _rebuild_declaration(notes["declaration"]),
        skipped=tuple(
            Skipped(where=str(s["where"]), expected=str(s["expected"]), found=str(s["found"]))
            for s in notes["skipped"]
        ),
        n_skipped=_count_skipped(notes),
        provenance=tuple(
            Provenance(
                path=str(p["path"]),
                format=str(p["format"]),
                digest=Digest.parse(p["digest"], where=where),
                size_bytes=int(p["size_bytes"]),
            )
            for p in notes["provenance"]
        ),
        devices=tuple(map(_rebuild_device, notes.get("devices", []))),
        findings=tuple(map(_rebuild_finding, notes.get("findings", []))),
    )


def _rebuild_device(notes: dict[str, Any]) -> Device:
    return Device(
        name=str(notes["name"]),
        chip_name=str(notes["chip_name"]),
        host=str(notes["host"]),
        driver=str(notes["driver"]),
        is_shared=bool(notes["is_shared"]),
    )


def _rebuild_finding(notes: dict[str, Any]) -> Finding:
    """What a reader told when the trace was made; a code of another shape than ours is refused."""
    code, count = str(notes["code"]), notes["count"]
    if not _CODE.fullmatch(code) or not isinstance(count, int) or not 1 <= count <= _MOST_ROWS:
        raise ValueError(f"no finding: {code[:40]!r}, {count!r}")
    return Finding(
        code=code,
        severity=Severity(notes["severity"]),
        message=str(notes["message"]),
        where=str(notes["where"]),
        expected=str(notes["expected"]),
        found=str(notes["found"]),
        count=count,
    )


def _rebuild_extent(notes: dict[str, Any] | None) -> RunWindow | None:
    """The time that the logs' events take; files written before it was kept have none."""
    if notes is None:
        return None
    start_ns, stop_ns = _instant(notes["start_utc_ns"]), _instant(notes["stop_utc_ns"])
    if stop_ns < start_ns:
        raise ValueError(f"events from {start_ns} to {stop_ns}")
    return RunWindow(start_utc_ns=start_ns, stop_utc_ns=stop_ns)


def _instant(text: str) -> int:
    """Nanoseconds since 1970 from a decimal string; what no clock can show is refused."""
    utc_ns = int(text)
    format_utc(utc_ns)
    return utc_ns


def _count_skipped(notes: dict[str, Any]) -> int:
    """How many lines were skipped: at least as many as are named, and none only where none is named."""
    count = int(notes["n_skipped"])
    if count < len(notes["skipped"]) or (count and not notes["skipped"]):
        raise ValueError(f"{count} skipped, {len(notes['skipped'])} of them named")
    return count


def _number(value: object) -> int | None:
    """A declared number of chips or nodes, or None."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_DEVICES:
        raise ValueError(f"no number of devices: {value!r}")
    return value


def _rebuild_declaration(notes: dict[str, Any]) -> Declaration:
    return Declaration(
        benchmark=str(notes["benchmark"]),
        platform=str(notes["platform"]),
        nodes=_number(notes["nodes"]),
        chips=_number(notes["chips"]),
        chip_name=str(notes["chip_name"]),
        other_chip_names=_texts(notes.get("other_chip_names")),
        differing=_texts(notes.get("differing")),
    )


def _texts(value: object) -> tuple[str, ...]:
    """Several texts; files written before they were kept have none."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"no list of texts: {value!r}")
    return tuple(value)


def _rebuild_series(
    columns: dict[str, NDArray[Any]], notes: list[dict[str, Any]], where: str
) -> tuple[Series, ...]:
    index = columns["series"]
    if (
        len(notes) > _MOST_SERIES
        or bool(np.any(index >= len(notes)))
        or bool(np.any(np.diff(index.astype(np.int64)) < 0))
    ):
        raise DecodeError(
            "rows that belong to no series", where=where, expected=f"{len(notes)} series in order"
        )
    starts = np.searchsorted(index, np.arange(len(notes)), side="left")
    stops = np.searchsorted(index, np.arange(len(notes)), side="right")
    return tuple(
        _rebuild_one({name: column[start:stop] for name, column in columns.items()}, note)
        for note, start, stop in zip(notes, starts, stops, strict=True)
    )


def _rebuild_monotonic(monotonic_ns: NDArray[Any]) -> NDArray[Any]:
    """The monotonic times of a series that has them; one that is missing is refused, not taken as zero."""
    if bool(np.any(monotonic_ns == _ABSENT)):
        raise ValueError("monotonic times that are missing in part")
    return monotonic_ns


def _rebuild_one(columns: dict[str, NDArray[Any]], note: dict[str, Any]) -> Series:
    for end_ns in (columns["utc_ns"].min(initial=0), columns["utc_ns"].max(initial=0)):
        _instant(str(end_ns))
    conversion = float(note["conversion"])
    if not 0 < conversion < math.inf:
        raise ValueError(f"no conversion factor: {conversion}")
    return Series(
        device=str(note["device"]),
        channel=Channel(note["channel"]),
        scope=Scope(note["scope"]),
        utc_ns=columns["utc_ns"],
        value=columns["value"],
        monotonic_ns=_rebuild_monotonic(columns["monotonic_ns"]) if note["has_monotonic"] else None,
        conversion=conversion,
        is_estimate=bool(note["is_estimate"]),
        part=str(note.get("part", "")),
        timing=Timing(note.get("timing", "dated")),
        averaged_s=float(note.get("averaged_s", 0.0)),
        counter_range_j=None if note.get("counter_range_j") is None else float(note["counter_range_j"]),
    )
