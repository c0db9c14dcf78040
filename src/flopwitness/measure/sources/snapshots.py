"""Files of one reading each, taken one after the other: snapshots of one machine in the order of their names.

A counter that is printed once before a run and once after it makes two files without a time. Where the user
says how far apart they are (`--period`), they are one recording.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Series, Timing, Trace

__all__ = ["join_snapshots"]


def join_snapshots(traces: Sequence[Trace], stems: Sequence[str], *, period_s: float | None) -> list[Trace]:
    """The traces; one in place of all of them where they are snapshots of the same figures.

    Args:
        traces: One a file, in the order in which the user named them.
        stems: What each file calls devices that it does not name: that much of a name is the file's own.
        period_s: How far apart they were taken [s]; None where the user does not say, and then nothing is
            joined: they may as well be of several machines.
    """
    if period_s is None or len(traces) < 2:  # noqa: PLR2004 (one file is no sequence)
        return list(traces)
    snapshots = [_by_figure(trace, stem) for trace, stem in zip(traces, stems, strict=True)]
    first = snapshots[0]
    if not first or any(snapshot is None or snapshot.keys() != first.keys() for snapshot in snapshots):
        return list(traces)
    period_ns = round(period_s * NANOSECOND_PER_SECOND)
    times = np.arange(len(traces), dtype=np.int64) * period_ns
    series = tuple(
        replace(
            item,
            device=key[0],
            utc_ns=times,
            value=np.concatenate([(snapshot or {})[key].value for snapshot in snapshots]),
            timing=Timing.RELATIVE,
        )
        for key, item in first.items()
    )
    told = Finding(
        code="snapshots-joined",
        severity=Severity.NOTE,
        message=(
            f"{len(traces)} files of one reading each are taken as snapshots of one machine, {period_s:g} s "
            "apart, in the order in which they were named"
        ),
        count=len(traces),
    )
    joined = replace(traces[0], series=series, devices=(), findings=(*traces[0].findings, told))
    return [joined, *(replace(trace, series=(), devices=()) for trace in traces[1:])]


def _by_figure(trace: Trace, stem: str) -> dict[tuple[str, str, str, str], Series] | None:
    """The series by what they are, without the file's own part of a device's name; None for no snapshot."""
    figures = {}
    for item in trace.series:
        if len(item) != 1 or item.timing is Timing.DATED or item.monotonic_ns is not None:
            return None
        name = item.device.removeprefix(f"{stem}/")
        figures[name, str(item.channel), str(item.scope), item.part] = item
    return figures if len(figures) == len(trace.series) else None
