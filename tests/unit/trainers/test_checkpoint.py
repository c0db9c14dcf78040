"""Checkpoints: whole or not there, and nothing read that is not what was written."""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

from flopwitness.foundation.digest import digest_bytes, digest_file
from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError, OutOfRangeError
from flopwitness.trainers import checkpoint
from flopwitness.trainers.checkpoint import load_checkpoint, save_checkpoint
from flopwitness.trainers.checkpoint_record import RunIdentity, decode_record, encode_record
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.loss_scale import LossScale
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]
FILES = ["optimizer.safetensors", "state.json", "weights.safetensors"]


@pytest.fixture(scope="module")
def run(make_run: Make) -> RunConfig:
    return make_run()


@pytest.fixture(scope="module")
def identity(run: RunConfig) -> RunIdentity:
    return prepare_run(run, folder=Path()).identity


@pytest.fixture(scope="module")
def state(run: RunConfig, make_trainer: Callable[..., Trainer]) -> TrainState:
    trainer = make_trainer(run)
    trainer.train(stop=2)
    return trainer.state.copy()


@pytest.fixture
def saved(tmp_path: Path, state: TrainState, identity: RunIdentity) -> Path:
    folder = tmp_path / "step-000002"
    save_checkpoint(folder, state, identity, rows_taken=8)
    return folder


def test_what_is_saved_comes_back(
    saved: Path, run: RunConfig, identity: RunIdentity, state: TrainState
) -> None:
    loaded = load_checkpoint(saved, run, identity)
    assert (loaded.step, loaded.updates, loaded.scale) == (2, 2, None)
    assert list(loaded.weights) == list(state.weights)
    assert list(loaded.moments) == list(state.moments)
    for (_, one), (_, other) in zip(loaded.buffers(), state.buffers(), strict=True):
        assert torch.equal(one, other)
    assert sorted(path.name for path in saved.iterdir()) == FILES
    assert [path.name for path in saved.parent.iterdir()] == ["step-000002"]


def test_the_loss_scale_comes_back(
    make_run: Make, tmp_path: Path, make_trainer: Callable[..., Trainer]
) -> None:
    run = make_run(training__precision="fp16")
    identity = prepare_run(run, folder=tmp_path).identity
    start = replace(make_trainer(run).state, step=5, updates=3, scale=LossScale(exponent=11, good_steps=2))
    save_checkpoint(tmp_path / "a", start, identity, rows_taken=20)
    loaded = load_checkpoint(tmp_path / "a", run, identity)
    assert (loaded.step, loaded.updates, loaded.scale) == (5, 3, LossScale(exponent=11, good_steps=2))


def test_the_same_state_gives_the_same_bytes(saved: Path, state: TrainState, identity: RunIdentity) -> None:
    save_checkpoint(saved.parent / "again", state, identity, rows_taken=8)
    for name in FILES:
        assert (saved / name).read_bytes() == (saved.parent / "again" / name).read_bytes()


def test_permissions_are_those_of_the_umask(saved: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((saved / "state.json").stat().st_mode) == 0o666 & ~umask


def test_an_older_one_of_the_same_name_is_replaced(
    saved: Path, state: TrainState, identity: RunIdentity, run: RunConfig
) -> None:
    (saved / "weights.safetensors").write_bytes(b"torn")
    save_checkpoint(saved, state, identity, rows_taken=8)
    assert load_checkpoint(saved, run, identity).step == 2
    assert [path.name for path in saved.parent.iterdir()] == ["step-000002"]


def test_a_file_in_its_place_is_replaced(tmp_path: Path, state: TrainState, identity: RunIdentity) -> None:
    (tmp_path / "step").write_bytes(b"a file")
    save_checkpoint(tmp_path / "step", state, identity, rows_taken=8)
    assert (tmp_path / "step").is_dir()


# A reader's suspicion -------------------------------------------------------------------------------------


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["flip-first", "flip-last", "cut", "cut-half", "longer", "empty", "gone"])
def test_every_file_altered_or_torn_is_refused_in_one_line(
    saved: Path, run: RunConfig, identity: RunIdentity, name: str, change: str
) -> None:
    path = saved / name
    data = path.read_bytes()
    changed: dict[str, Callable[[], bytes]] = {
        "flip-first": lambda: _flip(data, 0),
        "flip-last": lambda: _flip(data, len(data) - 1),
        "cut": lambda: data[:-1],
        "cut-half": lambda: data[: len(data) // 2],
        "longer": lambda: data + b"\0",
        "empty": lambda: b"",
    }
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[change]())
    with pytest.raises(DecodeError) as caught:
        load_checkpoint(saved, run, identity)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_links_are_not_followed(saved: Path, run: RunConfig, identity: RunIdentity, name: str) -> None:
    path = saved / name
    path.rename(saved.parent / "elsewhere")
    path.symlink_to(saved.parent / "elsewhere")
    with pytest.raises(DecodeError, match="regular file"):
        load_checkpoint(saved, run, identity)


def test_a_linked_folder_is_refused(saved: Path, run: RunConfig, identity: RunIdentity) -> None:
    (saved.parent / "link").symlink_to(saved)
    with pytest.raises(DecodeError, match="expected a folder"):
        load_checkpoint(saved.parent / "link", run, identity)


@pytest.mark.parametrize("make", ["file", "folder", "pipe"])
def test_what_should_not_lie_there_is_refused(
    saved: Path, run: RunConfig, identity: RunIdentity, make: str
) -> None:
    if make == "file":
        (saved / "optimizer.pt").write_bytes(b"")
    elif make == "folder":
        (saved / "more").mkdir()
    else:
        (saved / "state.json").unlink()
        os.mkfifo(saved / "state.json")
    with pytest.raises(DecodeError):
        load_checkpoint(saved, run, identity)


