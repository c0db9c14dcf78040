"""MLLOG lines: found anywhere, never fatal, never silently dropped."""

import pytest

from flopwitness.measure.samples import RunWindow, Skipped
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES
from flopwitness.measure.sources.mllog import ExtentTally, MllogEvent, decode_mllog
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.source import Source


def _decode(data: bytes) -> list[MllogEvent | Skipped]:
    return list(decode_mllog(Source(blocks=[data], where="log", device="log").each_line(), where="log"))


def _event(data: bytes) -> MllogEvent:
    (event,) = _decode(data)
    assert isinstance(event, MllogEvent), event
    return event


def _skipped(data: bytes) -> Skipped:
    (skipped,) = _decode(data)
    assert isinstance(skipped, Skipped), skipped
    return skipped


def test_an_event_comes_back_whole() -> None:
    assert _event(
        b':::MLLOG {"namespace": "", "time_ms": 1715341080337, "event_type": "POINT_IN_TIME",'
        b' "key": "power_reading", "value": 2090, "metadata": {"host": "a"}}\r\n'
    ) == MllogEvent(
        time_ns=1715341080337 * 10**6,
        key="power_reading",
        value=2090,
        event_type="POINT_IN_TIME",
        metadata={"host": "a"},
        line=1,
    )


@pytest.mark.parametrize("prefix", [b"", b"0: ", b"  63: ", b"+ noise ", b"\x1b[32m"])
def test_what_stands_before_the_marker_does_not_matter(prefix: bytes) -> None:
    assert _event(prefix + b':::MLLOG {"time_ms":1,"key":"k"}').time_ns == 10**6


@pytest.mark.parametrize(
    ("value", "expected"), [(b"null", None), (b'"null"', "null"), (b'""', ""), (b"true", True), (b"[1]", [1])]
)
def test_values_stay_as_json_holds_them(value: bytes, expected: object) -> None:
    assert _event(b':::MLLOG {"time_ms":1,"key":"k","value":' + value + b"}").value == expected


@pytest.mark.parametrize("metadata", [b'""', b"null", b'"null"', b"[1]", b"7"])
def test_metadata_that_is_no_object_is_empty(metadata: bytes) -> None:
    assert _event(b':::MLLOG {"time_ms":1,"key":"k","metadata":' + metadata + b"}").metadata == {}


def test_a_missing_value_type_and_metadata_are_missing() -> None:
    event = _event(b':::MLLOG {"time_ms":1,"key":"k"}')
    assert (event.value, event.event_type, event.metadata) == (None, "", {})


def test_fractions_of_a_millisecond_survive() -> None:
    assert _event(b':::MLLOG {"time_ms":1715341078316.25,"key":"k"}').time_ns == 1715341078316250000


def test_lines_without_the_marker_are_no_errors() -> None:
    data = b"+ echo start\n{}\n\n\xff\xfe\n:::DLPAL a b\nRESULT,bert,,1\n"
    assert _decode(data) == []


def test_two_events_in_one_line_are_both_read() -> None:
    data = b'0: :::MLLOG {"time_ms":1,"key":"a"}1: :::MLLOG {"time_ms":2,"key":"b"}\n'
    assert [event.key for event in _decode(data) if isinstance(event, MllogEvent)] == ["a", "b"]


def test_a_second_event_survives_a_torn_first_one() -> None:
    first, second = _decode(b':::MLLOG {"time_ms":1,:::MLLOG {"time_ms":2,"key":"b"}')
    assert isinstance(first, Skipped)
    assert isinstance(second, MllogEvent)


@pytest.mark.parametrize("value", ["NaN", "-NaN", "nan", "Infinity", "-inf", "1e999", "-1e400"])
def test_a_value_that_is_no_finite_number_is_told_as_such(value: str) -> None:
    skipped = _skipped(f':::MLLOG {{"time_ms":1,"key":"k","value": {value}}}'.encode())
    assert skipped.expected.startswith(f"a finite value, not {value}")


@pytest.mark.parametrize("value", ["nothing", "1-2", "1e", "1e9 9", "'NaN'"])
def test_a_value_that_is_no_number_at_all_is_broken_json(value: str) -> None:
    skipped = _skipped(f':::MLLOG {{"time_ms":1,"key":"k","value":{value}}}'.encode())
    assert skipped.expected == "one strict JSON object after :::MLLOG"


