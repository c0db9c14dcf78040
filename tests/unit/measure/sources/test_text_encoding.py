"""Text of Windows shells becomes UTF-8; everything else comes back as it is."""

import codecs
from collections.abc import Iterator

import pytest

from flopwitness.measure.sources.text_encoding import decode_blocks, decode_head

LITTLE, BIG, UTF8 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8
REPLACED = "\ufffd".encode()


def _decode(*blocks: bytes) -> bytes:
    return b"".join(decode_blocks(blocks))


@pytest.mark.parametrize("mark", [LITTLE, BIG])
@pytest.mark.parametrize("text", ["", "a", "timestamp, power\r\n33,5 W\r\n", "é€\U0001f600", "\u0a0d\n"])
def test_utf_16_with_its_mark_becomes_utf_8(mark: bytes, text: str) -> None:
    data = mark + text.encode("utf-16-le" if mark == LITTLE else "utf-16-be")
    assert _decode(data) == text.encode()
    assert decode_head(data) == text.encode()
    for cut in range(len(data) + 1):
        assert _decode(data[:cut], b"", data[cut:]) == text.encode()
    assert _decode(*(bytes([byte]) for byte in data)) == text.encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (UTF8 + b"a\n", b"a\n"),
        (UTF8, b""),
        (UTF8 + UTF8 + b"a", UTF8 + b"a"),
        (b"a" + UTF8, b"a" + UTF8),
    ],
)
def test_one_mark_in_front_of_utf_8_is_left_out(data: bytes, expected: bytes) -> None:
    for cut in range(len(data) + 1):
        assert _decode(data[:cut], data[cut:]) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\xfe",
        b"\xef",
        b"\xef\xbb",
        b"\xef\xbbx",
        b"\xfe\xfe",
        b"a\xff\xfe",
        b"\x00a\x00b",
        b"PAR1\x00\xff\xfe",
        b"\xed\xa0\x80",
    ],
)
def test_other_bytes_come_back_as_they_are(data: bytes) -> None:
    assert _decode(data) == data
    assert _decode(*(bytes([byte]) for byte in data)) == data
    assert decode_head(data) == data


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (b"a\x00b", b"a" + REPLACED),
        (b"\x00", REPLACED),
        (b"\x00\xd8\n\x00", REPLACED + b"\n"),
        (b"\x00\xdc\n\x00", REPLACED + b"\n"),
        (b"\x00\xd8\x00\xd8\n\x00", REPLACED + REPLACED + b"\n"),
        (b"\x00\xd8", REPLACED),
        (b"\x00\xd8\x00", REPLACED),
    ],
)
def test_torn_utf_16_is_replaced_and_loses_no_line(units: bytes, expected: bytes) -> None:
    assert _decode(LITTLE + units) == expected
    for cut in range(len(units) + 1):
        assert _decode(LITTLE + units[:cut], units[cut:]) == expected


def test_a_stream_is_decoded_block_by_block() -> None:
    taken = []

    def blocks() -> Iterator[bytes]:
        for number in range(3):
            taken.append(number)
            yield "line\n".encode("utf-16" if number == 0 else "utf-16-le")

    stream = decode_blocks(blocks())
    assert next(stream) == b"line\n"
    assert taken == [0]
    assert list(stream) == [b"line\n", b"line\n", b""]
