"""What must hold of every recording: no reading is lost or moved, and DecodeError is all that it raises."""

import math
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Device, Scope, Timing, Trace
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.sources.values import possible_range

OPTIONS = st.builds(
    ReadOptions,
    scope=st.none() | st.sampled_from(Scope),
    zone=st.none() | st.sampled_from(["Europe/Berlin", "UTC", "Pacific/Apia"]).map(ZoneInfo),
    period_s=st.none() | st.floats(1e-12, 1e12),
)
ANY_TIMES = st.one_of(
    st.integers(-(2**65), 2**65),
    st.integers(0, 1_000),
    st.integers(1_729_980_000, 1_730_000_000).map(lambda second: second * 10**9),
)
ANY_VALUES = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**400), 10**400)
NAMES = st.sampled_from(["gpu0", "gpu1", "", "n" * 300 + "0", "n" * 300 + "1"])
READINGS = st.lists(st.tuples(NAMES, st.sampled_from(Channel), ANY_TIMES, ANY_VALUES), max_size=12)


def _start(times: Times, options: ReadOptions) -> Recording:
    return Recording(Source(blocks=(), where="log", device="log", options=options), times=times)


@settings(deadline=None)
@given(
    st.sampled_from(Times),
    OPTIONS,
    READINGS,
    st.lists(st.tuples(ANY_TIMES, st.none() | ANY_TIMES), max_size=4),
    st.lists(ANY_TIMES, max_size=4),
)
def test_anything_gives_a_trace_or_a_decode_error(
    times: Times,
    options: ReadOptions,
    readings: list[tuple[str, Channel, int, float]],
    windows: list[tuple[int, int | None]],
    marks: list[int],
) -> None:
    recording = _start(times, options)
    try:
        for name, channel, time, value in readings:
            recording.column(name, channel, Scope.UNKNOWN).add(time, value)
            recording.describe(Device(name=name, chip_name=name))
        for start, stop in windows:
            recording.window(start, stop)
        for line, mark in enumerate(marks):
            recording.mark("m", mark, line=line)
        trace = recording.trace()
    except DecodeError:
        return
    assert sum(map(len, trace.series)) + trace.n_skipped == recording.n_readings == len(readings)
    assert (len(trace.windows), len(trace.marks)) == (len(windows), len(marks))
    assert len(trace.devices) == len({name for name, *_ in readings})
    assert {series.device for series in trace.series} == {device.name for device in trace.devices}
    if not trace.n_skipped:
        _check_values(trace, readings)


def _check_values(trace: Trace, readings: list[tuple[str, Channel, int, float]]) -> None:
    """Every possible value stands in the trace; every other one is missing, and impossible ones are told."""
    n_known = n_impossible = 0
    for _, channel, _, value in readings:
        low, high = possible_range(channel)
        n_known += low <= value <= high
        n_impossible += value < low or value > high
    assert sum(int(np.isfinite(series.value).sum()) for series in trace.series) == n_known
    told = [finding.count for finding in trace.findings if finding.code == "values-impossible"]
    assert told == ([n_impossible] if n_impossible else [])


@settings(deadline=None)
@given(OPTIONS, st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20))
def test_relative_times_keep_every_step_and_begin_at_0(options: ReadOptions, numbers: list[int]) -> None:
    recording = _start(Times.RELATIVE, options)
    for place, number in enumerate(numbers):
        recording.column(f"gpu{place % 3}", Channel.POWER_W, Scope.GPU).add(number, math.nan)
        recording.mark("m", number, line=place)
    trace = recording.trace()
    assert [mark.utc_ns for mark in trace.marks] == [number - min(numbers) for number in numbers]
    for place, series in enumerate(trace.series):
        assert series.utc_ns.tolist() == [number - min(numbers) for number in numbers[place::3]]
        assert series.timing is Timing.RELATIVE


@settings(deadline=None)
@given(st.sampled_from(Times), OPTIONS, st.lists(st.tuples(ANY_TIMES, st.floats()), max_size=20))
def test_readings_one_by_one_and_together_are_the_same(
    times: Times, options: ReadOptions, readings: list[tuple[int, float]]
) -> None:
    singly, together = _start(times, options), _start(times, options)
    traces: list[Trace | None] = []
    for recording, is_single in ((singly, True), (together, False)):
        column = recording.column("gpu0", Channel.POWER_W, Scope.GPU)
        try:
            if is_single:
                for time, value in readings:
                    column.add(time, value)
            else:
                column.extend([time for time, _ in readings], [value for _, value in readings])
            traces.append(recording.trace())
        except DecodeError:
            traces.append(None)
    first, second = traces
    assert (first is None) is (second is None)
    if first is not None and second is not None:
        assert first.findings == second.findings
        assert first.series[0].utc_ns.tolist() == second.series[0].utc_ns.tolist()
        assert np.array_equal(first.series[0].value, second.series[0].value, equal_nan=True)
