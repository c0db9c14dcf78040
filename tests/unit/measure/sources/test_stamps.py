"""Time stamps: what is read alone and in bulk is the same, and what is no time is refused by both."""

from datetime import UTC, datetime

import numpy as np
import pytest

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.sources.stamps import (
    LONGEST_STAMP,
    parse_asctime,
    parse_stamp,
    parse_stamps,
    parse_zoned_stamp,
)
from flopwitness.measure.sources.values import Unreadable

GOOD = [
    (b"2025/05/14 09:00:00.000", datetime(2025, 5, 14, 9, tzinfo=UTC), 0),
    (b"2025-05-14T09:00:00", datetime(2025, 5, 14, 9, tzinfo=UTC), 0),
    (b"2024/02/29 23:59:59.999", datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC), 999_000_000),
    (b"2025/12/31 23:59:59.5", datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC), 500_000_000),
    (b"1970-01-01 00:00:00.000000001", datetime(1970, 1, 1, tzinfo=UTC), 1),
    (b"2099/12/31 00:00:01.123456", datetime(2099, 12, 31, 0, 0, 1, tzinfo=UTC), 123_456_000),
]
BAD = [
    b"",
    b"2025/05/14",
    b"2025/05/14 09:00",
    b"2025/13/14 09:00:00.000",
    b"2025/02/29 09:00:00.000",
    b"2025/00/01 09:00:00.000",
    b"2025/05/00 09:00:00.000",
    b"2025/05/14 24:00:00.000",
    b"2025/05/14 09:60:00.000",
    b"2025/05/14 09:00:60.000",
    b"2025/05-14 09:00:00.000",
    b"2025.05.14 09:00:00.000",
    b"2025/05/14_09:00:00.000",
    b"2025/05/14 09.00:00.000",
    b"2025/05/14 09:00:00,000",
    b"2025/05/14 09:00:00.",
    b"2025/05/14 09:00:00.0000000000",
    b"2025/05/14 09:00:0x.000",
    b"2025/05/14 09:00:00.00x",
    b" 025/05/14 09:00:00.000",
    b"0000/01/01 00:00:00.000",
    b"1969/12/31 23:59:59.999",
    b"2100/01/01 00:00:00.000",
    b"99999/01/01 00:00:00.00",
    b"timestamp",
    b"\xff\xff\xff\xff/05/14 09:00:00.000",
]


def _in_bulk(*texts: bytes) -> tuple[list[int], list[bool]]:
    array = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(len(texts), len(texts[0]))
    time_ns, is_read = parse_stamps(np.ascontiguousarray(array.T))
    return time_ns.tolist(), is_read.tolist()


@pytest.mark.parametrize(("text", "second", "rest_ns"), GOOD, ids=lambda value: str(value)[:24])
def test_a_stamp_is_read_to_the_nanosecond(text: bytes, second: datetime, rest_ns: int) -> None:
    expected_ns = int(second.timestamp()) * NANOSECOND_PER_SECOND + rest_ns
    assert parse_stamp(text) == expected_ns
    assert _in_bulk(text, text) == ([expected_ns, expected_ns], [True, True])
    assert len(text) <= LONGEST_STAMP


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_what_is_no_time_is_refused_alone_and_in_bulk(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_stamp(text)
    assert _in_bulk(text)[1] == [False]


def test_one_bad_stamp_does_not_touch_its_neighbours() -> None:
    texts = [f"2025/05/14 09:00:{second:02d}.250".encode() for second in range(60)]
    texts[7], texts[8] = b"2025/05/32 09:00:07.250", b"2026/05/14 09:00:08.250"
    time_ns, is_read = _in_bulk(*texts)
    assert is_read == [number != 7 for number in range(60)]
    assert [time for number, time in enumerate(time_ns) if number != 7] == [
        parse_stamp(text) for number, text in enumerate(texts) if number != 7
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (b"2025-05-14T09:00:00Z", b"2025-05-14 09:00:00"),
        (b"2025-05-14T09:00:00.5+02:00", b"2025-05-14 07:00:00.5"),
        (b"2025-05-14 09:00:00-0530", b"2025-05-14 14:30:00"),
        (b"2025-05-14 09:00:00 UTC", b"2025-05-14 09:00:00"),
    ],
)
def test_a_zone_moves_the_time_to_utc(text: bytes, same: bytes) -> None:
    assert parse_zoned_stamp(text) == parse_stamp(same)
    with pytest.raises(Unreadable):
        parse_stamp(text)


@pytest.mark.parametrize(
    "text",
    [
        b"2025-05-14T09:00:00",
        b"2025-05-14T09:00:00+24:00",
        b"2025-05-14T09:00:00+01:60",
        b"2025-05-14T09:00:00 CEST",
        b"2025-05-14T09:00:00Zulu",
        b"2025-02-30T09:00:00Z",
        b"0001-01-01T00:00:00Z",
        b"Z",
        b"",
    ],
)
def test_a_stamp_without_a_zone_is_not_taken_for_utc(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_zoned_stamp(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (b"Wed May 14 09:00:00 2025", b"2025/05/14 09:00:00"),
        (b"Thu Jan  1 00:00:01 1970", b"1970/01/01 00:00:01"),
        (b"Thu Jan 1 00:00:01 1970", b"1970/01/01 00:00:01"),
    ],
)
def test_the_form_of_c_is_read(text: bytes, same: bytes) -> None:
    assert parse_asctime(text) == parse_stamp(same)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Wed May 14 09:00:00",
        b"Wed Mai 14 09:00:00 2025",
        b"Mit May 14 09:00:00 2025",
        b"Wed May 32 09:00:00 2025",
        b"Wed May 14 25:00:00 2025",
        b"Wed May 14 09:00:00 0000",
        b"Wed May 14 09:00:00 99999",
        b"Wed May 14 09:00:00 UTC 2025",
    ],
)
def test_other_forms_are_not_guessed(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_asctime(text)
