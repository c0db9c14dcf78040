"""Columns of power distribution units: known by words, with their unit, or not at all."""

import pytest

from flopwitness.measure.samples import Channel
from flopwitness.measure.sources.pdu_columns import PduColumn, find_table


def _column(name: str) -> PduColumn | None:
    table = find_table(["Time", "PDU", name])
    return None if table is None else table.columns[0]


@pytest.mark.parametrize(
    ("name", "channel", "scale", "kind", "number"),
    [
        ("Active Power (W)", Channel.POWER_W, 1.0, "", ""),
        ("Power [kW]", Channel.POWER_W, 1e3, "", ""),
        ("Pwr.kW", Channel.POWER_W, 1e3, "", ""),
        ("active_power_w", Channel.POWER_W, 1.0, "", ""),
        ("Average Power (W)", Channel.POWER_AVERAGE_W, 1.0, "", ""),
        ("Energy.kWh", Channel.ENERGY_COUNTER_J, 3.6e6, "", ""),
        ("Active Energy (Wh)", Channel.ENERGY_COUNTER_J, 3.6e3, "", ""),
        ("Energy (MWh)", Channel.ENERGY_COUNTER_J, 3.6e9, "", ""),
        ("Outlet 12 Active Power (W)", Channel.POWER_W, 1.0, "outlet", "12"),
        ("outlet12_power_w", Channel.POWER_W, 1.0, "outlet", "12"),
        ("Receptacle A3: Power (Watts)", Channel.POWER_W, 1.0, "outlet", "a3"),
        ("Inlet I1 Active Power (W)", Channel.POWER_W, 1.0, "inlet", "i1"),
        ("Infeed A Power (W)", Channel.POWER_W, 1.0, "inlet", "a"),
        ("Inlet Power (W)", Channel.POWER_W, 1.0, "inlet", ""),
        ("Phase L1 Power (W)", Channel.POWER_W, 1.0, "phase", "l1"),
        ("Bank 2 (W)", Channel.POWER_W, 1.0, "bank", "2"),
        ("Outlet W", Channel.POWER_W, 1.0, "outlet", ""),
    ],
)
def test_a_column_is_known_by_its_words(
    name: str, channel: Channel, scale: float, kind: str, number: str
) -> None:
    assert _column(name) == PduColumn(index=2, channel=channel, scale=scale, kind=kind, number=number)


@pytest.mark.parametrize(
    "name",
    [
        "Active Power",
        "Power",
        "Max Power (W)",
        "Pwr Max.kW",
        "Peak Power (W)",
        "Apparent Power (VA)",
        "Apparent Power (W)",
        "Reactive Energy (kWh)",
        "Power Factor (W)",
        "Power Capacity (kW)",
        "Upper Threshold (W)",
        "RMS Current (A)",
        "Hum.%RH",
        "",
    ],
)
def test_what_is_no_reading_of_power_is_no_column(name: str) -> None:
    assert _column(name) is None


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (["Time", "PDU", "W"], (0,)),
        (["PDU", "W", "Timestamp"], (2,)),
        (["Time", "Date", "Outlet 1 (W)"], (1, 0)),
        (["Date/Time", "Outlet 1 (W)"], (0,)),
    ],
)
def test_a_time_is_one_column_or_two(names: list[str], times: tuple[int, ...]) -> None:
    table = find_table(names)
    assert table is not None
    assert table.times == times


def test_the_header_may_say_utc_and_name_units_and_outlets() -> None:
    table = find_table(["Time (UTC)", "Device Name", "Outlet Number", "Power (W)"])
    assert table is not None
    assert (table.is_utc, table.unit, table.places) == (True, 1, ((2, "outlet"),))


@pytest.mark.parametrize(
    "names",
    [
        ["timestamp", "power_w"],
        ["timestamp", "power.draw [W]"],
        ["Time", "Outlet", "Current (A)"],
        ["Outlet", "Power (W)"],
        ["timestamp", "gpu0_power_w", "pdu_power_w"],
        ["Time", "Line Power (W)"],
        ["Model", "Outlet 1 (W)"],
        [],
        ["Time"],
    ],
)
def test_tables_of_others_are_not_read(names: list[str]) -> None:
    assert find_table(names) is None
