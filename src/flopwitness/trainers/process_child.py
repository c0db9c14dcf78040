"""What a process of a run does that another one has started: its share of every step, and nothing else."""

import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, Final

from flopwitness.foundation.errors import FlopwitnessError
from flopwitness.trainers.agreement import AgreementCheck
from flopwitness.trainers.checkpoint import load_checkpoint
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.joined_group import JoinedGroup, LostError
from flopwitness.trainers.prepared import prepare_run
from flopwitness.trainers.trainer import Trainer

__all__ = ["LOST_STATUS", "ProcessJob", "serve"]

LOST_STATUS: Final = 3
"""The status with which a process ends because another one went away first."""

_FAILED_STATUS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessJob:
    """What a process needs to know to take part.

    Attributes:
        data: The configuration.
        where: Its name in errors.
        folder: Where its relative paths start.
        binding: What the seed is bound to.
        start: The checkpoint to start from; None is the initial state.
        stop: Steps that are done afterwards.
    """

    data: bytes
    where: str
    folder: Path
    binding: bytes
    start: Path | None
    stop: int


def serve(job: ProcessJob, rank: int, store: Path, link: "connection.Connection[Any, Any]") -> None:
    """Take part in a run, then end the process.

    It says `ready`, `done` or `failed` with the reason, and ends when it is told to, or with its parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _take_part(job, rank, store, link)
    except LostError:
        os._exit(LOST_STATUS)
    except BaseException as error:  # noqa: BLE001 (whatever it is, the parent tells it in one line)
        text = str(error) if isinstance(error, FlopwitnessError) else f"{type(error).__name__}: {error}"
        link.send(("failed", text[:500]))
        os._exit(_FAILED_STATUS)


def _take_part(job: ProcessJob, rank: int, store: Path, link: "connection.Connection[Any, Any]") -> None:
    run = decode_run(job.data, where=job.where)
    prepared = prepare_run(run, folder=job.folder, binding=job.binding)
    link.send(("ready", ""))
    group = JoinedGroup(run, rank=rank, store=store, watch=lambda: None)
    trainer = Trainer(run, prepared.source, prepared.randomness, group=group)
    if job.start is not None:
        trainer.load(load_checkpoint(job.start, run, prepared.identity))
    check = AgreementCheck(group, every=run.checkpoint_every, stop=job.stop)
    trainer.train(stop=job.stop, observers=[check])
    link.send(("done", ""))
    try:
        link.recv()
    except EOFError:
        return
    group.close()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(LOST_STATUS)
