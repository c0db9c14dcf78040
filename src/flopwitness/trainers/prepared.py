"""What a declared run needs before its first step: its random numbers, its rows, and what identifies it."""

from dataclasses import dataclass
from pathlib import Path

from flopwitness.foundation.digest import digest_bytes
from flopwitness.trainers.checkpoint_record import RunIdentity
from flopwitness.trainers.config import RunConfig, digest_run
from flopwitness.trainers.randomness import Randomness, derive_root
from flopwitness.trainers.rows import RowSource, open_rows

__all__ = ["PreparedRun", "prepare_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run that can start.

    Attributes:
        run: The declaration.
        randomness: Its random numbers.
        source: Its rows.
        identity: What makes its checkpoints its own.
    """

    run: RunConfig
    randomness: Randomness
    source: RowSource
    identity: RunIdentity


def prepare_run(run: RunConfig, *, folder: Path, binding: bytes = b"") -> PreparedRun:
    """Open a run's data, whole, and derive its random numbers.

    Args:
        run: The declaration.
        folder: Where the configuration lies: a relative path starts there.
        binding: What the seed is bound to, such as a data digest and somebody else's nonce.

    Raises:
        InputError: The data cannot be used.
    """
    randomness = Randomness(derive_root(run.seed, binding=binding))
    source = open_rows(run, randomness, folder=folder)
    identity = RunIdentity(config=digest_run(run), root=digest_bytes(randomness.root), data=source.digest)
    return PreparedRun(run=run, randomness=randomness, source=source, identity=identity)
