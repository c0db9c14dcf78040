"""The answer of `count` as JSON: exact counts as decimal strings."""

from collections.abc import Sequence
from typing import Any, Final

from flopwitness.counting.chain import Chain, ChainCount
from flopwitness.counting.config import CountedRun
from flopwitness.counting.conventions import Convention
from flopwitness.counting.model import Model
from flopwitness.counting.parameters import Parameters, count_parameters
from flopwitness.counting.step import StepCount
from flopwitness.foundation.units import encode_flop
from flopwitness.foundation.verdict import Finding
from flopwitness.present.finding_json import render_finding

__all__ = ["render_chain", "render_count", "render_total"]

SPEC: Final = "flopwitness/count/v1"


def render_count(
    run: CountedRun,
    step: StepCount,
    conventions: Sequence[Convention],
    *,
    torch: dict[str, Any] | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Any]:
    """The record of a counted run.

    Args:
        run: The model and what the run does.
        step: The count of one step.
        conventions: The count of the whole run in every convention, ours first.
        torch: What an instrumented step showed, or None.
        findings: What a reader must know, worst first.
    """
    steps = run.training.steps
    return {
        "spec": SPEC,
        "kind": "run",
        "model": _model(run.model),
        "parameters": _parameters(count_parameters(run.model)),
        "rows": str(run.training.rows),
        "steps": steps if run.has_updates else None,
        "tokens": str(steps * step.tokens),
        "executed_tokens": str(steps * step.executed_tokens),
        "flop": {
            "model": encode_flop(steps * step.model_flop),
            "model_masked": encode_flop(steps * step.causal_flop),
            "executed": encode_flop(steps * step.executed_flop),
            "optimizer": encode_flop(steps * step.optimizer_flop) if run.has_updates else None,
        },
        "step": _step(step),
        "conventions": [_convention(item, conventions[0].flop) for item in conventions],
        "torch": torch,
        "findings": [render_finding(item) for item in findings],
    }


def render_chain(chain: Chain, count: ChainCount, *, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """The record of a counted chain."""
    return {
        "spec": SPEC,
        "kind": "chain",
        "layers": len(chain.layers),
        "tokens": str(chain.steps * chain.tokens),
        "steps": chain.steps,
        "step": {
            "forward_flop": encode_flop(count.forward_flop),
            "backward_flop": encode_flop(count.backward_flop),
            "model_flop": encode_flop(count.step_flop),
        },
        "flop": {"model": encode_flop(chain.steps * count.step_flop)},
        "findings": [render_finding(item) for item in findings],
    }


def render_total(flop: int, *, rows: int, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """The record of another counter's table of modules."""
    return {
        "spec": SPEC,
        "kind": "module-table",
        "rows": rows,
        "flop": {"total": encode_flop(flop)},
        "findings": [render_finding(item) for item in findings],
    }


def _model(model: Model) -> dict[str, Any]:
    experts, lora = model.experts, model.lora
    return {
        "kind": str(model.kind),
        "layers": model.layers,
        "d_model": model.d_model,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "d_ff": model.d_ff,
        "feed_forward": str(model.feed_forward),
        "sequence": model.sequence,
        "vocabulary": model.vocabulary,
        "outputs": model.outputs,
        "tied": model.is_tied,
        "window": model.window or None,
        "experts": None
        if experts is None
        else {
            "count": experts.count,
            "active": experts.active,
            "shared": experts.shared,
            "d_ff": experts.d_ff,
        },
        "lora": None if lora is None else {"rank": lora.rank, "on": sorted(lora.on)},
        "frozen": sorted(model.frozen),
        "frozen_layers": model.frozen_layers,
    }


def _parameters(parameters: Parameters) -> dict[str, Any]:
    return {
        "total": str(parameters.total),
        "active": str(parameters.active_total),
        "learning": str(parameters.learning),
        "groups": {str(group): str(count) for group, count in parameters.stored.items()},
    }


def _step(step: StepCount) -> dict[str, Any]:
    return {
        "forward_flop": encode_flop(step.forward_flop),
        "backward_flop": encode_flop(step.backward_flop),
        "model_flop": encode_flop(step.model_flop),
        "model_masked_flop": encode_flop(step.causal_flop),
        "executed_flop": encode_flop(step.executed_flop),
        "again_flop": encode_flop(step.again_flop),
        "recomputed_flop": encode_flop(step.recomputed_flop),
        "padding_flop": encode_flop(step.padding_flop),
        "optimizer_flop": encode_flop(step.optimizer_flop),
        "components": [
            {
                "name": str(name),
                "forward_flop": encode_flop(count.forward_flop),
                "backward_flop": encode_flop(count.backward_flop),
            }
            for name, count in step.components.items()
        ],
    }


def _convention(item: Convention, ours: int) -> dict[str, Any]:
    return {
        "id": str(item.id),
        "flop": encode_flop(item.flop),
        "of_model": round(item.flop / ours, 6) if ours else None,
        "says": item.says,
        "source": item.source,
        "differences": [
            {"share": str(part.share), "flop": str(part.flop), "reason": part.reason}
            for part in item.differences
        ],
    }
