"""Tables that power distribution units and their managers export: a time, outlets or inlets, power, energy.

Every maker names its columns otherwise, so they are known by the words in them; a table that says of no
column that it is a unit's, an outlet's or an inlet's is not read here. Outlets are devices of their own, and
an inlet is not added to them: it feeds them.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.clock_text import ClockStamp, parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.pdu_columns import PduColumn, PduTable, find_table
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_pdu_csv"]

_EXPECTED: Final = "a header with a time, and with an outlet's, an inlet's or a unit's power or energy"
_DELIMITERS: Final = (b"\t", b";", b",")
_LOOKED_AT: Final = 50  # lines in front of the header
_HEAD_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_LONGEST_NAME: Final = 100
_DATE: Final = re.compile(rb"(?<![0-9])([0-9]{1,2})/([0-9]{1,2})/[0-9]{4}(?![0-9])")
_MONTHS: Final = 12


def decode_pdu_csv(source: Source) -> Trace:
    """The readings of each outlet, inlet and unit.

    What stands above the header is passed over: units name themselves there. Dates such as 03/04/2021 are
    month first, unless others of the file show that the day stands first.

    Raises:
        DecodeError: It has no header that tells a time and a power, or no row below it.

    Source:
        Exports of Raritan, APC and Server Technology units; the words of their columns' names.
    """
    order = _find_order(decode_head(source.peek(_HEAD_BYTES)))
    rows: _Rows | None = None
    first_line = b""
    for batch in source.lines():
        for number, line in batch:
            if not line or line.isspace():
                continue
            first_line = first_line or line
            if rows is not None:
                rows.take(line, number)
            elif (header := _find_header(line)) is not None:
                rows = _Rows(source, header, order)
    if rows is None or not rows.held.count:
        raise DecodeError(
            "no readings of a power distribution unit",
            where=f"{source.where}:1",
            expected=_EXPECTED if rows is None else "a row below the header",
            found=excerpt(first_line) or "nothing",
        )
    return rows.trace()


class _DateOrder(Enum):
    """Which number of 03/04/2021 is the month."""

    MONTH_FIRST = "month first"
    DAY_FIRST = "day first"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The row that names the columns, and what separates them."""

    table: PduTable
    names: list[str]
    delimiter: bytes


class _Rows:
    """What the rows of one export have told so far."""

    def __init__(self, source: Source, header: _Header, order: _DateOrder) -> None:
        self.held = HeldReadings(source.where)
        self._source = source
        self._recording = Recording(source, times=Times.LOCAL)
        self._header = header
        self._order = order
        self._stamped: tuple[tuple[bytes, ...], ClockStamp | None] = ((), None)

    def take(self, line: bytes, number: int) -> None:
        fields = _split(line, self._header.delimiter)
        table = self._header.table
        if fields == self._header.names:
            return
        if len(fields) != table.width:
            self._recording.skip(number, expected=f"{table.width} fields, as in the header", found=line)
            return
        stamp = self._stamp(fields)
        if stamp is None:
            self._recording.skip(number, expected="a time in the column of times", found=line)
            return
        self._take_row(fields, stamp, number)

    def _take_row(self, fields: Sequence[str], stamp: ClockStamp, number: int) -> None:
        table = self._header.table
        unit = fields[table.unit].strip()[:_LONGEST_NAME] if table.unit is not None else ""
        unit = unit or self._source.device
        named = next(
            ((kind, fields[at].strip()) for at, kind in table.places if fields[at].strip()), ("", "")
        )
        for column in table.columns:
            value = self._value(fields[column.index])
            if value is None:
                expected = f"a number as {self._header.names[column.index][:_LONGEST_NAME].strip()}"
                self._recording.skip(number, expected=expected, found=fields[column.index].encode())
                continue
            averaged_s = None if column.channel is Channel.POWER_AVERAGE_W else 0.0
            self.held.add(
                _figure(unit, column, named),
                value * column.scale,
                stamp=stamp,
                line=number,
                averaged_s=averaged_s,
            )

    def _value(self, text: str) -> float | None:
        """A number, in the decimal commas of tables that are not separated by commas, too."""
        text = text.strip()
        if self._header.delimiter != b"," and text.count(",") == 1 and "." not in text:
            text = text.replace(",", ".")
        try:
            return parse_number(text.encode("utf-8", "replace"))
        except Unreadable:
            return None

    def _stamp(self, fields: Sequence[str]) -> ClockStamp | None:
        """The row's time; rows of one time follow each other, so the last is remembered."""
        table = self._header.table
        texts = tuple(fields[at].strip().encode("utf-8", "replace") for at in table.times)
        if texts != self._stamped[0]:
            stamp = parse_stamp(b" ".join(texts), is_day_first=self._order is _DateOrder.DAY_FIRST)
            if stamp is not None and table.is_utc:
                stamp = replace(stamp, times=Times.UTC)
            self._stamped = (texts, stamp)
        return self._stamped[1]

    def trace(self) -> Trace:
        if self._order is _DateOrder.UNKNOWN:
            self._recording.tell(
                Finding(
                    code="dates-ambiguous",
                    severity=Severity.WARNING,
                    message=(
                        "dates such as 03/04/2021 can be read in two ways and nothing in the file tells "
                        "which; the month is taken to stand first"
                    ),
                    where=self._source.where,
                )
            )
        self.held.fill(self._recording)
        return self._recording.trace()


def _figure(unit: str, column: PduColumn, named: tuple[str, str]) -> Figure:
    """What a column's reading is of, where the row may name an outlet for all its columns."""
    kind, number = (column.kind, column.number) if column.kind else named
    if kind == "outlet" and number:
        name = f"{unit}/outlet-{number[:_LONGEST_NAME]}"
        return Figure(name, column.channel, Scope.NODE_AC)
    part = "-".join(word for word in (kind, number[:_LONGEST_NAME]) if word)
    return Figure(unit, column.channel, Scope.UNKNOWN, part)


def _find_header(line: bytes) -> _Header | None:
    if len(line) > _LONGEST_LINE:
        return None
    for delimiter in _DELIMITERS:
        if delimiter in line:
            names = _split(line, delimiter)
            table = find_table(names)
            if table is not None:
                return _Header(table=table, names=names, delimiter=delimiter)
    return None


def _split(line: bytes, delimiter: bytes) -> list[str]:
    """The fields of a line; quoted ones may hold the delimiter."""
    text = line.decode("utf-8", "replace")
    if '"' not in text:
        return text.split(delimiter.decode("ascii"))
    try:
        return next(csv.reader([text], delimiter=delimiter.decode("ascii"), strict=True), [])
    except csv.Error:
        return []


def _find_order(head: bytes) -> _DateOrder:
    """The order of dates with slashes, by those that can be read in one way only."""
    dates = [(int(first), int(second)) for first, second in _DATE.findall(head)]
    is_day_first = any(first > _MONTHS for first, _ in dates)
    is_month_first = any(second > _MONTHS for _, second in dates)
    if dates and is_day_first == is_month_first:
        return _DateOrder.UNKNOWN
    return _DateOrder.DAY_FIRST if is_day_first else _DateOrder.MONTH_FIRST


def _is_pdu_csv(head: bytes, name: str) -> bool:
    del name
    lines = decode_head(head[: 1 << 16]).split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    return any(_find_header(line.rstrip(b"\r")) is not None for line in lines)


FORMATS: Final = (Format(name="pdu-csv", is_it=_is_pdu_csv, decode=decode_pdu_csv),)
