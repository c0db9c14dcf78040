"""Readings held until it is known whether they have times."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources import held_readings
from flopwitness.measure.sources.clock_text import ClockStamp
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source

POWER = Figure("n", Channel.POWER_W, Scope.NODE)
MEAN = Figure("n", Channel.POWER_AVERAGE_W, Scope.NODE)
UTC, LOCAL, RELATIVE = Times.UTC, Times.LOCAL, Times.RELATIVE


def _at(second: int, times: Times = UTC) -> ClockStamp:
    return ClockStamp((1_700_000_000 + second) * 10**9, times)


def _trace(held: HeldReadings) -> Trace:
    recording = Recording(Source(blocks=[], where="log", device="n"), times=Times.COUNTED)
    held.fill(recording)
    return recording.trace()


def test_readings_without_times_are_numbered() -> None:
    held = HeldReadings("log")
    for line, value in enumerate((5.0, 6.0, 7.0), start=1):
        held.add(POWER, value, stamp=None, line=line)
    held.add(MEAN, 1.0, stamp=None, line=3, number=2)
    first, mean = _trace(held).series
    assert (first.timing, first.value.tolist()) == (Timing.COUNTED, [5.0, 6.0, 7.0])
    assert first.utc_ns.tolist() == [0, 10**9, 2 * 10**9]
    assert mean.utc_ns.tolist() == [2 * 10**9]


@pytest.mark.parametrize("times", [UTC, LOCAL])
def test_readings_with_times_have_them(times: Times) -> None:
    held = HeldReadings("log")
    held.add(POWER, 5.0, stamp=_at(0, times), line=1)
    held.add(POWER, math.nan, stamp=_at(1, times), line=2)
    trace = _trace(held)
    (series,) = trace.series
    assert series.utc_ns.tolist() == [_at(0).time_ns, _at(1).time_ns]
    assert ("zone-assumed" in {finding.code for finding in trace.findings}) == (times is LOCAL)


def test_relative_times_count_from_the_first() -> None:
    held = HeldReadings("log")
    held.add(POWER, 5.0, stamp=ClockStamp(500, RELATIVE), line=1)
    held.add(POWER, 6.0, stamp=ClockStamp(800, RELATIVE), line=2)
    (series,) = _trace(held).series
    assert (series.timing, series.utc_ns.tolist()) == (Timing.RELATIVE, [0, 300])


def test_a_reading_with_another_kind_of_time_is_skipped_with_its_line() -> None:
    held = HeldReadings("log")
    held.add(POWER, 4.0, stamp=None, line=1)
    held.add(POWER, 5.0, stamp=_at(0), line=2)
    held.add(POWER, 6.0, stamp=_at(1, LOCAL), line=3)
    held.add(MEAN, 6.0, stamp=_at(1, LOCAL), line=3)
    trace = _trace(held)
    assert [one.value.tolist() for one in trace.series] == [[5.0], []]
    assert [skipped.where for skipped in trace.skipped] == ["log:1", "log:3"]


def test_the_longest_averaging_time_is_kept() -> None:
    held = HeldReadings("log")
    for second, averaged_s in ((0, 5.0), (1, 30.0), (2, 5.0)):
        held.add(MEAN, 1.0, stamp=_at(second), line=1, averaged_s=averaged_s)
    assert _trace(held).series[0].averaged_s == 30.0


def test_a_mean_since_the_reading_before_is_one_over_the_longest_step() -> None:
    held = HeldReadings("log")
    for second in (0, 10, 70):
        held.add(MEAN, 1.0, stamp=_at(second), line=1, averaged_s=None)
    assert _trace(held).series[0].averaged_s == 60.0
    alone = HeldReadings("log")
    alone.add(MEAN, 1.0, stamp=_at(0), line=1, averaged_s=None)
    assert _trace(alone).series[0].averaged_s == 0.0


def test_numbered_means_are_over_the_usual_period() -> None:
    held = HeldReadings("log")
    held.add(MEAN, 1.0, stamp=None, line=1, averaged_s=None)
    assert _trace(held).series[0].averaged_s == 1.0


def test_figures_can_turn_out_to_be_others() -> None:
    held = HeldReadings("log")
    held.add(POWER, 5.0, stamp=None, line=1)
    recording = Recording(Source(blocks=[], where="log", device="n"), times=Times.COUNTED)
    counter = Figure("n", Channel.ENERGY_COUNTER_J, Scope.CPU, "package-0")
    held.fill(recording, names={POWER: counter}, ranges_j={POWER: 100.0})
    (series,) = recording.trace().series
    assert (series.channel, series.part, series.counter_range_j) == (counter.channel, "package-0", 100.0)
    assert held.figures == (POWER,)


def test_more_than_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_readings, "MOST_READINGS", 2)
    monkeypatch.setattr(held_readings, "MOST_SERIES", 2)
    held = HeldReadings("log")
    held.add(POWER, 1.0, stamp=None, line=1)
    held.add(POWER, 1.0, stamp=None, line=1)
    with pytest.raises(DecodeError, match="too many readings"):
        held.add(POWER, 1.0, stamp=None, line=1)
    many = HeldReadings("log")
    for part in "ab":
        many.add(Figure("n", Channel.POWER_W, Scope.NODE, part), 1.0, stamp=None, line=1)
    with pytest.raises(DecodeError, match="too many series"):
        many.add(POWER, 1.0, stamp=None, line=1)


def test_nothing_held_fills_nothing() -> None:
    assert _trace(HeldReadings("log")).series == ()
