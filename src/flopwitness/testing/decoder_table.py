"""The decoders that must keep the contract, each with good inputs of our own making.

Tests run a small share over these; `campaigns/fuzz_decoders.py` runs many trials and adds the heads of
real recordings where they are at hand.
"""

import gzip
import io
import json
import tarfile
import zipfile
from itertools import chain
from typing import Final

import numpy as np

from flopwitness.accounting.lineage import decode_lineage
from flopwitness.catalogue.chips import decode_chips
from flopwitness.catalogue.rules import decode_rules
from flopwitness.foundation.encoding import decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.reference import decode_reference, encode_reference, load_reference
from flopwitness.measure.samples import Skipped, Trace
from flopwitness.measure.sources import power_log, result_log
from flopwitness.measure.sources.containers import Limits, decode_container
from flopwitness.measure.sources.formats import FORMATS, guess_format
from flopwitness.measure.sources.mllog import decode_mllog
from flopwitness.measure.sources.run_table import decode_run_table
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.system_json import decode_system_json
from flopwitness.measure.trace_file import decode_unpacked
from flopwitness.testing.decoders import (
    calibrations,
    configurations,
    jetson,
    meters,
    nvidia,
    prometheus,
    tables,
)
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["known_decoders"]

_LIMITS: Final = Limits(member_bytes=4 << 20, total_bytes=16 << 20, members=1_000)
_LINEAGE: Final = (
    b'{"version": 1, "models": [{"id": "m", "runs": [{"id": "r", "flop": "10"}], "parents": ["b"]}]}'
)
_START_MS: Final = 1_700_000_000_000
_CHIPS: Final = """
[sources.s]
title = "A data sheet"
publisher = "Somebody"
url = "https://example.org/sheet"
date = 2026-01-31

[[chip]]
id = "example-1"
vendor = "Example"
name = "Example 1"
kind = "gpu"
power_scope = "gpu"
aliases = ["EX1"]
families = ["EX"]
power_limit_w = { value = 300, source = "s", checked = "read", conditions = "board" }
[chip.peak_flop_per_s]
fp16 = { value = 1e14, source = "s", checked = "recalled", conditions = "dense" }
"""
_RULES: Final = """
version = 1

[[rules]]
id = "example-rule"
status = "law"
jurisdiction = "Example"
title = "Example Act"
citation = "Art. 1"
in_force_from = 2026-01-31
counts = "training compute"
binds = "developers"
unit = "operations"
effect = "They notify somebody."
evidence = "read"
source = { title = "The act", url = "https://example.org/act", date = 2026-01-31 }

[[rules.thresholds]]
kind = "total"
flop = "10000000000000000000000000"
comparison = ">"
"""


def known_decoders() -> tuple[KnownDecoder, ...]:
    """Every decoder of the table; those of parts that are not installed are left out."""
    power, result, system = _power_log(), _result_log(), _system()
    ours = (
        KnownDecoder(
            name="mllog",
            decode=_decode_mllog_whole,
            seeds=(power, result),
            recordings=("data/mlperf/**/node_*.txt", "data/mlperf/time_only/*.txt"),
        ),
        KnownDecoder(
            name="power-log",
            decode=read_format(power_log.FORMATS[0]),
            seeds=(power, _switch_log()),
            recordings=("data/mlperf/**/node_*.txt", "data/mlperf/**/sw_*.txt"),
        ),
        KnownDecoder(
            name="result-log",
            decode=read_format(result_log.FORMATS[0]),
            seeds=(result,),
            recordings=("data/mlperf/time_only/*.txt", "data/mlperf/h100x8/dlrm_dcnv2/*.txt"),
        ),
        KnownDecoder(
            name="system-json",
            decode=lambda data: decode_system_json(data, where="system.json"),
            seeds=(system,),
            recordings=("data/mlperf/**/system.json",),
        ),
        KnownDecoder(
            name="containers",
            decode=lambda data: decode_container(io.BytesIO(data), name="x", where="x", limits=_LIMITS),
            seeds=(_tar(), gzip.compress(_tar(), mtime=0), gzip.compress(power, mtime=0), _zip()),
        ),
        KnownDecoder(
            name="any-format",
            decode=_decode_guessed,
            seeds=(power, result, system),
            recordings=("data/mlperf/**/*.txt", "data/mlperf/**/system.json"),
        ),
    )
    readers = (nvidia, jetson, prometheus, meters, tables, calibrations, configurations)
    families = (family.decoders() for family in readers)
    return (*ours, *_table_decoders(), *_catalogue_decoders(), *chain.from_iterable(families))


