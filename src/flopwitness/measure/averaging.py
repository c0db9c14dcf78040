"""Power that is a mean over the time before its reading: conserved, but late.

Source:
    NVML API reference, nvmlDeviceGetPowerUsage: on Ampere (except GA100) and newer, the draw averaged over
    one second.
"""

from collections.abc import Sequence
from typing import Final

from flopwitness.foundation.units import format_duration
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Series
from flopwitness.measure.wording import plural

__all__ = ["assess_averaging"]

_MUCH_LONGER: Final = 20  # times the averaging: then at most 5 % of the energy lies outside the run


def assess_averaging(series: Sequence[Series], duration_s: float | None) -> list[Finding]:
    """One finding where the run is not much longer than its readings average over.

    Args:
        series: The power series in use.
        duration_s: The run's length [s]; None where it is not known.
    """
    late = [
        item
        for item in series
        if item.averaged_s and duration_s is not None and duration_s < _MUCH_LONGER * item.averaged_s
    ]
    if not late or duration_s is None:
        return []
    longest_s = max(item.averaged_s for item in late)
    return [
        Finding(
            code="power-averaged",
            severity=Severity.WARNING,
            message=(
                f"{plural(len(late), 'device')}, {late[0].device} for example: a reading is, or may be, a "
                f"mean over {longest_s:g} s, and the run takes {format_duration(duration_s)}; energy comes "
                "late, so the run is taken as longer by that time, as far as readings go"
            ),
            where=late[0].device,
            expected=f"a run of at least {format_duration(_MUCH_LONGER * longest_s)}, or instant readings",
            found=format_duration(duration_s),
            count=len(late),
        )
    ]
