"""Power over IPMI: three tools' words for one answer."""

import math
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.ipmi import FORMATS
from flopwitness.measure.sources.source import ReadOptions, Source

NINE = 1_747_213_200 * 10**9


def _answer(
    watts: object = 412,
    *,
    stamp: str | None = "Wed May 14 09:00:00 2025",
    average: object = 408,
    period: str = "00000005 Seconds.",
    state: str = "activated",
) -> str:
    stamped = "" if stamp is None else f"    IPMI timestamp:                           {stamp}\n"
    return (
        f"\n    Instantaneous power reading:                   {watts} Watts\n"
        "    Minimum during sampling period:                 96 Watts\n"
        "    Maximum during sampling period:                830 Watts\n"
        f"    Average power reading over sample period:      {average} Watts\n"
        f"{stamped}"
        f"    Sampling period:                          {period}\n"
        f"    Power reading state is:                   {state}\n\n"
    )


def _free(watts: object = 412, stamp: str = "05/14/2025 - 09:00:00", state: str = "Active") -> str:
    return (
        f"Current Power                        : {watts} Watts\n"
        "Minimum Power over sampling duration : 96 watts\n"
        "Maximum Power over sampling duration : 830 watts\n"
        "Average Power over sampling duration : 408 watts\n"
        f"Time Stamp                           : {stamp}\n"
        "Statistics reporting time period     : 60000 milliseconds\n"
        f"Power Measurement                    : {state}\n"
    )


UTIL = """ipmiutil dcmi ver 3.17
-- BMC version 1.10, IPMI version 2.0
DCMI Version:                   1.5
DCMI Power Management:          Supported
  Current Power:                   412 Watts
  Min Power over sample duration:  96 Watts
  Max Power over sample duration:  830 Watts
  Avg Power over sample duration:  408 Watts
  Timestamp:                       Wed May 14 09:00:00 2025

  Sampling period:                 1000 ms
  Power reading state is:          active
  Exception Action:  OEM defined
  Power Limit:       896 Watts (inactive)
"""


def _decode(text: str, options: ReadOptions | None = None) -> Trace:
    source = Source(
        blocks=[text.encode()], where="bmc.txt", device="node_1", options=options or ReadOptions()
    )
    return FORMATS[0].decode(source)


@pytest.mark.parametrize(("text", "averaged_s"), [(_answer(), 5.0), (_free(), 60.0), (UTIL, 1.0)])
def test_each_tools_answer_is_an_instant_reading_and_an_average(text: str, averaged_s: float) -> None:
    trace = _decode(text)
    instant, average = trace.series
    assert (instant.device, instant.channel, instant.scope) == ("node_1", Channel.POWER_W, Scope.NODE)
    assert (instant.value.tolist(), instant.utc_ns.tolist()) == ([412.0], [NINE])
    assert (average.channel, average.part) == (Channel.POWER_AVERAGE_W, "")
    assert (average.value.tolist(), average.averaged_s) == ([408.0], averaged_s)
    assert trace.n_skipped == 0
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_answers_follow_each_other() -> None:
    trace = _decode(
        _answer(400) + _answer(410, stamp="Wed May 14 09:00:05 2025") + _free(420, "05/14/2025 - 09:00:10")
    )
    assert trace.series[0].value.tolist() == [400.0, 410.0, 420.0]
    assert trace.series[0].utc_ns.tolist() == [NINE, NINE + 5 * 10**9, NINE + 10 * 10**9]


def test_the_controllers_clock_may_be_local() -> None:
    trace = _decode(_answer(), ReadOptions(zone=ZoneInfo("Europe/Berlin")))
    assert trace.series[0].utc_ns.tolist() == [NINE - 7_200 * 10**9]


@pytest.mark.parametrize(
    "stamp", ["2025-05-14 09:00:00 UTC", "05/14/2025 09:00:00 AM UTC", "Wed May 14 09:00:00 UTC 2025"]
)
def test_a_stamp_with_a_zone_needs_none(stamp: str) -> None:
    trace = _decode(_answer(stamp=stamp))
    assert trace.series[0].utc_ns.tolist() == [NINE]
    assert trace.findings == ()


def test_a_period_on_the_line_of_the_stamp_is_read() -> None:
    """Newer versions of ipmitool print no line end there."""
    text = _answer(stamp="05/14/2025 09:00:00 AM CEST    Sampling period:      00000007 Seconds.", period="")
    _, average = _decode(text).series
    assert (average.averaged_s, average.utc_ns.tolist()) == (7.0, [NINE])


