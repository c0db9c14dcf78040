"""Whatever a log says, what is printed obeys nobody."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.present.safe_text import encode_answer, escape_line, join_lines, name_count


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 5 kWh", "plain words, 5 kWh"),
        ("Zürich 東京", "Zürich 東京"),
        ("\x1b[2J\r\n\t", "\\x1b[2J\\r\\n\\t"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("\udcff", "\\udcff"),
        ("", ""),
    ],
)
def test_control_characters_become_escapes(text: str, shown: str) -> None:
    assert escape_line(text) == shown


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=[]))))
def test_a_text_has_the_lines_that_were_written_and_no_other(lines: list[str]) -> None:
    text = join_lines(lines)
    assert text.count("\n") == len(lines)
    assert all(line.isprintable() for line in text.split("\n"))


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_json_comes_back_as_it_went_and_commands_no_terminal(text: str) -> None:
    encoded = encode_answer({"name": text})
    assert json.loads(encoded) == {"name": text}
    encoded.encode()
    for unsafe in "\x1b\x7f\x85\x9b\u200e\u2028\u202e\u2066\udcff":
        assert unsafe not in encoded


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_holds_no_number_that_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_answer({"x": value})


def test_a_count_carries_its_noun() -> None:
    assert [name_count(count, "row") for count in (0, 1, 2, 1_200)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,200 rows",
    ]
