"""What a recording holds, for programs."""

import math
from collections.abc import Sequence
from typing import Any

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.verdict import Finding
from flopwitness.measure.host_energy import HostUse
from flopwitness.measure.inventory import Reading
from flopwitness.measure.samples import Trace
from flopwitness.present.finding_json import render_finding

__all__ = ["render_doctor"]

SPEC = "flopwitness/doctor/v1"


def render_doctor(
    trace: Trace, readings: Sequence[Reading], hosts: Sequence[HostUse], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The record of what logs hold.

    Args:
        trace: The recording.
        readings: Its channels (`list_readings`).
        hosts: The energy of its hosts (`measure_hosts`).
        findings: What is odd about it, worst first.
    """
    return {
        "spec": SPEC,
        "inputs": [
            {"path": p.path, "format": p.format, "digest": str(p.digest), "size_bytes": p.size_bytes}
            for p in trace.provenance
        ],
        "devices": [
            {
                "name": device.name,
                "chip_name": device.chip_name,
                "host": device.host,
                "driver": device.driver,
                "is_shared": device.is_shared,
            }
            for device in trace.devices
        ],
        "readings": [_render_reading(reading) for reading in readings],
        "hosts": [_render_host(host) for host in hosts],
        "n_runs": len(trace.windows),
        "n_skipped": trace.n_skipped,
        "findings": [render_finding(finding) for finding in findings],
    }


def _render_reading(reading: Reading) -> dict[str, Any]:
    return {
        "device": reading.device,
        "channel": str(reading.channel),
        "scope": str(reading.scope),
        "part": reading.part,
        "n_readings": reading.n_readings,
        "n_missing": reading.n_missing,
        "start_utc": _time(reading.start_utc_ns),
        "duration_s": reading.duration_s,
        "period_s": _number(reading.period_s),
        "coverage": reading.coverage,
        "low": _number(reading.low),
        "high": _number(reading.high),
        "grade": str(reading.grade),
        "doubts": list(reading.doubts),
    }


def _render_host(host: HostUse) -> dict[str, Any]:
    energy = host.energy
    return {
        "device": host.device,
        "cpu_j": energy.cpu_j,
        "dram_j": energy.dram_j,
        "cpu_plus_dram_j": energy.cpu_plus_dram_j,
        "platform_j": energy.platform_j,
        "coverage": host.coverage,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time(utc_ns: int | None) -> str | None:
    try:
        return None if utc_ns is None else format_utc(utc_ns)
    except ValueError:
        return None
