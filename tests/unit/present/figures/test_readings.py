"""Lines over time: what may be added is added, what is missing stays missing, and peaks survive thinning."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Timing, Trace
from flopwitness.present.figures.readings import Line, gather_lines, select_readings

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]

POWER = (Channel.POWER_W, Channel.POWER_AVERAGE_W)


def lines_of(*series: Series) -> list[Line]:
    return gather_lines(series, origin_ns=int(series[0].utc_ns[0]))


def test_one_device_is_drawn_as_it_was_read(make_series: MakeSeries) -> None:
    (line,) = lines_of(make_series([100, math.nan, math.inf, 300], conversion=0.5))
    np.testing.assert_array_equal(line.time_s, [0, 1, 2, 3])
    np.testing.assert_array_equal(line.value, [50, math.nan, math.nan, 150])
    assert line.label == "gpu_0, gpu"


def test_steps_backwards_are_put_in_order(make_series: MakeSeries) -> None:
    first = make_series([0])
    line = gather_lines([make_series([3, 1, 2], time_s=[2, 0, 1])], origin_ns=int(first.utc_ns[0]))[0]
    np.testing.assert_array_equal(line.value, [1, 2, 3])


def test_devices_of_one_scope_are_added(make_series: MakeSeries) -> None:
    (line,) = lines_of(make_series([100] * 5), make_series([200] * 5, device="gpu_1"))
    np.testing.assert_array_equal(line.value, [300] * 5)
    assert line.label == "2 devices together, gpu"


def test_overlapping_scopes_and_parts_are_never_added(make_series: MakeSeries) -> None:
    board = make_series([100, 100], scope=Scope.MODULE)
    rail = replace(make_series([50, 50], scope=Scope.RAIL), part="VDD_SOC")
    mean = make_series([90, 90], scope=Scope.UNKNOWN, channel=Channel.POWER_AVERAGE_W)
    labels = [line.label for line in lines_of(board, rail, mean)]
    assert labels == ["gpu_0, module", "VDD_SOC, rail", "gpu_0, running mean"]


def test_like_parts_of_several_devices_keep_their_part(make_series: MakeSeries) -> None:
    pair = [replace(make_series([1, 2], device=name), part="tx") for name in ("gpu_0", "gpu_1")]
    assert lines_of(*pair)[0].label == "2 devices together, tx, gpu"


def test_a_device_counts_while_it_was_recorded(make_series: MakeSeries) -> None:
    later = make_series([200] * 5, time_s=range(2, 7), device="gpu_1")
    (line,) = lines_of(make_series([100] * 5), later)
    np.testing.assert_array_equal(line.value, [100, 100, 300, 300, 300, 200, 200])


def test_recordings_far_apart_are_not_joined(make_series: MakeSeries) -> None:
    later = make_series([200] * 5, time_s=range(1000, 1005), device="gpu_1")
    (line,) = lines_of(make_series([100] * 5), later)
    np.testing.assert_array_equal(line.value, [100] * 5 + [math.nan] + [200] * 5)


def test_long_lines_keep_their_extremes(make_series: MakeSeries) -> None:
    power_w = [100.0] * 20_000
    power_w[7], power_w[12_345], power_w[500] = 900.0, 1.0, math.nan
    (line,) = lines_of(make_series(power_w))
    assert line.value.size < 5_000
    assert np.nanmin(line.value) == 1
    assert np.nanmax(line.value) == 900


def test_only_series_with_readings_are_chosen(make_series: MakeSeries) -> None:
    good = make_series([1, 2])
    other = make_series([1, 2], channel=Channel.TEMPERATURE_C)
    trace = Trace(series=(make_series([math.nan]), make_series([]), other, good))
    assert select_readings(trace, POWER) == ([good], 0)
    assert select_readings(Trace(), POWER) == ([], 0)


def test_times_without_a_date_do_not_mix_with_dates(make_series: MakeSeries) -> None:
    dated = make_series([1, 2])
    relative = replace(dated, timing=Timing.RELATIVE)
    assert select_readings(Trace(series=(dated, relative)), POWER) == ([dated], 1)
    assert select_readings(Trace(series=(relative, dated)), POWER) == ([relative], 1)


def test_readings_around_the_run_are_chosen(make_series: MakeSeries, make_window: MakeWindow) -> None:
    near, far = make_series(range(100)), make_series([1, 2], time_s=[90_000, 90_001], device="gpu_1")
    trace = Trace(series=(near, far), windows=(make_window(40, 60), make_window(1, None)))
    chosen, n_left_out = select_readings(trace, POWER)
    assert n_left_out == 1
    np.testing.assert_array_equal(chosen[0].value, range(36, 65))


@pytest.mark.parametrize("stop_s", [None, 60_100])
def test_without_a_reading_near_the_run_all_are_chosen(
    make_series: MakeSeries, make_window: MakeWindow, stop_s: float | None
) -> None:
    series = make_series([1, 2, 3])
    trace = Trace(series=(series,), windows=(make_window(60_000, stop_s),))
    assert select_readings(trace, POWER) == ([series], 0)
