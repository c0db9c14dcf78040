"""What must hold of every cut of a file into blocks: the lines are those of the whole."""

import codecs
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.sources.lines import split_blocks
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_blocks

TEXTS = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\x00", b"\xc3\xa9", b"\xff", b"12"])).map(
    b"".join
)
WORDS = st.lists(
    st.sampled_from(["a", "\n", "\r\n", "\r", "é", "\u0a0a", "\u0d0a", "\U0001f600", "\ufeff", "\u2028", ","])
).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=12)


def _blocks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:stop] for start, stop in pairwise(places)]


def _numbered(lines: list[bytes]) -> list[tuple[int, bytes]]:
    """As `wc` and an editor count: an end of line closes a line, and an end of file a last one."""
    if lines and not lines[-1]:
        lines.pop()
    return [(number, line.removesuffix(b"\r")) for number, line in enumerate(lines, start=1)]


@given(TEXTS, CUTS)
def test_lines_are_the_same_for_any_block_boundaries(data: bytes, cuts: list[int]) -> None:
    found = [pair for batch in split_blocks(_blocks(data, cuts)) for pair in batch]
    assert found == _numbered(data.split(b"\n"))


@given(TEXTS, CUTS)
def test_numbers_run_on_from_batch_to_batch(data: bytes, cuts: list[int]) -> None:
    following = 1
    for batch in split_blocks(_blocks(data, cuts)):
        assert batch.first == following
        assert batch.lines
        following += len(batch.lines)


@given(WORDS, CUTS, st.sampled_from(["utf-16-le", "utf-16-be", "utf-8", "utf-8-sig"]))
def test_lines_are_the_same_in_every_encoding(text: str, cuts: list[int], encoding: str) -> None:
    marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    data = marks.get(encoding, b"") + text.encode(encoding)
    source = Source(blocks=_blocks(data, cuts), where="log", device="log")
    found = [pair for batch in source.lines() for pair in batch]
    plain = text.encode() if encoding != "utf-8" else text.encode().removeprefix(codecs.BOM_UTF8)
    assert found == _numbered(plain.split(b"\n"))


@given(st.binary(max_size=60), CUTS)
def test_bytes_of_any_kind_decode_alike_for_any_block_boundaries(data: bytes, cuts: list[int]) -> None:
    for head in (b"", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        whole = b"".join(decode_blocks([head + data]))
        assert b"".join(decode_blocks(_blocks(head + data, cuts))) == whole
