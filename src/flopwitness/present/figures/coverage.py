"""How often intervals hold the truth: over all estimates by nominal level, and run by run."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from flopwitness.challenge.evaluation.evaluation import MAIN_LEVEL, Evaluation, RunScore
from flopwitness.present.figures.canvas import (
    GREY,
    Drawn,
    choose_names,
    in_order,
    look_of,
    render,
    safe_label,
    strip_frame,
)

__all__ = ["draw_coverage"]

_RUN_LEVEL_PCT: Final = 100 * MAIN_LEVEL


def draw_coverage(evaluation: Evaluation, title: str) -> Drawn | None:
    """Measured against nominal coverage, and each run's coverage by one estimator; None without intervals."""
    measured = _measured(evaluation)
    if not measured:
        return None
    by_run = {name: runs for name, runs in evaluation.by_run.items() if runs}
    names = choose_names(list(by_run), ["efficiency", "paper-eq1", "paper-eq2", "constant"])

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 1 + len(names), squeeze=False)[0]
        _draw_levels(panels[0], measured)
        for axes, name in zip(panels[1:], names, strict=True):
            _draw_runs(axes, name, by_run[name])

    caption = "how often intervals hold the truth of held-out runs; above the line they are wider than stated"
    return render(paint, height_in=4.8, heading=[title, caption])


def _measured(evaluation: Evaluation) -> dict[str, dict[float, float]]:
    """The measured shares [%] by estimator and level; without estimates there is none."""
    found = {
        name: {level: share for level, share in shares.items() if math.isfinite(share)}
        for name, shares in evaluation.coverage.items()
    }
    return {name: found[name] for name in in_order(found) if found[name]}


def _draw_levels(axes: Axes, measured: Mapping[str, Mapping[float, float]]) -> None:
    levels = [100 * level for shares in measured.values() for level in shares]
    shown = [share for shares in measured.values() for share in shares.values()]
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=0.9, label="as stated", zorder=1)
    for name, shares in measured.items():
        look = look_of(name)
        axes.plot(
            [100 * level for level in sorted(shares)],
            [shares[level] for level in sorted(shares)],
            color=look.color,
            linestyle=look.line,
            linewidth=1.2,
            marker=look.marker,
            markerfacecolor=look.face,
            markersize=6,
            label=safe_label(name),
            zorder=2,
        )
    axes.set_xlim(min(levels) - 5, 102)
    axes.set_ylim(min(*levels, *shown) - 5, 102)
    axes.set_xlabel("nominal level [%]")
    axes.set_ylabel("measured coverage [%]")
    axes.set_title("all estimates", loc="left", fontsize=10, weight="bold")
    axes.legend(loc="lower right", fontsize=9, frameon=False)
    strip_frame(axes)


def _draw_runs(axes: Axes, name: str, runs: tuple[RunScore, ...]) -> None:
    """Each run's share of intervals that hold its truth, the worst first."""
    look = look_of(name)
    shares = np.sort([run.coverage_pct for run in runs])
    places = np.arange(1, shares.size + 1)
    axes.axhline(_RUN_LEVEL_PCT, color=GREY, linewidth=0.9, zorder=1)
    axes.text(shares.size + 0.9, _RUN_LEVEL_PCT - 1, "as stated", ha="right", va="top", size=9, color=GREY)
    axes.plot(
        places,
        shares,
        color=look.color,
        marker=look.marker,
        markerfacecolor=look.face,
        markersize=4.5,
        linestyle="none",
        zorder=3,
    )
    axes.set_ylim(-4, 104)
    axes.set_xlim(0, shares.size + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"{shares.size} runs, the least covered first")
    axes.set_ylabel("truth within the 90 % interval [%]")
    axes.set_title(f"{safe_label(name)}, run by run", loc="left", fontsize=10, weight="bold")
    strip_frame(axes)
