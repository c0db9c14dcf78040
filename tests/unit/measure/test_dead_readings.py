"""0 W from a device that works is no reading."""

from collections.abc import Callable

import numpy as np
import pytest

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.dead_readings import leave_out_dead
from flopwitness.measure.samples import Channel, Scope, Series, Trace

MakeSeries = Callable[..., Series]


def _trace(make_series: MakeSeries, power_w: list[float], share: list[float], scope: Scope) -> Trace:
    return Trace(
        series=(
            make_series(power_w, scope=scope),
            make_series(share, channel=Channel.UTILISATION_PCT),
        )
    )


@pytest.mark.parametrize(
    ("share", "scope", "n_dead"),
    [(99, Scope.GPU, 2), (99, Scope.MODULE, 2), (50, Scope.GPU, 0), (0, Scope.GPU, 0), (99, Scope.RAIL, 0)],
)
def test_zero_watts_of_a_busy_device_are_missing(
    make_series: MakeSeries, share: float, scope: Scope, n_dead: int
) -> None:
    findings = list[Finding]()
    kept = leave_out_dead(_trace(make_series, [400, 0, 0, 400], [share] * 4, scope), findings)
    assert int(np.isnan(kept.series[0].value).sum()) == n_dead
    assert [(item.code, item.count) for item in findings] == ([("power-zero-busy", 2)] if n_dead else [])


def test_nothing_changes_without_utilisation(make_series: MakeSeries) -> None:
    trace = Trace(series=(make_series([400, 0, 400]),))
    assert leave_out_dead(trace, []) is trace
