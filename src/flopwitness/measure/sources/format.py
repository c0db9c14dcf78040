"""What a format is: a name, a way to know it by its content, and a reader.

A module that reads a format ends with `FORMATS`, a tuple of these; `formats.py` lists them all in the order
in which they are tried.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.source import Source

__all__ = ["Decode", "Format"]


class Decode(Protocol):
    """One file to a trace; raises only DecodeError."""

    def __call__(self, source: Source, /) -> Trace:
        """The trace of one file, read from its beginning in bounded memory."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One known format.

    Attributes:
        name: Its name for `--format` and for provenance.
        is_it: Whether a file that begins with these bytes and has this name is of the format.
        decode: Its reader.
    """

    name: str
    is_it: Callable[[bytes, str], bool]
    decode: Decode
