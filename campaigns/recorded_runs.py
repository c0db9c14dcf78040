"""The prior against runs of known size: MLPerf Training v4.0 with measured node power.

    python campaigns/recorded_runs.py [--shared DIR]

Each run is estimated from chip, count and logs alone, then with the workload and the precision named. None
of these runs is among the prior's evidence. The truths are counted from each run's own result log with the
convention named beside them.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flopwitness.catalogue.chips import Precision, load_chips
from flopwitness.foundation.units import JOULE_PER_KWH, format_flop
from flopwitness.measure.answer import Measurement
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import Workload, load_reference
from flopwitness.measure.sources.formats import read_evidence

_MLPERF_8: Final = "data/mlperf/h100x8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One recorded run.

    Attributes:
        name: The run.
        logs: Its logs under the shared folder.
        count: How many H100.
        low_flop: The least that the truth may be.
        high_flop: The most.
        precision: What it used.
        workload: What was trained.
    """

    name: str
    logs: tuple[str, ...]
    count: int
    low_flop: float
    high_flop: float
    precision: Precision
    workload: Workload


def recorded_runs() -> list[Recorded]:
    """The runs, AC side first."""
    gpt3 = "data/mlperf/h100x512/gpt3"
    result = f"{gpt3}/result_5848-240517221859825376616_2.mllog_only.txt"
    runs = [
        _recorded(f"GPT-3 {side}", (f"{gpt3}/power_{side}", result), 512, 1.28e21, 1.30e21, Precision.FP8)
        for side in ("ac", "dc")
    ]
    small = (
        ("llama2_70b_lora", "result_4951-240509201759121728742_1", 7.73e18, 7.76e18, Precision.FP8),
        ("llama2_70b_lora", "result_4951-240509201759121728742_9", 7.73e18, 7.76e18, Precision.FP8),
        ("bert", "result_5119-240510190348838227199_06", 0.5e18, 1.5e18, Precision.FP16),
        ("resnet", "result_5759-240517075402311260012_2", 1.10e18, 1.10e18, Precision.FP16),
    )
    for name, run, low, high, precision in small:
        for side in ("ac", "dc"):
            folder = f"{_MLPERF_8}/{name}"
            logs = (f"{folder}/power_{side}/{run}", f"{folder}/{run}.txt")
            runs.append(_recorded(f"{name} {run[-2:].strip('_')} {side}", logs, 8, low, high, precision))
    return runs


def _recorded(
    name: str, logs: tuple[str, ...], count: int, low: float, high: float, precision: Precision
) -> Recorded:
    workload = Workload.ANY if name.startswith("resnet") else Workload.TRANSFORMER
    return Recorded(
        name=name,
        logs=logs,
        count=count,
        low_flop=low,
        high_flop=high,
        precision=precision,
        workload=workload,
    )


def measure(run: Recorded, shared: Path, *, is_named: bool) -> Measurement:
    """The measurement of one run, with or without workload and precision named."""
    trace = read_evidence([shared / log for log in run.logs])
    question = Question(
        chips=load_chips().find("h100-sxm"),
        count=run.count,
        precisions=(run.precision,) if is_named else (),
        workload=run.workload if is_named else Workload.ANY,
    )
    return measure_trace(trace, question, table=load_reference())


def _print_row(run: Recorded, answer: Measurement) -> None:
    estimate, upper, energy = answer.estimate, answer.upper, answer.energy
    if estimate is None or upper is None or energy is None:
        raise SystemExit(f"{run.name}: no answer")
    middle = (run.low_flop + run.high_flop) / 2
    holds = estimate.low_flop <= middle <= estimate.high_flop and run.high_flop <= upper.flop
    print(
        f"| {run.name} | {energy.shown_j / JOULE_PER_KWH:.2f} | {100 * (energy.coverage or 0):.1f} "
        f"| {middle:.3g} | {format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)} "
        f"| {estimate.ratio:.2f} | {format_flop(upper.flop)} | {upper.flop / middle:.1f} "
        f"| {'yes' if holds else 'NO'} |"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="The prior against recorded runs of known size.")
    default = Path(os.environ.get("FLOPWITNESS_SHARED_DATA", "../shared"))
    parser.add_argument("--shared", type=Path, default=default)
    shared = parser.parse_args().shared
    for is_named in (False, True):
        how = "workload and precision named" if is_named else "chip, count and logs alone"
        print(f"\n{how}\n")
        print(
            "| run | kWh | covered, % | truth, FLOP | nominal 90 % | ratio | at most | over truth | holds |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for run in recorded_runs():
            _print_row(run, measure(run, shared, is_named=is_named))


if __name__ == "__main__":
    main()
