"""What a started process does, called here in the test's own process."""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from flopwitness.trainers import process_child
from flopwitness.trainers.joined_group import LostError
from flopwitness.trainers.process_child import LOST_STATUS, ProcessJob, serve


class _Ended(BaseException):
    """The process ends here."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@pytest.fixture(autouse=True)
def stay_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(status: int) -> None:
        raise _Ended(status)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)


def _job(data: bytes) -> ProcessJob:
    return ProcessJob(data=data, where="run.toml", folder=Path(), binding=b"", start=None, stop=2)


def test_a_share_of_every_step_is_done_and_told(
    config_bytes: Callable[..., bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    here, there = Pipe()
    here.send("end")
    serve(_job(config_bytes()), 0, tmp_path / "store", there)
    assert [here.recv(), here.recv()] == [("ready", ""), ("done", "")]


@pytest.mark.parametrize("data", [b"", b"spec = 1"])
def test_a_failure_is_told_in_one_line(tmp_path: Path, data: bytes) -> None:
    here, there = Pipe()
    with pytest.raises(_Ended) as caught:
        serve(_job(data), 0, tmp_path / "store", there)
    assert caught.value.status == 1
    word, text = here.recv()
    assert word == "failed"
    assert text.startswith("run.toml, spec: ")


def test_a_failure_of_another_kind_is_told_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:  # noqa: ANN401 (whatever the function takes)
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(process_child, "_take_part", fail)
    here, there = Pipe()
    with pytest.raises(_Ended):
        serve(_job(b""), 1, tmp_path / "store", there)
    assert here.recv() == ("failed", "ZeroDivisionError: odd")


def test_who_lost_another_one_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: Any) -> None:  # noqa: ANN401
        raise LostError

    monkeypatch.setattr(process_child, "_take_part", lose)
    here, there = Pipe()
    with pytest.raises(_Ended) as caught:
        serve(_job(b""), 1, tmp_path / "store", there)
    assert caught.value.status == LOST_STATUS
    assert not here.poll()
