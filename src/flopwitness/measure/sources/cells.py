"""One line of delimited text as its cells, quoted ones (RFC 4180) among them."""

import csv
from typing import Final

__all__ = ["split_cells"]

_BYTE_FOR_BYTE: Final = "latin-1"  # each byte is one character of it, and comes back as it was


def split_cells(line: bytes, delimiter: bytes = b",") -> list[bytes]:
    """The cells of a line; a line with a quotation mark out of place is one cell, all of it.

    A quoted cell that goes on on the next line is not put together: no tool that is read here writes one.
    """
    if b'"' not in line:
        return line.split(delimiter)
    text = line.decode(_BYTE_FOR_BYTE)
    try:
        cells = next(csv.reader([text], delimiter=delimiter.decode(_BYTE_FOR_BYTE), strict=True), [])
    except csv.Error:
        return [line]
    return [cell.encode(_BYTE_FOR_BYTE) for cell in cells]
