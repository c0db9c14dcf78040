"""Lines come back whole, with the numbers that a person would count, wherever the blocks are cut."""

from collections.abc import Iterator

import pytest

from flopwitness.measure.sources import lines
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES, LineBatch, split_blocks


def _read(*blocks: bytes) -> list[tuple[int, bytes]]:
    return [pair for batch in split_blocks(blocks) for pair in batch]


def _texts(*blocks: bytes) -> list[bytes]:
    return [text for _, text in _read(*blocks)]


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit of eight bytes, so that a test can try every cut of a line that is too long."""
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 8)
    monkeypatch.setattr(lines, "_KEPT_BYTES", 10)
    return 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n", [b""]),
        (b"\n\n", [b"", b""]),
        (b"\n\na", [b"", b"", b"a"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\nb\r", [b"a", b"b"]),
        (b"\r\n", [b""]),
        (b"\r", [b""]),
        (b"a\rb\nc", [b"a\rb", b"c"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"\n\r", [b"", b""]),
        (b"\x00\n\xff\xfe\n", [b"\x00", b"\xff\xfe"]),
        (b"a\x0bb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f\n", [b"a\x0bb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f"]),
    ],
)
def test_a_line_ends_where_a_person_sees_it_end(text: bytes, expected: list[bytes]) -> None:
    assert _texts(text) == expected
    for cut in range(len(text) + 1):
        assert _read(text[:cut], text[cut:]) == list(enumerate(expected, start=1))
    assert _texts(*(bytes([byte]) for byte in text)) == expected


def test_lines_are_numbered_through_all_blocks() -> None:
    batches = list(split_blocks([b"a\nb", b"", b"c\n", b"d", b"e", b"\n\nf"]))
    assert batches == [
        LineBatch(1, [b"a"]),
        LineBatch(2, [b"bc"]),
        LineBatch(3, [b"de", b""]),
        LineBatch(5, [b"f"]),
    ]
    assert [number for batch in batches for number, _ in batch] == [1, 2, 3, 4, 5]


def test_no_blocks_are_no_lines() -> None:
    assert _read() == []
    assert _read(b"", b"", b"") == []


def test_a_batch_comes_before_the_next_block_is_asked_for() -> None:
    """What is read is not piled up: a stream as long as a year of readings needs the memory of one block."""
    asked = 0

    def blocks() -> Iterator[bytes]:
        nonlocal asked
        for _ in range(3):
            asked += 1
            yield b"line\n"

    stream = split_blocks(blocks())
    assert next(stream) == LineBatch(1, [b"line"])
    assert asked == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"12345678", b"12345678"),
        (b"12345678\r", b"12345678"),
        (b"123456789", b"123456789"),
        (b"123456789\r", b"123456789"),
        (b"1234567890", b"123456789"),
        (b"12345678\r0", b"12345678\r"),
        (b"123456789\r1", b"123456789"),
        (b"12345678\r\r", b"12345678\r"),
        (b"1234567890" * 5, b"123456789"),
        (b"\r" * 30, b"\r" * 9),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\nx"])
def test_a_line_that_is_too_long_comes_back_one_byte_too_long_wherever_it_is_cut(
    short_lines: int, text: bytes, expected: bytes, end: bytes
) -> None:
    whole = text + end
    wanted = [expected, *([b"x"] if end == b"\nx" else [])]
    assert _texts(whole) == wanted
    for cut in range(len(whole) + 1):
        assert _texts(whole[:cut], whole[cut:]) == wanted
        assert _texts(whole[:cut], *(bytes([byte]) for byte in whole[cut:])) == wanted


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    """A thousand mebibytes of one line are kept as one, and lines behind it keep their numbers."""
    block = b"a" * (1 << 20)

    def blocks() -> Iterator[bytes]:
        yield b"first\n"
        for _ in range(1_000):
            yield block
        yield b"\nlast"

    found = [(number, len(line)) for batch in split_blocks(blocks()) for number, line in batch]
    assert found == [(1, 5), (2, LONGEST_LINE_BYTES + 1), (3, 4)]


def test_a_line_of_just_the_longest_length_is_whole() -> None:
    text = b"x" * LONGEST_LINE_BYTES
    for end in (b"", b"\n", b"\r\n"):
        assert _texts(text + end) == [text]
        assert _texts(text[:-1], text[-1:] + end[:1], end[1:]) == [text]


def test_a_carriage_return_at_the_limit_hides_nothing() -> None:
    """Cut behind it, the line would look whole, and what followed would be lost without a word."""
    text = b"x" * LONGEST_LINE_BYTES + b"\ry"
    for blocks in ([text + b"\n"], [text[:-1], b"y", b"\n"], [text, b"zzz", b"\n"], [text[:-1], b"y"]):
        (found,) = _texts(*blocks)
        assert found == text[:-1]
