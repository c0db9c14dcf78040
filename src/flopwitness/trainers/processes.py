"""Several processes on this computer: started, joined, watched, and ended together.

This process is rank 0; it starts the others and outlives them. One that fails or is killed ends the whole run
with one error, and if this process dies, the others end by themselves. They find each other through a file in
a private folder and talk on the loopback interface alone.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from flopwitness.foundation.errors import InputError
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.crew import Crew
from flopwitness.trainers.group import Group, PlayedGroup
from flopwitness.trainers.joined_group import JoinedGroup, LostError
from flopwitness.trainers.process_child import ProcessJob

__all__ = ["check_launcher", "join_processes"]

_LOOPBACK: Final = "lo0" if sys.platform == "darwin" else "lo"
_VARIABLES: Final = {
    "GLOO_SOCKET_IFNAME": _LOOPBACK,
    "NCCL_SOCKET_IFNAME": _LOOPBACK,
    "TORCH_CPP_LOG_LEVEL": "FATAL",  # a lost process is told once, by us
}


def check_launcher(*, variables: Mapping[str, str] = os.environ) -> None:
    """Refuse to start processes where another launcher has started several of this one.

    Raises:
        InputError: There is such a launcher.
    """
    if variables.get("WORLD_SIZE", "1") != "1":
        raise InputError(
            "started by another launcher",
            where="training.processes",
            expected="no WORLD_SIZE in the environment: the run starts its own processes",
            found=variables["WORLD_SIZE"],
        )


@contextmanager
def join_processes(
    run: RunConfig, job: ProcessJob, *, variables: Mapping[str, str] = os.environ
) -> Iterator[Group]:
    """The run's processes, of which this one plays rank 0, for as long as the context lasts.

    Args:
        run: The run.
        job: What the others have to do.
        variables: The environment's variables, which show another launcher.

    Raises:
        InputError: Another launcher has started several of this process.
        BackendError: A process failed, was killed, or did not start; all of them have ended.

    Side effects:
        Starts processes and ends them all, whatever happens.
    """
    check_launcher(variables=variables)
    if run.training.processes == 1:
        yield PlayedGroup(1)
        return
    with tempfile.TemporaryDirectory(prefix="flopwitness-") as folder, _variables_set():
        store, crew = Path(folder) / "store", Crew(run.training.processes, job)
        try:
            crew.start(store)
            group = JoinedGroup(run, rank=0, store=store, watch=crew.check)
            try:
                yield group
                crew.finish()
            finally:
                group.close()
        except LostError:
            raise crew.explain() from None
        finally:
            crew.end()


@contextmanager
def _variables_set() -> Iterator[None]:
    """The environment in which the processes are joined, put back afterwards."""
    old = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(_VARIABLES)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
