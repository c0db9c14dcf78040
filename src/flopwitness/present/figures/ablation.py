"""Every estimator beside itself with fewer sensors: what a traffic counter is worth."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.present.figures.canvas import GREY, LIGHT, PALETTE, Drawn, render, safe_label, strip_frame

__all__ = ["draw_ablation"]

_ROW_IN: Final = 0.42
_LOG_FROM: Final = 30.0  # the largest error over the smallest
_FAMILIES: Final = ("constant", "paper", "efficiency")
_TELLS: Final = MappingProxyType(
    {
        "constant": "energy alone",
        "paper-eq1": "with memory traffic",
        "paper-eq2": "without memory traffic",
        "efficiency": "with all recorded traffic",
    }
)


def draw_ablation(evaluation: Evaluation, title: str) -> Drawn | None:
    """Mean and 95 % quantile of the absolute error, an estimator a row; None where none could be judged."""
    scores = _in_order({**evaluation.scores, **evaluation.ablations})
    if not scores:
        return None

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for place, score in enumerate(scores.values()):
            _draw_row(axes, place, score)
        _shade(axes, list(scores))
        axes.set_yticks(range(len(scores)), [_name(name) for name in scores])
        axes.set_ylim(len(scores) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        _scale(axes, list(scores.values()))
        axes.set_xlabel("absolute error [%]")
        strip_frame(axes)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles[:2], labels[:2], loc="outside lower center", ncols=2, frameon=False, fontsize=9)

    plan = evaluation.plan
    caption = f"error on held-out runs with fewer sensors, pooled over {plan.n_splits} random splits"
    return render(paint, height_in=1.7 + _ROW_IN * len(scores), heading=[title, caption])


def _in_order(scores: Mapping[str, Score]) -> dict[str, Score]:
    """Families together, each estimator before its ablations."""
    known = [name for family in _FAMILIES for name in scores if name.startswith(family)]
    return {name: scores[name] for name in dict.fromkeys([*known, *scores])}


def _name(name: str) -> str:
    tells = _TELLS.get(name)
    return f"{safe_label(name)}, {tells}" if tells else safe_label(name)


def _draw_row(axes: Axes, place: int, score: Score) -> None:
    mean, tail = score.mean_abs_error_pct, score.p95_abs_error_pct
    axes.hlines(place, mean, tail, color=GREY, linewidth=1.0, zorder=2)
    axes.plot(
        mean, place, color=PALETTE[0], marker="o", linestyle="none", markersize=7, label="mean", zorder=3
    )
    axes.plot(
        tail,
        place,
        color=PALETTE[1],
        marker="s",
        markerfacecolor="white",
        linestyle="none",
        markersize=7,
        label="95 % quantile",
        zorder=3,
    )
    for value, side, shift in ((mean, "right", -7), (tail, "left", 7)):
        axes.annotate(
            f"{value:,.1f}",
            (value, place),
            (shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            size=9,
        )


def _scale(axes: Axes, scores: Sequence[Score]) -> None:
    """Errors in logarithms where one would flatten the rest."""
    shown = [value for score in scores for value in (score.mean_abs_error_pct, score.p95_abs_error_pct)]
    if min(shown) > 0 and max(shown) > _LOG_FROM * min(shown):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(min(shown) / 2.0, max(shown) * 2.0)
    else:
        axes.set_xlim(0, 1.12 * max(shown) or 1.0)


def _shade(axes: Axes, names: list[str]) -> None:
    """A band behind every other family."""
    families = [next((family for family in _FAMILIES if name.startswith(family)), name) for name in names]
    order = list(dict.fromkeys(families))
    for place, family in enumerate(families):
        if order.index(family) % 2:
            axes.axhspan(place - 0.5, place + 0.5, color=LIGHT, alpha=0.5, linewidth=0, zorder=0)
