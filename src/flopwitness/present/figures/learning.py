"""How many calibration workloads an estimator needs."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, ScalarFormatter

from flopwitness.challenge.evaluation.evaluation import CurvePoint, Evaluation
from flopwitness.present.figures.canvas import (
    GREY,
    MARGIN_PCT,
    Drawn,
    in_order,
    look_of,
    render,
    safe_label,
    strip_frame,
)

__all__ = ["draw_learning_curve"]

_LOG_FROM: Final = 12.0  # the largest error over the smallest
_PANELS: Final = (
    ("mean_abs_error_pct", "mean absolute error"),
    ("p95_abs_error_pct", "95 % quantile of the absolute error"),
)


def draw_learning_curve(evaluation: Evaluation, title: str) -> Drawn | None:
    """Mean and tail of the absolute error by the number of calibration workloads; None without any."""
    points = sorted((point for point in evaluation.curve if point.scores), key=attrgetter("n_train"))
    if not points:
        return None

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(_PANELS), squeeze=False)[0]
        for axes, (field, label) in zip(panels, _PANELS, strict=True):
            _draw_panel(axes, points, field)
            axes.set_ylabel(f"{label} [%]")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)

    caption = f"error on held-out runs by the number of calibration workloads; dotted line: {MARGIN_PCT:g} %"
    return render(paint, height_in=4.6, heading=[title, caption])


def _draw_panel(axes: Axes, points: Sequence[CurvePoint], field: str) -> None:
    names = in_order({name for point in points for name in point.scores})
    drawn = []
    for name in names:
        known = [
            (point.n_train, float(getattr(point.scores[name], field)))
            for point in points
            if name in point.scores
        ]
        drawn += [value for _, value in known]
        look = look_of(name)
        axes.plot(
            [n_train for n_train, _ in known],
            [value for _, value in known],
            color=look.color,
            linestyle=look.line,
            linewidth=1.3,
            marker=look.marker,
            markerfacecolor=look.face,
            markersize=6,
            label=safe_label(name),
            zorder=2,
        )
    axes.axhline(MARGIN_PCT, color=GREY, linestyle=":", linewidth=0.9, zorder=1)
    _scale(axes, [point.n_train for point in points], drawn)
    strip_frame(axes)


def _scale(axes: Axes, sizes: Sequence[int], values: Sequence[float]) -> None:
    """Sizes in logarithms with each of them named; errors in logarithms where one would flatten the rest."""
    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 1.15, max(sizes) * 1.15)
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("calibration workloads")
    if min(values) > 0 and max(values) > _LOG_FROM * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        return
    axes.set_ylim(0, 1.1 * max(*values, MARGIN_PCT))
