"""How a run may be carried out without changing what it declares."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.foundation.errors import InputError
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.execution import AttentionBackend, Execution

Make = Callable[..., RunConfig]


def test_the_declared_execution(make_run: Make) -> None:
    execution = Execution.declared(make_run(training__threads=3))
    assert (execution.threads, execution.attention) == (3, AttentionBackend.FUSED)
    assert (execution.has_onednn, execution.parts, dict(execution.scales)) == (True, 1, {})
    unfused = Execution.declared(make_run(training__attention="unfused"))
    assert unfused.attention is AttentionBackend.MATH


@pytest.mark.parametrize("parts", [1, 4])
def test_a_pass_is_cut_into_at_most_its_rows(make_run: Make, parts: int) -> None:
    run = make_run()
    replace(Execution.declared(run), parts=parts).check(run)


@pytest.mark.parametrize("changes", [{"parts": 0}, {"parts": 5}, {"threads": 0}, {"threads": -1}])
def test_what_cannot_be_carried_out_is_refused(make_run: Make, changes: dict[str, int]) -> None:
    run = make_run()
    with pytest.raises(InputError):
        replace(Execution.declared(run), **changes).check(run)  # type: ignore[arg-type] # any field
