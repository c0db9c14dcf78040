"""Sessions beside totals, device by device, whole or in pieces."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.foundation.verdict import Finding
from flopwitness.measure import usage
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.sessions import SessionRule
from flopwitness.measure.usage import assess_use, assess_waits

MakeSeries = Callable[..., Series]

SHARE = [0] * 100 + [95] * 200 + [0] * 100
POWER = [60] * 100 + [460] * 100 + [100] * 100 + [60] * 100


def _trace(make_series: MakeSeries, **changed: object) -> Trace:
    share = make_series(SHARE, channel=Channel.UTILISATION_PCT)
    return Trace(series=(share, replace(make_series(POWER), **changed)))  # type: ignore[arg-type]


def _use(trace: Trace, idle_w: float | None = None) -> tuple[usage.DeviceUse, list[Finding]]:
    findings: list[Finding] = []
    (use,) = assess_use(trace, SessionRule(), findings, idle_w=idle_w)
    return use, findings


def test_totals_count_what_sessions_lose(make_series: MakeSeries) -> None:
    use, findings = _use(_trace(make_series))
    assert len(use.sessions) == 1
    assert use.idle_w == 60
    assert use.totals is not None
    assert use.totals.net_energy_j == pytest.approx(100 * 400 + 100 * 40, rel=0.01)
    assert use.share_in_sessions == pytest.approx(0.98, abs=0.02)
    assert [finding.code for finding in findings] == ["busy-at-idle-power"]


def test_pieces_give_what_the_whole_gives(make_series: MakeSeries, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = _use(_trace(make_series))
    monkeypatch.setattr(usage, "_PIECE", 64)
    cut, findings = _use(_trace(make_series))
    assert cut.totals == whole.totals
    assert cut.sessions == whole.sessions
    assert cut.idle_w == whole.idle_w
    assert "busy-at-idle-power" in {finding.code for finding in findings}


@pytest.mark.parametrize("late_s", [0.0, 0.25])
@pytest.mark.parametrize("in_order", [True, False])
def test_each_piece_has_the_utilisation_of_its_time(
    make_series: MakeSeries, monkeypatch: pytest.MonkeyPatch, late_s: float, *, in_order: bool
) -> None:
    monkeypatch.setattr(usage, "_PIECE", 10)
    times = [*range(20), *range(20, 35)] if in_order else [*range(20), 18, *range(21, 35)]
    power = make_series([float(moment) for moment in times], time_s=times)
    share = make_series(power.value.tolist(), time_s=[moment + late_s for moment in times])
    pieces = list(usage._pieces(power, share))
    assert np.concatenate([watts.value for watts, _ in pieces]).tolist() == power.value.tolist()
    for watts, beside in pieces:
        assert beside is not None
        inside = set(beside.value.tolist())
        assert inside <= set(watts.value.tolist()) | ({18.0, 19.0} if not in_order else set())
        assert len(inside) >= len(set(watts.value.tolist())) - bool(late_s)
    assert [beside for _, beside in usage._pieces(power, None)] == [None] * len(pieces)


def test_waiting_is_told_once_for_all_devices(make_series: MakeSeries) -> None:
    series = []
    for number in range(3):
        series.append(make_series(POWER, device=f"gpu_{number}"))
        series.append(make_series(SHARE, device=f"gpu_{number}", channel=Channel.UTILISATION_PCT))
    power = [item for item in series if item.channel is Channel.POWER_W]
    (finding,) = assess_waits(Trace(series=tuple(series)), power)
    assert (finding.code, finding.count) == ("busy-at-idle-power", 3)
    assert assess_waits(Trace(series=tuple(power)), power) == []
    assert assess_waits(Trace(series=tuple(series)), power, idle_w=99.0) != []


@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        ("no-utilisation", ["utilisation-unrecorded"]),
        ("no-idle", ["idle-unseen"]),
        ("no-power", []),
    ],
)
def test_what_is_missing_is_told(make_series: MakeSeries, trace: str, codes: list[str]) -> None:
    power, share = make_series(POWER), make_series([95] * 400, channel=Channel.UTILISATION_PCT)
    series = {"no-utilisation": (power,), "no-idle": (power, share), "no-power": (share,)}[trace]
    findings: list[Finding] = []
    assess_use(Trace(series=series), SessionRule(), findings)
    assert [finding.code for finding in findings] == codes


def test_another_scope_of_the_same_device_is_its_power(make_series: MakeSeries) -> None:
    use, _ = _use(_trace(make_series, scope=Scope.MODULE))
    assert use.power is not None
    assert use.power.scope is Scope.MODULE
