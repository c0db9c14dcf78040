"""Canonical bytes: RFC 8785 JSON, strict base64, NFC text.

Two parties who hash the same record must hash the same bytes, so there is one form and everything else
is refused: repeated names, NaN, infinities, lone surrogates, trailing text. Records that will be signed
carry no floats at all (integer millijoules, nanoseconds, parts per million; counts as decimal strings).
"""

import base64
import binascii
import json
import unicodedata
from typing import Any, Final, NoReturn

import rfc8785

from flopwitness.foundation.errors import DecodeError

__all__ = [
    "JsonValue",
    "decode_base64",
    "decode_json",
    "encode_base64",
    "encode_canonical",
    "encode_signable",
]

JsonValue = Any  # what `decode_json` gives: None, bool, int, float, str, list, dict

LARGEST_JSON_BYTES: Final = 64 * 1024 * 1024
_DEEPEST_NESTING: Final = 200


def encode_canonical(value: JsonValue) -> bytes:
    """The value's RFC 8785 bytes.

    Raises:
        ValueError: The value has no canonical form: NaN, an integer beyond 2^53, a lone surrogate,
            a key that is no text.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"no canonical form: {error}") from error


def encode_signable(value: JsonValue) -> bytes:
    """The value's RFC 8785 bytes, refused where a float or text that is not NFC is in it.

    Raises:
        ValueError: As `encode_canonical`; or a float: signed bytes hold integers and decimal strings;
            or text that is not NFC: two spellings that look alike must not be two records.
    """
    try:
        _check_signable(value)
    except RecursionError as error:
        raise ValueError("no canonical form: nested too deep") from error
    return encode_canonical(value)


def decode_json(data: bytes, *, where: str = "") -> JsonValue:
    """The value of strict JSON text in UTF-8.

    Args:
        data: At most 64 MiB, nested at most 200 deep.
        where: The place to name in an error.

    Raises:
        DecodeError: Not JSON, a repeated name, NaN or a number beyond a double, a lone surrogate,
            text after the value, too large or too deep.
    """
    if len(data) > LARGEST_JSON_BYTES:
        raise DecodeError(
            "too large for JSON",
            where=where,
            expected=f"at most {LARGEST_JSON_BYTES} bytes",
            found=f"{len(data)} bytes",
        )
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_unique_names, parse_constant=_refuse_constant, parse_float=_finite_float
        )
        _check_surrogates(value, depth=0)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DecodeError(
            "not strict JSON", where=where, expected="one JSON value", found=_reason(error)
        ) from None
    return value


def encode_base64(data: bytes) -> str:
    """Standard base64 with padding (RFC 4648 section 4)."""
    return base64.b64encode(data).decode("ascii")


def decode_base64(text: str, *, where: str = "") -> bytes:
    """The bytes of standard base64; only the form that `encode_base64` writes is accepted.

    Raises:
        DecodeError: Another alphabet, white space, missing padding, or stray bits in the last symbol.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError(
            "not base64", where=where, expected="RFC 4648 section 4", found=_reason(error)
        ) from None
    if encode_base64(data) != text:
        raise DecodeError("not base64", where=where, expected="the canonical form", found=repr(text[:80]))
    return data


def _reason(error: Exception) -> str:
    return str(error)[:160] or type(error).__name__


def _unique_names(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name that stands twice in one object")
    return record


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text}, which JSON does not have")


def _finite_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]}, beyond a double")
    return value


def _check_surrogates(value: JsonValue, *, depth: int) -> None:
    if depth > _DEEPEST_NESTING:
        raise ValueError(f"nested deeper than {_DEEPEST_NESTING}")
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list):
        for item in value:
            _check_surrogates(item, depth=depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            name.encode("utf-8")
            _check_surrogates(item, depth=depth + 1)


def _check_signable(value: JsonValue) -> None:
    if isinstance(value, float):
        raise ValueError(f"a float in signed bytes: {value!r}")  # noqa: TRY004 (one class for "no signable form")
    if isinstance(value, str) and not unicodedata.is_normalized("NFC", value):
        raise ValueError(f"text that is not NFC: {value[:80]!r}")
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_signable(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_signable(name)
            _check_signable(item)
