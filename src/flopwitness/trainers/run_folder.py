"""The folder of one run, which never holds two.

run.toml              the configuration as used, byte for byte
environment.json      where it was carried out, from which step on
losses.jsonl          one line a step
checkpoints/step-000010/...
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flopwitness.counting.config import LARGEST_CONFIG_BYTES
from flopwitness.foundation.encoding import JsonValue, decode_json, encode_canonical
from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError
from flopwitness.foundation.files import FULL_ERRNOS, read_bounded, write_whole
from flopwitness.trainers.checkpoint import PART_SUFFIX, load_checkpoint
from flopwitness.trainers.checkpoint_record import RunIdentity
from flopwitness.trainers.config import RunConfig, digest_run
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.state import TrainState

__all__ = ["ENVIRONMENT_SPEC", "FoundState", "RunFolder", "open_folder"]

ENVIRONMENT_SPEC: Final = "flopwitness/environment/v1"
CONFIG_FILE: Final = "run.toml"
ENVIRONMENT_FILE: Final = "environment.json"
LOSSES_FILE: Final = "losses.jsonl"
CHECKPOINTS: Final = "checkpoints"
_STEP_NAME: Final = re.compile(r"step-([0-9]{6,8})")
_LARGEST_ENVIRONMENT_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundState:
    """The newest whole checkpoint.

    Attributes:
        path: Its folder.
        state: What it holds.
        damaged: Newer ones that are not whole, in one line each.
    """

    path: Path
    state: TrainState
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """The folder of a run that this process alone writes to.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def losses(self) -> Path:
        """The log of losses."""
        return self.path / LOSSES_FILE

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint after so many steps lies."""
        return self.path / CHECKPOINTS / f"step-{step:06d}"

    def steps(self) -> list[int]:
        """After how many steps there are checkpoints, whole or not, in order."""
        names = (_STEP_NAME.fullmatch(each.name) for each in (self.path / CHECKPOINTS).iterdir())
        steps = {int(match[1]) for match in names if match}
        return sorted(step for step in steps if os.path.lexists(self.checkpoint(step)))

    def find_newest(self, run: RunConfig, identity: RunIdentity) -> FoundState | None:
        """The newest whole checkpoint, or None where there are none at all.

        Raises:
            DecodeError: There are some, and none is whole; the newest one's fault is told.
        """
        faults: list[DecodeError] = []
        for step in reversed(self.steps()):
            path = self.checkpoint(step)
            try:
                state = _load_step(path, run, identity, step)
            except DecodeError as fault:
                faults.append(fault)
                continue
            return FoundState(path=path, state=state, damaged=tuple(str(fault) for fault in faults))
        if faults:
            raise faults[0]
        return None

    def note_environment(self, environment: Mapping[str, JsonValue], *, step: int) -> bool:
        """Keep where the steps from one on are carried out; whether earlier ones were elsewhere.

        Raises:
            DecodeError: The file is not what was written.
        """
        path = self.path / ENVIRONMENT_FILE
        stretches = [
            stretch for stretch in _read_stretches(path) if step and int(stretch["from_step"]) <= step
        ]
        is_changed = bool(stretches) and stretches[-1]["environment"] != environment
        if not stretches or is_changed:
            stretches.append({"from_step": step, "environment": dict(environment)})
            write_whole(path, encode_canonical({"spec": ENVIRONMENT_SPEC, "stretches": stretches}) + b"\n")
        return is_changed


def _load_step(path: Path, run: RunConfig, identity: RunIdentity, step: int) -> TrainState:
    """The state that a checkpoint holds, refused where its folder is named after another step."""
    state = load_checkpoint(path, run, identity)
    if state.step != step:
        raise DecodeError(
            "a checkpoint of another step", where=str(path), expected=str(step), found=str(state.step)
        )
    return state


def _read_stretches(path: Path) -> list[dict[str, JsonValue]]:
    if not os.path.lexists(path):
        return []
    record = decode_json(read_bounded(path, limit_bytes=_LARGEST_ENVIRONMENT_BYTES), where=str(path))
    stretches = record.get("stretches") if isinstance(record, dict) else None
    if (
        not isinstance(stretches, list)
        or not all(isinstance(each, dict) for each in stretches)
        or not all(type(each.get("from_step")) is int and "environment" in each for each in stretches)
    ):
        raise DecodeError("not a record of environments", where=str(path), expected=ENVIRONMENT_SPEC)
    return stretches


@contextmanager
def open_folder(path: Path, data: bytes, run: RunConfig, *, is_resumed: bool) -> Iterator[RunFolder]:
    """The folder of a run, new or resumed, locked for as long as the context lasts.

    Args:
        path: The folder; created where it is missing, beside what is there.
        data: The configuration as used.
        run: The same, decoded.
        is_resumed: The folder holds this run, to go on with; else it holds nothing.

    Raises:
        InputError: The folder holds another run, none, or something else, or it cannot be written, or
            another process trains in it.
        FlopwitnessError: The disk is full.
    """
    with ExitStack() as stack:
        try:
            if not is_resumed:
                _make_folder(path)
            elif not path.is_dir():
                raise InputError("no run to resume", where=str(path), expected=f"a folder with {CONFIG_FILE}")
            _lock(path, stack)
            if is_resumed:
                _check_same_run(path, run)
            else:
                _start(path, data)
            _clear_parts(path / CHECKPOINTS)
        except OSError as error:
            kind = FlopwitnessError if error.errno in FULL_ERRNOS else InputError
            raise kind("cannot be written", where=str(path), found=str(error.strerror)) from error
        yield RunFolder(path=path)


def _make_folder(path: Path) -> None:
    """Make the folder of a new run where there is none."""
    if os.path.lexists(path) and not path.is_dir():
        raise InputError("cannot be written", where=str(path), expected="a folder, or none yet")
    if not path.parent.is_dir():
        raise InputError("cannot be written", where=str(path), found="no such folder above it")
    path.mkdir(exist_ok=True)


def _lock(path: Path, stack: ExitStack) -> None:
    """Keep every other process out of the folder until the stack is closed."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError("another process trains in this folder", where=str(path)) from None


def _start(path: Path, data: bytes) -> None:
    """Begin a new run in a folder that holds nothing but what a start that was killed left."""
    for entry in list(os.scandir(path)):
        if entry.name.startswith(f".{CONFIG_FILE}.") and entry.name.endswith(PART_SUFFIX):
            Path(entry.path).unlink(missing_ok=True)
    if list(path.iterdir()):
        is_run = (path / CONFIG_FILE).is_file()
        raise InputError(
            "the folder holds a run already" if is_run else "the folder is not empty",
            where=str(path),
            expected="another folder, or --resume" if is_run else "an empty folder, or none yet",
        )
    write_whole(path / CONFIG_FILE, data)
    (path / CHECKPOINTS).mkdir()


def _check_same_run(path: Path, run: RunConfig) -> None:
    config = path / CONFIG_FILE
    if not config.is_file():
        raise InputError("no run to resume", where=str(path), expected=f"a folder with {CONFIG_FILE}")
    held = decode_run(read_bounded(config, limit_bytes=LARGEST_CONFIG_BYTES), where=str(config))
    if digest_run(held) != digest_run(run):
        raise InputError(
            "the folder holds another run",
            where=str(config),
            expected=str(digest_run(run))[:23],
            found=str(digest_run(held))[:23],
        )
    (path / CHECKPOINTS).mkdir(exist_ok=True)


def _clear_parts(folder: Path) -> None:
    """Remove what a killed process left half written; nobody else writes here."""
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(".") and entry.name.endswith(PART_SUFFIX):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)
