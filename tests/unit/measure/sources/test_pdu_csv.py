"""Exports of power distribution units: outlets are devices, inlets are not added to them."""

import math
from zoneinfo import ZoneInfo

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.pdu_csv import FORMATS
from flopwitness.measure.sources.source import ReadOptions, Source

NINE = 1_747_213_200 * 10**9
MINUTE = 60 * 10**9


def _decode(text: str, options: ReadOptions | None = None) -> Trace:
    source = Source(blocks=[text.encode()], where="pdu.csv", device="rack", options=options or ReadOptions())
    return FORMATS[0].decode(source)


def _figures(trace: Trace) -> list[tuple[str, Channel, Scope, str, list[float]]]:
    return [(s.device, s.channel, s.scope, s.part, s.value.tolist()) for s in trace.series]


def test_outlets_in_columns_are_devices_and_the_inlet_is_apart() -> None:
    trace = _decode(
        "Time;Outlet 1 Active Power (W);Outlet 2 Active Power (W);Inlet I1 Active Power (kW)\n"
        "2025-05-14 09:00:00;410,5;0;0,52\n"
        "2025-05-14 09:01:00;411,5;0;0,53\n"
    )
    assert _figures(trace) == [
        ("rack/outlet-1", Channel.POWER_W, Scope.NODE_AC, "", [410.5, 411.5]),
        ("rack/outlet-2", Channel.POWER_W, Scope.NODE_AC, "", [0.0, 0.0]),
        ("rack", Channel.POWER_W, Scope.UNKNOWN, "inlet-i1", [520.0, 530.0]),
    ]
    assert trace.series[0].utc_ns.tolist() == [NINE, NINE + MINUTE]
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_outlets_in_rows_are_devices() -> None:
    trace = _decode(
        "Timestamp,PDU,Outlet,Active Power (W),Active Energy (Wh),Apparent Power (VA)\n"
        "2025-05-14T09:00:00Z,p1,3,330,1000,340\n"
        "2025-05-14T09:00:00Z,p2,3,331,1001,340\n"
        "2025-05-14T09:01:00Z,p1,3,332,1002,340\n"
    )
    assert _figures(trace) == [
        ("p1/outlet-3", Channel.POWER_W, Scope.NODE_AC, "", [330.0, 332.0]),
        ("p1/outlet-3", Channel.ENERGY_COUNTER_J, Scope.NODE_AC, "", [3.6e6, 3.6072e6]),
        ("p2/outlet-3", Channel.POWER_W, Scope.NODE_AC, "", [331.0]),
        ("p2/outlet-3", Channel.ENERGY_COUNTER_J, Scope.NODE_AC, "", [3.6036e6]),
    ]
    assert trace.findings == ()


def test_a_units_log_with_lines_above_its_header_is_read() -> None:
    trace = _decode(
        "Name\tRack PDU\nContact\tnobody\n\nDate\tTime\tPwr.kW\tPwr Max.kW\tEnergy.kWh\tPh I.A\n"
        "05/14/2025\t09:00:00\t3.2\t9.9\t100.1\t14\n05/14/2025\t09:10:00\t3.4\t9.9\t100.7\t14\n"
    )
    assert _figures(trace)[0] == ("rack", Channel.POWER_W, Scope.UNKNOWN, "", [3_200.0, 3_400.0])
    assert trace.series[1].channel is Channel.ENERGY_COUNTER_J
    assert trace.series[0].utc_ns.tolist() == [NINE, NINE + 10 * MINUTE]
    assert trace.n_skipped == 0


def test_the_user_says_what_a_unit_feeds() -> None:
    text = "Time,PDU Power (W)\n2025-05-14 09:00:00,5\n"
    (series,) = _decode(text, ReadOptions(scope=Scope.NODE_AC, zone=ZoneInfo("Europe/Berlin"))).series
    assert (series.scope, series.utc_ns.tolist()) == (Scope.NODE_AC, [NINE - 120 * MINUTE])


