"""Cut a recorded run into pieces and print what sessions and totals show of it.

    python campaigns/split_runs.py [--shared DIR]

The run is the recording of a Jetson Orin Nano; pauses of 6 s of its own idle are put in at evenly spaced
places. That is a simulation: see `flopwitness.simulation.splicing`.
"""

import os
from pathlib import Path

import click
import numpy as np

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.samples import Channel, RunWindow, Series, Trace
from flopwitness.measure.sessions import SessionRule, find_sessions, session_energy
from flopwitness.measure.sources.formats import read_evidence
from flopwitness.measure.totals import LedgerState, Totals, extend
from flopwitness.simulation.splicing import splice_idle

__all__ = ["command"]

_REPOSITORY = Path(__file__).resolve().parent.parent
_PAUSES = (0, 3, 10, 60)
_GAP_S = 6.0
_STEP_S = 0.50186  # the recording's usual step
_IDLE_S = 60  # before anything was launched
_LONGEST_STEP_S = 2.5


def _series(trace: Trace, channel: Channel) -> Series:
    return next(series for series in trace.series if series.channel is channel)


def _places(window: RunWindow, n_pauses: int) -> list[int]:
    stop_ns = window.stop_utc_ns or window.start_utc_ns
    return [round(place) for place in np.linspace(window.start_utc_ns, stop_ns, n_pauses + 2)[1:-1].tolist()]


def _totals(power: Series, utilisation: Series, idle_w: float) -> Totals:
    state = extend(LedgerState(), power, utilisation, idle_w=idle_w, longest_step_s=_LONGEST_STEP_S)
    (meter,) = state.meters.values()
    return meter.totals


@click.command()
@click.option("--shared", type=click.Path(path_type=Path, file_okay=False, exists=True), default=None)
def command(*, shared: Path | None) -> None:  # noqa: D103 (the module's docstring is its help)
    named = shared or Path(os.environ.get("FLOPWITNESS_SHARED_DATA") or _REPOSITORY.parent / "shared")
    trace = read_evidence([named / "data" / "jetson_orin_nano" / "timeseries_25w.json"])
    power, utilisation = _series(trace, Channel.POWER_W), _series(trace, Channel.UTILISATION_PCT)
    readings_w = power.value[power.utc_ns < _IDLE_S * NANOSECOND_PER_SECOND]
    idle_w = float(np.median(readings_w))
    whole = _totals(power, utilisation, idle_w)
    print("| pauses | sum of sessions | energy above idle | busy time | P* |")
    print("|---|---|---|---|---|")
    for n_pauses in _PAUSES:
        cut = splice_idle(
            power,
            utilisation,
            places_ns=_places(trace.windows[0], n_pauses),
            idle_w=readings_w,
            gap_s=_GAP_S,
            step_s=_STEP_S,
        )
        totals = _totals(cut.power, cut.utilisation, idle_w)
        sessions = find_sessions(cut.utilisation, SessionRule())
        sum_j = sum(session_energy(cut.power, session, idle_w) for session in sessions)
        print(
            f"| {n_pauses} | {sum_j / whole.net_energy_j:.3f} "
            f"| {totals.net_energy_j / whole.net_energy_j:.4f} | {totals.busy_s / whole.busy_s:.4f} "
            f"| {(totals.working_net_w or 0.0) / (whole.working_net_w or 1.0):.4f} |"
        )


if __name__ == "__main__":
    command()
