"""Made-up node power logs of one training run, in the form of the MLPerf family.

They show what the meter does with real ones: an idle lead, steps, evaluations, one stretch without
readings, an idle tail. They are a simulation: nobody measured them, and the logs say so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MadeUpRun", "make_node_logs"]

_NOTE: Final = "made up by flopwitness; nobody measured this"
_STEP_PERIOD_S: Final = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpRun:
    """What to make up.

    Attributes:
        seed: Seed of all noise.
        nodes: How many nodes.
        start_utc_ms: When the run starts [ms since 1970].
        run_s: How long the run lasts [s].
        margin_s: How long readings go on before and after it [s].
        period_s: Time between two readings [s].
        idle_w: What a node draws outside the run [W].
        busy_w: What it draws in a training step [W].
        evaluation_every_s: Time from one evaluation to the next [s].
        evaluation_s: Length of an evaluation [s].
        gap_node: The node with a stretch without readings, from 1.
        gap_start_s: When that stretch begins, from the start of the run [s].
        gap_s: How long it lasts [s].
    """

    seed: int = 20_261_130
    nodes: int = 2
    start_utc_ms: int = 1_767_225_600_000
    run_s: float = 1_200.0
    margin_s: float = 60.0
    period_s: float = 2.0
    idle_w: float = 2_350.0
    busy_w: float = 7_150.0
    evaluation_every_s: float = 300.0
    evaluation_s: float = 12.0
    gap_node: int = 2
    gap_start_s: float = 700.0
    gap_s: float = 20.0


def make_node_logs(run: MadeUpRun) -> Mapping[str, bytes]:
    """The logs by file name: one power log a node under `power_ac/`, and `result.txt`.

    Args:
        run: What to make up; the same value gives the same bytes.
    """
    logs = {f"power_ac/node_{node}.txt": _power_log(run, node) for node in range(1, run.nodes + 1)}
    logs["result.txt"] = _result_log(run)
    return logs


def _power_log(run: MadeUpRun, node: int) -> bytes:
    random = np.random.default_rng((run.seed, node))
    time_s = np.arange(-run.margin_s, run.run_s + run.margin_s, run.period_s)
    time_s = time_s + random.uniform(-0.01, 0.01, time_s.size)
    power_w = _power_w(run, time_s) + random.normal(0.0, 45.0, time_s.size)
    if node == run.gap_node:
        keep = (time_s < run.gap_start_s) | (time_s > run.gap_start_s + run.gap_s)
        time_s, power_w = time_s[keep], power_w[keep]
    time_ms = [run.start_utc_ms + round(1_000 * t) for t in time_s.tolist()]
    lines = [_line(time_ms[0], "power_measurement_start", None, "INTERVAL_START")]
    lines += [_line(t, "power_reading", round(p)) for t, p in zip(time_ms, power_w.tolist(), strict=True)]
    lines.append(_line(time_ms[-1], "power_measurement_stop", None, "INTERVAL_END"))
    return "".join(lines).encode()


def _power_w(run: MadeUpRun, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """A node's power without noise [W]: steps with a rhythm, evaluations a sixth lower, idle around them."""
    in_run = (time_s >= 0) & (time_s <= run.run_s)
    in_evaluation = in_run & (
        np.mod(time_s, run.evaluation_every_s) > run.evaluation_every_s - run.evaluation_s
    )
    rhythm_w = 0.03 * run.busy_w * np.sin(2 * np.pi * time_s / _STEP_PERIOD_S)
    power_w = np.where(in_run, run.busy_w + rhythm_w, run.idle_w)
    return np.where(in_evaluation, run.busy_w * 5 / 6, power_w)


def _result_log(run: MadeUpRun) -> bytes:
    stop_ms = run.start_utc_ms + round(1_000 * run.run_s)
    return "".join(
        [
            _line(run.start_utc_ms, "submission_benchmark", "made-up"),
            _line(run.start_utc_ms, "submission_platform", f"{run.nodes}xMADE_UP"),
            _line(run.start_utc_ms, "run_start", None, "INTERVAL_START"),
            _line(stop_ms, "run_stop", None, "INTERVAL_END", status="success"),
        ]
    ).encode()


def _line(
    time_ms: int,
    key: str,
    value: float | str | None,
    event_type: str = "POINT_IN_TIME",
    status: str | None = None,
) -> str:
    metadata = {"note": _NOTE} | ({"status": status} if status is not None else {})
    event = {
        "namespace": "",
        "time_ms": time_ms,
        "event_type": event_type,
        "key": key,
        "value": value,
        "metadata": metadata,
    }
    return f":::MLLOG {json.dumps(event)}\n"
