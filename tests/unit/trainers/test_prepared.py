"""What a run needs before its first step."""

from collections.abc import Callable
from pathlib import Path

from flopwitness.trainers.config import RunConfig, digest_run
from flopwitness.trainers.prepared import prepare_run

Make = Callable[..., RunConfig]


def test_a_run_is_identified_by_declaration_root_and_data(make_run: Make) -> None:
    run = make_run()
    prepared = prepare_run(run, folder=Path())
    assert prepared.identity.config == digest_run(run)
    assert prepared.identity.data == prepared.source.digest
    bound = prepare_run(run, folder=Path(), binding=b"nonce")
    assert bound.identity.config == prepared.identity.config
    assert bound.identity.root != prepared.identity.root
    assert bound.identity.data != prepared.identity.data
