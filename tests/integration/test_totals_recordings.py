"""A real training run cut open: the ledger keeps its totals, and sessions lose what the cuts cost.

One Jetson trace of 2 Hz, with 6 s of its own idle spliced in at evenly spaced places of the run. No cool-down
and no restart is in that simulation: it shows what counting does, not what hardware does.
"""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.measure.baseline import find_idle
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.samples import Channel, Scope, Series
from flopwitness.measure.sessions import SessionRule, find_sessions, session_energy
from flopwitness.measure.totals import LedgerState, Totals, busy_limit_w, extend

pytestmark = pytest.mark.shared_data

GAP_S = 6.0
STEP_S = 0.50186  # the recording's usual step
N_IDLE = round(GAP_S / STEP_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The recording: seconds, watts and percent, and where its run lies [s]."""

    power: NDArray[np.float64]
    utilisation: NDArray[np.float64]
    launch_s: float
    start_s: float
    stop_s: float

    @property
    def idle_w(self) -> NDArray[np.float64]:
        """The readings of the first minute, before anything was launched [W]."""
        is_before: NDArray[np.bool_] = self.power[:, 0] < self.launch_s
        return np.asarray(self.power[is_before, 1])


@pytest.fixture(scope="module")
def run(shared_data: Path) -> Run:
    loaded: dict[str, Any] = json.loads(
        (shared_data / "data" / "jetson_orin_nano" / "timeseries_25w.json").read_text()
    )
    return Run(
        power=np.array(loaded["power_mw"]) / [1, 1_000],
        utilisation=np.array(loaded["gpu_pct"]),
        launch_s=loaded["t_launch"],
        start_s=loaded["t_start"],
        stop_s=loaded["t_end"],
    )


def _series(readings: NDArray[np.float64], channel: Channel) -> Series:
    return Series(
        device="orin",
        channel=channel,
        scope=Scope.RAIL,
        utc_ns=np.round(readings[:, 0] * 1e9).astype(np.int64),
        value=readings[:, 1],
    )


def _splice(run: Run, n_gaps: int) -> tuple[Series, Series, float]:
    """The run cut open `n_gaps` times with idle in between, and the energy of that idle [J]."""
    places_s = np.linspace(run.start_s, run.stop_s, n_gaps + 2)[1:-1]
    power: list[NDArray[np.float64]] = []
    utilisation: list[NDArray[np.float64]] = []
    shift_s, begin_s, spliced_j = 0.0, -math.inf, 0.0
    for i, end_s in enumerate([*places_s, math.inf]):
        for readings, kept in ((run.power, power), (run.utilisation, utilisation)):
            inside = (readings[:, 0] >= begin_s) & (readings[:, 0] < end_s)
            kept.append(readings[inside] + [shift_s, 0])
        if end_s == math.inf:
            break
        idle_s = power[-1][-1, 0] + STEP_S * np.arange(1, N_IDLE + 1)
        idle_w = np.take(run.idle_w, np.arange(i * N_IDLE, (i + 1) * N_IDLE), mode="wrap")
        power.append(np.column_stack([idle_s, idle_w]))
        utilisation.append(np.column_stack([idle_s, np.zeros(N_IDLE)]))
        following_s = run.power[run.power[:, 0] >= end_s, 0][0]
        shift_s = idle_s[-1] + STEP_S - following_s
        begin_s, spliced_j = end_s, spliced_j + STEP_S * float(idle_w.sum())
    return (
        _series(np.concatenate(power), Channel.POWER_W),
        _series(np.concatenate(utilisation), Channel.UTILISATION_PCT),
        spliced_j,
    )


def _add(state: LedgerState, power: Series, utilisation: Series, idle_w: float) -> LedgerState:
    return extend(state, power, utilisation, idle_w=idle_w, longest_step_s=2.5)


def _totals(state: LedgerState) -> Totals:
    (meter,) = state.meters.values()
    return meter.totals


def _cut(series: Series, start_ns: float, stop_ns: float) -> Series:
    inside = (series.utc_ns >= start_ns) & (series.utc_ns < stop_ns)
    return Series(
        device=series.device,
        channel=series.channel,
        scope=series.scope,
        utc_ns=series.utc_ns[inside],
        value=series.value[inside],
    )


@pytest.fixture(scope="module")
def idle_w(run: Run) -> float:
    return float(np.median(run.idle_w))


def test_the_recording_is_the_one_that_is_meant(run: Run) -> None:
    assert (len(run.power), len(run.utilisation), len(run.idle_w)) == (1_296, 1_284, 120)


@pytest.mark.parametrize("n_pieces", [1, 2, 7, 100, 1_300])
def test_pieces_give_the_integral_whatever_the_cutting(run: Run, idle_w: float, n_pieces: int) -> None:
    power, utilisation, _ = _splice(run, 0)
    edges_ns = [-math.inf, *np.linspace(0, 650e9, n_pieces + 1)[1:-1].tolist(), math.inf]
    state = LedgerState()
    for start_ns, stop_ns in pairwise(edges_ns):
        piece = _cut(power, start_ns, stop_ns), _cut(utilisation, start_ns, stop_ns)
        state = _add(state, *piece, idle_w)
    totals = _totals(state)
    assert totals == _totals(_add(LedgerState(), power, utilisation, idle_w))
    assert totals.energy_j == pytest.approx(integrate_power(power).shown_j, rel=1e-12)
    assert (totals.n_readings, totals.gap_s) == (1_296, 0)


@pytest.mark.parametrize("n_gaps", [3, 10, 60])
def test_gaps_move_no_total(run: Run, idle_w: float, n_gaps: int) -> None:
    whole = _totals(_add(LedgerState(), *_splice(run, 0)[:2], idle_w))
    power, utilisation, spliced_j = _splice(run, n_gaps)
    cut = _totals(_add(LedgerState(), power, utilisation, idle_w))
    assert cut.energy_j - spliced_j == pytest.approx(whole.energy_j, rel=1e-3)
    assert cut.net_energy_j == pytest.approx(whole.net_energy_j, rel=1e-3)
    assert cut.busy_s == pytest.approx(whole.busy_s, rel=2e-3)
    assert cut.used_s == pytest.approx(whole.used_s, rel=2e-3)
    assert cut.working_net_w == pytest.approx(whole.working_net_w, rel=2e-3)
    assert (cut.gap_s, cut.n_ignored) == (0, 0)


@pytest.mark.parametrize("n_gaps", [3, 10, 60])
def test_a_calibrated_busy_limit_moves_no_total_either(run: Run, idle_w: float, n_gaps: int) -> None:
    limit_w = busy_limit_w(7.8)
    busy_s = [
        _totals(
            extend(
                LedgerState(),
                *_splice(run, n)[:2],
                idle_w=idle_w,
                longest_step_s=2.5,
                busy_net_w=limit_w,
            )
        ).busy_s
        for n in (0, n_gaps)
    ]
    assert busy_s[1] == pytest.approx(busy_s[0], rel=2e-3)


def test_what_is_left_of_a_change_is_the_error_of_idle(run: Run, idle_w: float) -> None:
    """A ledger's error is that of its idle power, times the idle time: nothing else moves it."""
    whole = _totals(_add(LedgerState(), *_splice(run, 0)[:2], idle_w))
    power, utilisation, spliced_j = _splice(run, 60)
    cut = _totals(_add(LedgerState(), power, utilisation, idle_w))
    expected_j = spliced_j - idle_w * 60 * N_IDLE * STEP_S
    assert cut.net_energy_j - whole.net_energy_j == pytest.approx(expected_j, abs=0.05)


@pytest.mark.parametrize(
    ("n_gaps", "share", "n_sessions"), [(0, 0.996, 1), (3, 0.98, 4), (10, 0.94, 11), (60, 0.69, 61)]
)
def test_sessions_lose_what_the_cuts_cost(
    run: Run, idle_w: float, n_gaps: int, share: float, n_sessions: int
) -> None:
    """The published figures come out where a session begins with the poll that confirms it."""
    whole_j = _totals(_add(LedgerState(), *_splice(run, 0)[:2], idle_w)).net_energy_j
    power, utilisation, _ = _splice(run, n_gaps)
    sessions = find_sessions(utilisation, SessionRule())
    assert len(sessions) == n_sessions
    sum_j = sum(session_energy(power, session, idle_w) for session in sessions)
    assert sum_j / whole_j == pytest.approx(share, abs=0.03)


def test_the_idle_power_is_found_where_it_has_settled(run: Run) -> None:
    """The first half minute still falls: 0.71 W on average, then 0.64 W."""
    power, utilisation, _ = _splice(run, 0)
    baseline = find_idle(power, utilisation)
    assert baseline is not None
    assert baseline.idle_w == pytest.approx(0.642, abs=0.01)  # the published median of 90 s
    assert baseline.n == 120


def test_pauses_do_not_hide_the_idle_power(run: Run) -> None:
    """Gaps of 6 s never settle; idle is then known from before and after the run alone."""
    power, utilisation, _ = _splice(run, 60)
    baseline = find_idle(power, utilisation)
    assert baseline is not None
    assert baseline.n == 120
