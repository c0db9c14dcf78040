"""The records of readings: their shapes are checked, the rest are plain values."""

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Trace


def _times(n: int) -> NDArray[np.int64]:
    return np.arange(n, dtype=np.int64)


def _values(n: int) -> NDArray[np.float64]:
    return np.ones(n)


def test_a_series_counts_missing_readings() -> None:
    series = Series(
        device="node_1",
        channel=Channel.POWER_W,
        scope=Scope.NODE_AC,
        utc_ns=_times(3),
        value=np.array([1.0, np.nan, 3.0]),
        monotonic_ns=_times(3),
    )
    assert len(series) == 3
    assert series.conversion == 1.0
    assert not series.is_estimate


@pytest.mark.parametrize(
    ("utc_ns", "value", "monotonic_ns"),
    [
        (_times(2), _values(3), None),
        (_times(3), _values(2), None),
        (_times(4).reshape(2, 2), _values(4).reshape(2, 2), None),
        (_times(3), _values(3), _times(2)),
        (_times(3), _values(3), _times(4)),
    ],
)
def test_arrays_of_unlike_shape_are_refused(
    utc_ns: NDArray[np.int64], value: NDArray[np.float64], monotonic_ns: NDArray[np.int64] | None
) -> None:
    with pytest.raises(ValueError, match="shape"):
        Series(
            device="node_1",
            channel=Channel.POWER_W,
            scope=Scope.NODE,
            utc_ns=utc_ns,
            value=value,
            monotonic_ns=monotonic_ns,
        )


def test_only_node_scopes_contain_hosts_and_fans() -> None:
    assert {scope for scope in Scope if scope.is_node} == {Scope.NODE, Scope.NODE_AC, Scope.NODE_DC}


def test_records_do_not_change() -> None:
    window = RunWindow(start_utc_ns=1, stop_utc_ns=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        window.start_utc_ns = 2  # type: ignore[misc]
    assert window.status == ""


def test_an_empty_trace_declares_nothing() -> None:
    trace = Trace()
    assert trace.declaration is None
    assert trace.n_skipped == 0
    assert not any((trace.series, trace.marks, trace.windows, trace.skipped, trace.provenance))
