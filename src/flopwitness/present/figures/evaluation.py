"""All figures of an evaluation, as SVG and PNG: those of the published experiment, and what it lacked."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.measure.samples import Trace
from flopwitness.present.figures.ablation import draw_ablation
from flopwitness.present.figures.by_value import draw_errors_by_value
from flopwitness.present.figures.canvas import Drawn
from flopwitness.present.figures.coverage import draw_coverage
from flopwitness.present.figures.declared_steps import draw_declared_steps
from flopwitness.present.figures.flow import draw_flow
from flopwitness.present.figures.learning import draw_learning_curve
from flopwitness.present.figures.traces import draw_power_trace, draw_traffic_trace
from flopwitness.present.figures.truth import draw_estimates

__all__ = ["draw_evaluation"]

_OF_TRACE: Final[tuple[tuple[str, Callable[[Trace, str], Drawn | None]], ...]] = (
    ("power_trace", draw_power_trace),
    ("traffic_trace", draw_traffic_trace),
)
_OF_EVALUATION: Final[tuple[tuple[str, Callable[[Evaluation, str], Drawn | None]], ...]] = (
    ("estimate_against_truth", draw_estimates),
    ("error_by_hyperparameter", draw_errors_by_value),
    ("ablation", draw_ablation),
    ("coverage", draw_coverage),
    ("learning_curve", draw_learning_curve),
    ("declared_steps", draw_declared_steps),
)


def draw_evaluation(evaluation: Evaluation, *, trace: Trace | None, title: str) -> dict[str, bytes]:
    """File names and their bytes, in the order in which a reader wants the figures.

    A figure whose records are missing is left out.

    Args:
        evaluation: What was found.
        trace: A recording of one run, for the figures over time; None for none.
        title: What stands above the figures of the evaluation; those over time bear the recording's name.
    """
    return {
        f"{name}.{format_name}": data
        for name, drawn in _figures(evaluation, trace, title)
        if drawn is not None
        for format_name, data in drawn.items()
    }


def _figures(evaluation: Evaluation, trace: Trace | None, title: str) -> Iterator[tuple[str, Drawn | None]]:
    yield "calibration_and_use", draw_flow(evaluation, title)
    if trace is not None:
        recording = Path(trace.provenance[0].path).stem if trace.provenance else "a recording"
        yield from ((name, draw(trace, recording)) for name, draw in _OF_TRACE)
    yield from ((name, draw(evaluation, title)) for name, draw in _OF_EVALUATION)
