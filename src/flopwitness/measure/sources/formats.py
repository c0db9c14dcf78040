"""From what a user names to one trace: guess each file's format from its content, read it, merge.

A run's evidence is scattered over node logs, a switch estimate, a result log and a system description, in
files, folders and archives. A file that the user named and nobody can read is an error; one that merely
lies beside the logs is counted as skipped. Nothing is added up here: figures of different scopes stand
beside each other, and each file's digest is kept, so that a copied node log can be seen.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from flopwitness.foundation.digest import Digest, Digester
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.child import spool
from flopwitness.measure.devices import declare_devices, merge_devices
from flopwitness.measure.samples import Channel, Declaration, Provenance, Scope, Trace
from flopwitness.measure.sources import (
    amd_smi,
    codecarbon_csv,
    dcgm_dmon,
    exposition,
    ipmi,
    jetson_series,
    jtop_csv,
    loadgen_log,
    nvidia_csv,
    nvidia_dmon,
    nvidia_query,
    nvidia_xml,
    parquet_table,
    pdu_csv,
    perf_stat,
    plain_table,
    power_log,
    powercap,
    prometheus_reply,
    ptd_log,
    redfish,
    result_log,
    rocm_smi,
    spl_log,
    system_json,
    tegrastats,
    turbostat,
    zeus_csv,
)
from flopwitness.measure.sources.containers import Member, natural_key, open_members
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.result_log import join_extents, merge_windows
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.snapshots import join_snapshots
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.trace_file import (
    LARGEST_TRACE_BYTES,
    decode_trace_file,
    holds_trace,
    is_trace_file,
)
from flopwitness.measure.trackers import settle_trackers

__all__ = ["FORMATS", "HEAD_BYTES", "guess_format", "merge_traces", "read_evidence"]

HEAD_BYTES: Final = 4 << 20
_RAISED_IN_FOLDERS: Final = ("flopwitness-trace", "parquet-table", "mlperf-system", "mlperf-result")
_UUID: Final = re.compile(r"GPU-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_KEPT_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 1_000  # each may come from a file of its own
_MOST_DIFFERENCES: Final = 20


def _decode_own(source: Source) -> Trace:
    with spool(source.blocks, limit_bytes=LARGEST_TRACE_BYTES, where=source.where) as file:
        return decode_trace_file(file, where=source.where)


_TRACE: Final = "flopwitness-trace"
_OURS: Final = (Format(name=_TRACE, is_it=is_trace_file, decode=_decode_own),)

# Tried in this order; the more special stand first, and what any table could be stands last.
FORMATS: Final = (
    *_OURS,
    *parquet_table.FORMATS,
    *loadgen_log.FORMATS,
    *system_json.FORMATS,
    *power_log.FORMATS,
    *result_log.FORMATS,
    *nvidia_xml.FORMATS,
    *nvidia_query.FORMATS,
    *nvidia_csv.FORMATS,
    *nvidia_dmon.FORMATS,
    *dcgm_dmon.FORMATS,
    *exposition.FORMATS,
    *prometheus_reply.FORMATS,
    *tegrastats.FORMATS,
    *jetson_series.FORMATS,
    *jtop_csv.FORMATS,
    *spl_log.FORMATS,
    *ptd_log.FORMATS,
    *ipmi.FORMATS,
    *redfish.FORMATS,
    *perf_stat.FORMATS,
    *turbostat.FORMATS,
    *powercap.FORMATS,
    *rocm_smi.FORMATS,
    *amd_smi.FORMATS,
    *codecarbon_csv.FORMATS,
    *zeus_csv.FORMATS,
    *pdu_csv.FORMATS,
    *plain_table.FORMATS,
)


def guess_format(head: bytes, name: str) -> str | None:
    """The name of the first known format that these bytes can be; None where there is none.

    Args:
        head: How the file begins; up to `HEAD_BYTES` are looked at.
        name: The file's name, for formats that have no sign of their own.
    """
    head = head[:HEAD_BYTES]
    return next((known.name for known in FORMATS if known.is_it(head, name)), None)


def read_evidence(
    paths: Sequence[Path],
    *,
    format: str | None = None,  # noqa: A002 (the user's word for it)
    options: ReadOptions | None = None,
) -> Trace:
    """One trace of everything that the user named as evidence of one run.

    Args:
        paths: Files, folders and archives, in any order.
        format: The name of the format of every file, where the user says so.
        options: What the user says of the logs: scope, time zone, period, columns.

    Returns:
        The merged trace. Devices are named after their files where these name none; two that would share
        name, scope, channel and part carry folder names in front. In folders and archives, files of no
        known format and power logs without a reading are in `skipped`.

    Raises:
        InputError: Nothing was named, a file is missing, or no format has this name.
        DecodeError: A named file is no known log, a folder or archive holds none, or a log cannot be read.
    """
    if not paths:
        raise InputError("no evidence named", expected="files, folders or archives")
    if format is not None and format not in {known.name for known in FORMATS}:
        raise InputError("no such format", expected=_known_names(), found=repr(format))
    options = options or ReadOptions()
    parts = [part for path in paths for part in _read_path(path, format_name=format, options=options)]
    stems = [part.stem for part in parts]
    joined = join_snapshots([part.trace for part in parts], stems, period_s=options.period_s)
    parts = [replace(part, trace=trace) for part, trace in zip(parts, joined, strict=True)]
    trace = declare_devices(settle_trackers(merge_traces(_with_unique_devices(parts))))
    return trace if options.columns is None else _tell_unused_columns(trace)


def _tell_unused_columns(trace: Trace) -> Trace:
    """The trace; with a finding where no file was read by the map of columns that the user gave."""
    tables = {known.name for known in (*plain_table.FORMATS, *parquet_table.FORMATS)}
    if any(part.format in tables for part in trace.provenance):
        return trace
    told = Finding(
        code="columns-unused",
        severity=Severity.WARNING,
        message=(
            "--columns was not used: every file is of a known format and says itself what its columns hold "
            "(--format plain-table reads it by the map)"
        ),
    )
    return replace(trace, findings=(*trace.findings, told))


def merge_traces(traces: Iterable[Trace]) -> Trace:
    """One trace of several that describe one run.

    Series, marks and provenance follow each other; windows of one run become one; the extent goes from the
    first to the last event of all; of the declarations the first word and the larger number count, and in
    what they differ is kept.
    """
    traces = tuple(traces)
    skips = SkipTally()
    for trace in traces:
        skips.add_all(trace.skipped, count=trace.n_skipped)
    return Trace(
        series=tuple(series for trace in traces for series in trace.series),
        marks=tuple(mark for trace in traces for mark in trace.marks),
        windows=merge_windows(window for trace in traces for window in trace.windows),
        extent=join_extents(trace.extent for trace in traces),
        declaration=_merge_declarations(traces),
        skipped=skips.first,
        n_skipped=skips.count,
        provenance=tuple(provenance for trace in traces for provenance in trace.provenance),
        devices=merge_devices(device for trace in traces for device in trace.devices),
        findings=_merge_findings(finding for trace in traces for finding in trace.findings),
    )


def _merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What the readers told, each thing once with all its counts, at its first place."""
    merged: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.message)
        known = merged.get(key)
        merged[key] = finding if known is None else replace(known, count=known.count + finding.count)
    return tuple(merged.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One file's trace, its name without an ending, and the folders that it lies in, outermost first."""

    stem: str
    folders: tuple[str, ...]
    trace: Trace


def _read_path(path: Path, *, format_name: str | None, options: ReadOptions) -> list[_Part]:
    """The parts that one argument gives, in natural order of their names."""
    parts: list[tuple[str, _Part]] = []
    others = 0
    for member in open_members(path):
        is_own = member.where == str(path)
        trace = _read_member(member, format_name=format_name, options=options, is_own=is_own)
        others += not trace.provenance
        *folders, _ = _components(member.where)
        parts.append((member.name, _Part(stem=_stem(member), folders=tuple(folders), trace=trace)))
    if others == len(parts):
        raise DecodeError(
            "holds no known log", where=str(path), expected=_known_names(), found=f"{others} other files"
        )
    parts.sort(key=lambda part: natural_key(part[0]))
    return [part for _, part in parts]


def _read_member(member: Member, *, format_name: str | None, options: ReadOptions, is_own: bool) -> Trace:
    device = _stem(member)
    tally = _Tally(member.blocks)
    source = Source(blocks=tally, where=member.where, device=device, options=options)
    head = source.peek(HEAD_BYTES)
    name = format_name or (guess_format(head, member.name) if head else None)
    if name is None and options.columns is not None:
        name = plain_table.FORMATS[0].name  # the user says how to read what is no other log
    if name is None:
        return _unknown(member, head, is_own=is_own)
    try:
        if name == _TRACE and format_name is None:
            name, trace = _decode_parquet(source)
        else:
            trace = next(known.decode for known in FORMATS if known.name == name)(source)
    except DecodeError as error:
        if is_own or (format_name is None and name in _RAISED_IN_FOLDERS):
            raise
        return _skipped(error.where or member.where, expected=error.expected, found=error.found)
    for _ in source.blocks:  # a reader may stop early; the digest is of all bytes
        pass
    provenance = Provenance(
        path=member.where, format=name, digest=tally.digest(), size_bytes=tally.size_bytes
    )
    return replace(trace, provenance=(*trace.provenance, provenance))


def _decode_parquet(source: Source) -> tuple[str, Trace]:
    """Which of the two formats that begin alike a file has, and its trace: the notes stand at the end."""
    with spool(source.blocks, limit_bytes=LARGEST_TRACE_BYTES, where=source.where) as file:
        if holds_trace(file):
            return _TRACE, decode_trace_file(file, where=source.where)
        (table,) = parquet_table.FORMATS
        kept = replace(source, blocks=iter(lambda: file.read(_KEPT_BYTES), b""))
        return table.name, table.decode(kept)


def _stem(member: Member) -> str:
    """What a device is called that the file does not name."""
    return re.sub(r"\.[A-Za-z0-9]{1,7}$", "", _components(member.name)[-1])


class _Tally:
    """Blocks on their way to a reader, hashed and counted as they pass."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._digester = Digester()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._digester.update(block)
            self.size_bytes += len(block)
            yield block

    def digest(self) -> Digest:
        return self._digester.digest()


def _unknown(member: Member, head: bytes, *, is_own: bool) -> Trace:
    where, found = f"{member.where}:1", excerpt(head) or "nothing"
    if is_own:
        raise DecodeError("no known log", where=where, expected=_known_names(), found=found)
    return _skipped(where, expected=_known_names(), found=found)


def _skipped(where: str, *, expected: str, found: str) -> Trace:
    skips = SkipTally()
    skips.add(where, expected=expected, found=found)
    return Trace(skipped=skips.first, n_skipped=skips.count)


def _known_names() -> str:
    return "one of " + ", ".join(known.name for known in FORMATS)


def _components(name: str) -> list[str]:
    return re.split(r"[/\\!]", name)


def _with_unique_devices(parts: Sequence[_Part]) -> Iterator[Trace]:
    """The traces; devices of several files that share a name are told apart, unless the name is a GPU's own.

    Names such as `gpu0` stand for another device in each file as soon as two files hold the same figure of
    one. A UUID means one GPU wherever it stands: what two tools say of it is never taken for two.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    places: dict[tuple[str, Scope, Channel, str], set[int]] = defaultdict(set)
    for i, part in enumerate(parts):
        for device in dict.fromkeys(series.device for series in part.trace.series):
            holders[device].append(i)
        for series in part.trace.series:
            places[series.device, series.scope, series.channel, series.part].add(i)
    shared = {device for (device, *_), files in places.items() if len(files) > 1}
    names: dict[tuple[int, str], str] = {}
    for device in shared:
        if not _UUID.search(device):
            told = _tell_apart(device, [parts[i].folders for i in holders[device]])
            names.update({(i, device): name for i, name in zip(holders[device], told, strict=True)})
    for i, part in enumerate(parts):
        trace = part.trace
        yield replace(
            trace,
            series=tuple(
                replace(item, device=names.get((i, item.device), item.device)) for item in trace.series
            ),
            devices=tuple(replace(item, name=names.get((i, item.name), item.name)) for item in trace.devices),
        )


def _tell_apart(device: str, folders: Sequence[tuple[str, ...]]) -> list[str]:
    """One name for each place of a device: as few folders as differ, or a number where none do."""
    for depth in range(1, 1 + max(len(path) for path in folders)):
        names = ["/".join((*path[-depth:], device)) for path in folders]
        if len(set(names)) == len(names):
            return names
    return [f"{device}#{number}" for number in range(1, 1 + len(folders))]


def _merge_declarations(traces: Iterable[Trace]) -> Declaration | None:
    """One declaration of several: the first word, the larger number, and in what they differ."""
    merged = Declaration()
    for trace in traces:
        if trace.declaration is not None:
            merged = _join_declarations(merged, trace.declaration)
    return None if merged == Declaration() else merged


def _join_declarations(one: Declaration, other: Declaration) -> Declaration:
    names = tuple(dict.fromkeys((*one.chip_names, *other.chip_names)))[:_MOST_NAMES]
    differing = [*one.differing, *other.differing]
    for known, said, word in (
        (one.benchmark, other.benchmark, "the benchmarks"),
        (one.nodes, other.nodes, "nodes"),
        (one.chips, other.chips, "chips"),
    ):
        if known not in (None, "", said) and said not in (None, ""):
            words = f"{word} {known} and {said}" if isinstance(known, str) else f"{known} and {said} {word}"
            differing.append(words)
    return Declaration(
        benchmark=one.benchmark or other.benchmark,
        platform=one.platform or other.platform,
        nodes=_larger(one.nodes, other.nodes),
        chips=_larger(one.chips, other.chips),
        chip_name=names[0] if names else "",
        other_chip_names=names[1:],
        differing=tuple(dict.fromkeys(differing))[:_MOST_DIFFERENCES],
    )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)
