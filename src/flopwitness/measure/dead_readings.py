"""Readings of 0 W from devices that work: a sensor that is dead, or blanked, and no reading at all."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.paired import hold_values
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.wording import plural

__all__ = ["leave_out_dead"]

_BUSY_PCT: Final = 50.0
_CURRENT_S: Final = 10.0  # utilisation says nothing of later times
_SCOPES: Final = (Scope.GPU, Scope.MODULE)
_CHANNELS: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)


def leave_out_dead(trace: Trace, findings: list[Finding]) -> Trace:
    """The trace with readings of 0 W at more than half utilisation missing.

    Args:
        trace: The recordings.
        findings: Takes what was left out.
    """
    utilisation = {
        item.device: item
        for item in trace.series
        if item.channel is Channel.UTILISATION_PCT and not item.part and len(item)
    }
    series, dead = [], []
    for item in trace.series:
        is_dead = _find_dead(item, utilisation.get(item.device))
        if is_dead is not None and is_dead.any():
            dead.append((item.device, int(is_dead.sum())))
            item = replace(item, value=np.where(is_dead, np.nan, item.value))  # noqa: PLW2901 (the same, mended)
        series.append(item)
    if not dead:
        return trace
    count = sum(number for _, number in dead)
    findings.append(
        Finding(
            code="power-zero-busy",
            severity=Severity.WARNING,
            message=(
                f"{plural(count, 'reading')} of 0 W on {plural(len(dead), 'device')}, {dead[0][0]} for "
                "example, at more than half utilisation: a dead sensor; left out, not taken as zero"
            ),
            where=dead[0][0],
            expected="power above 0 W from a device that works",
            count=count,
        )
    )
    return replace(trace, series=tuple(series))


def _find_dead(power: Series, utilisation: Series | None) -> NDArray[np.bool_] | None:
    """Which readings are dead, shape (n,); None where none can be."""
    if utilisation is None or power.channel not in _CHANNELS or power.scope not in _SCOPES:
        return None
    is_zero: NDArray[np.bool_] = power.value == 0
    if not is_zero.any():
        return None
    share_pct = hold_values(utilisation.utc_ns, utilisation.value, power.utc_ns, longest_s=_CURRENT_S)
    return is_zero & (share_pct > _BUSY_PCT)
