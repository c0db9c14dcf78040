"""A file as a stream: its lines, its beginning, the whole of it, and what the user says beside it."""

import math
from collections.abc import Iterable, Iterator

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.sources.lines import LineBatch
from flopwitness.measure.sources.source import LARGEST_WHOLE_BYTES, ColumnMap, ReadOptions, Source


def _source(*blocks: bytes) -> Source:
    return Source(blocks=blocks, where="a/log.csv", device="log")


def _torn() -> Iterator[bytes]:
    yield b"first\n"
    raise DecodeError("torn", where="x.gz")


def test_lines_are_plain_utf_8() -> None:
    assert list(_source(b"\xef\xbb\xbfa\r\n", b"b").lines()) == [LineBatch(1, [b"a"]), LineBatch(2, [b"b"])]
    wide = "a\r\nb".encode("utf-16")
    assert [pair for batch in _source(wide[:3], wide[3:]).lines() for pair in batch] == [(1, b"a"), (2, b"b")]


def test_an_empty_file_has_no_line() -> None:
    assert list(_source().lines()) == []
    assert list(_source(b"").lines()) == []


@pytest.mark.parametrize("size_bytes", [0, 1, 3, 4, 6, 7, 100])
def test_a_look_at_the_beginning_takes_nothing_away(size_bytes: int) -> None:
    source = _source(b"abc", b"", b"def", b"g")
    head = source.peek(size_bytes)
    assert b"abcdefg".startswith(head)
    assert len(head) >= min(size_bytes, 7)
    assert source.peek(size_bytes) == head
    assert b"".join(source.blocks) == b"abcdefg"


def test_a_look_takes_no_more_blocks_than_it_needs() -> None:
    source = Source(blocks=_torn(), where="x", device="x")
    assert source.peek(6) == b"first\n"
    with pytest.raises(DecodeError, match="torn"):
        source.peek(7)


def test_a_torn_stream_is_told_wherever_it_is_read() -> None:
    source = Source(blocks=_torn(), where="x", device="x")
    with pytest.raises(DecodeError, match="torn"):
        list(source.lines())
    with pytest.raises(DecodeError, match="torn"):
        Source(blocks=_torn(), where="x", device="x").whole()


def test_the_whole_file_comes_back_as_it_is() -> None:
    assert _source(b"\xff\xfea", b"", b"\r\nb").whole() == b"\xff\xfea\r\nb"
    assert _source().whole() == b""
    source = _source(b"abc", b"def")
    source.peek(4)
    assert source.whole(limit_bytes=6) == b"abcdef"


def test_a_whole_file_beyond_the_limit_is_refused_before_more_is_taken() -> None:
    taken = 0

    def endless() -> Iterable[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"12345"

    with pytest.raises(DecodeError) as caught:
        Source(blocks=endless(), where="a/log.json", device="log").whole(limit_bytes=12)
    assert (caught.value.where, taken) == ("a/log.json", 3)
    assert "12 bytes" in caught.value.expected
    with pytest.raises(DecodeError):
        _source(b"abc").whole(limit_bytes=2)
    assert LARGEST_WHOLE_BYTES == 256 << 20


def test_a_user_who_says_nothing_says_nothing() -> None:
    options = _source().options
    assert (options.scope, options.zone, options.period_s, options.columns) == (None, None, None, None)
    assert ColumnMap() == ColumnMap(time="", channels=(), device="")


@pytest.mark.parametrize("period_s", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_period_that_is_none_is_refused(period_s: float) -> None:
    with pytest.raises(ValueError, match="not a period"):
        ReadOptions(period_s=period_s)


def test_periods_are_positive_and_finite() -> None:
    assert [ReadOptions(period_s=period_s).period_s for period_s in (0.001, 86_400.0)] == [0.001, 86_400.0]