def test_the_extent_goes_from_the_first_to_the_last_whatever_the_order() -> None:
    times = ExtentTally()
    assert times.extent is None
    for time_ms, key in ((5, "a"), (3, "b"), (9, "c"), (4, "d"), (1, "power_reading")):
        times.add(_event(f':::MLLOG {{"time_ms":{time_ms},"key":"{key}"}}'.encode()))
    assert times.extent == RunWindow(start_utc_ns=3_000_000, stop_utc_ns=9_000_000)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"time_ms":1,"key":"k"',
        b'{"time_ms":1,"key":"k"} and more',
        b'{"time_ms":1,"key":"k","value":"\xff"}',
        b'{"time_ms":1,"key":"k","value":"\\ud800"}',
        b'{"time_ms":1,"key":"k","value":' + b"[" * 100_000 + b"}",
        b"{'time_ms':1,'key':'k'}",
    ],
)
def test_broken_json_is_skipped_with_its_place(text: bytes) -> None:
    skipped = _skipped(b"noise\n:::MLLOG " + text + b"\nnoise\n")
    assert skipped.where == "log:2"
    assert skipped.expected == "one strict JSON object after :::MLLOG"


@pytest.mark.parametrize(
    "text",
    [
        b'{"time_ms":1}',
        b'{"key":"k"}',
        b'{"time_ms":null,"key":"k"}',
        b'{"time_ms":"1","key":"k"}',
        b'{"time_ms":true,"key":"k"}',
        b'{"time_ms":1,"key":7}',
        b'{"time_ms":1e999,"key":"k"}',
        b"[1]",
        b"7",
    ],
)
def test_missing_or_wrong_fields_are_skipped(text: bytes) -> None:
    assert "`key` as text" in _skipped(b":::MLLOG " + text).expected


@pytest.mark.parametrize("time_ms", [b"-1", b"9223372036001", b"1" * 60, b"-0.5", b"1e300"])
def test_times_outside_1970_to_2262_are_skipped(time_ms: bytes) -> None:
    assert "2262" in _skipped(b':::MLLOG {"key":"k","time_ms":' + time_ms + b"}").expected


@pytest.mark.parametrize(
    "text",
    [
        b'{"time_ms":1,"key":"k","value":1,"value":2}',
        b'{"time_ms":1,"time_ms":2,"key":"k"}',
        b'{"time_ms":1,"key":"k","key":"power_reading"}',
        b'{"time_ms":1,"key":"k","value":1,"v\\u0061lue":2}',
    ],
)
def test_a_name_that_stands_twice_is_skipped_for_two_readers_could_see_two_values(text: bytes) -> None:
    assert "strict" in _skipped(b":::MLLOG " + text).expected


def test_escapes_alone_are_fine() -> None:
    assert _event(b':::MLLOG {"time_ms":1,"key":"k","value":"a\\n\\u00e9"}').value == "a\n\u00e9"


def test_a_name_in_the_metadata_may_repeat_one_outside() -> None:
    assert _event(b':::MLLOG {"time_ms":1,"key":"k","value":1,"metadata":{"value":2}}').value == 1


def test_too_long_a_line_is_skipped_and_the_next_one_read() -> None:
    data = b":::MLLOG " + b" " * LONGEST_LINE_BYTES + b'{"time_ms":1,"key":"k"}\n'
    skipped, event = _decode(data + b':::MLLOG {"time_ms":1,"key":"k"}\n')
    assert isinstance(skipped, Skipped)
    assert skipped.where == "log:1"
    assert isinstance(event, MllogEvent)
    assert event.line == 2


def test_a_line_of_the_longest_length_is_read() -> None:
    text = b':::MLLOG {"time_ms":1,"key":"k"}'
    assert _event(b" " * (LONGEST_LINE_BYTES - len(text)) + text).key == "k"


def test_an_excerpt_is_short_and_printable() -> None:
    shown = excerpt(b"\x1b[2J\xff\n" + b"a" * 200)
    assert shown.startswith("\\x1b[2J\\xff\\n")
    assert shown.endswith("...")
    assert shown.isprintable()
    assert excerpt(b"short") == "short"


def test_the_tally_counts_all_and_keeps_twenty() -> None:
    tally = SkipTally()
    for number in range(30):
        tally.add(f"log:{number}", expected="x", found="y")
    tally.add_all(tally.first, count=100)
    assert tally.count == 130
    assert [skipped.where for skipped in tally.first] == [f"log:{number}" for number in range(20)]
