"""JSON documents one after the other: each by itself, cut ones at their own cost."""

import json

import pytest

from flopwitness.measure.sources import json_documents
from flopwitness.measure.sources.json_documents import read_documents
from flopwitness.measure.sources.source import Source


def read(text: str, *, chatter: tuple[bytes, ...] = ()) -> list[tuple[int, object]]:
    source = Source(blocks=[text.encode()], where="x", device="x")
    return [(document.line, document.value) for document in read_documents(source, chatter=chatter)]


def test_one_document_a_line() -> None:
    assert read('{"a": 1}\n\n[2]\n{"a": 3}') == [(1, {"a": 1}), (3, [2]), (4, {"a": 3})]


def test_documents_over_several_lines() -> None:
    text = json.dumps([{"a": 1}], indent=4)
    assert read(f"{text}\n{text}\n") == [(1, [{"a": 1}]), (6, [{"a": 1}])]


def test_a_list_of_objects_that_begin_their_lines() -> None:
    assert read('[\n{"a": 1},\n{"a": 2}\n]\n') == [(1, [{"a": 1}, {"a": 2}])]


def test_what_a_tool_prints_around_them() -> None:
    text = 'hello\n{"a":\nWARNING: x\n 1}\nWARNING: y\n{"b": 2}\n'
    assert read(text, chatter=(b"WARNING",)) == [(2, {"a": 1}), (6, {"b": 2})]


@pytest.mark.parametrize(
    "cut", ['{"a": 1', '[{"a": [', '{"a": "', '{"a": 1}}', '{"a": NaN}', '{"a": 1, "a": 2}']
)
def test_a_cut_document_costs_itself_alone(cut: str) -> None:
    assert read(f"[1]\n{cut}\n[2]") == [(1, [1]), (2, None), (3, [2])]


def test_what_is_printed_behind_a_document_costs_itself_alone() -> None:
    assert read('{"a": 1}\nbye\nbye\n[2]\n') == [(1, {"a": 1}), (2, None), (4, [2])]


def test_deep_nesting_is_no_document() -> None:
    assert read("[" * 100_000 + "\n[1]") == [(1, None), (2, [1])]


def test_nothing_holds_no_document() -> None:
    assert read("") == []
    assert read("no bracket\n") == []


def test_a_document_that_is_too_large_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "_LARGEST_BYTES", 10)
    assert read("[1,\n2,\n3,\n4,\n5]\n[6]") == [(1, None), (6, [6])]
