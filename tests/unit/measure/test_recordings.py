"""A second log of a device adds nothing, hides nothing, and never makes a run look smaller."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.recordings import settle_recordings
from flopwitness.measure.samples import Channel, Series

MakeSeries = Callable[..., Series]


def _settle(*items: Series) -> tuple[list[Series], list[tuple[str, str]]]:
    findings = list[Finding]()
    settled = settle_recordings(items, findings)
    return settled, [(finding.code, str(finding.severity)) for finding in findings]


@pytest.mark.parametrize("low_first", [True, False])
def test_a_low_instant_log_does_not_replace_an_averaged_one(
    make_series: MakeSeries, *, low_first: bool
) -> None:
    average = make_series([600] * 60, channel=Channel.POWER_AVERAGE_W)
    low = make_series([100] * 60)
    items = (low, average) if low_first else (average, low)
    assert _settle(*items) == ([average], [("device-recorded-twice", "warning")])


@pytest.mark.parametrize("n_readings", [1, 2, 10])
def test_a_log_of_a_part_of_the_time_hides_nothing(make_series: MakeSeries, n_readings: int) -> None:
    whole = make_series([600] * 60, channel=Channel.POWER_AVERAGE_W)
    part = make_series([600] * n_readings, time_s=range(20, 20 + n_readings))
    assert _settle(part, whole) == ([whole], [("device-recorded-twice", "warning")])


def test_instant_goes_before_average_where_both_agree(make_series: MakeSeries) -> None:
    instant, average = make_series([600, 620]), make_series([605, 616], channel=Channel.POWER_AVERAGE_W)
    assert _settle(average, instant) == ([instant], [])


def test_two_tools_that_agree_are_a_note(make_series: MakeSeries) -> None:
    one, other = make_series([600] * 60), make_series([590] * 30, time_s=range(0, 60, 2))
    assert _settle(one, other)[1] == [("device-recorded-twice", "note")]


def test_what_follows_each_other_is_one_line(make_series: MakeSeries) -> None:
    first = replace(make_series([600] * 9), averaged_s=1.0)
    second = make_series([500] * 9, time_s=range(20, 29), channel=Channel.POWER_AVERAGE_W)
    (line,), findings = _settle(second, first)
    assert findings == []
    assert len(line) == 18
    assert (line.channel, line.averaged_s) == (Channel.POWER_AVERAGE_W, 1.0)
    assert line.value[0] == 600


def test_one_recording_stays_as_it_is(make_series: MakeSeries) -> None:
    only = make_series([600] * 9)
    assert _settle(only) == ([only], [])


def test_a_new_file_that_repeats_the_last_minute_goes_on(make_series: MakeSeries) -> None:
    first = make_series([600] * 300)
    second = make_series([600] * 300, time_s=range(240, 540))
    (line,), findings = _settle(second, first)
    assert findings == [("device-recorded-twice", "note")]
    assert len(line) == 540
    assert bool((line.utc_ns[1:] > line.utc_ns[:-1]).all())


def test_recordings_days_apart_are_one_device_with_a_gap(make_series: MakeSeries) -> None:
    first, second = make_series([600] * 9), make_series([600] * 9, time_s=range(90_000, 90_009))
    (line,), findings = _settle(first, second)
    assert (len(line), findings) == (18, [])
