"""What `count` is asked: a run's configuration, a chain of layers, or a published model's sizes."""

from dataclasses import dataclass
from typing import Final

from flopwitness.counting.chain import Chain, read_chain
from flopwitness.counting.hugging_face import decode_hugging_face
from flopwitness.counting.model import Model
from flopwitness.counting.tables import read_model, read_training
from flopwitness.counting.training import Training
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.toml_table import TomlTable, decode_toml

__all__ = ["LARGEST_CONFIG_BYTES", "RUN_SPEC", "CountedRun", "check_spec", "decode_counted"]

RUN_SPEC: Final = "flopwitness/run/v1"
"""What a configuration calls itself."""

LARGEST_CONFIG_BYTES: Final = 1 << 20
"""The largest configuration that is read."""

_OF_TRAINER = ("seed", "precision", "device", "threads", "clip_norm")
_TOP = ("spec", "model", "training", "optimizer", "schedule", "data", "checkpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A model, and what a run does with it.

    Attributes:
        model: The model.
        training: The run.
        has_updates: The configuration says how many rows an update takes; a published model does not, and
            then nothing is known of the optimizer.
    """

    model: Model
    training: Training
    has_updates: bool = True


def decode_counted(
    data: bytes, *, where: str = "", tokens: int | None = None, sequence: int | None = None
) -> CountedRun | Chain:
    """What a configuration describes: TOML of ours, or a Hugging Face `config.json`.

    Args:
        data: The file.
        where: The file to name in an error.
        tokens: For a `config.json`, which knows no run: the tokens to train on, counted in whole
            rows; one row where None.
        sequence: The same: the row's length [token]; the longest that the model takes where None.

    Raises:
        InputError: The file describes no run that can be counted, or the options do not fit it.
    """
    if data.lstrip()[:1] == b"{":
        return _decode_published(data, where=where, tokens=tokens, sequence=sequence)
    if tokens is not None or sequence is not None:
        raise InputError(
            "a configuration names its own rows and steps", where=where, expected="no --tokens, no --sequence"
        )
    top = decode_toml(data, where=where)
    return _decode_chain(top) if top.has("chain") else _decode_run(top)


def check_spec(top: TomlTable) -> None:
    """Refuse a file that calls itself something else.

    Raises:
        DecodeError: It is no run's configuration, or one of another version.
    """
    spec = top.text("spec")
    if spec != RUN_SPEC:
        raise top.error("another kind of file", key="spec", expected=repr(RUN_SPEC), found=repr(spec))


def _decode_chain(top: TomlTable) -> Chain:
    check_spec(top)
    chain = read_chain(top.table("chain"))
    top.close()
    return chain


def _decode_run(top: TomlTable) -> CountedRun:
    """The tables that decide a count; the others belong to the trainer and are checked by it."""
    check_spec(top)
    model = read_model(top.table("model"))
    optimizer = top.optional_table("optimizer")
    table = top.table("training")
    training = read_training(table, optimizer=optimizer, model=model)
    table.read.update(_OF_TRAINER)
    table.close()
    top.read.update(_TOP)
    top.close()
    return CountedRun(model=model, training=training)


def _decode_published(data: bytes, *, where: str, tokens: int | None, sequence: int | None) -> CountedRun:
    model = decode_hugging_face(data, where=where, sequence=sequence)
    if tokens == 0:
        raise InputError("no tokens to count", where="--tokens", expected="1 or more", found="0")
    rows = 1 if tokens is None else -(-tokens // model.sequence)
    return CountedRun(model=model, training=Training(batch=1, steps=rows), has_updates=False)