def test_averages_cover_the_time_since_the_row_before() -> None:
    text = "Time (UTC),Outlet 1 Average Power (W)\n2025-05-14 09:00:00,5\n2025-05-14 09:15:00,6\n"
    (series,) = _decode(text).series
    assert (series.channel, series.averaged_s) == (Channel.POWER_AVERAGE_W, 900.0)
    assert series.utc_ns.tolist() == [NINE, NINE + 15 * MINUTE]


def test_quoted_fields_may_hold_the_delimiter() -> None:
    text = 'Time,"Inlet 1, Active Power (W)"\n"2025-05-14 09:00:00","330.5"\n'
    (series,) = _decode(text).series
    assert (series.part, series.value.tolist()) == ("inlet-1", [330.5])


def test_a_repeated_header_and_blank_lines_are_nothing() -> None:
    text = "Time,Outlet 1 (W)\n2025-05-14 09:00:00,5\n\nTime,Outlet 1 (W)\n2025-05-14 09:01:00,6\n"
    trace = _decode(text)
    assert (trace.series[0].value.tolist(), trace.n_skipped) == ([5.0, 6.0], 0)


@pytest.mark.parametrize("value", ["", "-", "--", "N/A", "n/a"])
def test_a_marker_is_missing(value: str) -> None:
    trace = _decode(f"Time,Outlet 1 (W)\n2025-05-14 09:00:00,{value}\n2025-05-14 09:01:00,6\n")
    assert math.isnan(trace.series[0].value[0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "row",
    [
        "2025-05-14 09:01:00",
        "2025-05-14 09:01:00,5,6",
        "soon,5",
        ",5",
        "2025-05-14 09:01:00,high",
        "2025-05-14 09:01:00,1e999",
        '2025-05-14 09:01:00,"5',
        "2025-05-14 09:0",
    ],
)
def test_a_row_that_cannot_be_read_is_skipped_with_its_place(row: str) -> None:
    trace = _decode(f"Time,Outlet 1 (W)\n2025-05-14 09:00:00,5\n{row}\n2025-05-14 09:02:00,7\n")
    assert trace.series[0].value.tolist() == [5.0, 7.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "pdu.csv:3")


@pytest.mark.parametrize(
    ("dates", "day", "is_told"),
    [
        (("03/04/2025", "03/14/2025"), "2025-03-04", False),
        (("03/04/2025", "14/04/2025"), "2025-04-03", False),
        (("03/04/2025", "04/04/2025"), "2025-03-04", True),
        (("2025-03-04", "2025-03-05"), "2025-03-04", False),
        (("04.03.2025", "05.03.2025"), "2025-03-04", False),
    ],
)
def test_the_order_of_dates_is_what_the_file_shows(dates: tuple[str, str], day: str, is_told: bool) -> None:
    rows = "".join(f"{date} 09:00:00,5\n" for date in dates)
    trace = _decode("Time,Outlet 1 (W)\n" + rows)
    (expected,) = _decode(f"Time,Outlet 1 (W)\n{day} 09:00:00,5\n").series
    assert trace.series[0].utc_ns[0] == expected.utc_ns[0]
    assert len(trace.series[0]) == 2
    assert ("dates-ambiguous" in {finding.code for finding in trace.findings}) is is_told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "time,power_w\n0,5\n",
        "Time,Outlet 1 (W)\n",
        "Time,Outlet 1 (W)\nsoon,5\n",
        "Outlet,Power (W)\n1,5\n",
        "x" * 100_000,
    ],
)
def test_a_file_without_a_header_or_a_row_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "pdu.csv:1"


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("Time,Outlet 1 Power (W)\n", True),
        ("a\nb\nDate\tTime\tPwr.kW\r\n", True),
        ("Time,Power (W)\n", False),
        ("timestamp, power.draw [W]\n", False),
        ("Outlet,Power (W)\n", False),
        ("\n" * 60 + "Time,Outlet 1 Power (W)\n", False),
        ("", False),
    ],
)
def test_it_is_known_by_its_header(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
