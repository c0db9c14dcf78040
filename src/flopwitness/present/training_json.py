"""What `train` did, for programs."""

from typing import Any, Final

from flopwitness.foundation.units import encode_flop
from flopwitness.present.finding_json import render_finding
from flopwitness.trainers.report import TrainingReport

__all__ = ["SPEC", "render_training"]

SPEC: Final = "flopwitness/train/v1"


def render_training(report: TrainingReport) -> dict[str, Any]:
    """The record of a call of `train`; counts are of this call, FLOP as decimal strings."""
    return {
        "spec": SPEC,
        "config": str(report.digest),
        "data": str(report.data),
        "parameters": report.n_parameters,
        "first_step": report.first_step,
        "last_step": report.last_step,
        "steps": report.run.training.steps,
        "complete": report.is_complete,
        "skipped_steps": report.skipped_steps,
        "first_loss": report.first_loss,
        "last_loss": report.last_loss,
        "tokens": report.tokens,
        "duration_s": report.duration_s,
        "tokens_per_s": report.per_second(report.tokens),
        "model_flop": encode_flop(report.model_flop),
        "executed_flop": encode_flop(report.executed_flop),
        "model_flop_per_step": encode_flop(report.flop.model_flop),
        "executed_flop_per_step": encode_flop(report.flop.executed_flop),
        "model_flop_per_s": report.per_second(report.model_flop),
        "executed_flop_per_s": report.per_second(report.executed_flop),
        "out": report.out or None,
        "resumed_from": report.resumed_from or None,
        "checkpoint": report.checkpoint or None,
        "findings": [render_finding(finding) for finding in report.findings],
    }
