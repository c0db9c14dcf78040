"""Samples of a wall meter: the total, its channels only without it, and marks where their readings are."""

import math
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import spl_log
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.sources.spl_log import FORMATS, meter_name

NINE = 1_747_213_200 * 10**9  # 2025-05-14 09:00:00


def _line(
    second: float = 0.0, watts: object = "410.5", *, mark: str | None = "run_testing", channels: str = ""
) -> str:
    marked = "" if mark is None else f",Mark,{mark}"
    stamp = f"05-14-2025 09:00:{second:06.3f}"
    return f"Time,{stamp},Watts,{watts},Volts,230.1,Amps,1.8,PF,0.99{marked}{channels}"


def _channels(*watts: float) -> str:
    return "".join(f",Ch{n},Watts,{value},Volts,230.1" for n, value in enumerate(watts, start=1))


def _decode(
    *lines: str, options: ReadOptions | None = None, end: str = "\r\n", device: str = "node_1"
) -> Trace:
    data = "".join(line + end for line in lines).encode()
    source = Source(blocks=[data], where="spl.txt", device=device, options=options or ReadOptions())
    return FORMATS[0].decode(source)


def test_each_sample_is_a_reading_of_the_node_at_the_wall() -> None:
    trace = _decode(_line(0.25, 410.5), _line(1.251, "411"), _line(2, 0))
    (series,) = trace.series
    assert (series.device, series.channel, series.scope, series.part) == (
        "node_1",
        Channel.POWER_W,
        Scope.NODE_AC,
        "",
    )
    assert series.utc_ns.tolist() == [NINE + 250_000_000, NINE + 1_251_000_000, NINE + 2 * 10**9]
    assert series.value.tolist() == [410.5, 411.0, 0.0]
    assert (trace.n_skipped, series.averaged_s) == (0, 0.0)
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_the_users_zone_places_readings_and_marks() -> None:
    options = ReadOptions(zone=ZoneInfo("Europe/Berlin"))
    trace = _decode(_line(0), _line(1), options=options)
    (series,) = trace.series
    assert series.utc_ns.tolist() == [NINE - 7_200 * 10**9, NINE - 7_199 * 10**9]
    assert [mark.utc_ns for mark in trace.marks] == series.utc_ns.tolist()
    assert trace.findings == ()


def test_a_mark_stands_at_its_first_and_last_reading() -> None:
    trace = _decode(
        _line(0, mark="ranging"),
        _line(1, mark="ranging"),
        _line(2, mark="testing"),
        _line(3, mark="testing"),
        _line(4, mark="testing"),
    )
    assert [(mark.name, mark.utc_ns - NINE, mark.where) for mark in trace.marks] == [
        ("ranging", 0, "spl.txt:1"),
        ("ranging", 10**9, "spl.txt:2"),
        ("testing", 2 * 10**9, "spl.txt:3"),
        ("testing", 4 * 10**9, "spl.txt:5"),
    ]


def test_samples_without_a_mark_have_none() -> None:
    trace = _decode(_line(0, mark=None), _line(1, 9, mark=None), _line(2, 10, mark=None))
    assert trace.marks == ()
    assert trace.series[0].value.tolist() == [410.5, 9.0, 10.0]


def test_channels_lie_inside_the_total_and_are_left_out() -> None:
    trace = _decode(_line(0, 400, channels=_channels(190, 210)), _line(1, 401, channels=_channels(191, 210)))
    (series,) = trace.series
    assert (series.part, series.value.tolist()) == ("", [400.0, 401.0])


def test_channels_are_kept_where_the_meter_gives_no_total() -> None:
    trace = _decode(*(_line(n, "-1.000000", channels=_channels(190 + n, 210)) for n in range(2)))
    total, first, second = trace.series
    assert all(map(math.isnan, total.value))
    assert [(one.part, one.scope, one.value.tolist()) for one in (first, second)] == [
        ("ch1", Scope.NODE_AC, [190.0, 191.0]),
        ("ch2", Scope.NODE_AC, [210.0, 210.0]),
    ]
    assert first.utc_ns.tolist() == total.utc_ns.tolist()


def test_one_total_is_enough_to_leave_channels_out() -> None:
    trace = _decode(
        _line(0, -1, channels=_channels(190)),
        _line(1, 400, channels=_channels(190)),
        _line(2, -1, channels=_channels(1)),
    )
    (series,) = trace.series
    assert series.value[1] == 400.0
    assert math.isnan(series.value[0])
    assert math.isnan(series.value[2])


