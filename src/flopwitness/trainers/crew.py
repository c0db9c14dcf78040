"""The processes that a run has started beside its own: watched, explained where they fail, and ended."""

import signal
import time
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers.joined_group import LostError
from flopwitness.trainers.process_child import LOST_STATUS, ProcessJob, serve

__all__ = ["Crew"]

_WORD_LIMIT_S: Final = 300.0
_END_LIMIT_S: Final = 10.0
_SETTLE_LIMIT_S: Final = 2.0


@dataclass(slots=True)
class _Member:
    """One process, and what it has said about its end."""

    rank: int
    process: SpawnProcess
    link: "connection.Connection[Any, Any]"
    reason: str = ""

    def hear(self, word: str, *, limit_s: float) -> bool:
        """Whether it says a word within a time; what it says in its place is kept as its reason."""
        try:
            if self.link not in connection.wait([self.link, self.process.sentinel], timeout=limit_s):
                return False
            said, text = self.link.recv()
        except (EOFError, OSError):
            return False
        if said == "failed":
            self.reason = text
        return bool(said == word)

    def describe(self) -> tuple[int, str]:
        """How far its end is from the cause, least first, and what it was."""
        while not self.reason and self.hear("done", limit_s=0):
            pass
        status = self.process.exitcode
        if self.reason:
            return 0, self.reason
        if status is None:
            return 3, "it does not answer"
        if status < 0:
            return 1, f"ended by signal {-status}"
        return (4, "it lost another process") if status == LOST_STATUS else (2, f"ended with status {status}")


class Crew:
    """The processes from rank 1 on."""

    def __init__(self, size: int, job: ProcessJob) -> None:
        self._size, self._job = size, job
        self._members: list[_Member] = []
        self._is_done = False

    def start(self, store: Path) -> None:
        """Start all, and wait until each is ready to be joined.

        An interrupt from the keyboard goes to all processes; only this one is to answer it, so the others
        start with it blocked.

        Raises:
            LostError: One ended, or takes too long.
        """
        context = get_context("spawn")
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for rank in range(1, self._size):
                here, there = context.Pipe()
                process = context.Process(target=serve, args=(self._job, rank, store, there), daemon=True)
                process.start()
                there.close()
                self._members.append(_Member(rank, process, here))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self._await("ready")

    def check(self) -> None:
        """Nothing, as long as all are alive.

        Raises:
            LostError: One has ended, so it is no use to wait.
        """
        if any(member.process.exitcode is not None for member in self._members):
            raise LostError

    def finish(self) -> None:
        """Wait until all are done, and let them end.

        Raises:
            LostError: One failed.
        """
        self._await("done")
        self._is_done = True
        for member in self._members:
            member.link.send("end")

    def explain(self) -> BackendError:
        """Why the run ended: what a process said, else how one ended."""
        connection.wait([member.process.sentinel for member in self._members], timeout=_END_LIMIT_S)
        deadline_s = time.monotonic() + _SETTLE_LIMIT_S
        ends = []
        for member in self._members:
            member.process.join(max(0.0, deadline_s - time.monotonic()))
            ends.append((*member.describe(), member.rank))
        _, found, rank = min(ends)
        return BackendError("a process failed, so the run ended", where=f"process {rank}", found=found)

    def end(self) -> None:
        """End all that still run, and forget them."""
        for member in self._members:
            if self._is_done:
                member.process.join(_END_LIMIT_S)
            member.process.terminate()
        for member in self._members:
            member.process.join(_END_LIMIT_S)
            if member.process.is_alive():
                member.process.kill()
                member.process.join()
            member.process.close()
            member.link.close()
        self._members.clear()

    def _await(self, word: str) -> None:
        deadline_s = time.monotonic() + _WORD_LIMIT_S
        for member in self._members:
            if not member.hear(word, limit_s=max(0.0, deadline_s - time.monotonic())):
                raise LostError
