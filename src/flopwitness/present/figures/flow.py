"""How an estimate comes about: calibration once for a device and mode, then use on runs of unknown size."""

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.canvas import GREY, LIGHT, WIDTH_IN, Drawn, render
from flopwitness.present.safe_text import name_count

__all__ = ["draw_flow"]

_HEIGHT_IN: Final = 5.0
_BOX_IN: Final = (1.86, 0.98)
_COLUMNS_IN: Final = (0.1, 2.42, 4.74, 7.06)  # left edges
_KNOWN_IN: Final = 3.05  # lower edges: the lane of calibration,
_POINT_IN: Final = 1.4  # and of use, whose check has two outcomes
_CHECK_IN: Final = 0.75
_REFUSAL_IN: Final = 0.1


def draw_flow(evaluation: Evaluation, title: str) -> Drawn:
    """The flow of calibration and use, with the number of known runs at its start."""
    runs, plan = evaluation.runs, evaluation.plan
    n_judging = runs.n_workloads - plan.n_train
    judged = (
        f"judged here on {name_count(plan.n_splits, 'random split')}: of {runs.n_workloads} workloads, "
        f"{plan.n_train} teach and {n_judging} judge"
    )

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH_IN)
        axes.set_ylim(0, 4.35)
        _draw_calibration(axes, name_count(len(runs.rows), "known run"))
        _draw_use(axes)

    return render(paint, height_in=_HEIGHT_IN, heading=[title, f"calibration and use; {judged}"])


def _draw_calibration(axes: Axes, known: str) -> None:
    first, second, third, fourth = _COLUMNS_IN
    middle = _KNOWN_IN + _BOX_IN[1] / 2
    _name_lane(axes, "calibration: once for a device and mode", _KNOWN_IN + _BOX_IN[1] + 0.12)
    _box(axes, first, _KNOWN_IN, known, "energy, idle, time, traffic,", "and counted FLOP")
    _box(
        axes,
        second,
        _KNOWN_IN,
        "gate and fingerprint",
        "busy enough; one chip,",
        "mode, precision, driver",
    )
    _box(axes, third, _KNOWN_IN, "fit", "constants, errors,", "range of the features")
    _box(axes, fourth, _KNOWN_IN, "calibration file", "canonical bytes,", "named by their digest", fill=LIGHT)
    for left, right in ((first, second), (second, third), (third, fourth)):
        _arrow(axes, (left + _BOX_IN[0], middle), (right, middle))


def _draw_use(axes: Axes) -> None:
    first, second, third, fourth = _COLUMNS_IN
    width, height = _BOX_IN
    middle = _CHECK_IN + height / 2
    _name_lane(axes, "use: each new run", _POINT_IN + height + 0.12)
    _box(axes, first, _CHECK_IN, "a new run's sensors", "energy, time, traffic;", "no hyperparameters")
    _box(axes, second, _CHECK_IN, "domain check", "same fingerprint?", "features within range?", weight=2.0)
    _box(
        axes,
        third,
        _POINT_IN,
        "point with interval",
        "FLOP, level, method,",
        "calibration digest",
        fill=LIGHT,
    )
    _box(axes, third, _REFUSAL_IN, "refusal", "what was expected,", "what was found", line="--")
    _box(axes, fourth, _CHECK_IN, "bound and prior", "the bound always,", "the prior if refused")
    _arrow(axes, (first + width, middle), (second, middle))
    for lower, word, shift in ((_POINT_IN, "yes", 0.16), (_REFUSAL_IN, "no", -0.16)):
        outcome = lower + height / 2
        _arrow(axes, (second + width, middle), (third, outcome))
        _arrow(axes, (third + width, outcome), (fourth, middle))
        axes.text(
            second + width + 0.16, (middle + outcome) / 2 + shift, word, ha="center", va="center", size=9.5
        )
    _bring_file(axes, (fourth + width / 2, _KNOWN_IN), (second + width / 2, _CHECK_IN + height))


def _bring_file(axes: Axes, start: tuple[float, float], stop: tuple[float, float]) -> None:
    """The way of the calibration file, around the outcomes, down to the check."""
    between = _KNOWN_IN - 0.28
    axes.plot(
        [start[0], start[0], stop[0]],
        [start[1], between, between],
        color="black",
        linewidth=1.1,
        linestyle="--",
    )
    _arrow(axes, (stop[0], between), stop, is_dashed=True)


def _box(
    axes: Axes,
    left: float,
    lower: float,
    head: str,
    *lines: str,
    fill: str = "white",
    line: str = "-",
    weight: float = 1.1,
) -> None:
    width, height = _BOX_IN
    shape = FancyBboxPatch(
        (left, lower),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=fill,
        edgecolor="black",
        linestyle=line,
        linewidth=weight,
    )
    axes.add_patch(shape)
    centre = left + width / 2
    axes.text(centre, lower + 0.76 * height, head, ha="center", va="center", size=10, weight="bold")
    axes.text(
        centre, lower + 0.36 * height, "\n".join(lines), ha="center", va="center", size=8.5, linespacing=1.3
    )


def _arrow(
    axes: Axes, start: tuple[float, float], stop: tuple[float, float], *, is_dashed: bool = False
) -> None:
    arrow = FancyArrowPatch(
        start, stop, arrowstyle="-|>", mutation_scale=13, shrinkA=0, shrinkB=0, color="black", linewidth=1.1
    )
    arrow.set_linestyle("--" if is_dashed else "-")
    axes.add_patch(arrow)


def _name_lane(axes: Axes, name: str, lower: float) -> None:
    axes.text(_COLUMNS_IN[0], lower, name, ha="left", va="bottom", size=10, style="italic", color=GREY)
