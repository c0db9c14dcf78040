"""MLPerf's system description: how many nodes and accelerators a submitter declares.

The same object stands in `system.json` and, as one `:::SYSJSON` line, in result logs. It is a claim; it
may test other evidence and never reaches a prediction.
"""

import re
from collections.abc import Mapping
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.source import Source

__all__ = ["FORMATS", "SYSTEM_FIELDS", "declare_system", "decode_system_json"]

SYSTEM_FIELDS: Final = ("number_of_nodes", "accelerators_per_node", "accelerator_model_name")
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_LARGEST_COUNT: Final = 999_999_999


def decode_system_json(data: bytes, *, where: str) -> Declaration:
    """What a system description declares.

    Raises:
        DecodeError: Not a JSON object, none of the three fields in it, or a count that is no whole number.

    Source:
        MLCommons, mlperf_logging/system_desc_checker: the names of the fields.
    """
    record = decode_json(data, where=where)
    if not isinstance(record, dict) or not any(name in record for name in SYSTEM_FIELDS):
        raise DecodeError(
            "not a system description",
            where=where,
            expected=f"a JSON object with {' or '.join(SYSTEM_FIELDS)}",
            found=f"an object with {len(record)} other names"
            if isinstance(record, dict)
            else type(record).__name__,
        )
    return declare_system(record, where=where)


def declare_system(record: Mapping[str, JsonValue], *, where: str) -> Declaration:
    """The declaration that the three fields make; an empty or missing one declares nothing.

    Raises:
        DecodeError: A count that is neither a whole number nor the text of one, or a name that is no text.
    """
    nodes = _count(record, SYSTEM_FIELDS[0], where=where)
    per_node = _count(record, SYSTEM_FIELDS[1], where=where)
    chip_name = record.get(SYSTEM_FIELDS[2]) or ""
    if not isinstance(chip_name, str):
        raise DecodeError(
            "not a name", where=f"{where}: {SYSTEM_FIELDS[2]}", expected="text", found=repr(chip_name)[:80]
        )
    return Declaration(
        nodes=nodes,
        chips=None if nodes is None or per_node is None else nodes * per_node,
        chip_name=chip_name,
    )


def _count(record: Mapping[str, JsonValue], name: str, *, where: str) -> int | None:
    value = record.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
        return value
    raise DecodeError(
        "not a count",
        where=f"{where}: {name}",
        expected="a whole number of at most 9 digits",
        found=_show(value),
    )


def _show(value: JsonValue) -> str:
    """How a value looks, in at most 80 characters, however long its digits are."""
    if isinstance(value, int) and abs(value) > _LARGEST_COUNT:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:80]


def _is_system(head: bytes, name: str) -> bool:
    del name
    return head.lstrip().startswith(b"{") and any(f'"{field}"'.encode() in head for field in SYSTEM_FIELDS)


def _decode_system(source: Source) -> Trace:
    return Trace(declaration=decode_system_json(source.whole(), where=source.where))


FORMATS: Final = (Format(name="mlperf-system", is_it=_is_system, decode=_decode_system),)
