"""UTF-16 and byte order marks, taken off a stream of blocks: what shells on Windows write."""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

__all__ = ["decode_blocks", "decode_head"]

_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def decode_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks as UTF-8 without a byte order mark; bytes that are no text come back as they are."""
    rest = iter(blocks)
    head = b""
    for block in rest:
        head += block
        if len(head) >= len(codecs.BOM_UTF8):
            break
    name = _WIDE.get(head[:2])
    if name is None:
        yield from chain([head.removeprefix(codecs.BOM_UTF8)], rest)
        return
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    for block in chain([head[2:]], rest):
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def decode_head(head: bytes) -> bytes:
    """How a file begins, likewise."""
    return b"".join(decode_blocks([head]))
