"""The table of decoders: unique names, good seeds, parts that are not there left out."""

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.testing import decoder_table
from flopwitness.testing.decoder_table import known_decoders

OURS = ("mllog", "power-log", "result-log", "system-json", "containers", "any-format")


def test_names_are_unique_and_ours_are_there() -> None:
    names = [decoder.name for decoder in known_decoders()]
    assert len(set(names)) == len(names)
    assert set(OURS) <= set(names)


def test_every_decoder_has_something_to_start_from() -> None:
    assert all(decoder.seeds or decoder.recordings for decoder in known_decoders())
    assert all(decoder.seeds for decoder in known_decoders() if decoder.name in OURS)


def test_a_part_that_is_not_there_is_left_out() -> None:
    assert decoder_table._if_there("x", "measure.no_such_module", "decode", "*") is None
    assert decoder_table._if_there("x", "measure.samples", "no_such_function", "*") is None


def test_a_part_that_is_there_gets_the_bytes_and_a_place() -> None:
    decoder = decoder_table._if_there("x", "measure.sources.system_json", "decode_system_json", "*")
    assert decoder is not None
    assert decoder.decode(b'{"number_of_nodes": 2}')
    with pytest.raises(DecodeError, match="x: not strict JSON"):
        decoder.decode(b"{")
