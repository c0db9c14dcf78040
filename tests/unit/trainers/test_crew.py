"""How the end of a process is explained: the cause first, and what only followed from it last."""

from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers import crew
from flopwitness.trainers.crew import Crew
from flopwitness.trainers.joined_group import LostError
from flopwitness.trainers.process_child import LOST_STATUS, ProcessJob

JOB = ProcessJob(data=b"", where="", folder=Path(), binding=b"", start=None, stop=0)


class _Process:
    """A process that has ended, or does not answer."""

    def __init__(self, status: int | None) -> None:
        self.exitcode = status
        self.sentinel, self._held = Pipe()
        if status is not None:
            self._held.close()
        self.calls: list[str] = []

    def join(self, _: float | None = None) -> None:
        self.calls.append("join")

    def is_alive(self) -> bool:
        return self.exitcode is None

    def terminate(self) -> None:
        self.calls.append("terminate")

    def kill(self) -> None:
        self.calls.append("kill")
        self.exitcode = -9

    def close(self) -> None:
        self.calls.append("close")
        self.sentinel.close()
        self._held.close()


@pytest.fixture
def make_crew(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Crew]:
    """A function that makes a crew of processes that ended so, each having said something or nothing."""
    monkeypatch.setattr(crew, "_END_LIMIT_S", 0.01)
    monkeypatch.setattr(crew, "_SETTLE_LIMIT_S", 0.01)
    monkeypatch.setattr(crew, "_WORD_LIMIT_S", 0.01)

    def make(*ends: tuple[int | None, tuple[str, str] | None]) -> Crew:
        made = Crew(len(ends) + 1, JOB)
        for rank, (status, said) in enumerate(ends, start=1):
            here, there = Pipe()
            if said is not None:
                there.send(said)
            there.close()
            process: Any = _Process(status)
            made._members.append(crew._Member(rank, process, here))
        return made

    return make


@pytest.mark.parametrize(
    ("ends", "place", "found"),
    [
        ([(LOST_STATUS, None), (-9, None)], "process 2", "ended by signal 9"),
        ([(LOST_STATUS, None), (1, ("failed", "no such file"))], "process 2", "no such file"),
        ([(-9, None), (1, ("failed", "no such file"))], "process 2", "no such file"),
        ([(LOST_STATUS, None), (7, None)], "process 2", "ended with status 7"),
        ([(LOST_STATUS, None), (LOST_STATUS, None)], "process 1", "it lost another process"),
        ([(LOST_STATUS, None), (None, None)], "process 2", "it does not answer"),
        ([(0, ("done", "")), (-15, None)], "process 2", "ended by signal 15"),
    ],
)
def test_the_cause_is_told(
    make_crew: Callable[..., Crew], ends: list[tuple[int | None, Any]], place: str, found: str
) -> None:
    made = make_crew(*ends)
    error = made.explain()
    made.end()
    assert isinstance(error, BackendError)
    assert (error.where, error.found) == (place, found)


def test_a_process_that_has_ended_is_not_waited_for(make_crew: Callable[..., Crew]) -> None:
    alive, ended = make_crew((None, None)), make_crew((None, None), (3, None))
    alive.check()
    with pytest.raises(LostError):
        ended.check()
    alive.end()
    ended.end()


@pytest.mark.parametrize("said", [None, ("failed", "odd"), ("ready", "")])
def test_another_word_than_the_awaited_one_is_a_loss(make_crew: Callable[..., Crew], said: Any) -> None:  # noqa: ANN401
    made = make_crew((None, said))
    with pytest.raises(LostError):
        made.finish()
    made.end()


def test_a_process_that_does_not_end_is_killed(make_crew: Callable[..., Crew]) -> None:
    made = make_crew((None, None))
    process: Any = made._members[0].process
    made.end()
    assert process.calls == ["terminate", "join", "kill", "join", "close"]
    assert not made._members
