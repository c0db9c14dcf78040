"""A recording played again, and what is collected from it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.replay import Collector, Poll, play
from flopwitness.measure.samples import Channel, Scope, Series, Trace

MakeSeries = Callable[..., Series]


def _series(times_ns: Sequence[int], device: str = "gpu_0") -> Series:
    return Series(
        device=device,
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        utc_ns=np.array(times_ns, dtype=np.int64),
        value=np.arange(len(times_ns), dtype=np.float64),
    )


def _brief(polls: Sequence[Poll]) -> list[tuple[int, int, list[tuple[int, float]]]]:
    return [(p.utc_ns, p.wait_ns, [(v.place, v.value) for v in p.values]) for p in polls]


def test_readings_of_one_instant_come_together() -> None:
    trace = Trace(series=(_series([10, 20, 30]), _series([20, 25], "gpu_1")))
    assert _brief(list(play(trace))) == [
        (10, 0, [(0, 0.0)]),
        (20, 10, [(0, 1.0), (1, 0.0)]),
        (25, 5, [(1, 1.0)]),
        (30, 5, [(0, 2.0)]),
    ]


def test_a_clock_that_steps_back_keeps_the_order_and_the_stamps() -> None:
    polls = _brief(list(play(Trace(series=(_series([10, 20, 15, 30]),)))))
    assert [(stamp, wait) for stamp, wait, _ in polls] == [(10, 0), (20, 10), (15, 0), (30, 10)]


@pytest.mark.parametrize("series", [(), (_series([]),)])
def test_nothing_to_play(series: tuple[Series, ...]) -> None:
    assert list(play(Trace(series=series))) == []


@given(st.lists(st.lists(st.integers(min_value=0, max_value=50), max_size=12), min_size=1, max_size=4))
def test_what_is_collected_is_what_was_played(times: list[list[int]]) -> None:
    series = tuple(_series(stamps, f"gpu_{place}") for place, stamps in enumerate(times))
    collector = Collector(Trace(series=series))
    for poll in play(Trace(series=series)):
        collector.add(poll)
    kept = [item for item in series if len(item)]
    collected = collector.trace().series
    assert collector.n_readings == sum(map(len, kept))
    assert [item.device for item in collected] == [item.device for item in kept]
    for ours, theirs in zip(collected, kept, strict=True):
        assert ours.utc_ns.tolist() == theirs.utc_ns.tolist()
        assert ours.value.tolist() == theirs.value.tolist()


def test_a_missing_reading_stays_missing(make_series: MakeSeries) -> None:
    series = replace(make_series([1, 2]), value=np.array([1.0, np.nan]))
    collector = Collector(Trace(series=(series,)))
    for poll in play(Trace(series=(series,))):
        collector.add(poll)
    assert np.isnan(collector.trace().series[0].value[1])


def test_the_steady_clock_is_kept(make_series: MakeSeries) -> None:
    series = make_series([1, 2, 3], monotonic_s=[5, 6, 7])
    collector = Collector(Trace(series=(series,)))
    for poll in play(Trace(series=(series,))):
        collector.add(poll)
    kept = collector.trace().series[0].monotonic_ns
    assert kept is not None
    assert series.monotonic_ns is not None
    assert kept.tolist() == series.monotonic_ns.tolist()
