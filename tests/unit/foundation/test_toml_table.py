import datetime as dt
from enum import StrEnum

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.toml_table import TomlTable, decode_toml


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def table(text: str) -> TomlTable:
    return decode_toml(text.encode(), where="file")


def test_each_key_is_read_as_the_kind_that_is_asked_for() -> None:
    read = table(
        'name = "a"\nn = 3\n'
        'day = 2026-01-02\ncolour = "red"\nflop = "12"\nlist = ["x"]\n[[t]]\nk = 1\n[u]\nv = 2\n'
    )
    assert read.text("name") == "a"
    assert read.integer("n") == 3
    assert read.date("day") == dt.date(2026, 1, 2)
    assert read.member("colour", Colour) is Colour.RED
    assert read.positive_count("flop") == 12
    assert read.texts("list") == ("x",)
    assert [inner.integer("k") for inner in read.tables("t")] == [1]
    assert read.table("u").integer("v") == 2
    read.close()


def test_what_is_missing_and_optional_is_empty_or_none() -> None:
    read = table("")
    assert read.optional_text("a") == ""
    assert read.optional_date("b") is None
    assert read.texts("c") == ()
    assert read.tables("d") == ()


@pytest.mark.parametrize("data", [b"a = ", b"\xff", b"a = 1\na = 2", b"d = 2026-13-01"])
def test_what_is_no_toml_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not TOML"):
        decode_toml(data)


@pytest.mark.parametrize("text", ["a = 1", 'a = ""', 'a = "  "', "", "a = ['x']"])
def test_no_text_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        table(text).text("a")


@pytest.mark.parametrize("text", ["a = true", "a = 1.0", 'a = "1"', ""])
def test_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="a whole number"):
        table(text).integer("a")


@pytest.mark.parametrize("text", ['a = "2026-01-01"', "a = 2026-01-01T00:00:00Z", "a = 2026"])
def test_no_plain_date_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="a date such as"):
        table(text).date("a")


@pytest.mark.parametrize("text", ['a = "0"', 'a = "01"', 'a = "-1"', 'a = "1e25"', "a = 10"])
def test_no_count_above_zero_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        table(text).positive_count("a")


@pytest.mark.parametrize("text", ['a = "green"', 'a = "Red"', "a = 1"])
def test_no_member_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        table(text).member("a", Colour)


@pytest.mark.parametrize("text", ["a = [1]", 'a = ["x", ""]', 'a = "x"', "a = [{}]"])
def test_no_list_of_texts_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        table(text).texts("a")


@pytest.mark.parametrize("text", ["a = [1]", "a = {}", "a = ['x']"])
def test_no_list_of_tables_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        table(text).tables("a")


def test_a_key_that_nobody_asked_for_is_refused() -> None:
    read = table("a = 1\nb = 2")
    read.integer("a")
    with pytest.raises(DecodeError, match=r"file, b: unknown key \(expected one of a\)"):
        read.close()


def test_an_error_names_the_inner_place() -> None:
    with pytest.raises(DecodeError, match=r"file, t\[1\]\.k: missing key \(expected a whole number\)"):
        [inner.integer("k") for inner in table("[[t]]\nk = 1\n[[t]]\n").tables("t")]


def test_what_has_a_default_may_be_missing() -> None:
    read = table("")
    assert read.flag("a", default=True) is True
    assert read.whole("b", low=1, high=9, default=3) == 3
    assert read.number("c", low=0, high=1, default=0.5) == 0.5
    assert read.member("d", Colour, default=Colour.BLUE) is Colour.BLUE
    assert read.integers("e", low=0, high=1) == ()
    assert read.optional_table("f").values == {}


def test_a_number_within_its_range_is_given_as_a_float() -> None:
    assert table("a = 1").number("a", low=0, high=1) == 1.0
    assert table("a = 0.25").number("a", low=0, high=1) == 0.25
    assert table("a = 7").whole("a", low=7, high=7) == 7
    assert table("a = [0, 3]").integers("a", low=0, high=3) == (0, 3)


@pytest.mark.parametrize(
    "text", ["a = nan", "a = inf", "a = 1.1", "a = -1", f"a = {10**400}", "a = true", ""]
)
def test_a_number_outside_its_range_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match=r"file, a: .*expected a number from 0 to 1"):
        table(text).number("a", low=0, high=1)


@pytest.mark.parametrize("text", ["a = 0", "a = 10", "a = 1.0", "a = false", 'a = "1"', ""])
def test_a_whole_number_outside_its_range_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match=r"file, a: .*expected a whole number from 1 to 9"):
        table(text).whole("a", low=1, high=9)


@pytest.mark.parametrize("text", ["a = [4]", "a = [-1]", "a = [true]", "a = [1.0]", "a = 1"])
def test_no_list_of_whole_numbers_within_range_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="a list of whole numbers from 0 to 3"):
        table(text).integers("a", low=0, high=3)


@pytest.mark.parametrize("text", ["a = 1", 'a = "true"', "a = []"])
def test_no_truth_value_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="true or false"):
        table(text).flag("a")
