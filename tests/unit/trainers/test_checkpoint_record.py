"""`state.json`: one spelling, no floats, and no counts that a run does not come to."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.trainers.checkpoint_record import (
    CheckpointRecord,
    RunIdentity,
    decode_record,
    encode_record,
)
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.loss_scale import LossScale

Make = Callable[..., RunConfig]

RECORD = CheckpointRecord(
    identity=RunIdentity(config=digest_bytes(b"c"), root=digest_bytes(b"r"), data=digest_bytes(b"d")),
    step=10,
    updates=10,
    rows_taken=40,
    scale=None,
    weights=digest_bytes(b"w"),
    moments=digest_bytes(b"m"),
)
SCALED = replace(RECORD, updates=8, scale=LossScale(exponent=-3, good_steps=7))


def test_a_record_comes_back(make_run: Make) -> None:
    assert decode_record(encode_record(RECORD), make_run()) == RECORD
    assert decode_record(encode_record(SCALED), make_run(training__precision="fp16")) == SCALED


def test_the_bytes_of_a_known_record() -> None:
    assert encode_record(SCALED).startswith(b'{"config":"sha256:')
    assert b'"loss_scale":{"exponent":-3,"good_steps":7}' in encode_record(SCALED)
    assert b'"rows_taken":"40","spec":"flopwitness/checkpoint/v1","step":10,"updates":8' in encode_record(
        SCALED
    )


MISSING = object()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spec", "flopwitness/checkpoint/v2"),
        ("spec", MISSING),
        ("config", MISSING),
        ("config", "sha256:00"),
        ("config", 5),
        ("root", None),
        ("data", "md5:" + "0" * 64),
        ("weights", "sha256:" + "A" * 64),
        ("moments", MISSING),
        ("step", "10"),
        ("step", 10.0),
        ("step", True),
        ("step", -1),
        ("step", 25),
        ("step", MISSING),
        ("updates", 11),
        ("updates", 9),
        ("updates", None),
        ("rows_taken", 40),
        ("rows_taken", "41"),
        ("rows_taken", "040"),
        ("rows_taken", "-40"),
        ("rows_taken", "4" * 40),
        ("loss_scale", MISSING),
        ("loss_scale", 65536.0),
        ("loss_scale", {"exponent": 16, "good_steps": 0}),
        ("extra", 1),
    ],
)
def test_a_record_with_a_fault_is_refused(make_run: Make, key: str, value: object) -> None:
    record: dict[str, Any] = json.loads(encode_record(RECORD))
    record[key] = value
    if value is MISSING:
        del record[key]
    data = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(DecodeError) as caught:
        decode_record(data, make_run(), where="state.json")
    assert "state.json" in str(caught.value)


@pytest.mark.parametrize(
    "scale",
    [
        None,
        16,
        {},
        {"exponent": 41, "good_steps": 0},
        {"exponent": -21, "good_steps": 0},
        {"exponent": 1.0, "good_steps": 0},
        {"exponent": 1, "good_steps": -1},
        {"exponent": 1, "good_steps": 2000},
        {"exponent": 1, "good_steps": 0, "more": 0},
    ],
)
def test_a_loss_scale_that_cannot_be_is_refused(make_run: Make, scale: object) -> None:
    record = {**json.loads(encode_record(SCALED)), "loss_scale": scale}
    data = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(DecodeError):
        decode_record(data, make_run(training__precision="fp16"))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"\n",
        lambda data: b" " + data,
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: b"[]",
        lambda data: b"null",
        lambda data: data.replace(b'"step":10', b'"step":10,"step":10'),
    ],
)
def test_another_spelling_is_refused(make_run: Make, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DecodeError):
        decode_record(change(encode_record(RECORD)), make_run())
