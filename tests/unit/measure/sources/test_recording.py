"""What a recording keeps, names, leaves out and tells; its times have tests of their own."""

import math
from array import array
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Scope, Timing, Trace
from flopwitness.measure.sources import recording as module
from flopwitness.measure.sources.recording import Column, Recording, Times
from flopwitness.measure.sources.source import ReadOptions, Source

BERLIN = ZoneInfo("Europe/Berlin")


def _record(times: Times = Times.UTC, *, options: ReadOptions | None = None) -> Recording:
    source = Source(blocks=(), where="a/log.csv", device="log", options=options or ReadOptions())
    return Recording(source, times=times)


def _power(recording: Recording, device: str = "gpu0") -> Column:
    return recording.column(device, Channel.POWER_W, Scope.GPU)


def _codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.findings]


# Columns


def test_readings_come_back_in_the_order_of_the_file() -> None:
    recording = _record()
    column = recording.column("gpu0", Channel.POWER_W, Scope.GPU, part="rail", averaged_s=1.0)
    column.add(30, 1.5)
    column.add(10, math.nan)
    column.extend([20, 20], [2.5, 0.0])
    column.extend(np.zeros(0, dtype=np.int64), np.zeros(0))
    (series,) = recording.trace().series
    assert (series.device, series.channel, series.scope, series.part) == (
        "gpu0",
        Channel.POWER_W,
        Scope.GPU,
        "rail",
    )
    assert series.utc_ns.tolist() == [30, 10, 20, 20]
    assert series.value.tolist() == pytest.approx([1.5, math.nan, 2.5, 0.0], nan_ok=True)
    assert series.utc_ns.dtype == np.int64
    assert series.value.dtype == np.float64
    assert (series.timing, series.averaged_s, series.counter_range_j) == (Timing.DATED, 1.0, None)
    assert not series.is_estimate


def test_a_column_is_asked_for_by_all_of_its_names() -> None:
    recording = _record()
    first = recording.column("gpu0", Channel.POWER_W, Scope.GPU)
    assert recording.column("gpu0", Channel.POWER_W, Scope.GPU) is first
    others = [
        recording.column("gpu1", Channel.POWER_W, Scope.GPU),
        recording.column("gpu0", Channel.POWER_AVERAGE_W, Scope.GPU),
        recording.column("gpu0", Channel.POWER_W, Scope.MODULE),
        recording.column("gpu0", Channel.POWER_W, Scope.GPU, part="x"),
    ]
    assert len({id(column) for column in (first, *others)}) == 5
    assert len(recording.trace().series) == 5


def test_a_doubt_about_a_column_that_was_raised_once_stays() -> None:
    recording = _record()
    for averaged_s, range_j, is_estimate in ((0.0, None, False), (2.0, 4e9, True), (1.0, None, False)):
        recording.column(
            "gpu0",
            Channel.ENERGY_COUNTER_J,
            Scope.GPU,
            averaged_s=averaged_s,
            counter_range_j=range_j,
            is_estimate=is_estimate,
        ).add(1, 1.0)
    (series,) = recording.trace().series
    assert (series.averaged_s, series.counter_range_j, series.is_estimate) == (2.0, 4e9, True)
    assert len(series) == 3


def test_a_trace_is_a_copy() -> None:
    recording = _record()
    column = _power(recording)
    column.add(1, -5.0)
    first = recording.trace()
    column.add(2, 7.0)
    second = recording.trace()
    assert [len(trace.series[0]) for trace in (first, second)] == [1, 2]
    assert _codes(first) == _codes(second) == ["values-impossible"]


@pytest.mark.parametrize("time", [2**63, -(2**63) - 1, 10**30, -(10**400)])
def test_a_time_beyond_64_bits_is_refused_with_its_file(time: int) -> None:
    column = _power(_record())
    with pytest.raises(DecodeError, match="a time that no clock shows") as caught:
        column.add(time, 1.0)
    assert caught.value.where == "a/log.csv"
    with pytest.raises(DecodeError):
        column.extend([1, time], [1.0, 1.0])
    assert (len(column.times), len(column.values)) == (0, 0)


