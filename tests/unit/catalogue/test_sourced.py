"""A figure is accepted with its whole provenance or not at all."""

import datetime as dt

import pytest

from flopwitness.catalogue.sourced import (
    Checked,
    Source,
    decode_sourced,
    decode_sources,
    positive_number,
)
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.toml_table import TomlTable, decode_toml

SHEET = Source(
    title="A data sheet", publisher="A vendor", url="https://example.org/ds", date=dt.date(2026, 1, 31)
)
SOURCE = 'title = "A data sheet"\npublisher = "A vendor"\nurl = "https://example.org/ds"\ndate = 2026-01-31\n'
VALUE = 'value = 312e12\nsource = "ds"\nchecked = "read"\nconditions = "dense"\n'


def table(text: str) -> TomlTable:
    return decode_toml(text.encode(), where="chips.toml")


def test_a_source_and_a_value_are_read() -> None:
    sources = decode_sources(table(f"[ds]\n{SOURCE}"))
    assert sources == {"ds": SHEET}
    sourced = decode_sourced(table(VALUE), sources=sources)
    assert (sourced.value, sourced.source, sourced.checked) == (312e12, SHEET, Checked.READ)
    assert sourced.conditions == "dense"


def test_no_sources_are_an_empty_mapping() -> None:
    assert decode_sources(table("")) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "A data sheet"\n', ""),
        ('title = "A data sheet"', 'title = ""'),
        ('publisher = "A vendor"\n', ""),
        ("https://example.org/ds", "http://example.org/ds"),
        ("https://example.org/ds", "page 3 of the brochure"),
        ("date = 2026-01-31\n", ""),
        ("date = 2026-01-31", 'date = "2026-01-31"'),
        ("date = 2026-01-31", "date = 2026-01-31T00:00:00Z"),
        ("date = 2026-01-31", "date = 2026-01-31\naccessed = 2026-02-01"),
    ],
)
def test_a_source_is_refused(old: str, new: str) -> None:
    with pytest.raises(DecodeError, match="ds"):
        decode_sources(table("[ds]\n" + SOURCE.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value = 312e12\n", ""),
        ("value = 312e12", "value = 0"),
        ("value = 312e12", "value = -1.0"),
        ("value = 312e12", "value = nan"),
        ("value = 312e12", "value = inf"),
        ("value = 312e12", "value = true"),
        ("value = 312e12", 'value = "312e12"'),
        ('source = "ds"\n', ""),
        ('source = "ds"', 'source = "another"'),
        ('checked = "read"\n', ""),
        ('checked = "read"', 'checked = "trusted"'),
        ('conditions = "dense"\n', ""),
        ('conditions = "dense"', 'conditions = ""'),
        ('conditions = "dense"', 'conditions = "dense"\nunit = "FLOP/s"'),
    ],
)
def test_a_value_is_refused(old: str, new: str) -> None:
    with pytest.raises(DecodeError, match=r"chips\.toml"):
        decode_sourced(table(VALUE.replace(old, new)), sources={"ds": SHEET})


def test_a_value_that_is_no_table_is_refused() -> None:
    with pytest.raises(DecodeError, match="fp16"):
        decode_sourced(table("fp16 = 312e12").table("fp16"), sources={"ds": SHEET})


def test_a_whole_number_is_a_number() -> None:
    assert positive_number(table("power_limit_w = 700"), "power_limit_w") == 700.0


@pytest.mark.parametrize("digits", ["1e999", "1" + "0" * 400])
def test_a_number_beyond_the_floats_is_refused(digits: str) -> None:
    with pytest.raises(DecodeError, match="finite"):
        positive_number(table(f"value = {digits}"), "value")
