"""tegrastats: one line a sample, of every JetPack, with whatever a shell wrote in between.

A log holds the same line over and over with other numbers in it. The fields of a line are searched for
once; lines with the same words are then read together. Both ways find the same numbers.

The first number of a rail is its power now; the second, a running mean, and the third, a peak, are never
integrated.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.jetson import STAMP, Quantity, SampleTable, StampReader, tell_unread_memory
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES, LineBatch
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.tegrastats_fields import Fields, Shape, find_fields
from flopwitness.measure.sources.tegrastats_layout import Layout, words_of
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.wording import plural

__all__ = ["FORMATS", "decode_tegrastats"]

_HEAD_BYTES: Final = 1 << 16
_SIGN: Final = re.compile(
    rb"(?<![A-Za-z0-9_])(?:RAM [0-9]+/[0-9]+[kMG]B \(lfb [0-9]|GR3D(?:_FREQ)? (?:[0-9]+%|@[\[0-9]))"
)
_MOST_LAYOUTS: Final = 256
_LONGEST_LEARNED_BYTES: Final = 4_096
_SHOWN_BYTES: Final = 40
_WHOLE_SECONDS_BYTES: Final = len("01-31-2025 00:00:00")
_SAMPLE: Final = "a line of tegrastats"
_UNDATED: Final = "a date in front, as other lines have"


def decode_tegrastats(source: Source) -> Trace:
    """The samples of a log of `tegrastats`.

    Power [W] of the module's input has `Scope.MODULE`, that of the carrier board's `Scope.NODE_DC`, every
    other rail `Scope.RAIL` and its name as part. GPU load, memory load and both clocks, RAM in use, the
    GPU's temperature, and the mean load and number of the CPU cores that are on come with it. Clocks of the
    GPU are those of its clusters, `gpc0` and so on; a single one is `gpc0`.

    Every series has every sample's time and NaN where the line had no reading. Dates in front of the lines
    are local times; without them samples are numbered, at the tool's usual period of 1 s. How most lines of
    the first 64 KiB begin decides; in a dated log, samples without a date are skipped.

    Raises:
        DecodeError: No sample is in it, or it names more rails than a board has.

    Source:
        NVIDIA Jetson Linux Developer Guide, tegrastats utility; public logs of JetPack 3 to 7.
    """
    reader = _Reader(source)
    for batch in source.lines():
        reader.read(batch)
    return reader.trace()


def _is_tegrastats(head: bytes, name: str) -> bool:
    del name
    return _SIGN.search(decode_head(head[:_HEAD_BYTES])) is not None


@dataclass(slots=True, kw_only=True)
class _Batch:
    """What one batch of lines holds, by the place of each line in it.

    Attributes:
        first: The number of its first line.
        lines: The lines.
        is_sample: Which of them are samples, shape (lines,).
        times: Their times where they have dates, shape (lines,).
        rows: The numbers of samples of one shape, with their places.
        skips: Lines that cannot be read: place, what was expected, what was found.
    """

    first: int
    lines: Sequence[bytes]
    is_sample: NDArray[np.bool_]
    times: NDArray[np.int64]
    rows: list[tuple[Shape, NDArray[np.intp], NDArray[np.float64]]] = field(default_factory=list)
    skips: list[tuple[int, str, bytes]] = field(default_factory=list)


class _Reader:
    """One log as it is read."""

    def __init__(self, source: Source) -> None:
        self._where = source.where
        self._recording = Recording(source, times=Times.COUNTED)
        self._table = SampleTable(source, self._recording)
        self._clock = StampReader()
        self._layouts: dict[bytes, Layout] = {}
        self._cut: set[bytes] = set()
        self._is_dated = _is_mostly_dated(source)
        self._n_dates_unused = 0
        self._first_line = b""

    def read(self, lines: LineBatch) -> None:
        size = len(lines.lines)
        batch = _Batch(
            first=lines.first,
            lines=lines.lines,
            is_sample=np.zeros(size, dtype=np.bool_),
            times=np.zeros(size, dtype=np.int64),
        )
        alike: dict[bytes, list[int]] = {}
        for place, words in enumerate(words_of(batch.lines)):
            places = alike.get(words)
            if places is None:
                if words not in self._layouts and not self._search(batch, place, words):
                    continue
                places = alike[words] = []
            places.append(place)
        for words, places in alike.items():
            self._read_alike(batch, self._layouts[words], places)
        self._add(batch)
        self._recording.check_size()

    def trace(self) -> Trace:
        if not len(self._table):
            raise DecodeError(
                "a tegrastats log without a sample",
                where=f"{self._where}:1",
                expected="lines with fields such as `RAM 1/2MB`, `CPU [3%@4]`, `GR3D_FREQ 5%`",
                found=excerpt(self._first_line),
            )
        tell_unread_memory(self._table, self._recording, where=self._where)
        if self._n_dates_unused:
            self._tell_dates_unused()
        self._recording.times = Times.LOCAL if self._is_dated else Times.COUNTED
        return self._recording.trace()

    def _search(self, batch: _Batch, place: int, words: bytes) -> bool:
        """Whether the layout of a line with new words could be learned; else what it holds goes into rows."""
        line = batch.lines[place]
        fields = find_fields(line) if len(line) <= LONGEST_LINE_BYTES else None
        if fields is None:
            if line.strip():
                self._first_line = self._first_line or line
                batch.skips.append((place, _SAMPLE, line))
            return False
        if self._is_dated is None:
            self._is_dated = fields.stamp_bytes > 0
        if self._is_cut(words):
            self._cut.add(words)
            batch.skips.append((place, "a whole line of tegrastats", line[-_SHOWN_BYTES:]))
            fields = fields.without_last(line)
        elif len(self._layouts) < _MOST_LAYOUTS and len(line) <= _LONGEST_LEARNED_BYTES:
            layout = Layout.learn(line, fields)
            if layout is not None:
                self._layouts[words] = layout
                return True
        self._keep(batch, fields, place)
        return False

    def _is_cut(self, words: bytes) -> bool:
        """Whether these are the first words of a known line, and no second line stops at the same one."""
        if words in self._cut or len(self._cut) >= _MOST_LAYOUTS:
            return False
        return any(len(words) < len(known) and known.startswith(words) for known in self._layouts)

    def _read_alike(self, batch: _Batch, layout: Layout, places: Sequence[int]) -> None:
        """Take the numbers of lines of one layout; one by one where any of them is unlike."""
        lines = [batch.lines[place] for place in places]
        numbers = layout.numbers(lines)
        if numbers is None:
            for place, line in zip(places, lines, strict=True):
                if fields := find_fields(line):
                    self._keep(batch, fields, place)
                else:
                    batch.skips.append((place, _SAMPLE, line))
            return
        self._date(batch, layout.stamp_bytes, places)
        batch.rows.append((layout.shape, np.array(places), numbers))

    def _keep(self, batch: _Batch, fields: Fields, place: int) -> None:
        """Take the numbers of one line."""
        texts = (batch.lines[place][start:stop] for start, stop in fields.spans)
        numbers = np.fromiter(map(float, texts), dtype=np.float64, count=len(fields.spans))
        self._date(batch, fields.stamp_bytes, [place])
        batch.rows.append((fields.shape, np.array([place]), numbers.reshape(1, -1)))

    def _date(self, batch: _Batch, stamp_bytes: int, places: Sequence[int]) -> None:
        """Give samples their times where lines have dates."""
        batch.is_sample[places] = True
        if not self._is_dated:
            self._n_dates_unused += len(places) if stamp_bytes else 0
            return
        stamps = [batch.lines[place][:stamp_bytes] for place in places]
        times = self._clock.read_all(stamps) if stamp_bytes == _WHOLE_SECONDS_BYTES else None
        if times is not None:
            batch.times[places] = times
            return
        for place, stamp in zip(places, stamps, strict=True):
            time = self._clock.read(stamp) if stamp else None
            if time is None:
                batch.is_sample[place] = False
                batch.skips.append((place, _UNDATED, batch.lines[place]))
            else:
                batch.times[place] = time

    def _add(self, batch: _Batch) -> None:
        """Put the samples of a batch into the table, in the order of the lines."""
        for place, expected, found in sorted(batch.skips):
            self._recording.skip(batch.first + place, expected=expected, found=found)
        n_samples = int(batch.is_sample.sum())
        if not n_samples:
            return
        values: dict[Quantity, NDArray[np.float64]] = {}
        for shape, places, numbers in sorted(batch.rows, key=lambda row: int(row[1][0])):
            for quantity, value in shape.settle(numbers).items():
                values.setdefault(quantity, np.full(len(batch.lines), np.nan))[places] = value
        times = batch.times if self._is_dated else np.cumsum(batch.is_sample) - 1 + len(self._table)
        self._table.add(
            times[batch.is_sample], {what: value[batch.is_sample] for what, value in values.items()}
        )

    def _tell_dates_unused(self) -> None:
        self._recording.tell(
            Finding(
                code="dates-unused",
                severity=Severity.WARNING,
                message=(
                    f"{self._n_dates_unused:,} of {plural(len(self._table), 'sample')} carry a date and most "
                    "others none: all are numbered. Hand over the dated part as a file of its own"
                ),
                where=self._where,
                count=self._n_dates_unused,
            )
        )


def _is_mostly_dated(source: Source) -> bool | None:
    """Whether the first samples have a date; None where no sample stands near the beginning."""
    head = decode_head(source.peek(_HEAD_BYTES)[:_HEAD_BYTES])
    samples = [line for line in head.split(b"\n") if _SIGN.search(line)]
    n_dated = sum(STAMP.match(line) is not None for line in samples)
    return 2 * n_dated >= len(samples) if samples else None


FORMATS: Final = (Format(name="tegrastats", is_it=_is_tegrastats, decode=decode_tegrastats),)
