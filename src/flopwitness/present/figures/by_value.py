"""Errors by hyperparameter: where an estimator reads high or low, without a cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flopwitness.challenge.evaluation.evaluation import Evaluation, ValueScore
from flopwitness.present.figures.canvas import (
    GREY,
    MARGIN_PCT,
    Drawn,
    choose_names,
    frame_pct,
    look_of,
    render,
    safe_label,
    strip_frame,
)

__all__ = ["draw_errors_by_value"]

_MOST_VALUES: Final = 24
_ONE_COLUMN: Final = 12  # more rows stand in two columns of panels
_ROW_IN: Final = 0.33
_PANEL_IN: Final = 0.42  # a panel's name and the room around it
_LONGEST: Final = 36  # characters of a name, where one column of panels has the whole width
_OFFSET: Final = 0.17


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One hyperparameter: its values from top to bottom, and each estimator's scores."""

    column: str
    values: tuple[str, ...]
    n_left_out: int
    scores: Mapping[str, Mapping[str, ValueScore]]

    @property
    def height_in(self) -> float:
        return _PANEL_IN + _ROW_IN * len(self.values)


def draw_errors_by_value(evaluation: Evaluation, title: str) -> Drawn | None:
    """Signed error by value of each hyperparameter, ours beside the paper's.

    None where the runs differ in no hyperparameter.
    """
    by_value = {name: scores for name, scores in evaluation.by_value.items() if scores}
    names = choose_names(list(by_value), ["efficiency"], ["paper-eq1", "paper-eq2", "constant"])
    panels = _panels({name: by_value[name] for name in names})
    if not panels:
        return None
    columns = _balance(panels)
    limit, cut = frame_pct(
        error
        for name in names
        for item in by_value[name]
        for error in (item.least_error_pct, item.most_error_pct)
    )

    caption = (
        "error by hyperparameter (number of runs); marker: mean of the runs; bar: lowest to highest; "
        f"dotted: {MARGIN_PCT:g} %{cut}"
    )
    warning = "values change together from run to run: causality cannot be inferred"
    height_in = 1.6 + max(sum(panel.height_in for panel in column) for column in columns)
    return render(
        lambda figure: _fill(figure, columns, limit),
        height_in=height_in,
        heading=[title, caption, warning],
    )


def _fill(figure: Figure, columns: Sequence[Sequence[_Panel]], limit_pct: float) -> None:
    longest = _LONGEST // len(columns)
    grid = figure.add_gridspec(1, len(columns))
    for place, column in enumerate(columns):
        inner = grid[place].subgridspec(len(column), 1, height_ratios=[panel.height_in for panel in column])
        for row, panel in enumerate(column):
            axes = figure.add_subplot(inner[row])
            _draw_panel(axes, panel, limit_pct, longest, is_last=row == len(column) - 1)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def _panels(scores: Mapping[str, Sequence[ValueScore]]) -> list[_Panel]:
    values: dict[str, dict[str, None]] = {}
    for item in (item for own in scores.values() for item in own):
        values.setdefault(item.column, {})[item.value] = None
    return [
        _Panel(
            column=column,
            values=tuple(found)[:_MOST_VALUES],
            n_left_out=max(0, len(found) - _MOST_VALUES),
            scores={
                name: {item.value: item for item in own if item.column == column}
                for name, own in scores.items()
            },
        )
        for column, found in values.items()
    ]


def _balance(panels: Sequence[_Panel]) -> list[list[_Panel]]:
    """The panels in one column or two, cut where the taller is the least tall."""
    if len(panels) == 1 or sum(len(panel.values) for panel in panels) <= _ONE_COLUMN:
        return [list(panels)]

    def taller_in(cut: int) -> float:
        return max(sum(panel.height_in for panel in part) for part in (panels[:cut], panels[cut:]))

    cut = min(range(1, len(panels)), key=taller_in)
    return [list(panels[:cut]), list(panels[cut:])]


def _draw_panel(axes: Axes, panel: _Panel, limit_pct: float, longest: int, *, is_last: bool) -> None:
    for level, style in ((0.0, "-"), (-MARGIN_PCT, ":"), (MARGIN_PCT, ":")):
        axes.axvline(level, color=GREY, linestyle=style, linewidth=0.8, zorder=1)
    for index, (name, scores) in enumerate(panel.scores.items()):
        shift = (index - (len(panel.scores) - 1) / 2) * 2 * _OFFSET
        _draw_scores(
            axes, name, [(place + shift, scores.get(value)) for place, value in enumerate(panel.values)]
        )
    axes.set_title(safe_label(panel.column, longest=longest), loc="left", fontsize=10, weight="bold")
    labels = [_name_value(panel, value, longest) for value in panel.values]
    labels += [f"and {panel.n_left_out} more"] if panel.n_left_out else []
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(-limit_pct, limit_pct)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelbottom=is_last)
    if is_last:
        axes.set_xlabel("signed error [%]")
    strip_frame(axes)


def _name_value(panel: _Panel, value: str, longest: int) -> str:
    n_runs = max(own[value].n_runs for own in panel.scores.values() if value in own)
    return f"{safe_label(value, longest=longest) or 'empty'} ({n_runs})"


def _draw_scores(axes: Axes, name: str, rows: Sequence[tuple[float, ValueScore | None]]) -> None:
    look = look_of(name)
    known = [(place, item) for place, item in rows if item is not None]
    places = [place for place, _ in known]
    axes.hlines(
        places,
        [item.least_error_pct for _, item in known],
        [item.most_error_pct for _, item in known],
        color=look.color,
        linewidth=1.2,
        zorder=2,
    )
    axes.plot(
        [item.mean_error_pct for _, item in known],
        places,
        color=look.color,
        marker=look.marker,
        markerfacecolor=look.face,
        markersize=5.5,
        linestyle="none",
        label=name,
        zorder=3,
    )
