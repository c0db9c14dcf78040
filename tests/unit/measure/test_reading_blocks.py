"""Readings in blocks: nothing is lost, doubled or changed where one block ends."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from flopwitness.measure import reading_blocks
from flopwitness.measure.reading_blocks import (
    MOST_W,
    Block,
    clock_ns,
    factor_of,
    is_known,
    known_blocks,
    known_step_blocks,
    step_blocks,
)
from flopwitness.measure.samples import Series

MakeSeries = Callable[..., Series]
NAN = math.nan


@pytest.fixture(params=[1, 2, 3, 5, 100], autouse=True)
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_blocks, "BLOCK", request.param)


@pytest.fixture(params=[0, 2, 128], ids=["by number", "both ways", "in slices"], autouse=True)
def _edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_blocks, "_MOST_EDGES", request.param)


def _walk(values: list[float], factor: float = 1.0) -> list[Block]:
    value = np.array(values, dtype=np.float64)
    return list(known_blocks(np.arange(value.size, dtype=np.int64) * 10, value, factor))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4, 5, 6, 7],
        [NAN, 2, 3, NAN, NAN, 6, 7, 8, NAN],
        [NAN, NAN, NAN, NAN, 5],
        [1, -1, 3, math.inf, 5, -math.inf, 7, 2e12, 9, MOST_W],
        [4],
    ],
)
def test_every_reading_with_a_value_comes_once(values: list[float]) -> None:
    expected = [(10 * i, value) for i, value in enumerate(values) if 0 <= value < MOST_W]
    blocks = _walk(values)
    told = [
        (int(tick), float(power))
        for block in blocks
        for tick, power in zip(block.ticks_ns[-block.n_new :], block.power_w[-block.n_new :], strict=True)
    ]
    assert told == expected
    assert sum(block.n_new for block in blocks) == len(expected)


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5], [1, NAN, 3, 4, NAN, NAN, 7, 8, 9, NAN]])
def test_each_block_begins_with_the_last_reading_of_the_one_before(values: list[float]) -> None:
    blocks = _walk(values)
    assert blocks[0].n_new == blocks[0].power_w.size
    for before, block in pairwise(blocks):
        assert block.power_w[0] == before.power_w[-1]
        assert block.power_w.size == block.n_new + 1
        assert block.first == before.last
    assert blocks[0].first == 0
    assert values[blocks[-1].last] == blocks[-1].power_w[-1]


def test_steps_over_missing_readings_are_told() -> None:
    values = [1, NAN, 3, 4, NAN, NAN, 7, 8, 9]
    leaps = [
        (int(block.ticks_ns[step]), int(block.ticks_ns[step + 1]))
        for block in _walk(values)
        for step in block.over_missing
    ]
    assert leaps == [(0, 20), (30, 60)]


@pytest.mark.parametrize("values", [[], [NAN] * 4, [-1.0], [MOST_W], [1e300]])
def test_without_a_value_there_is_no_block(values: list[float]) -> None:
    assert _walk(values) == []


@pytest.mark.parametrize(
    ("factor", "known"), [(1.0, [True, True]), (0.5, [True, True]), (2e9, [True, False])]
)
def test_the_factor_decides_too_what_can_be_a_power(factor: float, known: list[bool]) -> None:
    values = np.array([100.0, 1_000.0])
    assert is_known(values, factor).tolist() == known
    assert [float(w) for block in _walk([100, 1_000], factor) for w in block.power_w[-block.n_new :]] == [
        value * factor for value, is_one in zip([100.0, 1_000.0], known, strict=True) if is_one
    ]


def test_steps_come_once_each() -> None:
    ticks_ns = np.array([0, 5, 5, 2, 9], dtype=np.int64)
    assert np.concatenate(list(step_blocks(ticks_ns))).tolist() == [5, 0, -3, 7]
    value = np.array([1, NAN, 2, 3, 4.0])
    assert np.concatenate(list(known_step_blocks(ticks_ns, value, 1.0))).tolist() == [5, -3, 7]
    assert list(step_blocks(ticks_ns[:1])) == list(step_blocks(ticks_ns[:0])) == []


def test_the_steady_clock_is_taken_where_there_is_one(make_series: MakeSeries) -> None:
    series = make_series([1, 2], monotonic_s=[7, 8])
    assert clock_ns(series) is series.monotonic_ns
    plain = replace(series, monotonic_ns=None)
    assert clock_ns(plain) is plain.utc_ns


@pytest.mark.parametrize(("conversion", "factor"), [(0.95, 0.95), (1e300, MOST_W)])
def test_no_factor_is_beyond_any_power(make_series: MakeSeries, conversion: float, factor: float) -> None:
    assert factor_of(make_series([1], conversion=conversion)) == factor
