"""Readings laid out: what is found in passes over blocks is what stands in the recording."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from flopwitness.measure import reading_blocks
from flopwitness.measure.power_line import LaidBlock, PowerLine, lay_out_power
from flopwitness.measure.samples import Series

MakeSeries = Callable[..., Series]
NAN = math.nan


@pytest.fixture(params=[1, 2, 3, 100], autouse=True)
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_blocks, "BLOCK", request.param)


def _new(line: PowerLine) -> Iterator[tuple[float, float]]:
    for block in line.blocks():
        yield from zip(
            block.time_s[-block.n_new :].tolist(), block.power_w[-block.n_new :].tolist(), strict=True
        )


def test_readings_keep_their_times_and_missing_ones_go(make_series: MakeSeries) -> None:
    series = make_series([300, NAN, 320, 310, 90, NAN], time_s=[5, 6, 7, 7, 9, 11], conversion=0.5)
    line = lay_out_power(series)
    assert list(_new(line)) == [(0, 150), (2, 160), (2, 155), (4, 45)]
    assert (line.n_known, line.n_missing, line.n_repeated, line.n_backwards) == (4, 2, 1, 0)
    assert (line.lowest_w, line.highest_w) == (45, 160)
    assert (line.last_s, line.usual_s) == (4, 2)
    assert line.origin_ns == int(series.utc_ns[0])
    assert not line.is_rounded


def test_the_first_reading_with_a_value_is_the_origin(make_series: MakeSeries) -> None:
    series = make_series([NAN, NAN, 5, 6], time_s=[1, 2, 4, 5])
    line = lay_out_power(series)
    assert line.origin_ns == int(series.utc_ns[2])
    assert list(_new(line)) == [(0, 5), (1, 6)]


def test_a_step_back_takes_one_usual_step(make_series: MakeSeries) -> None:
    line = lay_out_power(make_series([1, 2, 3, 4, 5, 6], time_s=[0, 2, 4, 1, 3, 5]))
    assert [time_s for time_s, _ in _new(line)] == [0, 2, 4, 6, 8, 10]
    assert (line.n_backwards, line.last_s, line.usual_s) == (1, 10, 2)
    assert all((block.length_s >= 0).all() for block in line.blocks())


def test_the_ends_of_blocks_meet(make_series: MakeSeries) -> None:
    series = make_series([1, NAN, 3, 4, 5, NAN, NAN, 8], time_s=[0, 1, 2, 3, 1, 2, 3, 4])
    blocks = list(lay_out_power(series).blocks())
    for before, block in pairwise(blocks):
        assert block.begin_s == pytest.approx(before.end_s, abs=1e-9)
        assert block.power_w[0] == before.power_w[-1]
    assert blocks[-1].end_s == pytest.approx(lay_out_power(series).last_s, abs=1e-9)
    assert sum(block.over_missing.size for block in blocks) == 2


@pytest.mark.parametrize("values", [[], [NAN] * 5, [-1.0] * 5])
def test_without_a_reading_there_is_nothing(make_series: MakeSeries, values: list[float]) -> None:
    line = lay_out_power(make_series(values))
    assert list(line.blocks()) == []
    assert (line.n_known, line.n_missing, line.last_s, line.origin_ns) == (0, len(values), 0, 0)
    assert math.isnan(line.usual_s)
    assert (line.lowest_w, line.highest_w) == (math.inf, 0)


def test_readings_that_share_whole_seconds_are_spread_with_gaps_kept(make_series: MakeSeries) -> None:
    times = [i // 2 for i in range(40)]
    values = [400 + 10 * math.sin(1.3 * i) for i in range(40)]
    values[7] = NAN
    line = lay_out_power(make_series(values, time_s=times))
    assert (line.is_rounded, line.is_mixed) == (True, False)
    assert line.usual_s == 0.5
    assert [time_s for time_s, _ in _new(line)] == [i / 2 for i in range(40) if i != 7]
    assert sum(block.over_missing.size for block in line.blocks()) == 1
    assert line.n_repeated == 19


@pytest.mark.parametrize("late_s", [0.0, 0.25])
def test_many_unlike_readings_at_once_are_mixed(make_series: MakeSeries, late_s: float) -> None:
    times = [late_s + i // 6 for i in range(60)]
    line = lay_out_power(make_series([1_000 + i % 6 for i in range(60)], time_s=times))
    assert (line.is_mixed, line.is_rounded) == (True, False)


def test_the_steady_clock_gives_the_times(make_series: MakeSeries) -> None:
    series = make_series([1, 2, 3], time_s=[0, 0, 0], monotonic_s=[7, 9, 12])
    line = lay_out_power(series)
    assert [time_s for time_s, _ in _new(line)] == [0, 2, 5]
    assert line.n_repeated == 0
    assert [time_s for time_s, _ in _new(lay_out_power(replace(series, monotonic_ns=None)))] == [0, 0, 0]


def test_the_times_of_a_block_follow_from_its_steps() -> None:
    block = LaidBlock(
        power_w=np.array([1.0, 2.0, 3.0]),
        length_s=np.array([0.5, 2.0]),
        over_missing=np.zeros(0, dtype=np.int64),
        begin_s=10.0,
        end_s=12.5,
        n_new=2,
    )
    assert block.time_s.tolist() == [10.0, 10.5, 12.5]
