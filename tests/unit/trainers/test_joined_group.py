"""A group that exchanges gradients: added in order, and one group a process."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from flopwitness.foundation.errors import BackendError
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.joined_group import JoinedGroup, LostError


@pytest.fixture
def alone(make_run: Callable[..., RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JoinedGroup:
    """A real group of one process, in which what others send is what this one sends, changed."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    run = make_run()
    return JoinedGroup(run, rank=0, store=tmp_path / "store", watch=lambda: None)


def test_a_process_belongs_to_one_group(
    alone: JoinedGroup, make_run: Callable[..., RunConfig], tmp_path: Path
) -> None:
    try:
        with pytest.raises(BackendError, match="another group"):
            JoinedGroup(make_run(), rank=0, store=tmp_path / "other", watch=lambda: None)
        assert alone.gather([2.5]) == [2.5]
        gradients = [torch.ones(3), torch.full((2, 2), 4.0)]
        alone.sum_in_order(gradients)
        assert gradients[0].tolist() == [1.0, 1.0, 1.0]
    finally:
        alone.close()
    assert not dist.is_initialized()


def test_shares_are_added_in_the_order_of_the_processes(
    alone: JoinedGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        shares = [1.0, 1e8, -1e8]  # in fp32 ((1 + 1e8) - 1e8) is 0, and another order gives 1

        def gather(tensor: torch.Tensor) -> list[torch.Tensor]:
            return [torch.full_like(tensor, share) for share in shares]

        monkeypatch.setattr(alone, "_gather", gather)
        gradients: Sequence[torch.Tensor] = [torch.ones(2, 3), torch.ones(1)]
        alone.sum_in_order(gradients)
        assert set(gradients[0].reshape(-1).tolist()) == {0.0}
    finally:
        alone.close()


class _NeverDone:
    def is_completed(self) -> bool:
        return False


def test_waiting_ends_when_another_process_is_gone(
    alone: JoinedGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise LostError

    try:
        monkeypatch.setattr(dist, "all_gather", lambda *_, **__: _NeverDone())
        monkeypatch.setattr(alone, "_watch", lost)
        with pytest.raises(LostError):
            alone.gather([1.0])

        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("Connection closed by peer")

        monkeypatch.setattr(dist, "all_gather", broken)
        with pytest.raises(LostError):
            alone.gather([1.0])
    finally:
        alone.close()
