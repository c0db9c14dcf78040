"""What recordings say of their accelerators: which they are, and how many ran at one time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from flopwitness.measure.lanes import join_recordings
from flopwitness.measure.samples import Channel, Declaration, Device, Scope, Series, Trace

__all__ = ["count_accelerators", "declare_devices", "merge_devices"]

_HOLDS_ONE: Final = (Scope.GPU, Scope.MODULE)
_MOST_NAMES: Final = 1_000


def merge_devices(devices: Iterable[Device]) -> tuple[Device, ...]:
    """What several recordings say of their devices, each name once; the first word of each counts."""
    merged: dict[str, Device] = {}
    for device in devices:
        merged[device.name] = merged.get(device.name, device).joined(device)
    return tuple(merged.values())


def declare_devices(trace: Trace) -> Trace:
    """The trace with the names that its recordings give their accelerators among what it declares.

    A log's word for its chip is a declaration like any other: it tests a claim, and a bound covers it.
    """
    names = [device.chip_name for device in trace.devices if device.chip_name]
    if not names:
        return trace
    declared = trace.declaration or Declaration()
    all_names = tuple(dict.fromkeys((*declared.chip_names, *names)))[:_MOST_NAMES]
    return replace(
        trace, declaration=replace(declared, chip_name=all_names[0], other_chip_names=all_names[1:])
    )


def count_accelerators(trace: Trace) -> int | None:
    """How many accelerators the recordings show at one time; None where they show none by itself.

    Recordings that follow each other, as where a new file starts each week, are of one device.
    """
    by_channel: dict[tuple[Scope, Channel], dict[str, Series]] = defaultdict(dict)
    for series in trace.series:
        if series.scope in _HOLDS_ONE and not series.part and len(series):
            by_channel[series.scope, series.channel].setdefault(series.device, series)
    counts = [len(join_recordings(tuple(items.values()), [])) for items in by_channel.values()]
    return max(counts, default=None)
