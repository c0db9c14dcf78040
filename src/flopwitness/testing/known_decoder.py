"""A decoder that must keep the contract, and what it reads; families of them lie in `decoders/`."""

from collections.abc import Callable
from dataclasses import dataclass

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.source import ReadOptions, Source

__all__ = ["KnownDecoder", "read_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDecoder:
    """A decoder and what it reads.

    Attributes:
        name: Its name in tables and on the command line.
        decode: Bytes in; an answer, or DecodeError.
        seeds: Good inputs of our own making; empty where only recordings can serve.
        recordings: Patterns of recordings that it reads, below the folder of recordings.
    """

    name: str
    decode: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    recordings: tuple[str, ...] = ()


def read_format(format: Format, *, options: ReadOptions | None = None) -> Callable[[bytes], Trace]:  # noqa: A002 (its name)
    """A format's reader as a function of bytes, which it gets in blocks that cut lines anywhere."""

    def decode(data: bytes) -> Trace:
        size_bytes = max(1, len(data) // 3)
        blocks = [data[start : start + size_bytes] for start in range(0, len(data), size_bytes)]
        return format.decode(
            Source(blocks=blocks, where="log", device="log", options=options or ReadOptions())
        )

    return decode
