"""The folder of a run: never two runs, never two writers, and the newest whole checkpoint."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.trainers.checkpoint import save_checkpoint
from flopwitness.trainers.checkpoint_record import RunIdentity
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.run_folder import RunFolder, open_folder
from flopwitness.trainers.state import TrainState
from flopwitness.trainers.trainer import Trainer

Make = Callable[..., RunConfig]
Bytes = Callable[..., bytes]


@pytest.fixture(scope="module")
def run(make_run: Make) -> RunConfig:
    return make_run()


@pytest.fixture(scope="module")
def identity(run: RunConfig) -> RunIdentity:
    return prepare_run(run, folder=Path()).identity


@pytest.fixture(scope="module")
def states(run: RunConfig, make_trainer: Callable[..., Trainer]) -> list[TrainState]:
    trainer = make_trainer(run)
    copies = [trainer.state.copy()]
    for stop in range(1, 4):
        trainer.train(stop=stop)
        copies.append(trainer.state.copy())
    return copies


def _fill(folder: RunFolder, states: list[TrainState], identity: RunIdentity) -> None:
    for state in states:
        save_checkpoint(folder.checkpoint(state.step), state, identity, rows_taken=4 * state.step)


def test_a_new_folder_holds_the_configuration_byte_for_byte(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    data = b"# as it stands\n" + config_bytes()
    with open_folder(tmp_path / "out", data, run, is_resumed=False) as folder:
        assert (folder.path / "run.toml").read_bytes() == data
        assert folder.checkpoint(10) == tmp_path / "out" / "checkpoints" / "step-000010"
        assert folder.steps() == []


def test_an_empty_folder_is_taken(tmp_path: Path, run: RunConfig, config_bytes: Bytes) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        assert folder.losses.parent == tmp_path


@pytest.mark.parametrize("there", ["run", "other", "file", "nothing-above"])
def test_a_place_that_is_not_free_is_refused(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, there: str
) -> None:
    out = tmp_path / "out"
    if there == "run":
        with open_folder(out, config_bytes(), run, is_resumed=False):
            pass
    elif there == "other":
        out.mkdir()
        (out / "thesis.tex").write_text("five years")
    elif there == "file":
        out.write_text("five years")
    else:
        out = tmp_path / "none" / "out"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught, open_folder(out, config_bytes(), run, is_resumed=False):
        pass
    assert str(out) in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
    if there == "run":
        assert "--resume" in str(caught.value)


def test_another_run_is_not_resumed(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, make_run: Make
) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False):
        pass
    other = make_run(training__seed=8)
    with (
        pytest.raises(InputError, match="another run"),
        open_folder(tmp_path, config_bytes(training__seed=8), other, is_resumed=True),
    ):
        pass


def test_the_same_run_spelt_otherwise_is_resumed(tmp_path: Path, run: RunConfig, config_bytes: Bytes) -> None:
    data = config_bytes()
    with open_folder(tmp_path, data, run, is_resumed=False):
        pass
    with open_folder(tmp_path, b"# again\n" + data, run, is_resumed=True):
        pass
    assert (tmp_path / "run.toml").read_bytes() == data


@pytest.mark.parametrize("is_there", [True, False])
def test_where_there_is_no_run_none_is_resumed(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, is_there: bool
) -> None:
    out = tmp_path if is_there else tmp_path / "none"
    with (
        pytest.raises(InputError, match="no run to resume"),
        open_folder(out, config_bytes(), run, is_resumed=True),
    ):
        pass


def test_two_processes_do_not_train_in_one_folder(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    with (
        open_folder(tmp_path, config_bytes(), run, is_resumed=False),
        pytest.raises(InputError, match="another process"),
        open_folder(tmp_path, config_bytes(), run, is_resumed=True),
    ):
        pass
    with open_folder(tmp_path, config_bytes(), run, is_resumed=True):
        pass


def test_the_newest_whole_checkpoint_is_found(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, states: list[TrainState], identity: RunIdentity
) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        assert folder.find_newest(run, identity) is None
        _fill(folder, states, identity)
        assert folder.steps() == [0, 1, 2, 3]
        found = folder.find_newest(run, identity)
        assert found is not None
        assert (found.state.step, found.damaged) == (3, ())
        (folder.checkpoint(3) / "weights.safetensors").write_bytes(b"torn")
        (folder.checkpoint(2) / "state.json").unlink()
        found = folder.find_newest(run, identity)
        assert found is not None
        assert (found.state.step, found.path) == (1, folder.checkpoint(1))
        assert len(found.damaged) == 2
        assert "step-000003" in found.damaged[0]


def test_where_no_checkpoint_is_whole_the_newest_ones_fault_is_told(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, states: list[TrainState], identity: RunIdentity
) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        _fill(folder, states[:2], identity)
        for step in (0, 1):
            (folder.checkpoint(step) / "weights.safetensors").write_bytes(b"torn")
        with pytest.raises(DecodeError, match="step-000001"):
            folder.find_newest(run, identity)


def test_a_checkpoint_under_another_steps_name_is_not_taken(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, states: list[TrainState], identity: RunIdentity
) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        _fill(folder, states[:2], identity)
        shutil.copytree(folder.checkpoint(1), folder.checkpoint(9))
        (folder.path / "checkpoints" / "notes").mkdir()
        (folder.path / "checkpoints" / "step-0000012").mkdir()
        found = folder.find_newest(run, identity)
        assert found is not None
        assert found.state.step == 1
        assert "another step" in found.damaged[0]


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path, run: RunConfig, config_bytes: Bytes) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False):
        pass
    left = tmp_path / "checkpoints" / ".step-000004.abc.part"
    left.mkdir()
    (left / "weights.safetensors").write_bytes(b"half")
    (tmp_path / "checkpoints" / ".file.part").write_bytes(b"half")
    (tmp_path / "checkpoints" / "kept").mkdir()
    with open_folder(tmp_path, config_bytes(), run, is_resumed=True):
        assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["kept"]


def test_environments_are_kept_by_the_step_from_which_they_hold(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    def stretches() -> list[tuple[int, str]]:
        record = json.loads((tmp_path / "environment.json").read_text())
        assert record["spec"] == "flopwitness/environment/v1"
        return [(each["from_step"], each["environment"]["torch"]) for each in record["stretches"]]

    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        assert not folder.note_environment({"torch": "2.13"}, step=0)
        assert not folder.note_environment({"torch": "2.13"}, step=5)
        assert stretches() == [(0, "2.13")]
        assert folder.note_environment({"torch": "2.14"}, step=8)
        assert stretches() == [(0, "2.13"), (8, "2.14")]
        assert folder.note_environment({"torch": "2.13"}, step=8)
        assert not folder.note_environment({"torch": "2.15"}, step=0)
        assert stretches() == [(0, "2.15")]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"stretches": [1]}', b'{"stretches": [{"from_step": "0"}]}']
)
def test_a_record_of_environments_that_is_none_is_refused(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes, data: bytes
) -> None:
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        (tmp_path / "environment.json").write_bytes(data)
        with pytest.raises(DecodeError):
            folder.note_environment({"torch": "2.13"}, step=3)


def test_a_start_that_was_killed_at_once_is_no_hindrance(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    (tmp_path / ".run.toml.abc.part").write_bytes(b"spec")
    with open_folder(tmp_path, config_bytes(), run, is_resumed=False) as folder:
        assert sorted(path.name for path in folder.path.iterdir()) == ["checkpoints", "run.toml"]


def test_a_folder_that_another_process_begins_in_is_refused(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    with (
        open_folder(tmp_path, config_bytes(), run, is_resumed=False),
        pytest.raises(InputError, match="another process trains in this folder"),
        open_folder(tmp_path, config_bytes(), run, is_resumed=False),
    ):
        pass


def test_a_file_where_the_checkpoints_belong_is_refused(
    tmp_path: Path, run: RunConfig, config_bytes: Bytes
) -> None:
    (tmp_path / "run.toml").write_bytes(config_bytes())
    (tmp_path / "checkpoints").write_bytes(b"")
    with (
        pytest.raises(InputError, match="cannot be written"),
        open_folder(tmp_path, config_bytes(), run, is_resumed=True),
    ):
        pass
