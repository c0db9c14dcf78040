"""What an estimator may see of a run from its logs: energy, busy time and traffic over the whole run."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.answer import FEWEST_COVERED, RunEnergy
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.framing import Frame, length_s
from flopwitness.measure.observed import Feature, ObservedRuns
from flopwitness.measure.paired import is_later, longest_step_s
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Trace
from flopwitness.measure.totals import LedgerState, busy_limit_w, extend

__all__ = ["fingerprint_trace", "observe_frame"]

_RATES: Final = {
    Feature.MEMORY: Channel.MEMORY_TRAFFIC_BYTE_PER_S,
    Feature.LINK: Channel.LINK_TRAFFIC_BYTE_PER_S,
    Feature.HOST: Channel.HOST_TRAFFIC_BYTE_PER_S,
}
_TERA: Final = 1e12
_POWER: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)


def observe_frame(frame: Frame, energy: RunEnergy | None, calibration: Calibration) -> ObservedRuns:
    """The run as the calibration's estimators take it, n = 1.

    Args:
        frame: Which readings and which run.
        energy: Its energy, brought up to the whole run where most of it was covered; None where unusable.
        calibration: Whose idle power and usual power say when a device is busy.
    """
    window = _stretch(frame, energy)
    known_s = length_s(window)
    duration_s = np.nan if known_s is None else known_s
    energy_j = None if energy is None else energy.whole_j
    traffic = {name: _moved_tb(frame, channel, window) for name, channel in _RATES.items()}
    busy_s = _busy_s(frame, calibration, window)
    return ObservedRuns(
        duration_s=np.array([duration_s]),
        busy_s=np.array([duration_s if busy_s is None else busy_s]),
        energy_j=np.array([np.nan if energy_j is None else energy_j]),
        net_energy_j=np.array([np.nan]),
        idle_w=np.array([np.nan]),
        memory_tb=np.array([traffic[Feature.MEMORY]]),
        link_tb=np.array([traffic[Feature.LINK]]),
        host_tb=np.array([traffic[Feature.HOST]]),
    )


def _stretch(frame: Frame, energy: RunEnergy | None) -> RunWindow | None:
    """What the energy is about: from the run's start mark, or the first reading, as long as claimed."""
    claimed_s = max((device.claimed_s for device in energy.devices), default=0.0) if energy else 0.0
    if frame.in_run is None or claimed_s <= 0:
        return frame.in_run
    start_ns = frame.in_run.start_utc_ns
    stop_ns = start_ns + round(claimed_s * NANOSECOND_PER_SECOND)
    return RunWindow(start_utc_ns=start_ns, stop_utc_ns=stop_ns)


def fingerprint_trace(frame: Frame) -> Fingerprint:
    """What the call and the logs tell of the device and its state."""
    devices = {item.device for item in frame.series}
    drivers = {device.driver for device in frame.trace.devices if device.name in devices and device.driver}
    return Fingerprint(
        chips=tuple(sorted(chip.id for chip in frame.question.chips)),
        count=frame.count or None,
        scope="" if frame.scope is Scope.UNKNOWN else str(frame.scope),
        power_mode=frame.question.power_mode or _power_limit(frame.trace, devices),
        driver=drivers.pop() if len(drivers) == 1 else "",
        precisions=tuple(sorted(str(precision) for precision in frame.question.precisions)),
    )


def _power_limit(trace: Trace, devices: Iterable[str]) -> str:
    """The power limit that all devices report all the time, such as `300W`; "" where they do not."""
    wanted = set(devices)
    limits = [
        item for item in trace.series if item.channel is Channel.POWER_LIMIT_W and item.device in wanted
    ]
    limits_w = {float(value) for item in limits for value in np.unique(item.value[np.isfinite(item.value)])}
    is_told = len(limits_w) == 1 and {item.device for item in limits} == wanted
    return f"{limits_w.pop():g}W" if is_told else ""


def _busy_s(frame: Frame, calibration: Calibration, window: RunWindow | None) -> float | None:
    """The devices' mean busy time, brought up to the run [s]; None where only counters were recorded."""
    series = [_cut(item, window) for item in frame.series if item.channel in _POWER]
    run_s = length_s(window)
    if not series or run_s is None:
        return None
    idle_w = calibration.fitted.net.idle_w / len(frame.series)
    domain = calibration.fitted.domain
    place = domain.features.index(Feature.POWER)
    usual_w = float(np.exp((domain.log_low[place] + domain.log_high[place]) / 2)) / len(frame.series)
    shares = [_busy_share(item, idle_w, busy_limit_w(usual_w)) for item in series]
    known = [share for share in shares if share is not None]
    return run_s * sum(known) / len(known) if known else None


def _busy_share(power: Series, idle_w: float, busy_net_w: float) -> float | None:
    """The share of its covered time in which a device was busy."""
    state = extend(
        LedgerState(),
        power,
        idle_w=idle_w,
        longest_step_s=longest_step_s(np.sort(power.utc_ns) / NANOSECOND_PER_SECOND),
        busy_net_w=busy_net_w,
    )
    totals = next(iter(state.meters.values())).totals
    return totals.busy_s / totals.covered_s if totals.covered_s > 0 else None


def _moved_tb(frame: Frame, channel: Channel, window: RunWindow | None) -> float:
    """What moved over a run on all devices, in both directions [TB]; NaN where that was not recorded.

    What was recorded of one device of two is not known of both.
    """
    pieces: dict[tuple[str, str], list[Series]] = {}
    for item in frame.trace.series:
        if item.channel is channel and len(item):
            pieces.setdefault((item.device, item.part), []).append(item)
    devices, measured = {item.device for item in frame.series}, {device for device, _ in pieces}
    run_s = length_s(window)
    if run_s is None or not pieces or (devices & measured and not devices <= measured):
        return float("nan")
    rates = [_mean_rate([_cut(item, window) for item in items], run_s) for items in pieces.values()]
    if any(rate is None for rate in rates):
        return float("nan")
    return sum(rate for rate in rates if rate is not None) * run_s / _TERA


def _mean_rate(pieces: Sequence[Series], run_s: float) -> float | None:
    """The mean of a rate over its covered time; None where that is too little of the run.

    Pieces are what follows each other, as where a log takes on a new file.
    """
    ordered = sorted((item for item in pieces if len(item)), key=lambda item: int(item.utc_ns[0]))
    if not ordered:
        return None
    utc_ns = np.concatenate([item.utc_ns for item in ordered])
    rate = np.concatenate([item.value for item in ordered])
    later = is_later(utc_ns) & np.isfinite(rate) & (rate >= 0)
    time_s, value = utc_ns[later] / NANOSECOND_PER_SECOND, rate[later]
    step_s = np.diff(time_s)
    kept = step_s <= longest_step_s(time_s)
    covered_s = float(step_s[kept].sum())
    if covered_s < FEWEST_COVERED * run_s or covered_s <= 0:
        return None
    return float((step_s * (value[1:] + value[:-1]) / 2)[kept].sum()) / covered_s


def _cut(series: Series, window: RunWindow | None) -> Series:
    """The readings inside a run."""
    if window is None or window.stop_utc_ns is None:
        return series
    chosen = (series.utc_ns >= window.start_utc_ns) & (series.utc_ns <= window.stop_utc_ns)
    return replace(
        series,
        utc_ns=series.utc_ns[chosen],
        value=series.value[chosen],
        monotonic_ns=None if series.monotonic_ns is None else series.monotonic_ns[chosen],
    )
