"""Power and traffic over time: units on the axes, the run marked, and odd recordings drawn all the same."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, RunWindow, Series, Timing, Trace
from flopwitness.present.figures.traces import draw_power_trace, draw_traffic_trace

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]

UNCALIBRATED = Finding(code="memory-traffic-uncalibrated", severity=Severity.NOTE, message="as counted")


def test_power_says_its_unit_and_its_start(parts: Parts) -> None:
    power = parts("power_trace")
    for part in ("a recording", "power [W]", "time since 2023-11-14 22:13:20 UTC [s]", "gpu_0, gpu"):
        assert part in power
    assert power.count("the run, as its log marks it") == 1


@pytest.mark.parametrize(
    ("power_w", "time_s", "unit", "time_unit"),
    [([10, 20], [0, 600], "[W]", "[min]"), ([2e3, 2e3], [0, 90_000], "[kW]", "[h]")],
)
def test_units_follow_the_size(
    make_series: MakeSeries,
    words: Words,
    power_w: list[float],
    time_s: list[float],
    unit: str,
    time_unit: str,
) -> None:
    text = words(draw_power_trace(Trace(series=(make_series(power_w, time_s=time_s),)), "t"))
    assert f"power {unit}" in text
    assert time_unit in text


def test_times_without_a_date_count_from_the_start(make_series: MakeSeries, words: Words) -> None:
    series = replace(make_series([1, 2]), timing=Timing.RELATIVE)
    assert "since the start of the recording [s]" in words(draw_power_trace(Trace(series=(series,)), "t"))


def test_runs_outside_the_recording_are_not_marked(
    make_series: MakeSeries, make_window: MakeWindow, words: Words
) -> None:
    windows = (make_window(500, 600), make_window(1, None))
    text = words(draw_power_trace(Trace(series=(make_series([1, 2]),), windows=windows), "t"))
    assert "the run" not in text


def test_two_runs_are_named_once(make_series: MakeSeries, make_window: MakeWindow, words: Words) -> None:
    windows = (make_window(1, 5), make_window(7, 9), make_window(500, 600))
    text = words(draw_power_trace(Trace(series=(make_series(range(20)),), windows=windows), "t"))
    assert text.count("the run, as its log marks it") == 1


def test_series_of_other_times_are_counted(make_series: MakeSeries, words: Words) -> None:
    other = replace(make_series([1, 2], device="gpu_1"), timing=Timing.COUNTED)
    text = words(draw_power_trace(Trace(series=(make_series([1, 2]), other)), "t"))
    assert "1 series of other times left out" in text


def test_too_many_lines_are_counted(make_series: MakeSeries, words: Words) -> None:
    rails = tuple(replace(make_series([i, i + 1]), part=f"rail_{i}") for i in range(9))
    text = words(draw_power_trace(Trace(series=rails), "t"))
    assert "the largest 6 of 9 lines" in text
    assert "rail_8" in text
    assert "rail_0" not in text


def test_traffic_has_a_panel_for_each_kind(make_series: MakeSeries, words: Words) -> None:
    kinds = (
        Channel.HOST_TRAFFIC_BYTE_PER_S,
        Channel.MEMORY_TRAFFIC_BYTE_PER_S,
        Channel.LINK_TRAFFIC_BYTE_PER_S,
    )
    trace = Trace(series=tuple(make_series([1e9, 2e9], channel=kind) for kind in kinds))
    text = words(draw_traffic_trace(trace, "t"))
    for kind in ("memory", "link", "host"):
        assert f"{kind} traffic [byte/s]" in text
    assert "2 G" in text


def test_a_counter_of_its_own_unit_is_called_so(make_series: MakeSeries, words: Words) -> None:
    memory = make_series([1e6, 2e6], channel=Channel.MEMORY_TRAFFIC_BYTE_PER_S)
    link = make_series([1e6, 2e6], channel=Channel.LINK_TRAFFIC_BYTE_PER_S)
    text = words(draw_traffic_trace(Trace(series=(memory, link), findings=(UNCALIBRATED,)), "t"))
    assert "memory traffic [byte/s, as counted]" in text
    assert "link traffic [byte/s]" in text
    alone = words(draw_traffic_trace(Trace(series=(link,), findings=(UNCALIBRATED,)), "t"))
    assert "as counted" not in alone


def test_nothing_to_draw_is_no_figure(make_series: MakeSeries) -> None:
    for trace in (Trace(), Trace(series=(make_series([math.nan]),))):
        assert draw_power_trace(trace, "t") is None
        assert draw_traffic_trace(trace, "t") is None


def test_odd_recordings_can_be_drawn(make_series: MakeSeries) -> None:
    odd = [
        (make_series([300]),),
        (make_series([0, 0, 0]),),
        (make_series([-5, 10]),),
        (make_series([300, 310], time_s=[5, 5]),),
        (make_series([300, math.nan, 310], time_s=[2, 1, 0]),),
        (make_series([300, 310], device="$x$\x1b模" * 20), make_series([1e9], time_s=[7e9], device="gpu_1")),
    ]
    for series in odd:
        assert draw_power_trace(Trace(series=series), "t") is not None
