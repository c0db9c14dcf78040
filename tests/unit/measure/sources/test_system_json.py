"""System descriptions: three fields, text or number."""

import json

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration
from flopwitness.measure.sources.system_json import declare_system, decode_system_json


def _decode(record: object) -> Declaration:
    return decode_system_json(json.dumps(record).encode(), where="system.json")


@pytest.mark.parametrize(("nodes", "per_node"), [("64", "8"), (64, 8), (" 64 ", 8)])
def test_counts_may_be_text_or_numbers(nodes: object, per_node: object) -> None:
    record = {"number_of_nodes": nodes, "accelerators_per_node": per_node, "accelerator_model_name": "H100"}
    assert _decode(record) == Declaration(nodes=64, chips=512, chip_name="H100")


@pytest.mark.parametrize("missing", ["", "  ", None])
def test_an_empty_count_is_missing_and_never_zero(missing: object) -> None:
    declared = _decode({"number_of_nodes": missing, "accelerators_per_node": "8"})
    assert (declared.nodes, declared.chips) == (None, None)


def test_nodes_without_accelerators_declare_no_chips() -> None:
    assert _decode({"number_of_nodes": "4"}) == Declaration(nodes=4)


@pytest.mark.parametrize("value", ["eight", "-1", "1.5", "8 GPUs", -1, 1.5, True, [8], {}, "9" * 10, 10**30])
def test_a_count_that_is_no_whole_number_is_refused_with_its_name(value: object) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode({"number_of_nodes": value})
    assert caught.value.where == "system.json: number_of_nodes"


@pytest.mark.parametrize("name", [7, ["H100"], {"a": 1}, True])
def test_a_chip_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(DecodeError, match="accelerator_model_name"):
        _decode({"accelerator_model_name": name})


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"7", b"{}", b'{"a":1}', b"{", b'{"number_of_nodes":NaN}', b"\xff"]
)
def test_other_bytes_are_no_system_description(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_system_json(data, where="system.json")


def test_a_repeated_name_is_refused() -> None:
    with pytest.raises(DecodeError, match="twice"):
        decode_system_json(b'{"number_of_nodes":1,"number_of_nodes":64}', where="s")


def test_a_record_without_the_fields_declares_nothing() -> None:
    assert declare_system({}, where="x") == Declaration()
