"""The declared run as a record: one digest for one run, however it is spelt."""

from collections.abc import Callable

import pytest

from flopwitness.foundation.encoding import encode_signable
from flopwitness.trainers.config import RunConfig, TokenType, describe_run, digest_run
from flopwitness.trainers.config_file import decode_run

Make = Callable[..., RunConfig]


def test_the_digest_of_a_known_run_does_not_change(make_run: Make) -> None:
    expected = "sha256:bde9129d905eb6b65d72478d762d1a774dfe92d255fed90f652781fb80938e66"
    assert str(digest_run(make_run())) == expected


def test_two_spellings_of_one_run_are_one_run(config_bytes: Callable[..., bytes], make_run: Make) -> None:
    data = config_bytes()
    spelt = data.replace(b"learning_rate = 0.01", b"learning_rate = 1e-2").replace(b"seed = 7", b"seed = 0x7")
    lines = (
        spelt.decode()
        .replace('kind = "decoder"\n', "")
        .replace("[model]", '[model]\nbias = true\nkind = "decoder"')
    )
    other = decode_run(b"# a comment\n" + lines.encode(), where="other.toml")
    assert other == make_run()
    assert digest_run(other) == digest_run(make_run())


@pytest.mark.parametrize(
    "changes",
    [
        {"model__layers": 1},
        {"model__dropout": 0.1},
        {"model__bias": False},
        {"model__frozen": ["norm"]},
        {"model__tied": True},
        {"training__seed": 8},
        {"training__threads": 2},
        {"training__precision": "bf16"},
        {"training__accumulation": 2},
        {"training__checkpointing": "layers"},
        {"training__clip_norm": 1.0},
        {"optimizer__learning_rate": 0.0100001},
        {"optimizer__weight_decay": 0.1},
        {"optimizer__eps": 1e-9},
        {"schedule__warmup_steps": 1},
        {"schedule__kind": "linear"},
        {"data__rows": 13},
        {"data__order": "sequential"},
        {"checkpoints__every": 5},
    ],
)
def test_every_setting_is_in_the_digest(make_run: Make, changes: dict[str, object]) -> None:
    assert digest_run(make_run(**changes)) != digest_run(make_run())


def test_the_record_holds_no_floats_and_every_default(make_run: Make) -> None:
    record = describe_run(make_run(training__seed=(1 << 63) - 1))
    assert encode_signable(record)
    assert record["training"]["seed"] == "9223372036854775807"
    assert record["optimizer"]["learning_rate"] == "0.01"
    assert record["model"]["norm"] == "layer"


def test_a_token_has_a_size() -> None:
    assert (TokenType.UINT16.size_bytes, TokenType.UINT32.size_bytes) == (2, 4)