def test_a_missing_folder_is_refused(tmp_path: Path, run: RunConfig, identity: RunIdentity) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_checkpoint(tmp_path / "none", run, identity)


@pytest.mark.parametrize("key", ["config", "root", "data"])
def test_a_checkpoint_of_another_run_is_refused(
    saved: Path, run: RunConfig, identity: RunIdentity, key: str
) -> None:
    other = replace(identity, **{key: digest_bytes(b"other")})
    with pytest.raises(DecodeError, match=f"{key}: a checkpoint of another run"):
        load_checkpoint(saved, run, other)


def _rewrite(folder: Path, run: RunConfig, name: str, tensors: dict[str, torch.Tensor]) -> None:
    """Put other tensors in, with the digest made good: only the declaration can tell."""
    safetensors.torch.save_file(tensors, folder / name)
    record = decode_record((folder / "state.json").read_bytes(), run)
    digest = digest_file(folder / name)
    is_weights = name.startswith("weights")
    changed = replace(record, weights=digest) if is_weights else replace(record, moments=digest)
    (folder / "state.json").write_bytes(encode_record(changed))


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", "a missing tensor"),
        ("extra", "a tensor too many"),
        ("shape", "another tensor"),
        ("type", "another tensor"),
        ("nan", "not finite"),
        ("infinite", "not finite"),
    ],
)
def test_tensors_are_held_against_the_declaration(
    saved: Path, run: RunConfig, identity: RunIdentity, name: str, change: str, message: str
) -> None:
    tensors = safetensors.torch.load_file(saved / name)
    first = min(tensors)
    if change == "missing":
        del tensors[first]
    elif change == "extra":
        tensors["layers.0.key.bias"] = torch.zeros(2)
    elif change == "shape":
        tensors[first] = tensors[first].reshape(-1)[:-1].clone()
    elif change == "type":
        tensors[first] = tensors[first].half()
    else:
        tensors[first].view(-1)[0] = float("nan" if change == "nan" else "inf")
    _rewrite(saved, run, name, tensors)
    with pytest.raises(DecodeError, match=message):
        load_checkpoint(saved, run, identity)


def test_a_file_that_is_no_safetensors_is_refused_even_with_its_digest(
    saved: Path, run: RunConfig, identity: RunIdentity
) -> None:
    path = saved / "weights.safetensors"
    for data in (b"\x80\x04K\x01.", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}"):
        path.write_bytes(data)
        record = decode_record((saved / "state.json").read_bytes(), run)
        (saved / "state.json").write_bytes(encode_record(replace(record, weights=digest_bytes(data))))
        with pytest.raises(DecodeError):
            load_checkpoint(saved, run, identity)


def test_a_huge_file_is_refused_unread(saved: Path, run: RunConfig, identity: RunIdentity) -> None:
    with (saved / "weights.safetensors").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(DecodeError, match="too large"):
        load_checkpoint(saved, run, identity)


# A writer's failures --------------------------------------------------------------------------------------


class _Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("at", ["_write_tensors", "encode_record", "_open_up", "_flush", "_put"])
def test_a_writer_killed_anywhere_leaves_the_older_one(
    saved: Path,
    run: RunConfig,
    identity: RunIdentity,
    state: TrainState,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
) -> None:
    def kill(*_: Any, **__: Any) -> None:  # noqa: ANN401 (whatever the function takes)
        raise _Killed

    monkeypatch.setattr(checkpoint, at, kill)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # nobody tidies up after a kill
    with pytest.raises(_Killed):
        save_checkpoint(saved.parent / "step-000004", state, identity, rows_taken=8)
    names = [path.name for path in saved.parent.iterdir() if not path.name.startswith(".")]
    assert names == ["step-000002"]
    assert load_checkpoint(saved, run, identity).step == 2


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, FlopwitnessError), (errno.EACCES, InputError)])
def test_a_full_or_closed_disk_is_one_line(
    tmp_path: Path,
    state: TrainState,
    identity: RunIdentity,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[FlopwitnessError],
) -> None:
    def fail(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(checkpoint, "_flush", fail)
    with pytest.raises(FlopwitnessError, match="cannot be written") as caught:
        save_checkpoint(tmp_path / "a", state, identity, rows_taken=8)
    assert type(caught.value) is kind
    assert not list(tmp_path.iterdir())


def test_what_the_tensors_writer_fails_at_is_one_line(
    tmp_path: Path, state: TrainState, identity: RunIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(FlopwitnessError, match="No space left"):
        save_checkpoint(tmp_path / "a", state, identity, rows_taken=8)
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_not_there_is_one_line(
    tmp_path: Path, state: TrainState, identity: RunIdentity
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        save_checkpoint(tmp_path / "none" / "a", state, identity, rows_taken=8)


@pytest.mark.parametrize("kind", ["weights", "moments"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_no_reader_takes_is_not_written(
    tmp_path: Path, state: TrainState, identity: RunIdentity, kind: str, value: float
) -> None:
    odd = state.copy()
    name, tensor = next(iter(getattr(odd, kind).items()))
    with torch.no_grad():
        tensor.view(-1)[0] = value
    with pytest.raises(OutOfRangeError, match=f"step 2, .*{name}: not finite"):
        save_checkpoint(tmp_path / "step-000002", odd, identity, rows_taken=8)
    assert list(tmp_path.iterdir()) == []
