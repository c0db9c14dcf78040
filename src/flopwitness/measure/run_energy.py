"""The energy of all devices together: over the run for the estimate, over everything for the bound."""

from collections.abc import Sequence

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.answer import RunEnergy
from flopwitness.measure.capacity import covers_limits, device_limit_w, expected_devices, needed_devices
from flopwitness.measure.device_energy import bound_device_j, measure_device
from flopwitness.measure.energy import Energy
from flopwitness.measure.framing import Frame, length_s

__all__ = ["is_measured", "measure_energy"]


def measure_energy(frame: Frame, findings: list[Finding]) -> RunEnergy | None:
    """The energy, or None where no power was recorded, or nothing has a length.

    Args:
        frame: What the answer is about.
        findings: Takes what is odd about counters of energy.
    """
    if not frame.series or not frame.duration_s:
        return None
    n_expected, limit_w = frame.n_expected, frame.limit_w
    devices = tuple(
        measure_device(
            item,
            frame.counters.get(item.device),
            findings,
            window=frame.in_run,
            limit_w=limit_w,
            floor_w=frame.question.idle_w,
        )
        for item in frame.series
    )
    n_absent = max(0, n_expected - len(devices))
    run_s = max(device.claimed_s for device in devices)
    n_needed = needed_devices(
        frame.scope, frame.question.chips, frame.question.count, declared=frame.trace.declaration
    )
    covered_s = [device.covered_s for device in devices] + [0.0] * n_absent
    filled_s = [device.covered_s + device.bridged_s for device in devices] + [0.0] * n_absent
    return RunEnergy(
        scope=frame.scope,
        devices=devices,
        shown_j=sum(device.shown_j for device in devices),
        working_w=_working_w(devices, n_expected),
        low_j=sum(device.low_j for device in devices),
        high_j=_add_absent([device.high_j for device in devices], n_absent, limit_w, run_s),
        recorded_high_j=_most_recorded(frame),
        coverage=_least_share(covered_s, run_s, n_needed),
        filled=_least_share(filled_s, run_s, n_needed),
    )


def is_measured(energy: RunEnergy) -> bool:
    """Whether the readings tell of any of the run: what nobody measured is not known, and not 0 J.

    A counter that stands still all the time covers nothing, and shows nothing across that gap either.
    """
    return any(device.covered_s > 0 or device.shown_j > 0 for device in energy.devices)


def _most_recorded(frame: Frame) -> float | None:
    """The most energy over everything recorded [J]; None where the readings do not cover the hardware.

    The limits are those of the hardware that the bound covers, which may be more than the user states.
    """
    chips, count = frame.hardware.chips, frame.hardware.count or frame.count
    if not covers_limits(frame.scope, chips):
        return None
    n_expected = expected_devices(frame.trace, frame.series, frame.scope, chips, count)
    limit_w = device_limit_w(chips, count, frame.scope, n_expected)
    highs = [
        bound_device_j(item, frame.counters.get(item.device), window=frame.span, limit_w=limit_w)
        for item in frame.series
    ]
    return _add_absent(highs, max(0, n_expected - len(highs)), limit_w, length_s(frame.span) or 0.0)


def _least_share(times_s: Sequence[float], run_s: float, n_needed: int) -> float:
    """Share of the run that the least covered devices have, as many as the chips need, 0 to 1."""
    return min(1.0, sum(sorted(times_s)[:n_needed]) / (run_s * n_needed)) if run_s > 0 else 0.0


def _working_w(devices: Sequence[Energy], n_expected: int) -> float:
    """Energy-weighted mean power of all devices together [W]; those without readings count as the others."""
    working_w = [device.square_w2s / device.shown_j for device in devices if device.shown_j > 0]
    return n_expected * sum(working_w) / len(working_w) if working_w else 0.0


def _add_absent(
    highs: Sequence[float | None], n_absent: int, limit_w: float | None, run_s: float
) -> float | None:
    """The sum with devices nobody recorded at their limit; None where anything has no limit."""
    if any(high is None for high in highs) or (n_absent and limit_w is None):
        return None
    return sum(high for high in highs if high is not None) + n_absent * (limit_w or 0.0) * run_s
