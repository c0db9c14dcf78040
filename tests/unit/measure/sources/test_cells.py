"""Cells of one line: plain, quoted, and broken."""

import pytest

from flopwitness.measure.sources.cells import split_cells


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b"a,b", [b"a", b"b"]),
        (b"", [b""]),
        (b'1,"[0, 0]",2', [b"1", b"[0, 0]", b"2"]),
        (b'"a ""b""",c', [b'a "b"', b"c"]),
        (b'"\xff\x00",x', [b"\xff\x00", b"x"]),
    ],
)
def test_cells_come_back(line: bytes, cells: list[bytes]) -> None:
    assert split_cells(line) == cells


def test_another_delimiter() -> None:
    assert split_cells(b'a;"b;c"', b";") == [b"a", b"b;c"]


@pytest.mark.parametrize("line", [b'a,"b', b'a,"b"c,d', b'"' + b"x" * 200_000 + b'",y', b'a,"b\rc', b'"'])
def test_a_quotation_mark_out_of_place_makes_one_cell(line: bytes) -> None:
    assert split_cells(line) == [line]