@pytest.mark.parametrize("times", [[math.nan], [math.inf], [1e30], [2**63, -1]])
def test_times_that_are_no_whole_numbers_are_refused(times: list[float]) -> None:
    with pytest.raises(DecodeError):
        Column().extend(times, [1.0] * len(times))


@pytest.mark.parametrize(
    "times",
    [
        array("q", [5, 6]),
        [5, 6],
        np.array([5, 6], dtype=np.uint64),
        np.array([5, 6], dtype=np.int32),
        np.array([[5, 0], [6, 0]], dtype=np.int64)[:, 0],
    ],
)
def test_times_of_every_kind_of_whole_number_are_taken(times: Sequence[int]) -> None:
    column = Column()
    column.extend(times, [1.0, 2.0])
    assert column.times.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("times", "values"),
    [([1, 2], [1.0]), ([1], [1.0, 2.0]), ([], [1.0]), ([[1, 2]], [[1.0, 2.0]]), ([1, 2], 5.0)],
)
def test_times_and_values_that_do_not_belong_together_are_a_readers_mistake(
    times: list[int], values: list[float]
) -> None:
    column = Column()
    with pytest.raises(ValueError, match="differ in shape"):
        column.extend(times, values)
    assert (len(column.times), len(column.values)) == (0, 0)


def test_a_value_beyond_a_double_is_left_out_and_told() -> None:
    recording = _record()
    _power(recording).add(1, 10**400)
    trace = recording.trace()
    assert math.isnan(trace.series[0].value[0])
    assert trace.findings[0].count == 1


def test_more_series_than_a_machine_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 3)
    recording = _record()
    for number in (0, 1, 2, 0):
        _power(recording, f"gpu{number}")
    with pytest.raises(DecodeError, match="too many series") as caught:
        _power(recording, "gpu3")
    assert (caught.value.where, caught.value.expected) == ("a/log.csv", "at most 3")


def test_more_readings_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READINGS", 4)
    recording = _record()
    for number in range(4):
        _power(recording, f"gpu{number % 2}").add(number, math.nan)
    recording.check_size()
    assert recording.n_readings == 4
    _power(recording).add(4, 1.0)
    with pytest.raises(DecodeError, match="too many readings"):
        recording.check_size()


@pytest.mark.parametrize(
    ("own", "stated", "expected"),
    [
        (Scope.UNKNOWN, Scope.NODE_AC, Scope.NODE_AC),
        (Scope.UNKNOWN, None, Scope.UNKNOWN),
        (Scope.GPU, Scope.NODE_AC, Scope.GPU),
        (Scope.RAIL, Scope.GPU, Scope.RAIL),
    ],
)
def test_the_users_word_on_the_scope_counts_where_the_log_has_none(
    own: Scope, stated: Scope | None, expected: Scope
) -> None:
    recording = _record(options=ReadOptions(scope=stated))
    recording.column("gpu0", Channel.POWER_W, own).add(1, 1.0)
    assert recording.trace().series[0].scope is expected


# Names


def test_long_names_stay_apart() -> None:
    """Devices are named after files, whose names may be longer than what is shown, and differ at the end."""
    recording = _record()
    names = ["n" * 250 + f"/gpu{number}" for number in range(8)]
    for number, name in enumerate(names):
        recording.column(name, Channel.POWER_W, Scope.GPU, part="p" * 300 + name).add(number, 1.0)
        recording.describe(Device(name=name, chip_name=f"chip {number}"))
    trace = recording.trace()
    assert [len(series) for series in trace.series] == [1] * 8
    assert len({series.device for series in trace.series}) == 8
    assert [series.device for series in trace.series] == [device.name for device in trace.devices]
    assert all(len(series.device) <= 200 and len(series.part) <= 200 for series in trace.series)


def test_a_name_of_the_longest_length_is_kept() -> None:
    recording = _record()
    _power(recording, "n" * 200).add(1, 1.0)
    assert recording.trace().series[0].device == "n" * 200


