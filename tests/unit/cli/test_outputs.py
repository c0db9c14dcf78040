"""A verb never writes into its evidence, nor twice to one place, and says so before it works."""

import os
from pathlib import Path

import pytest

from flopwitness.cli.outputs import check_outputs
from flopwitness.foundation.errors import InputError


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "power").mkdir(parents=True)
    log = folder / "power" / "node_1.txt"
    log.write_text("evidence")
    return log


def test_other_places_are_allowed(log: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("{}")
    copy = tmp_path / "node_1.txt"
    copy.write_text("evidence")
    for out in (old, copy, tmp_path / "new.json", tmp_path / "run.json"):
        check_outputs({"--out": out, "--plot": None}, [log.parent.parent, log])
    check_outputs({"--out": log.parent / "beside.json"}, [log])
    check_outputs({"--out": old, "--plot": tmp_path / "x.png"}, [log])
    check_outputs({"--out": tmp_path / "x"}, [tmp_path / "missing.txt"])


def test_an_input_is_refused_by_every_name_that_it_has(log: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(log)
    os.link(log, tmp_path / "hard")
    (tmp_path / "door").symlink_to(log.parent)
    names = [log, tmp_path / "link", tmp_path / "hard", tmp_path / "door" / "node_1.txt"]
    names += [log.parent / ".." / "power" / "node_1.txt"]
    for out in names:
        for inputs in ([log], [log.parent], [log.parent.parent], [tmp_path / "door"], [tmp_path / "link"]):
            with pytest.raises(InputError, match="write into the evidence") as caught:
                check_outputs({"--out": out}, inputs)
            assert caught.value.where == f"--out {out}"


def test_a_new_file_in_a_folder_of_evidence_is_refused(log: Path, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(log.parent.parent)
    for out in (log.parent / "new.json", log.parent.parent / "new.json", tmp_path / "door" / "new.json"):
        with pytest.raises(InputError, match="write into the evidence"):
            check_outputs({"--plot": out}, [log.parent.parent])


def test_two_answers_never_share_a_file(log: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    (tmp_path / "link").symlink_to(old)
    os.link(old, tmp_path / "hard")
    for plot, out in (
        (old, old),
        (old, tmp_path / "link"),
        (old, tmp_path / "hard"),
        (tmp_path / "new", tmp_path / "run" / ".." / "new"),
    ):
        with pytest.raises(InputError, match="two answers in one file"):
            check_outputs({"--plot": plot, "--out": out}, [log])


def test_what_cannot_be_written_is_told_at_once(log: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for out in (tmp_path / "pipe", tmp_path, Path("/dev/null"), tmp_path / "missing" / "x", log / "x"):
        with pytest.raises(InputError, match="cannot be written"):
            check_outputs({"--out": out}, [log.parent / "other"])
