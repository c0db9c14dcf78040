"""Estimates against truth, run by run, with what the choice of the calibration runs changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from flopwitness.challenge.evaluation.evaluation import Evaluation, RunScore
from flopwitness.present.figures.canvas import (
    GREY,
    MARGIN_PCT,
    Drawn,
    choose_names,
    frame_pct,
    look_of,
    render,
    scale_unit,
    strip_frame,
)
from flopwitness.present.safe_text import name_count

__all__ = ["draw_estimates"]

Vector = NDArray[np.float64]

_LOG_FROM: Final = 30.0  # the largest truth over the smallest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Points:
    """One estimator's runs: truth in the figure's unit, and ratios of estimate to truth, shape (n,)."""

    name: str
    truth: Vector
    mean: Vector
    least: Vector
    most: Vector


def draw_estimates(evaluation: Evaluation, title: str) -> Drawn | None:
    """Estimate against truth, and below it the error, a column for each estimator.

    None where there are no estimates.
    """
    by_run = {name: runs for name, runs in evaluation.by_run.items() if runs}
    names = choose_names(list(by_run), ["constant"], ["paper-eq1"], ["paper-eq2"], ["efficiency"])
    if not names:
        return None
    flop = evaluation.runs.flop
    is_wide = float(flop.max()) > _LOG_FROM * float(flop.min())
    scale, unit = (1.0, "FLOP") if is_wide else scale_unit(float(flop.max()), "FLOP")
    columns = [_gather(name, by_run[name], flop / scale) for name in names]
    limit, cut = frame_pct(100 * (ratio - 1) for item in columns for ratio in (*item.least, *item.most))

    n_runs = name_count(max(item.truth.size for item in columns), "held-out run")
    caption = (
        f"estimates of {n_runs}; marker: mean over the splits; bar: lowest to highest; "
        f"dotted: {MARGIN_PCT:g} % off the truth{cut}"
    )
    return render(
        lambda figure: _fill(figure, columns, unit, limit, is_wide=is_wide),
        height_in=6.4,
        heading=[title, caption],
    )


def _fill(figure: Figure, columns: Sequence[_Points], unit: str, limit_pct: float, *, is_wide: bool) -> None:
    panels = figure.subplots(
        2, len(columns), sharex=True, sharey="row", squeeze=False, height_ratios=(1.6, 1)
    )
    for (upper, lower), item in zip(panels.T, columns, strict=True):
        _draw_estimates(upper, item)
        _draw_errors(lower, item)
        lower.set_xlabel(f"truth [{unit}]")
    _frame(panels[0, 0], columns, limit_pct, is_wide=is_wide)
    panels[0, 0].set_ylabel(f"estimate [{unit}]")
    panels[1, 0].set_ylabel("error [%]")
    panels[1, 0].set_ylim(-limit_pct, limit_pct)


def _gather(name: str, runs: Sequence[RunScore], truth: Vector) -> _Points:
    return _Points(
        name=name,
        truth=truth[[run.place for run in runs]],
        mean=np.array([run.mean_ratio for run in runs]),
        least=np.array([run.least_ratio for run in runs]),
        most=np.array([run.most_ratio for run in runs]),
    )


def _draw_estimates(axes: Axes, item: _Points) -> None:
    for share, style in ((0.0, "-"), (-MARGIN_PCT, ":"), (MARGIN_PCT, ":")):
        ends = np.array([item.truth.min() / 4, item.truth.max() * 4])
        axes.plot(ends, ends * (1 + share / 100), color=GREY, linestyle=style, linewidth=0.8, zorder=1)
    _draw_bars(axes, item, *(item.truth * ratio for ratio in (item.mean, item.least, item.most)))
    axes.set_title(item.name, fontsize=10, weight="bold")


def _draw_errors(axes: Axes, item: _Points) -> None:
    for level, style in ((0.0, "-"), (-MARGIN_PCT, ":"), (MARGIN_PCT, ":")):
        axes.axhline(level, color=GREY, linestyle=style, linewidth=0.8, zorder=1)
    _draw_bars(axes, item, *(100 * (ratio - 1) for ratio in (item.mean, item.least, item.most)))


def _draw_bars(axes: Axes, item: _Points, mean: Vector, least: Vector, most: Vector) -> None:
    look = look_of(item.name)
    axes.vlines(item.truth, least, most, color=look.color, linewidth=0.9, zorder=2)
    axes.plot(
        item.truth,
        mean,
        color=look.color,
        marker=look.marker,
        markerfacecolor=look.face,
        markersize=4.5,
        linestyle="none",
        zorder=3,
    )
    strip_frame(axes)


def _frame(axes: Axes, columns: Sequence[_Points], limit_pct: float, *, is_wide: bool) -> None:
    """One range for truth and estimates, in logarithms where truth is wide."""
    room = limit_pct / 100
    ends = [
        item.truth * np.clip(ratio, 1 - room, 1 + room)
        for item in columns
        for ratio in (np.ones(item.truth.size), item.least, item.most)
    ]
    low, high = float(np.min(np.concatenate(ends))), float(np.max(np.concatenate(ends)))
    edge = (high - low) * 0.04
    low, high = low - edge, high + edge
    if is_wide:
        low, high = min(float(item.truth.min()) for item in columns) / 4, high * 1.2
        axes.set_xscale("log")
        axes.set_yscale("log")
        for side in (axes.xaxis, axes.yaxis):
            side.set_major_formatter(FuncFormatter(lambda flop, _: f"1e{math.log10(flop):.0f}"))
            side.set_minor_formatter(NullFormatter())
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
