"""Power over time with the run marked: the picture behind an energy figure.

Legible in colour-blind and grey print: shapes and labels carry the meaning, colour only helps.
"""

import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from flopwitness.foundation.clock import format_utc
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND, format_energy
from flopwitness.measure.answer import Measurement
from flopwitness.measure.samples import RunWindow, Series
from flopwitness.present.estimate_text import describe_side

__all__ = ["draw_power"]

_LINE = "#0b5394"
_RUN = "#e6e6e6"
_GAP = "#b45f06"
_KILOWATT_W = 1_000.0
_FIRST_DATED_NS = 10**17  # what is earlier counts from the start of a recording without a date
_FORMATS = ("png", "svg")


def draw_power(series: Sequence[Series], measurement: Measurement, *, title: str, format_name: str) -> bytes:
    """The picture as PNG or SVG bytes.

    Args:
        series: Power series of one scope [W].
        measurement: The measurement whose energy the picture explains.
        title: What stands above it.
        format_name: `png` or `svg`.

    Raises:
        InputError: Another format, or no reading to draw.
    """
    if format_name not in _FORMATS:
        raise InputError("no such picture format", expected=" or ".join(_FORMATS), found=format_name[:20])
    if not any(np.isfinite(item.value).any() for item in series):
        raise InputError("no power reading to draw", expected="a log with power readings")
    with mpl.rc_context({"svg.hashsalt": "flopwitness", "font.size": 10, "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        origin_ns = min(int(item.utc_ns.min()) for item in series if len(item))
        _draw_run(axes, measurement.window, origin_ns)
        _draw_total(axes, series, origin_ns)
        _draw_gaps(axes, measurement, origin_ns)
        _label(axes, title, origin_ns, measurement)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        buffer = io.BytesIO()
        figure.savefig(
            buffer, format=format_name, dpi=150, metadata={"Date": None} if format_name == "svg" else {}
        )
    return buffer.getvalue()


def _total(series: Sequence[Series], origin_ns: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Time [s], the sum of all devices' power on a common grid [W], and how many devices there are.

    The grid runs over the usual device's recording; at its ends a device's nearest reading stands in.
    """
    lines = []
    for item in series:
        known = np.isfinite(item.value)
        time_s = (item.utc_ns[known] - origin_ns) / NANOSECOND_PER_SECOND
        order = np.argsort(time_s, kind="stable")
        if order.size:
            lines.append((time_s[order], item.value[known][order] * item.conversion))
    start_s = float(np.median([t[0] for t, _ in lines]))
    stop_s = max(start_s, float(np.median([t[-1] for t, _ in lines])))
    grid_s = np.linspace(start_s, stop_s, num=max(2, min(4_000, max(t.size for t, _ in lines))))
    total_w = sum(np.interp(grid_s, t, p) for t, p in lines)
    return grid_s, np.asarray(total_w, dtype=np.float64), len(lines)


def _draw_run(axes: Axes, window: RunWindow | None, origin_ns: int) -> None:
    if window is None or window.stop_utc_ns is None:
        return
    start_s = (window.start_utc_ns - origin_ns) / NANOSECOND_PER_SECOND
    stop_s = (window.stop_utc_ns - origin_ns) / NANOSECOND_PER_SECOND
    axes.axvspan(start_s / 60, stop_s / 60, color=_RUN, zorder=0, label="the run, as its log marks it")
    for edge_s in (start_s, stop_s):
        axes.axvline(edge_s / 60, color="black", linewidth=0.8, linestyle="--", zorder=1)


def _draw_total(axes: Axes, series: Sequence[Series], origin_ns: int) -> None:
    grid_s, total_w, n_devices = _total(series, origin_ns)
    label = "power" if n_devices == 1 else f"power of {n_devices} devices together"
    scale_w, unit = (1e3, "kW") if float(np.max(total_w, initial=0.0)) >= _KILOWATT_W else (1.0, "W")
    axes.plot(grid_s / 60, total_w / scale_w, color=_LINE, linewidth=0.9, label=label, zorder=3)
    axes.set_ylabel(f"power, {unit}")


def _draw_gaps(axes: Axes, measurement: Measurement, origin_ns: int) -> None:
    """Stretches of 3 s and more without readings, hatched."""
    devices = measurement.energy.devices if measurement.energy is not None else ()
    gaps = [gap for device in devices for gap in device.gaps if gap.duration_s >= 3]  # noqa: PLR2004
    for index, gap in enumerate(gaps[:200]):
        start_s = (gap.start_utc_ns - origin_ns) / NANOSECOND_PER_SECOND
        axes.axvspan(
            start_s / 60,
            (start_s + gap.duration_s) / 60,
            facecolor="none",
            edgecolor=_GAP,
            hatch="////",
            linewidth=0.0,
            zorder=2,
            label="no readings" if index == 0 else None,
        )


def _label(axes: Axes, title: str, origin_ns: int, measurement: Measurement) -> None:
    energy = measurement.energy
    caption = (
        ""
        if energy is None
        else f"\n{format_energy(energy.shown_j)} over the run, {describe_side(energy.scope)}"
    )
    axes.set_title(f"{title}{caption}", loc="left", fontsize=10)
    start = f"{format_utc(origin_ns).replace('T', ' ').replace('Z', ' UTC')}"
    axes.set_xlabel(
        f"minutes since {start if origin_ns >= _FIRST_DATED_NS else 'the start of the recording'}"
    )
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