def _table_decoders() -> tuple[KnownDecoder, ...]:
    """Tables of runs, traces, lineages, and the JSON below them."""
    epoch, plain = _epoch_table(), _plain_table()
    return (
        KnownDecoder(
            name="run-table",
            decode=lambda data: decode_run_table(data, where="runs.csv"),
            seeds=(epoch, plain),
            recordings=("data/**/runs*.csv", "data/epoch/*_ai_models.csv", "data/zeus_traces/*.csv"),
        ),
        KnownDecoder(
            name="trace",
            decode=lambda data: decode_unpacked(data, where="trace.parquet"),
            seeds=(_end_trace(_trace_tail()),),
        ),
        KnownDecoder(
            name="trace-notes",
            decode=lambda data: decode_unpacked(_end_trace(data), where="trace.parquet"),
            seeds=(_trace_tail(),),
        ),
        KnownDecoder(
            name="lineage",
            decode=lambda data: decode_lineage(data, where="lineage.json"),
            seeds=(_LINEAGE,),
            recordings=("cases/**/lineage*.json",),
        ),
        KnownDecoder(
            name="json",
            decode=lambda data: decode_json(data, where="x.json"),
            seeds=(_system(), b'[1, 2.5e3, "\\u00e9", null, true, {"a": {}}]'),
            recordings=("cases/h28_canonical_json/*.json",),
        ),
    )


def _catalogue_decoders() -> tuple[KnownDecoder, ...]:
    """The catalogues and the prior's table, which a user may replace by their own."""
    return (
        KnownDecoder(
            name="chips",
            decode=lambda data: decode_chips(data, where="chips.toml"),
            seeds=(_CHIPS.encode(),),
        ),
        KnownDecoder(
            name="rules",
            decode=lambda data: decode_rules(data, where="rules.toml"),
            seeds=(_RULES.encode(),),
        ),
        KnownDecoder(
            name="reference",
            decode=lambda data: decode_reference(data, where="reference.json"),
            seeds=(encode_reference(load_reference()),),
        ),
    )


def _decode_mllog_whole(data: bytes) -> int:
    """How many events; one line that must be skipped counts as a refusal."""
    n_events = 0
    for event in decode_mllog(Source(blocks=[data], where="log", device="log").each_line(), where="log"):
        if isinstance(event, Skipped):
            raise DecodeError("a skipped line", where=event.where, expected=event.expected, found=event.found)
        n_events += 1
    return n_events


def _decode_guessed(data: bytes) -> Trace:
    name = guess_format(data, "log")
    if name is None:
        raise DecodeError("no known log", where="log")
    decode = next(known.decode for known in FORMATS if known.name == name)
    return decode(Source(blocks=[data], where="log", device="node_1"))


def _line(key: str, value: object, *, at_s: float, metadata: object = "", prefix: str = "") -> str:
    record = {
        "namespace": "",
        "time_ms": _START_MS + round(at_s * 1_000),
        "event_type": "POINT_IN_TIME",
        "key": key,
        "value": value,
        "metadata": metadata,
    }
    return f"{prefix}:::MLLOG {json.dumps(record)}"


def _power_log() -> bytes:
    lines = [_line("power_measurement_start", "null", at_s=0), _line("conversion_eff", 0.95, at_s=0)]
    lines += [_line("power_reading", 5_000 + 10 * second, at_s=second) for second in range(8)]
    lines += [_line("power_measurement_stop", None, at_s=0)]
    return "\r\n".join(lines).encode()


