"""Numbers, markers for missing ones, and text that is neither: three outcomes, never mixed."""

import math

import pytest

from flopwitness.measure.samples import Channel
from flopwitness.measure.sources.values import (
    BLANK_FROM,
    MISSING,
    Unreadable,
    is_missing,
    parse_number,
    possible_range,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0.0),
        (b"-0", 0.0),
        (b"33.09", 33.09),
        (b" 33.09\t", 33.09),
        (b"+5", 5.0),
        (b"-5", -5.0),
        (b".5", 0.5),
        (b"5.", 5.0),
        (b"1e3", 1_000.0),
        (b"1E+3", 1_000.0),
        (b"2.5e-3", 0.0025),
        (b"1.7976931348623157e308", 1.7976931348623157e308),
        (b"9223372036854775794", 9.223372036854775794e18),
        (b"00012", 12.0),
        (b"1" + b"0" * 63, 1e63),
    ],
)
def test_a_number_is_read(text: bytes, value: float) -> None:
    assert parse_number(text) == value
    assert not is_missing(text)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"  ", b"-", b"--", b"[N/A]", b"N/A", b"n/a", b"NaN", b"nan", b"-nan", b"None", b"NULL"),
        *(b"[Unknown Error]", b"ERR!", b"[Not Supported]", b"[GPU is lost]", b"[GPU requires reset]"),
        *(b"[Insufficient Permissions]", b"<not counted>", b"<not supported>", b"#N/A", b"<NA>", b"off"),
        b" [N/A]\r",
    ],
)
def test_a_marker_is_missing_and_never_zero(text: bytes) -> None:
    assert is_missing(text)
    assert math.isnan(parse_number(text))


@pytest.mark.parametrize(
    "text",
    [
        *(b"inf", b"-inf", b"Infinity", b"+nan", b"1e999", b"-1e999", b"1e99999", b"0x10", b"1_000"),
        *(b"1,5", b"1 000", b"1.2.3", b"--5", b"+-5", b"5-", b"e5", b".", b"+", b"1e", b"1e+", b"5 W", b"W"),
        *(b"12\x00", b"\x0012", b"\xff", "\u0663".encode(), "\uff15".encode(), "\u22125".encode(), b"5\n6"),
        *(b"1" + b"0" * 64, b"0" * 65, b"0." + b"0" * 5_000, b"9" * 100_000, b"true", b"N/A N/A"),
        *(b"n\x00a", b"[n/a", b"zero", b"\xed\xa0\x80"),
    ],
)
def test_text_that_is_neither_is_refused_and_quoted_in_short(text: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        parse_number(text)
    assert len(str(caught.value)) <= 64 * 4
    assert not is_missing(text)


def test_markers_are_written_as_they_are_looked_up() -> None:
    assert {marker.strip().lower() for marker in MISSING} == MISSING


@pytest.mark.parametrize(
    ("channel", "possible", "impossible"),
    [
        (Channel.UTILISATION_PCT, [0, 100], [-1, 100.5, 731_204_118, 2**32 - 1]),
        (Channel.POWER_W, [0, 0.1, 6e6], [-0.1, BLANK_FROM, 2_147_483_632]),
        (Channel.POWER_AVERAGE_W, [0, 700], [-1, BLANK_FROM]),
        (Channel.POWER_LIMIT_W, [700], [-1, BLANK_FROM]),
        (Channel.TEMPERATURE_C, [-40, 0, 110], [-300, 2_147_483_632]),
        (Channel.CLOCK_HZ, [0, 2e9], [-1, 2_147_483_632e6]),
        (Channel.PERFORMANCE_STATE, [0, 8, 15], [-1, 16, 32]),
        (Channel.ENERGY_COUNTER_J, [0, 1e13], [-1, (2**63 - 16) / 1e3]),
        (Channel.MEMORY_USED_BYTE, [0, 288 * 2**30, 4e14], [-1, 2_147_483_632 * 2**20, 2**63 - 16]),
        (Channel.MEMORY_TRAFFIC_BYTE_PER_S, [0, 1e13], [-1, 2**63 - 16]),
        (Channel.LINK_TRAFFIC_BYTE_PER_S, [0, 2e12], [-1, 2**63 - 16]),
        (Channel.HOST_TRAFFIC_BYTE_PER_S, [0, 1e11], [-1, 2**63 - 16]),
        (Channel.CPU_CORES_ON, [1, 1_024], [-1, 2_147_483_632]),
        (Channel.LINK_TRAFFIC_BYTE, [0, 1e18], [-1]),
    ],
)
def test_what_no_sensor_can_read_lies_outside(
    channel: Channel, possible: list[float], impossible: list[float]
) -> None:
    """Blanks of DCGM and markers such as 2^32 - 1 among it, in the channel's own unit."""
    low, high = possible_range(channel)
    assert all(low <= value <= high for value in possible)
    assert not any(low <= value <= high for value in impossible)


@pytest.mark.parametrize("channel", Channel)
def test_every_channel_has_a_finite_range_around_an_ordinary_value(channel: Channel) -> None:
    low, high = possible_range(channel)
    assert low <= 1 <= high
    assert math.isfinite(low)
    assert math.isfinite(high)