@pytest.mark.parametrize(
    ("period", "averaged_s"),
    [
        ("00010000 Milliseconds", 10.0),
        ("15_sec ", 15.0),
        ("1_min ", 60.0),
        ("1_hour", 3_600.0),
        ("7 days", 604_800.0),
    ],
)
def test_periods_of_every_unit_are_read(period: str, averaged_s: float) -> None:
    assert _decode(_answer(period=period)).series[1].averaged_s == averaged_s


@pytest.mark.parametrize("period", ["", "00000000 Seconds.", "unknown"])
def test_an_average_over_an_untold_time_is_left_out(period: str) -> None:
    assert [one.channel for one in _decode(_answer(period=period)).series] == [Channel.POWER_W]


@pytest.mark.parametrize("text", [_answer(0, state="deactivated"), _free(0, state="Not Available")])
def test_an_answer_whose_measurement_is_off_is_missing_and_told(text: str) -> None:
    trace = _decode(_answer(400) + text)
    assert trace.series[0].value[0] == 400
    assert math.isnan(trace.series[0].value[1])
    assert math.isnan(trace.series[1].value[1])
    assert [(f.code, f.count) for f in trace.findings if f.code != "zone-assumed"] == [
        ("power-reading-off", 1)
    ]
    assert trace.n_skipped == 0


def test_a_marker_is_missing() -> None:
    trace = _decode(_answer(5) + _answer("N/A"))
    assert math.isnan(trace.series[0].value[1])
    assert trace.n_skipped == 0


def test_answers_without_times_are_numbered() -> None:
    trace = _decode(_answer(400, stamp=None) + _answer(410, stamp=None))
    assert trace.series[0].timing is Timing.COUNTED
    assert trace.series[0].utc_ns.tolist() == [0, 10**9]
    assert trace.series[1].utc_ns.tolist() == [0, 10**9]


@pytest.mark.parametrize("stamp", [None, "Unspecified", "Thu Jan  1 00:02:12 1970"])
def test_the_hosts_date_serves_where_the_controllers_clock_was_never_set(stamp: str | None) -> None:
    text = (
        "2025-05-14 09:00:00\n"
        + _answer(400, stamp=stamp)
        + "2025-05-14 09:00:10\n"
        + _answer(410, stamp=stamp)
    )
    trace = _decode(text)
    assert trace.series[0].utc_ns.tolist() == [NINE, NINE + 10 * 10**9]
    assert trace.n_skipped == 0


def test_lines_of_the_instant_power_alone_are_answers() -> None:
    text = "".join(
        f"1747213{200 + n}\n    Instantaneous power reading:   {400 + n} Watts\n" for n in range(3)
    )
    trace = _decode(text)
    assert trace.series[0].value.tolist() == [400.0, 401.0, 402.0]
    assert trace.series[0].utc_ns.tolist() == [NINE + n * 10**9 for n in range(3)]


def test_an_answer_without_a_time_among_others_is_skipped() -> None:
    trace = _decode(_answer(400) + _answer(410, stamp=None))
    assert trace.series[0].value.tolist() == [400.0]
    assert [skipped.where for skipped in trace.skipped] == ["bmc.txt:11"]


@pytest.mark.parametrize(
    "line",
    [
        "    Instantaneous power reading:   abc Watts",
        "    Instantaneous power reading:   412",
        "    Instantaneous power reading:   1e999 Watts",
        "    Average power reading over sample period:      x Watts",
        "    Power reading state is:        perhaps",
        "Error in open session",
        "x" * 2_000,
    ],
)
def test_a_line_that_cannot_be_read_is_skipped_with_its_place(line: str) -> None:
    trace = _decode(_answer(400).rstrip("\n") + "\n" + line)
    assert trace.series[0].value.tolist() == [400.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "bmc.txt:9")


@pytest.mark.parametrize(
    "text",
    ["", "Error in open session\n", "Instantaneous power reading: x Watts\n", "Sampling period: 5 Seconds"],
)
def test_a_log_without_an_answer_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "bmc.txt:1"
    assert "Watts" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (_answer(), True),
        (_free(), True),
        (UTIL, True),
        ("1747213200\n" + _answer(), True),
        ("Current Power : x\n", False),
        ("The Instantaneous power reading: line\n", False),
        ("Power Meter | 264 Watts | ok\n", False),
        ("", False),
    ],
)
def test_it_is_known_by_an_answer(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