def _switch_log() -> bytes:
    return _line("interconnect_power_est", 900, at_s=0, metadata={"switch_id": "sw_01"}).encode()


def _result_log() -> bytes:
    lines = [
        "+ echo 'Beginning trial 1 of 1'",
        ":::SYSJSON " + _system().decode(),
        _line("submission_benchmark", "tiny", at_s=0, metadata={"lineno": 1}, prefix="0: "),
        _line("submission_platform", "2xEXAMPLE", at_s=0, prefix="0: "),
        _line("run_start", None, at_s=1, prefix=" 0: "),
        _line("run_stop", 0.9, at_s=99, metadata={"status": "success"}, prefix=" 1: "),
    ]
    return "\n".join(lines).encode()


def _system() -> bytes:
    record = {"number_of_nodes": "2", "accelerators_per_node": 8, "accelerator_model_name": "Example 1"}
    return json.dumps(record).encode()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("power_ac/node_1.txt", "power_ac/" + "n" * 120 + ".txt"):
            member = tarfile.TarInfo(name)
            member.size = len(_switch_log())
            archive.addfile(member, io.BytesIO(_switch_log()))
    return file.getvalue()


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("node_1.txt", "node_2.txt"):
            archive.writestr(zipfile.ZipInfo(name), _switch_log())
    return file.getvalue()


def _trace_tail() -> bytes:
    """What the child process says of a trace of one device with two readings and their utilisation."""
    series = {"device": "node_1", "scope": "node-ac", "conversion": 1, "is_estimate": False}
    notes = {
        "spec": "flopwitness/trace/v1",
        "series": [
            {**series, "channel": "power_w", "has_monotonic": True},
            {**series, "channel": "power_average_w", "has_monotonic": False, "averaged_s": 1.5},
            {**series, "channel": "utilisation_pct", "has_monotonic": False},
        ],
        "marks": [{"name": "start", "utc_ns": "1700000000000000000", "where": "x:1"}],
        "windows": [{"start_utc_ns": "1700000000000000000", "stop_utc_ns": None, "status": ""}],
        "declaration": None,
        "skipped": [],
        "n_skipped": 0,
        "provenance": [],
        "devices": [{"name": "n", "chip_name": "", "host": "h", "driver": "", "is_shared": False}],
        "findings": [
            {
                "code": "zone-assumed",
                "severity": "note",
                "message": "",
                "where": "",
                "expected": "",
                "found": "",
                "count": 1,
            }
        ],
    }
    return json.dumps({"n_rows": [2, 2, 2], "times_at": [0, 0, 2], "notes": notes}).encode()


def _end_trace(tail: bytes) -> bytes:
    """The columns of that trace, with a tail behind them."""
    value = np.array([5_000.0, 5_100.0] * 3, dtype="<f8")
    utc_ns = np.array([1_700_000_000_000_000_000, 1_700_000_002_000_000_000] * 3, dtype="<i8")
    monotonic_ns = np.array([0, 2_000_000_000] * 3, dtype="<i8")
    columns = (column.tobytes() for column in (value, utc_ns, monotonic_ns))
    return b"".join(columns) + tail + len(tail).to_bytes(8, "little")


def _epoch_table() -> bytes:
    return (
        b"Model,Training hardware,Hardware quantity,Training time (hours),"
        b"Training compute (FLOP),Base model\n"
        b'Example-1,NVIDIA A100,512.0,100.5,2.5e+22,\nExample-2,"NVIDIA H100, NVIDIA A100",8,,,Example-1\n'
    )


def _plain_table() -> bytes:
    return (
        b"run_id;chip;count;duration_s;energy_j;precision\n"
        b"a;h100-sxm;8;3600;2.0e7;bf16\nb;h100-sxm;8;60;;fp8\n"
    )
