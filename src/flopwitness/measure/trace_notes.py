"""Everything that a trace file keeps beside its readings, as JSON: series, marks, runs, devices, provenance.

Readings without their provenance are worth nothing, and notes come from whoever made the file: each one is
judged when a trace is made of them again.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.digest import Digest
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
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
from flopwitness.measure.trace_columns import Columns

__all__ = ["SPEC", "describe_trace", "rebuild_trace"]

SPEC: Final = "flopwitness/trace/v1"
_CODE: Final = re.compile(r"[a-z][a-z-]{0,40}")
_MOST_DEVICES: Final = 10**18  # what nine digits of nodes times nine digits of chips a node make at most
_MOST_COUNTED: Final = 500_000_000


def describe_trace(trace: Trace) -> dict[str, Any]:
    """Everything but the readings; instants as decimal strings, because they pass 2^53."""
    return {
        "spec": SPEC,
        "series": [_describe_series(item) for item in trace.series],
        "marks": [{"name": m.name, "utc_ns": str(m.utc_ns), "where": m.where} for m in trace.marks],
        "windows": [{**_describe_window(w), "status": w.status} for w in trace.windows],
        "extent": None if trace.extent is None else _describe_window(trace.extent),
        "declaration": None if trace.declaration is None else _describe_declaration(trace.declaration),
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
        "findings": [_describe_finding(f) for f in trace.findings],
    }


def _describe_series(series: Series) -> dict[str, Any]:
    return {
        "device": series.device,
        "channel": str(series.channel),
        "scope": str(series.scope),
        "conversion": series.conversion,
        "is_estimate": series.is_estimate,
        "part": series.part,
        "timing": str(series.timing),
        "averaged_s": series.averaged_s,
        "counter_range_j": series.counter_range_j,
        "has_monotonic": series.monotonic_ns is not None,
    }


def _describe_window(window: RunWindow) -> dict[str, Any]:
    return {
        "start_utc_ns": str(window.start_utc_ns),
        "stop_utc_ns": None if window.stop_utc_ns is None else str(window.stop_utc_ns),
    }


def _describe_declaration(declared: Declaration) -> dict[str, Any]:
    return {
        "benchmark": declared.benchmark,
        "platform": declared.platform,
        "nodes": declared.nodes,
        "chips": declared.chips,
        "chip_name": declared.chip_name,
        "other_chip_names": list(declared.other_chip_names),
        "differing": list(declared.differing),
    }


def _describe_finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "where": finding.where,
        "expected": finding.expected,
        "found": finding.found,
        "count": finding.count,
    }


def rebuild_trace(notes: dict[str, Any], columns: Sequence[Columns], *, where: str) -> Trace:
    """The trace that notes and columns make.

    Args:
        notes: What `describe_trace` gave; those of older files lack what was not kept then.
        columns: The readings of each series.
        where: The path to name in an error.

    Raises:
        DecodeError: Notes of another kind.
        KeyError: They lack something, or (with TypeError, ValueError, AttributeError and OverflowError)
            hold what makes no sense.
    """
    if notes["spec"] != SPEC:
        raise DecodeError("another format", where=where, expected=SPEC, found=str(notes["spec"])[:80])
    return Trace(
        series=tuple(
            _rebuild_series(note, readings) for note, readings in zip(notes["series"], columns, strict=True)
        ),
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


def _rebuild_series(note: dict[str, Any], columns: Columns) -> Series:
    if bool(note["has_monotonic"]) != (columns.monotonic_ns is not None):
        raise ValueError("monotonic times that are missing")
    conversion = float(note["conversion"])
    if not 0 < conversion < math.inf:
        raise ValueError(f"no conversion factor: {conversion}")
    return Series(
        device=str(note["device"]),
        channel=Channel(note["channel"]),
        scope=Scope(note["scope"]),
        utc_ns=columns.utc_ns,
        value=columns.value,
        monotonic_ns=columns.monotonic_ns,
        conversion=conversion,
        is_estimate=bool(note["is_estimate"]),
        part=str(note.get("part", "")),
        timing=Timing(note.get("timing", "dated")),
        averaged_s=float(note.get("averaged_s", 0.0)),
        counter_range_j=None if note.get("counter_range_j") is None else float(note["counter_range_j"]),
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
    if not _CODE.fullmatch(code) or not isinstance(count, int) or not 1 <= count <= _MOST_COUNTED:
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
