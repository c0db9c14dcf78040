"""A trace that holds something of everything, for the tests of how traces are kept."""

from collections.abc import Callable

import pytest

from flopwitness.foundation.digest import digest_bytes
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
    Trace,
)

MakeSeries = Callable[..., Series]


@pytest.fixture
def full_trace(make_series: MakeSeries) -> Trace:
    """Series of several kinds, one of them without a reading, and every kind of note."""
    return Trace(
        series=(
            make_series([400, float("nan"), 410.25], device="gpü_0", conversion=0.96),
            make_series([], device="gpu_1"),
            make_series([7, 8], scope=Scope.SWITCH, is_estimate=True, monotonic_s=[3, 4]),
            make_series([55], channel=Channel.UTILISATION_PCT),
        ),
        marks=(Mark(name="power_measurement_start", utc_ns=2**62, where="a.txt:1"),),
        windows=(RunWindow(start_utc_ns=1, stop_utc_ns=None), RunWindow(start_utc_ns=9, stop_utc_ns=3)),
        extent=RunWindow(start_utc_ns=1, stop_utc_ns=2**62),
        declaration=Declaration(
            benchmark="gpt3",
            nodes=4,
            chips=None,
            chip_name="H100",
            other_chip_names=("T4", "A100"),
            differing=("4 and 2 nodes",),
        ),
        skipped=(Skipped(where="a.txt:3", expected="JSON", found="\x1b[2J"),),
        n_skipped=7,
        provenance=(
            Provenance(path="a.txt", format="mlperf-power", digest=digest_bytes(b"a"), size_bytes=1),
        ),
        devices=(Device(name="gpü_0", chip_name="NVIDIA H100", host="n1", driver="550.1", is_shared=True),),
        findings=(Finding(code="zone-assumed", severity=Severity.NOTE, message="UTC", where="a", count=2),),
    )
