"""What a reader is given: one file as a stream of blocks, and what the user says beside it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final
from zoneinfo import ZoneInfo

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.lines import LineBatch, split_blocks
from flopwitness.measure.sources.text_encoding import decode_blocks

__all__ = ["LARGEST_WHOLE_BYTES", "ColumnMap", "ReadOptions", "Source"]

LARGEST_WHOLE_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which columns of a plain table hold what.

    Attributes:
        time: The column with the times.
        channels: For each column with readings, what it holds: a channel and its unit, such as
            `power_w`, or `power_mw` where the readings are in thousandths.
        device: The column that names the device; "" where the table is of one device.
    """

    time: str = ""
    channels: tuple[tuple[str, str], ...] = ()
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the user says of the logs.

    Attributes:
        scope: What power readings cover, where the log does not say.
        zone: The time zone of times that stand without one; None takes them as UTC and says so.
        period_s: The time from reading to reading, for logs that hold no times [s]; None assumes the tool's
            usual one and says so.
        columns: How to read a plain table.
    """

    scope: Scope | None = None
    zone: ZoneInfo | None = None
    period_s: float | None = None
    columns: ColumnMap | None = None

    def __post_init__(self) -> None:
        """Refuse a period that is none."""
        if self.period_s is not None and not 0 < self.period_s < float("inf"):
            raise ValueError(f"not a period: {self.period_s}")


@dataclass(slots=True, kw_only=True)
class Source:
    """One file, to be read once from its beginning.

    Attributes:
        blocks: Its bytes in order; taken once.
        where: Its whole path, for errors and for what the path itself says.
        device: The name for a device that the file does not name.
        options: What the user says beside it.
    """

    blocks: Iterable[bytes]
    where: str
    device: str
    options: ReadOptions = field(default_factory=ReadOptions)

    def lines(self) -> Iterator[LineBatch]:
        """The lines of the file as UTF-8, in batches of about a mebibyte, in bounded memory.

        UTF-16 with a byte order mark, as Windows shells write it, is turned into UTF-8; a mark in front of
        UTF-8 is left out.
        """
        return split_blocks(decode_blocks(self.blocks))

    def each_line(self) -> Iterator[bytes]:
        """The same lines one by one."""
        return (line for batch in self.lines() for line in batch.lines)

    def whole(self, *, limit_bytes: int = LARGEST_WHOLE_BYTES) -> bytes:
        """The whole file, for formats that can be read in no other way.

        Raises:
            DecodeError: It is larger than `limit_bytes`.
        """
        data = bytearray()
        for block in self.blocks:
            data += block
            if len(data) > limit_bytes:
                raise DecodeError(
                    "too much to read", where=self.where, expected=f"at most {limit_bytes} bytes a file"
                )
        return bytes(data)

    def peek(self, size_bytes: int) -> bytes:
        """How the file begins, without taking it: at least `size_bytes` bytes, or all there are."""
        blocks, taken, taken_bytes = iter(self.blocks), [], 0
        while taken_bytes < size_bytes and (block := next(blocks, None)) is not None:
            taken.append(block)
            taken_bytes += len(block)
        head = b"".join(taken)
        self.blocks = chain([head], blocks)
        return head
