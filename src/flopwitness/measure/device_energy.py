"""One device's energy from its power readings, its counter, or both.

A counter misses nothing between two readings, so where both agree it gives the energy, and the readings its
course. Where they disagree nobody can tell which is wrong: the readings give the estimate, and the bound
takes the higher of the two.
"""

from dataclasses import replace

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.conversion import believe_conversion, never_lower
from flopwitness.measure.counters import (
    assess_counter,
    compare_counter,
    find_counter_events,
    integrate_counter,
)
from flopwitness.measure.energy import Energy, integrate_for_bound, integrate_power
from flopwitness.measure.samples import Channel, RunWindow, Series

__all__ = ["bound_device_j", "measure_device"]


def measure_device(
    series: Series,
    counter: Series | None,
    findings: list[Finding],
    *,
    window: RunWindow | None,
    limit_w: float | None,
    floor_w: float,
) -> Energy:
    """The energy of one device over the run.

    Args:
        series: Its power readings, or a counter of energy where there is no power.
        counter: Its counter beside power readings; None where there is none.
        findings: Takes what is odd about the counter, and where the two disagree.
        window: The run; None for the whole recording.
        limit_w: The most that the device can draw [W]; None where it is not known.
        floor_w: What it draws at least while it is on [W].
    """
    counting = series if series.channel is Channel.ENERGY_COUNTER_J else counter
    counted = None
    if counting is not None:
        counted = integrate_counter(counting, window=window, limit_w=limit_w, floor_w=floor_w)
        findings += assess_counter(counting, find_counter_events(counting, limit_w=limit_w))
        if counting is series:
            return counted
    integral = integrate_power(believe_conversion(series), window=window, limit_w=limit_w, floor_w=floor_w)
    if counted is None:
        return integral
    differs = compare_counter(counted, integral)
    if differs is not None:
        findings.append(differs)
        return integral
    return _joined(counted, integral)


def _joined(counted: Energy, integral: Energy) -> Energy:
    """The counter's energy with the course of the readings, where the counter covers as much as they do."""
    if integral.covered_s <= 0:
        return counted
    if counted.covered_s < integral.covered_s or counted.shown_j <= 0 or integral.shown_j <= 0:
        return integral
    working_w = max(integral.square_w2s / integral.shown_j, counted.square_w2s / counted.shown_j)
    return replace(
        counted,
        square_w2s=working_w * counted.shown_j,
        peak_w=integral.peak_w,
        n_readings=integral.n_readings,
        n_missing=integral.n_missing,
        n_repeated=integral.n_repeated,
        n_backwards=integral.n_backwards,
        is_mixed=integral.is_mixed or counted.is_mixed,
        is_rounded=integral.is_rounded,
    )


def bound_device_j(
    series: Series, counter: Series | None, *, window: RunWindow | None, limit_w: float | None
) -> float | None:
    """The most energy that one device's records leave possible [J]; None where nothing limits it.

    Args:
        series: As for `measure_device`.
        counter: As for `measure_device`.
        window: Everything recorded.
        limit_w: The most that the device can draw [W]; None where it is not known.
    """
    if series.channel is Channel.ENERGY_COUNTER_J:
        return integrate_counter(series, window=window, limit_w=limit_w).high_j
    bound = integrate_for_bound(never_lower(series), window=window, limit_w=limit_w)
    if counter is None:
        return bound.high_j
    counted = integrate_counter(counter, window=window, limit_w=limit_w)
    if counted.high_j is None:
        return bound.high_j
    if bound.high_j is None or _agree(counted, series, window, limit_w):
        return max(counted.high_j, bound.low_j)
    return max(counted.high_j, bound.high_j)


def _agree(counted: Energy, series: Series, window: RunWindow | None, limit_w: float | None) -> bool:
    """Whether a counter that covers the whole time agrees with the readings of it."""
    integral = integrate_power(never_lower(series), window=window, limit_w=limit_w)
    is_whole = counted.covered_s >= integral.covered_s > 0 and not counted.is_clock_doubted
    return is_whole and compare_counter(counted, integral) is None
