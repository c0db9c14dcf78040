"""A number that says where it came from.

A figure from a data sheet decides whether a claim is believed, so it never travels bare: its source, the
date of that source, the conditions under which it holds and how it was checked go with it. A reader of
another country can then look it up and disagree.
"""

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from flopwitness.foundation.toml_table import TomlTable

__all__ = ["Checked", "Source", "Sourced", "decode_sourced", "decode_sources", "positive_number"]


class Checked(StrEnum):
    """How a value was checked, best first."""

    READ = "read"  # the text was opened and the figure seen in it
    TABLE = "table"  # it stands in a named data set
    RECALLED = "recalled"  # not verified, or derived from the architecture; shown as such to users


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a value stands.

    Attributes:
        title: The document or data set; it says so where a transcription of it was read.
        publisher: Who published it.
        url: Where it is found.
        date: When it was published, or read.
    """

    title: str
    publisher: str
    url: str
    date: dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """A value with its provenance.

    Attributes:
        value: The figure in the unit that its field's name carries; finite, > 0.
        source: Where it stands.
        checked: How it was checked.
        conditions: What it holds under, such as `dense; half of the printed sparse figure`.
    """

    value: float
    source: Source
    checked: Checked
    conditions: str


def decode_sources(table: TomlTable) -> Mapping[str, Source]:
    """The sources of a catalogue by their short names.

    Args:
        table: Short name -> a table of `title`, `publisher`, `url` and `date`.

    Raises:
        DecodeError: A source is incomplete, has an unknown key, no https address or no date.
    """
    return {name: _decode_source(table.table(name)) for name in table.values}


def _decode_source(table: TomlTable) -> Source:
    """One source."""
    source = Source(
        title=table.text("title"),
        publisher=table.text("publisher"),
        url=table.text("url"),
        date=table.date("date"),
    )
    table.close()
    if not source.url.startswith("https://"):
        raise table.error("not a web address", expected="https://...", found=source.url)
    return source


def decode_sourced(table: TomlTable, *, sources: Mapping[str, Source]) -> Sourced:
    """One value with its provenance.

    Args:
        table: `value`, `source` (a short name), `checked` and `conditions`.
        sources: The catalogue's sources by short name.

    Raises:
        DecodeError: A key is missing or unknown, the number is not finite and positive, the source is not
            in the catalogue, or `checked` is none of `read`, `table` and `recalled`.
    """
    name = table.text("source")
    if name not in sources:
        raise table.error("no such source", expected="a name in [sources]", found=repr(name))
    sourced = Sourced(
        value=positive_number(table, "value"),
        source=sources[name],
        checked=table.member("checked", Checked),
        conditions=table.text("conditions"),
    )
    table.close()
    return sourced


def positive_number(table: TomlTable, name: str) -> float:
    """The finite number above zero at a key; a truth value is none.

    Raises:
        DecodeError: There is no such number.
    """
    table.read.add(name)
    value = table.values.get(name)
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number <= 0:
        raise table.error("bad value", key=name, expected="a finite number > 0", found=repr(value))
    return number
