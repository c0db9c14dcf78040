"""A checkpoint: a folder of three files that is there whole or not at all, and read with suspicion.

    weights.safetensors      parameters by name
    optimizer.safetensors    moments by kind and parameter's name
    state.json               canonical JSON: what they belong to, and the digests of both

Nothing is pickled, so nothing that is read can run. A reader holds every file against its digest, and every
tensor against the declaration: the same names, shapes and types, none more and none less, all finite.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import safetensors
import safetensors.torch
import torch

from flopwitness.foundation.digest import Digest, digest_bytes, digest_file
from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError, OutOfRangeError
from flopwitness.foundation.files import FULL_ERRNOS, read_bounded
from flopwitness.trainers.checkpoint_record import CheckpointRecord, RunIdentity, decode_record, encode_record
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.parameters import list_parameters
from flopwitness.trainers.state import TrainState, list_moments, weight_type

__all__ = ["MOMENTS_FILE", "PART_SUFFIX", "RECORD_FILE", "WEIGHTS_FILE", "load_checkpoint", "save_checkpoint"]

WEIGHTS_FILE: Final = "weights.safetensors"
MOMENTS_FILE: Final = "optimizer.safetensors"
RECORD_FILE: Final = "state.json"
PART_SUFFIX: Final = ".part"
"""How the name of a folder ends that is not whole yet."""

_LARGEST_RECORD_BYTES: Final = 1 << 16
_HEADER_BYTES: Final = 4096
_HEADER_BYTES_PER_TENSOR: Final = 512


def save_checkpoint(folder: Path, state: TrainState, identity: RunIdentity, *, rows_taken: int) -> None:
    """Put a checkpoint at `folder`: a reader sees the old one, or the new one, and never a part.

    The files are written and flushed to the disk in a temporary folder beside it, which then gets the name.

    Args:
        folder: Where; what stands there is replaced.
        state: The state between two steps.
        identity: The run.
        rows_taken: Rows taken so far over all processes.

    Raises:
        OutOfRangeError: A weight or moment is not finite: no reader would take such a checkpoint.
        InputError: The place cannot be written.
        FlopwitnessError: The disk is full.

    Side effects:
        Creates or replaces the folder. Whatever fails, nothing new is left.
    """
    odd = next((name for name, tensor in state.buffers() if not bool(torch.isfinite(tensor).all())), None)
    if odd is not None:
        raise OutOfRangeError("not finite", where=f"step {state.step}, {odd}", expected="finite numbers")
    part: Path | None = None
    try:
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=PART_SUFFIX))
        weights = _write_tensors(part / WEIGHTS_FILE, state.weights)
        moments = _write_tensors(part / MOMENTS_FILE, state.moments)
        record = CheckpointRecord(
            identity=identity,
            step=state.step,
            updates=state.updates,
            rows_taken=rows_taken,
            scale=state.scale,
            weights=weights,
            moments=moments,
        )
        (part / RECORD_FILE).write_bytes(encode_record(record))
        _flush(part / RECORD_FILE)
        _open_up(part)
        _flush(part)
        _put(part, folder)
    except OSError as error:
        kind = FlopwitnessError if error.errno in FULL_ERRNOS else InputError
        raise kind("cannot be written", where=str(folder), found=error.strerror or str(error)) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def _write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> Digest:
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        safetensors.torch.save_file(plain, path)
    except safetensors.SafetensorError as error:  # the disk, as far as it tells
        raise FlopwitnessError("cannot be written", where=str(path), found=str(error)[:160]) from error
    _flush(path)
    return digest_file(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open_up(folder: Path) -> None:
    """Give folder and files the permissions that the umask allows; temporary ones start closed."""
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)
    for path in folder.iterdir():
        path.chmod(0o666 & ~umask)


def _put(part: Path, folder: Path) -> None:
    """Give the finished folder its name; an older one of that name goes away afterwards."""
    old = part.with_name(f".old{part.name}")
    if os.path.lexists(folder):
        folder.rename(old)
    part.rename(folder)
    _flush(folder.parent)
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def load_checkpoint(folder: Path, run: RunConfig, identity: RunIdentity) -> TrainState:
    """The state that a checkpoint of this run holds, on the CPU.

    Raises:
        InputError: There is no such folder, or it cannot be read.
        DecodeError: It is not exactly the three files, one of them is altered, torn or of another run, or a
            tensor is missing, too many, of another shape or type, or not finite.
    """
    _check_files(folder)
    data = read_bounded(folder / RECORD_FILE, limit_bytes=_LARGEST_RECORD_BYTES)
    where = str(folder / RECORD_FILE)
    record = decode_record(data, run, where=where)
    for key in ("config", "root", "data"):
        expected, found = getattr(identity, key), getattr(record.identity, key)
        if expected != found:
            raise DecodeError(
                "a checkpoint of another run",
                where=f"{where}, {key}",
                expected=str(expected)[:23],
                found=str(found)[:23],
            )
    shapes = {parameter.name: parameter.shape for parameter in list_parameters(run.model)}
    return TrainState(
        step=record.step,
        updates=record.updates,
        weights=_read_tensors(folder / WEIGHTS_FILE, record.weights, shapes, run),
        moments=_read_tensors(folder / MOMENTS_FILE, record.moments, list_moments(run), run),
        scale=record.scale,
    )


def _check_files(folder: Path) -> None:
    expected = {WEIGHTS_FILE, MOMENTS_FILE, RECORD_FILE}
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise DecodeError("no checkpoint", where=str(folder), expected="a folder")
        found = {entry.name: entry for entry in os.scandir(folder)}
        odd = sorted(found.keys() ^ expected)
        if odd:
            found_text = "something more" if odd[0] in found else "no such file"
            raise DecodeError(
                "no whole checkpoint",
                where=str(folder / odd[0]),
                expected=", ".join(sorted(expected)),
                found=found_text,
            )
        link = next((name for name in sorted(found) if not found[name].is_file(follow_symlinks=False)), None)
        if link is not None:
            raise DecodeError("no checkpoint", where=str(folder / link), expected="a regular file")
    except OSError as error:
        raise InputError("cannot be read", where=str(folder), found=error.strerror or str(error)) from error


def _read_tensors(
    path: Path, digest: Digest, shapes: Mapping[str, tuple[int, ...]], run: RunConfig
) -> dict[str, torch.Tensor]:
    """The tensors of one file in the declaration's order, from the very bytes that were checked."""
    dtype = weight_type(run)
    sizes = sum(torch.Size(shape).numel() for shape in shapes.values()) * dtype.itemsize
    limit = sizes + _HEADER_BYTES + _HEADER_BYTES_PER_TENSOR * len(shapes)
    data = read_bounded(path, limit_bytes=limit)
    if digest_bytes(data) != digest:
        raise DecodeError(
            "altered or torn", where=str(path), expected=str(digest)[:23], found=str(digest_bytes(data))[:23]
        )
    try:
        tensors = safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise DecodeError("not safetensors", where=str(path), found=str(error)[:160]) from None
    odd = sorted(tensors.keys() ^ shapes.keys())
    if odd:
        message = "a tensor too many" if odd[0] in tensors else "a missing tensor"
        raise DecodeError(message, where=f"{path}, {odd[0][:80]}", expected=f"{len(shapes)} of this run's")
    for name, shape in shapes.items():
        _check_tensor(tensors[name], shape, dtype, where=f"{path}, {name}")
    return {name: tensors[name] for name in shapes}


def _check_tensor(tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, *, where: str) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        raise DecodeError(
            "another tensor",
            where=where,
            expected=f"{dtype} of {list(shape)}",
            found=f"{tensor.dtype} of {list(tensor.shape)}",
        )
    if not bool(torch.isfinite(tensor).all()):
        raise DecodeError("not finite", where=where, expected="finite numbers")
