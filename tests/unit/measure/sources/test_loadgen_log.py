"""The load generator's log: a run where it marks power, what it declares, and no times of its own."""

import json
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration, RunWindow, Trace
from flopwitness.measure.sources.loadgen_log import FORMATS
from flopwitness.measure.sources.source import ReadOptions, Source

NINE = 1_747_213_200 * 10**9
BEGIN, END = "05-14-2025 09:00:01.000", "05-14-2025 09:00:07.500"
WINDOW = RunWindow(start_utc_ns=NINE + 10**9, stop_utc_ns=NINE + 7_500_000_000)


def _event(key: str, value: object, *, time_ms: object = 0.016321) -> str:
    return ":::MLLOG " + json.dumps(
        {"key": key, "value": value, "time_ms": time_ms, "metadata": {"line_no": 3}}
    )


def _decode(*lines: str, options: ReadOptions | None = None) -> Trace:
    source = Source(
        blocks=["\n".join(lines).encode()], where="d.txt", device="d", options=options or ReadOptions()
    )
    return FORMATS[0].decode(source)


def test_power_marks_are_the_run_by_the_wall_clock() -> None:
    trace = _decode(
        _event("loadgen_version", "4.0"),
        _event("power_begin", BEGIN, time_ms=713_066.414924),
        _event("power_end", END, time_ms=713_066.414924),
        _event("result_validity", "VALID"),
    )
    assert trace.windows == (
        RunWindow(start_utc_ns=WINDOW.start_utc_ns, stop_utc_ns=WINDOW.stop_utc_ns, status="VALID"),
    )
    assert (trace.series, trace.extent, trace.n_skipped) == ((), None, 0)
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_the_users_zone_places_the_run() -> None:
    options = ReadOptions(zone=ZoneInfo("Europe/Berlin"))
    (window,) = _decode(_event("power_begin", BEGIN), _event("power_end", END), options=options).windows
    assert window.start_utc_ns == WINDOW.start_utc_ns - 7_200 * 10**9


def test_a_run_that_never_ended_has_no_stop() -> None:
    trace = _decode(_event("power_begin", BEGIN), _event("power_begin", END), _event("power_end", END))
    assert [window.stop_utc_ns for window in trace.windows] == [None, WINDOW.stop_utc_ns]
    (window,) = _decode(_event("power_begin", BEGIN)).windows
    assert window == RunWindow(start_utc_ns=WINDOW.start_utc_ns, stop_utc_ns=None)


def test_a_log_without_power_marks_is_read_for_what_it_declares() -> None:
    trace = _decode(_event("loadgen_version", "4.0"), _event("sut_name", "EXAMPLE"), _event("sut_name", "B"))
    assert (trace.windows, trace.declaration) == ((), Declaration(platform="EXAMPLE"))
    assert trace.findings == ()
    assert _decode(_event("loadgen_version", "4.0")).declaration is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        True,
        "",
        "now",
        "2025-05-14T09:00:01",
        "05-14-2025 09:00:01",
        "99-99-2025 09:00:01.000",
        "9" * 99,
    ],
)
def test_a_mark_without_a_date_is_skipped_with_its_place(value: object) -> None:
    trace = _decode(_event("power_begin", value), _event("power_begin", BEGIN), _event("power_end", END))
    assert trace.windows == (WINDOW,)
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "d.txt:1")
    assert "local date" in trace.skipped[0].expected


def test_an_end_without_a_beginning_is_skipped() -> None:
    trace = _decode(_event("power_end", END))
    assert (trace.windows, trace.n_skipped) == ((), 1)


@pytest.mark.parametrize("line", [":::MLLOG {", ':::MLLOG {"key": 3}', ':::MLLOG {"key":"power_end"}'])
def test_a_torn_event_is_skipped(line: str) -> None:
    trace = _decode(_event("loadgen_version", "4.0"), line)
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "d.txt:2")


@pytest.mark.parametrize("lines", [[], ["talk"], [":::MLLOG {"]])
def test_a_log_without_an_event_is_refused(lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "d.txt:1"


@pytest.mark.parametrize(
    ("head", "is_it"),
    [
        (_event("loadgen_version", "4.0").encode(), True),
        (_event("power_begin", BEGIN).encode(), True),
        (b':::MLLOG {"key" : "loadgen_version"}', True),
        (_event("loadgen_version", "4.0").encode("utf-16"), True),
        (_event("run_start", None).encode(), False),
        (_event("power_measurement_start", None).encode(), False),
        (b'{"key": "loadgen_version"}', False),
        (b"", False),
    ],
)
def test_it_is_known_by_its_own_keys(head: bytes, is_it: bool) -> None:
    assert FORMATS[0].is_it(head, "x") is is_it
