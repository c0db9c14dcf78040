"""The answer of `calibrate` as JSON: what was learnt, and where the file lies that holds it exactly."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.calibration.fitted import Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.present.finding_json import render_finding

__all__ = ["render_calibration"]

SPEC: Final = "flopwitness/calibrate/v1"
_DIGITS: Final = 6


def render_calibration(calibration: Calibration, *, out: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The record of a calibration.

    Args:
        calibration: The calibration.
        out: Where its file was written.
        findings: What a reader must know, worst first.
    """
    fitted, fingerprint = calibration.fitted, calibration.fingerprint
    domain = fitted.domain
    ends = zip(domain.features, np.exp(domain.log_low), np.exp(domain.log_high), strict=True)
    return {
        "spec": SPEC,
        "out": out,
        "digest": str(calibration.digest),
        "runs": calibration.data.n_runs,
        "workloads": calibration.data.n_workloads,
        "fingerprint": {
            "chips": list(fingerprint.chips),
            "count": fingerprint.count,
            "scope": fingerprint.scope or None,
            "power_mode": fingerprint.power_mode or None,
            "clock_limit": fingerprint.clock_limit or None,
            "driver": fingerprint.driver or None,
            "precisions": list(fingerprint.precisions),
        },
        "net_energy": {"kind": str(fitted.net.kind), "idle_w": fitted.net.idle_w},
        "features": [
            {"name": str(name), "unit": name.unit, "low": _short(low), "high": _short(high)}
            for name, low, high in ends
        ],
        "estimators": {str(method): _constants(model) for method, model in fitted.models.items()},
        "not_fitted": {str(method): reason for method, reason in fitted.refused.items()},
        "link_operations": None
        if calibration.link is None
        else {
            "flop_per_tb_token": _short(float(np.exp(calibration.link.log_flop_per_tb_token))),
            "log_gate": None if calibration.link_gate is None else _short(calibration.link_gate),
        },
        "findings": [render_finding(item) for item in findings],
    }


def _constants(model: Model) -> dict[str, Any]:
    match model:
        case ConstantModel():
            return {"j_per_tflop": _short(1e12 / np.exp(model.log_flop_per_j))}
        case PaperModel():
            traffic = model.energy_per_tb_j
            return {
                "energy_per_tflop_j": _short(model.energy_per_tflop_j),
                "energy_per_tb_j": None if traffic is None else _short(traffic),
                "overhead_w": _short(model.overhead_w),
                "is_overhead_at_edge": model.is_overhead_at_edge,
                "condition_number": _short(model.condition_number),
            }
        case EfficiencyModel():
            return {
                "features": [str(feature) for feature in model.features],
                "left_out_error_pct": _short(100 * float(np.mean(np.expm1(model.errors)))),
            }


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
