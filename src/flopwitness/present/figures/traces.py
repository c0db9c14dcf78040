"""Power and traffic over time with the run marked: what the sensors of one recording saw."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import MappingProxyType
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, SECOND_PER_HOUR
from flopwitness.measure.samples import Channel, Series, Timing, Trace
from flopwitness.present.figures.canvas import LIGHT, PALETTE, Drawn, render, scale_unit, strip_frame
from flopwitness.present.figures.readings import Line, gather_lines, select_readings

__all__ = ["draw_power_trace", "draw_traffic_trace"]

_POWER: Final = (Channel.POWER_W, Channel.POWER_AVERAGE_W)
_TRAFFIC: Final = MappingProxyType(
    {
        Channel.MEMORY_TRAFFIC_BYTE_PER_S: "memory traffic",
        Channel.LINK_TRAFFIC_BYTE_PER_S: "link traffic",
        Channel.HOST_TRAFFIC_BYTE_PER_S: "host traffic",
    }
)
_UNCALIBRATED: Final = "memory-traffic-uncalibrated"
_MOST_LINES: Final = 6
_LEGEND_CHARACTERS: Final = 108  # that stand beside each other
_LINE_STYLES: Final = ("-", "--", "-.", ":")
_MINUTES_FROM_S: Final = 180.0
_HOURS_FROM_S: Final = 6.0 * SECOND_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimeAxis:
    """Where the time axis begins and what it counts in."""

    origin_ns: int
    length_s: float
    timing: Timing

    @property
    def unit(self) -> tuple[float, str]:
        """Its seconds, and its name."""
        if self.length_s < _MINUTES_FROM_S:
            return 1.0, "s"
        return (60.0, "min") if self.length_s < _HOURS_FROM_S else (float(SECOND_PER_HOUR), "h")

    @property
    def label(self) -> str:
        start = "the start of the recording"
        if self.timing is Timing.DATED:
            start = format_utc(self.origin_ns).replace("T", " ").replace("Z", " UTC")
        return f"time since {start} [{self.unit[1]}]"

    def place(self, utc_ns: int) -> float:
        """A moment on the axis."""
        return (utc_ns - self.origin_ns) / NANOSECOND_PER_SECOND / self.unit[0]


def draw_power_trace(trace: Trace, title: str) -> Drawn | None:
    """Power over time; None where the trace holds none."""
    chosen, n_left_out = select_readings(trace, _POWER)
    if not chosen:
        return None
    axis = _settle_axis(chosen)
    lines = gather_lines(chosen, origin_ns=axis.origin_ns)
    scale_w, unit = scale_unit(max(float(np.nanmax(line.value)) for line in lines), "W")

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        _draw_lines(axes, axis, lines, scale=scale_w)
        axes.set_ylabel(f"power [{unit}]")
        _mark_runs(axes, axis, trace)
        axes.set_xlabel(axis.label)

    return render(paint, height_in=4.2, heading=[title, _caption("power", n_left_out)])


def draw_traffic_trace(trace: Trace, title: str) -> Drawn | None:
    """Traffic over time, a panel for each kind; None where the trace holds none."""
    chosen, n_left_out = select_readings(trace, _TRAFFIC)
    if not chosen:
        return None
    axis = _settle_axis(chosen)
    lines = gather_lines(chosen, origin_ns=axis.origin_ns)
    channels = [channel for channel in _TRAFFIC if any(line.channel is channel for line in lines)]
    is_counted = any(finding.code == _UNCALIBRATED for finding in trace.findings)

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(channels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, channel in zip(panels, channels, strict=True):
            _draw_lines(axes, axis, [line for line in lines if line.channel is channel], scale=1.0)
            axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
            is_own = is_counted and channel is Channel.MEMORY_TRAFFIC_BYTE_PER_S
            as_counted = ", as counted" if is_own else ""
            axes.set_ylabel(f"{_TRAFFIC[channel]} [byte/s{as_counted}]")
            _mark_runs(axes, axis, trace)
        panels[-1].set_xlabel(axis.label)

    heading = [title, _caption("traffic", n_left_out)]
    return render(paint, height_in=1.6 + 2.6 * len(channels), heading=heading)


def _caption(what: str, n_left_out: int) -> str:
    left_out = f"; {n_left_out} series of other times left out" if n_left_out else ""
    return f"{what} over time, as recorded{left_out}"


def _settle_axis(series: Sequence[Series]) -> _TimeAxis:
    origin_ns = min(int(item.utc_ns.min()) for item in series)
    last_ns = max(int(item.utc_ns.max()) for item in series)
    length_s = (last_ns - origin_ns) / NANOSECOND_PER_SECOND
    return _TimeAxis(origin_ns=origin_ns, length_s=length_s, timing=series[0].timing)


def _draw_lines(axes: Axes, axis: _TimeAxis, lines: Sequence[Line], *, scale: float) -> None:
    """The lines, or the largest of them where there are too many to tell apart."""
    shown = sorted(lines, key=lambda line: -float(np.nanmean(line.value)))[:_MOST_LINES]
    if len(shown) < len(lines):
        axes.plot([], [], linestyle="none", label=f"the largest {len(shown)} of {len(lines)} lines:")
    for line, color, style in zip(shown, cycle(PALETTE), cycle(_LINE_STYLES), strict=False):
        axes.plot(
            line.time_s / axis.unit[0],
            line.value / scale,
            color=color,
            linestyle=style,
            linewidth=0.8,
            marker="o" if np.isfinite(line.value).sum() == 1 else "",
            label=line.label,
            zorder=3,
        )
    ends = [value for line in shown for value in (float(np.nanmin(line.value)), float(np.nanmax(line.value)))]
    axes.set_ylim(1.1 * min(0.0, *ends) / scale, 1.1 * max(0.0, *ends) / scale or 1.0)
    if axis.length_s > 0:
        axes.margins(x=0.01)
    else:
        axes.set_xlim(-1, 1)
    strip_frame(axes)


def _mark_runs(axes: Axes, axis: _TimeAxis, trace: Trace) -> None:
    """The runs shaded, as far as the recording reaches; and the legend of all that is drawn."""
    label: str | None = "the run, as its log marks it"
    for start, stop in _marks(axis, trace):
        axes.axvspan(start, stop, color=LIGHT, zorder=0, label=label)
        label = None
        for edge in (start, stop):
            axes.axvline(edge, color="black", linewidth=0.8, linestyle="--", zorder=1)
    handles, labels = axes.get_legend_handles_labels()
    n_columns = min(3, max(1, _LEGEND_CHARACTERS // (max(map(len, labels)) + 6)))
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=n_columns,
        frameon=False,
        fontsize=9,
    )


def _marks(axis: _TimeAxis, trace: Trace) -> Iterator[tuple[float, float]]:
    end = axis.length_s / axis.unit[0]
    for window in trace.windows:
        if window.stop_utc_ns is None:
            continue
        start, stop = axis.place(window.start_utc_ns), axis.place(window.stop_utc_ns)
        if stop >= 0 and start <= end:
            yield max(start, 0.0), min(stop, end)