def test_not_measured_is_missing_and_no_skip() -> None:
    trace = _decode(_line(0, 5), _line(1, "-1.000000"), _line(2, ""), _line(3, "NaN"))
    assert trace.series[0].value.tolist()[0] == 5
    assert all(map(math.isnan, trace.series[0].value[1:]))
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        "Time,05-14-2025 09:00:09.250,Wat",
        "Time,05-14-2025 09:00:09.250,Watts,4",
        "Time,05-14-2025 09:00:09.250,Watts,400,Volts,2",
        "Time,05-14-2025 09:00:09.250,Watts,400,Volts,230,Amps",
        "Time,05-14-2025 25:00:09.250,Watts,400,Volts,230,Amps,1.8,PF,0.99,Mark,run_testing",
        "Time,05-14-2025 09:00:09,Watts,400,Volts,230,Amps,1.8,PF,0.99,Mark,run_testing",
        "Time,02-30-2025 09:00:09.250,Watts,400,Volts,230,Amps,1.8,PF,0.99,Mark,run_testing",
        "Time,05-14-2025 09:00:09.250,Watts,4o0,Volts,230,Amps,1.8,PF,0.99,Mark,run_testing",
        "Time,05-14-2025 09:00:09.250,Watts,1e999,Volts,230,Amps,1.8,PF,0.99,Mark,run_testing",
        "Time,05-14-2025 09:00:09.250,Temperature,23.5",
        "05-14-2025 09:00:09.250,Watts,400",
        "Hello, PTDaemon here!",
    ],
)
def test_a_torn_or_foreign_line_is_skipped_with_its_place(line: str) -> None:
    trace = _decode(_line(0, 5), line, _line(2, 7))
    assert trace.series[0].value.tolist() == [5.0, 7.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "spl.txt:2")
    assert trace.skipped[0].found.startswith(line[:20])


def test_a_torn_end_is_skipped_and_a_torn_mark_is_none() -> None:
    whole = [_line(0, 5), _line(1, 6)]
    assert _decode(*whole, _line(2, 7)[:-20], end="\n").n_skipped == 1
    cut = _decode(*whole, _line(2, 7)[:-4], end="\n")
    assert cut.series[0].value.tolist() == [5.0, 6.0, 7.0]
    assert {mark.name for mark in cut.marks} == {"run_testing"}


def test_a_meter_that_loses_its_channels_goes_on() -> None:
    trace = _decode(_line(0, 400, channels=_channels(400)), _line(1, 401), _line(2, 402))
    assert trace.series[0].value.tolist() == [400.0, 401.0, 402.0]
    assert trace.n_skipped == 0


def test_a_meter_that_gains_channels_goes_on() -> None:
    trace = _decode(
        _line(0, 400), _line(1, 401, channels=_channels(400)), _line(2, 402, channels=_channels(1))
    )
    assert (trace.series[0].value.tolist(), trace.n_skipped) == ([400.0, 401.0, 402.0], 0)


def test_blank_lines_are_nothing() -> None:
    trace = _decode("", _line(0), "   ", _line(1), "")
    assert (len(trace.series[0]), trace.n_skipped) == (2, 0)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], "nothing"),
        (["", "  "], "nothing"),
        (["Time,05-14-2025 09:00:09.250,Temperature,23.5"], "Time,05-14-2025 09:00:09.250,Temperature,23.5"),
        (["timestamp,power"], "timestamp,power"),
        ([_line(0, "x")], _line(0, "x")[:80] + "..."),
        (
            ["Time,05-14-2025 09:00:00.000,Watts,5,Ch1,Volts,3"],
            "Time,05-14-2025 09:00:00.000,Watts,5,Ch1,Volts,3",
        ),
    ],
)
def test_a_log_without_a_sample_is_refused(lines: list[str], found: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "spl.txt:1"
    assert "Watts" in caught.value.expected
    assert caught.value.found == found


def test_more_channels_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spl_log, "MOST_READINGS", 3)
    with pytest.raises(DecodeError, match="too many"):
        _decode(*(_line(n, -1, channels=_channels(1, 2)) for n in range(2)))


@pytest.mark.parametrize(
    ("device", "name"),
    [("spl", "ptdaemon"), ("ptd_logs", "ptdaemon"), ("SPL", "ptdaemon"), ("node_1", "node_1")],
)
def test_the_daemons_own_file_names_are_no_names_of_a_meter(device: str, name: str) -> None:
    assert meter_name(Source(blocks=[], where="x", device=device)) == name


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (_line(0).encode(), True),
        (b"\xef\xbb\xbf" + _line(0).encode(), True),
        (_line(0).encode("utf-16"), True),
        (b"\r\n" + _line(0).encode(), True),
        (b"Time,05-14-2025 09:00:09.250,Temperature,23.5", False),
        (b"time,watts\n0,5\n", False),
        (b"05-14-2025 09:00:00.000: Hello\n" + _line(0).encode(), False),
        (b"", False),
        (b"\x00" * 100, False),
    ],
)
def test_it_is_known_by_its_first_line(head: bytes, is_it: bool) -> None:
    assert FORMATS[0].is_it(head, "spl.txt") is is_it
