"""`state.json` of a checkpoint: what the tensors beside it belong to, in canonical bytes without floats."""

import re
from dataclasses import dataclass
from typing import Final, TypeGuard

from flopwitness.foundation.digest import Digest
from flopwitness.foundation.encoding import JsonValue, decode_json, encode_signable
from flopwitness.foundation.errors import DecodeError
from flopwitness.trainers.config import Precision, RunConfig
from flopwitness.trainers.loss_scale import GROWS_AFTER, LARGEST_EXPONENT, SMALLEST_EXPONENT, LossScale

__all__ = ["SPEC", "CheckpointRecord", "RunIdentity", "decode_record", "encode_record"]

SPEC: Final = "flopwitness/checkpoint/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What makes two checkpoints those of one run.

    Attributes:
        config: The digest of the declared run.
        root: The digest of the random numbers' root.
        data: The digest of the data.
    """

    config: Digest
    root: Digest
    data: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """What `state.json` says.

    Attributes:
        identity: The run.
        step: Steps done.
        updates: Steps that updated the weights.
        rows_taken: Rows taken so far over all processes: the place in the data.
        scale: The loss scale of an fp16 run, else None.
        weights: The digest of the file of weights.
        moments: The digest of the file of moments.
    """

    identity: RunIdentity
    step: int
    updates: int
    rows_taken: int
    scale: LossScale | None
    weights: Digest
    moments: Digest


def encode_record(record: CheckpointRecord) -> bytes:
    """The record's canonical bytes."""
    scale = record.scale
    return encode_signable(
        {
            "spec": SPEC,
            "config": str(record.identity.config),
            "root": str(record.identity.root),
            "data": str(record.identity.data),
            "step": record.step,
            "updates": record.updates,
            "rows_taken": str(record.rows_taken),
            "loss_scale": None
            if scale is None
            else {"exponent": scale.exponent, "good_steps": scale.good_steps},
            "weights": str(record.weights),
            "moments": str(record.moments),
        }
    )


def decode_record(data: bytes, run: RunConfig, *, where: str = "") -> CheckpointRecord:
    """The record of a checkpoint of this run's kind; whose it is, the caller compares.

    Args:
        data: What `encode_record` wrote; another spelling of the same is refused.
        run: The run, for which steps and precisions there are.
        where: The file to name in an error.

    Raises:
        DecodeError: Anything else.
    """
    value = decode_json(data, where=where)
    record = _read(value, where) if isinstance(value, dict) else None
    if record is None or encode_record(record) != data:
        raise DecodeError("not a checkpoint's record", where=where, expected=f"canonical JSON of {SPEC}")
    _check_place(record, run, where)
    return record


def _read(value: dict[str, JsonValue], where: str) -> CheckpointRecord | None:
    """The record, or None where a key is missing or of another kind; unknown keys do not come back out."""
    config, root, data, weights, moments = (
        Digest.parse(value[key], where=where) if isinstance(value.get(key), str) else None
        for key in ("config", "root", "data", "weights", "moments")
    )
    step, updates, rows = (value.get(key) for key in ("step", "updates", "rows_taken"))
    is_read, scale = _read_scale(value.get("loss_scale", ""))
    if not (config and root and data and weights and moments and is_read):
        return None
    if not (_is_count(step) and _is_count(updates) and isinstance(rows, str) and _ROWS.fullmatch(rows)):
        return None
    return CheckpointRecord(
        identity=RunIdentity(config=config, root=root, data=data),
        step=step,
        updates=updates,
        rows_taken=int(rows),
        scale=scale,
        weights=weights,
        moments=moments,
    )


_ROWS: Final = re.compile(r"0|[1-9][0-9]{0,29}")


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _read_scale(value: JsonValue) -> tuple[bool, LossScale | None]:
    """Whether it is a loss scale or none, and which."""
    if value is None:
        return True, None
    if not isinstance(value, dict) or value.keys() != {"exponent", "good_steps"}:
        return False, None
    exponent, good_steps = value["exponent"], value["good_steps"]
    is_right = type(exponent) is int and SMALLEST_EXPONENT <= exponent <= LARGEST_EXPONENT
    if not is_right or not _is_count(good_steps) or good_steps >= GROWS_AFTER:
        return False, None
    return True, LossScale(exponent=exponent, good_steps=good_steps)


def _check_place(record: CheckpointRecord, run: RunConfig, where: str) -> None:
    """Refuse counts that no run of this declaration comes to."""
    is_fp16 = run.precision is Precision.FP16
    for key, is_right, expected, found in (
        ("step", record.step <= run.training.steps, f"at most {run.training.steps}", record.step),
        (
            "updates",
            record.updates == record.step or (is_fp16 and record.updates < record.step),
            f"{record.step}" + (" or fewer" if is_fp16 else ""),
            record.updates,
        ),
        (
            "rows_taken",
            record.rows_taken == record.step * run.training.rows_per_step,
            str(record.step * run.training.rows_per_step),
            record.rows_taken,
        ),
        ("loss_scale", (record.scale is not None) is is_fp16, "one in an fp16 run alone", record.scale),
    ):
        if not is_right:
            raise DecodeError(
                "does not fit the run", where=f"{where}, {key}", expected=expected, found=str(found)[:80]
            )
