"""`losses.jsonl`: one line a step, exact, and cut back to its checkpoint when a run is resumed."""

import os
from pathlib import Path
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json, encode_signable
from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError
from flopwitness.foundation.files import FULL_ERRNOS
from flopwitness.trainers.observer import StepOutcome

__all__ = ["LossLog", "encode_outcome"]

_LONGEST_LINE: Final = 4096


def encode_outcome(outcome: StepOutcome) -> bytes:
    """One line: canonical JSON, numbers that are not whole as the shortest text that reads back the same."""
    record: dict[str, JsonValue] = {
        "step": outcome.step,
        "loss": repr(outcome.loss),
        "learning_rate": repr(outcome.learning_rate),
        "gradient_norm": repr(outcome.gradient_norm),
        "tokens": outcome.tokens,
        "duration_ns": str(outcome.duration_ns),
    }
    if outcome.scale_exponent is not None:
        record |= {"scale_exponent": outcome.scale_exponent, "skipped": outcome.is_skipped}
    return encode_signable(record) + b"\n"


class LossLog:
    """The open log of a run."""

    def __init__(self, path: Path, *, steps_done: int) -> None:
        """Open the log, and cut off what stands after a checkpoint: those steps are done again.

        Args:
            path: The file; created where it is missing.
            steps_done: The checkpoint's steps.

        Raises:
            InputError: It cannot be read and written.
            DecodeError: It lacks a step that the checkpoint has done.
        """
        self._path = path
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            self._file = os.fdopen(handle, "r+b")
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._file.truncate(self._keep(steps_done))
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            self._file.close()
            raise self._unwritable(error) from error
        except DecodeError:
            self._file.close()
            raise

    def _keep(self, steps_done: int) -> int:
        """Bytes of the lines of the steps that are done."""
        size_bytes = 0
        for step in range(steps_done):
            line = self._file.readline(_LONGEST_LINE)
            if not line.endswith(b"\n") or not _is_line_of(line, step):
                raise DecodeError(
                    "a step is missing", where=str(self._path), expected=f"a line of step {step}"
                )
            size_bytes += len(line)
        return size_bytes

    def add(self, outcome: StepOutcome) -> None:
        """Add one step.

        Raises:
            FlopwitnessError: The disk is full.
        """
        try:
            self._file.write(encode_outcome(outcome))
        except OSError as error:
            raise self._unwritable(error) from error

    def flush(self) -> None:
        """Put everything on the disk.

        Raises:
            FlopwitnessError: The disk is full.
        """
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Put everything into the file, and close it."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> FlopwitnessError:
        kind = FlopwitnessError if error.errno in FULL_ERRNOS else InputError
        return kind("cannot be written", where=str(self._path), found=error.strerror or str(error))


def _is_line_of(line: bytes, step: int) -> bool:
    try:
        record = decode_json(line)
    except DecodeError:
        return False
    return isinstance(record, dict) and record.get("step") == step