@pytest.mark.parametrize("name", ["", "\ud800" * 300, "\x1b[2J", "é" * 300])
def test_names_of_every_kind_are_taken(name: str) -> None:
    recording = _record()
    _power(recording, name).add(1, 1.0)
    recording.describe(Device(name=name))
    trace = recording.trace()
    assert trace.series[0].device == trace.devices[0].name


# Devices, findings, skips


def test_words_on_a_device_add_up_and_the_first_counts() -> None:
    recording = _record()
    recording.describe(Device(name="gpu0", chip_name="H100"))
    recording.describe(Device(name="gpu0", chip_name="A100", host="h", is_shared=True))
    recording.describe(Device(name="gpu1", driver="d" * 10_000))
    first, second = recording.trace().devices
    assert first == Device(name="gpu0", chip_name="H100", host="h", is_shared=True)
    assert len(second.driver) <= 200


def test_more_devices_than_a_machine_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 2)
    recording = _record()
    for name in ("a", "b", "a"):
        recording.describe(Device(name=name))
    with pytest.raises(DecodeError, match="too many devices"):
        recording.describe(Device(name="c"))


def test_what_a_reader_tells_stands_first_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FINDINGS", 3)
    recording = _record()
    for number in range(5):
        recording.tell(Finding(code="a", severity=Severity.NOTE, message=f"{number}", count=10))
    recording.tell(Finding(code="b", severity=Severity.NOTE, message="b"))
    _power(recording).add(1, -1.0)
    found = [(finding.code, finding.message, finding.count) for finding in recording.trace().findings]
    assert found[:4] == [("a", "0", 30), ("a", "1", 10), ("a", "2", 10), ("b", "b", 1)]
    assert [code for code, _, _ in found[4:]] == ["values-impossible"]


def test_lines_that_cannot_be_read_are_counted_located_and_quoted() -> None:
    recording = _record()
    for line in range(1, 31):
        recording.skip(line, expected="a row", found=b"\x1b[2J" + b"x" * 500)
    trace = recording.trace()
    assert (trace.n_skipped, len(trace.skipped)) == (30, 20)
    assert [skipped.where for skipped in trace.skipped] == [f"a/log.csv:{line}" for line in range(1, 21)]
    assert trace.skipped[0].expected == "a row"
    assert trace.skipped[0].found.startswith("\\x1b[2Jxxx")
    assert len(trace.skipped[0].found) < 100


def test_an_empty_recording_is_an_empty_trace() -> None:
    for times in Times:
        assert _record(times, options=ReadOptions(zone=BERLIN)).trace() == Trace()


def test_a_column_without_a_reading_is_a_series_without_one() -> None:
    for times in Times:
        recording = _record(times, options=ReadOptions(zone=BERLIN))
        _power(recording)
        trace = recording.trace()
        assert [len(series) for series in trace.series] == [0]
        assert trace.findings == ()


# Values


def test_impossible_values_are_missing_at_their_time_and_counted_by_channel() -> None:
    recording = _record()
    _power(recording).extend([1, 2, 3, 4], [400.0, -1.0, math.nan, math.inf])
    _power(recording, "gpu1").extend([1, 2], [140_737_488_355_328.0, 0.0])
    recording.column("gpu0", Channel.UTILISATION_PCT, Scope.GPU).extend([1, 2], [100.0, 100.5])
    trace = recording.trace()
    power, second, use = (series.value.tolist() for series in trace.series)
    assert power == pytest.approx([400.0, math.nan, math.nan, math.nan], nan_ok=True)
    assert second == pytest.approx([math.nan, 0.0], nan_ok=True)
    assert use == pytest.approx([100.0, math.nan], nan_ok=True)
    (finding,) = trace.findings
    assert (finding.code, finding.severity, finding.count, finding.where) == (
        "values-impossible",
        Severity.WARNING,
        4,
        "a/log.csv",
    )
    assert "3 of power_w, 1 of utilisation_pct" in finding.message
    assert [len(series) for series in trace.series] == [4, 2, 2]


def test_missing_values_and_zero_are_no_impossible_ones() -> None:
    recording = _record()
    _power(recording).extend([1, 2, 3], [math.nan, 0.0, -0.0])
    assert recording.trace().findings == ()
