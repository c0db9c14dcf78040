import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation import encoding
from flopwitness.foundation.encoding import (
    decode_base64,
    decode_json,
    encode_base64,
    encode_canonical,
    encode_signable,
)
from flopwitness.foundation.errors import DecodeError

H28 = Path(__file__).resolve().parents[2] / "cases" / "h28_canonical_json"
EXPECTED = json.loads((H28 / "expected.json").read_text(encoding="utf-8"))

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.text())
SIGNABLE = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@pytest.mark.parametrize("name", sorted(EXPECTED["expect"]["vectors"]))
def test_case_h28_canonical_bytes(name: str) -> None:
    expected = EXPECTED["expect"]["vectors"][name]
    found = encode_canonical(decode_json((H28 / f"{name}.json").read_bytes()))
    assert found == expected["canonical"].encode()
    assert hashlib.sha256(found).hexdigest() == expected["sha256"]


@pytest.mark.parametrize("name", EXPECTED["expect"]["refuse"])
def test_case_h28_what_has_no_canonical_form(name: str) -> None:
    with pytest.raises(DecodeError, match="not strict JSON"):
        decode_json((H28 / name).read_bytes(), where=name)


def test_case_h28_wrong_answers() -> None:
    wrong = EXPECTED["wrong_answers"]
    assert (
        encode_canonical(decode_json((H28 / "v1.json").read_bytes())) != wrong["v1_python_sort_keys"].encode()
    )


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_of_rfc_8785_appendix_b(bits: str, expected: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert encode_canonical(value) == expected.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_rfc_8785_appendix_b_has_no_form_for_what_is_not_finite(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(ValueError, match="no canonical form"):
        encode_canonical(value)


def test_names_are_ordered_by_utf_16_units_as_in_rfc_8785_section_3_2_3() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = json.loads(encode_canonical(dict.fromkeys(names, 0)))
    assert list(found) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, -(2**53), {1: 2}, "\ud800", b"bytes", {"a": object()}],
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:  # noqa: ANN401 (any value may come)
    with pytest.raises(ValueError, match="no canonical form"):
        encode_canonical(value)


@pytest.mark.parametrize(
    "value",
    [0.5, 1.0, [0.0], {"a": {"b": 2.0}}, (1, 2.5), "e\u0301", {"e\u0301": 1}, ["\u212b"], float("nan")],
)
def test_floats_and_text_that_is_not_nfc_are_not_signed(value: Any) -> None:  # noqa: ANN401 (as above)
    with pytest.raises(ValueError, match=r"float|NFC"):
        encode_signable(value)


def test_what_nests_for_ever_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for encode in (encode_canonical, encode_signable):
        with pytest.raises(ValueError, match="no canonical form"):
            encode(endless)


def test_what_is_signable_has_its_canonical_bytes() -> None:
    value = {"n": 1, "text": "\u00e9", "list": [True, None, "10000000000000000000000000"]}
    assert encode_signable(value) == encode_canonical(value)


@given(SIGNABLE)
def test_canonical_bytes_come_back_and_stay_the_same(value: Any) -> None:  # noqa: ANN401 (as above)
    written = encode_canonical(value)
    assert decode_json(written) == value
    assert encode_canonical(decode_json(written)) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_comes_back(value: float) -> None:
    found = decode_json(encode_canonical(value))
    assert float(found) == value


def test_a_double_that_is_written_whole_beyond_2_to_the_53_comes_back_as_an_integer() -> None:
    found = decode_json(encode_canonical(2.0**68))
    assert found == 295147905179352830000 != 2**68
    with pytest.raises(ValueError, match="no canonical form"):
        encode_canonical(found)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\xff",
        b"\xef\xbb\xbf1",
        b"{'a':1}",
        b"[1,]",
        b"1 2",
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"[-1e999]",
        b'{"a":1,"a":1}',
        b'"\\udc00"',
        b'{"\\ud800":1}',
        b'"\x01"',
        b"[" * 100_000,
        b"9" * 5_000,
    ],
)
def test_what_is_no_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="not strict JSON"):
        decode_json(data, where="here")


def test_nesting_is_limited_to_two_hundred() -> None:
    assert decode_json(b"[" * 200 + b"]" * 200) is not None
    for data in (b"[" * 202 + b"]" * 202, b'{"a":' * 202 + b"1" + b"}" * 202):
        with pytest.raises(DecodeError, match="nested deeper than 200"):
            decode_json(data)


def test_the_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "LARGEST_JSON_BYTES", 4)
    assert decode_json(b"1234") == 1234
    with pytest.raises(DecodeError, match="too large for JSON"):
        decode_json(b"12345")


@given(st.binary())
def test_whatever_bytes_come_only_one_error_leaves_the_decoder(data: bytes) -> None:
    try:
        decode_json(data)
    except DecodeError as error:
        assert error.exit_status == 2  # noqa: PT017 (any bytes may also be JSON)


@given(st.binary())
def test_base64_comes_back(data: bytes) -> None:
    assert decode_base64(encode_base64(data)) == data


def test_base64_vectors_of_rfc_4648_section_10() -> None:
    vectors = {b"": "", b"f": "Zg==", b"fo": "Zm8=", b"foo": "Zm9v", b"foobar": "Zm9vYmFy"}
    assert {data: encode_base64(data) for data in vectors} == vectors


@pytest.mark.parametrize(
    "text", ["Zg", "Zg=", "Zh==", "Z g==", "Zg==\n", "-_8=", "Zg==Zg==", "\u00e9", "====", "Zm9vYg=="[:-1]]
)
def test_what_is_not_the_canonical_base64_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="not base64"):
        decode_base64(text)
