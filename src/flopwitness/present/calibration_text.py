"""The answer of `calibrate` for a person: constants with their units, and what to know before using them."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.calibration.fitted import Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import Feature, NetKind
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import escape_line, join_lines, name_count

__all__ = ["render_calibration_text"]

_WIDTH: Final = 100
_NAMES: Final = {
    "chips": "chip",
    "count": "count",
    "scope": "scope",
    "power_mode": "power mode",
    "clock_limit": "clock limit",
    "driver": "driver",
    "precisions": "precision",
}


def render_calibration_text(calibration: Calibration, *, out: str, findings: Sequence[Finding]) -> str:
    """The whole answer of `calibrate`, ready to print.

    Args:
        calibration: The calibration.
        out: Where its file was written.
        findings: What a reader must know, worst first.
    """
    lines = [
        f"{out}: calibrated on {_describe_runs(calibration)}",
        f"  digest      {calibration.digest}",
        *textwrap.wrap(
            escape_line(_describe_device(calibration)),
            width=_WIDTH,
            initial_indent="  holds for   ",
            subsequent_indent=" " * 14,
            break_long_words=False,
            break_on_hyphens=False,
        ),
        f"  energy      {_describe_energy(calibration)}",
        *_feature_lines(calibration),
    ]
    for method, model in calibration.fitted.models.items():
        lines.append(f"  {method:<11} {_describe_model(model)}")
    if calibration.link is not None:
        constant = np.exp(calibration.link.log_flop_per_tb_token)
        lines.append(
            f"  link        {constant:.4g} FLOP per TB of link traffic and declared token a step, spread "
            f"{100 * calibration.link.log_sd:.1f} %"
        )
    lines += finding_lines(findings)
    return join_lines(lines)


def _describe_runs(calibration: Calibration) -> str:
    data = calibration.data
    repeats = "" if data.n_workloads == data.n_runs else f" of {name_count(data.n_workloads, 'workload')}"
    return f"{name_count(data.n_runs, 'run')}{repeats}"


def _describe_device(calibration: Calibration) -> str:
    fingerprint = calibration.fingerprint
    known = {
        "chips": " or ".join(fingerprint.chips),
        "count": "" if fingerprint.count is None else str(fingerprint.count),
        "power_mode": fingerprint.power_mode,
        "precisions": ", ".join(fingerprint.precisions),
        "scope": fingerprint.scope,
        "clock_limit": fingerprint.clock_limit,
        "driver": fingerprint.driver,
    }
    told = [f"{_NAMES[name]} {value}" for name, value in known.items() if value]
    return ", ".join(told) or "a device of which nothing was recorded"


def _describe_energy(calibration: Calibration) -> str:
    net = calibration.fitted.net
    match net.kind:
        case NetKind.POOLED_IDLE:
            return f"above {net.idle_w:.4g} W idle, the same for every run"
        case NetKind.RECORDED:
            return "above idle, as each run's record gives it"
        case NetKind.TOTAL:
            return "idle included"


def _feature_lines(calibration: Calibration) -> Iterator[str]:
    domain = calibration.fitted.domain
    head = "seen"
    for feature, low, high in zip(
        domain.features, np.exp(domain.log_low), np.exp(domain.log_high), strict=True
    ):
        yield f"  {head:<11} {feature} {low:.4g} to {high:.4g} {_unit_words(feature)}"
        head = ""


def _joules(energy_j: float) -> str:
    """Two decimals, or three digits where they would show nothing."""
    return f"{energy_j:.2f}" if energy_j >= 0.1 else f"{energy_j:.3g}"  # noqa: PLR2004 (see above)


def _unit_words(feature: Feature) -> str:
    return f"{feature.unit} as counted" if feature.is_traffic else feature.unit


def _describe_model(model: Model) -> str:
    match model:
        case ConstantModel():
            return (
                f"{_joules(1e12 / np.exp(model.log_flop_per_j))} J/TFLOP, spread {100 * model.log_sd:.1f} %"
            )
        case PaperModel():
            traffic = (
                "" if model.energy_per_tb_j is None else f", {model.energy_per_tb_j:.4g} J per TB as counted"
            )
            return (
                f"{_joules(model.energy_per_tflop_j)} J/TFLOP{traffic}, overhead {model.overhead_w:.3g} W "
                f"(condition number {model.condition_number:.0f})"
            )
        case EfficiencyModel():
            error = 100 * float(np.mean(np.expm1(model.errors)))
            names = ", ".join(model.features) or "energy alone"
            return f"from {names}; runs left out are off by {error:.1f} % on average"
