"""What a checkpoint computes again is told from gradients, in every nest of the two."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from flopwitness.integrations.operation_count import OperationCount
from flopwitness.integrations.recomputation import is_recomputation

Count = Callable[..., OperationCount]
LAYER = 2 * 2 * 4 * 4


@pytest.fixture
def model() -> nn.Module:
    """Two layers of four on rows of two; only the first has to run again in the newer form."""
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


@pytest.fixture
def rows() -> Tensor:
    return torch.ones(2, 4, requires_grad=True)


def _phases(count: OperationCount) -> tuple[int, int, int]:
    return tuple(  # type: ignore[return-value]
        flop // LAYER
        for flop in (count.work.forward_flop, count.work.backward_flop, count.work.recomputed_flop)
    )


def test_outside_a_backward_pass_nothing_is() -> None:
    assert not is_recomputation()


@pytest.mark.parametrize(("use_reentrant", "again"), [(False, 1), (True, 2)])
def test_plain(count: Count, model: nn.Module, rows: Tensor, again: int, *, use_reentrant: bool) -> None:
    counted = count(lambda: checkpoint(model, rows, use_reentrant=use_reentrant).sum().backward())
    assert _phases(counted) == (2, 4, again)


@pytest.mark.parametrize(("use_reentrant", "again"), [(False, 1), (True, 4)])
def test_a_checkpoint_in_a_checkpoint(
    count: Count, model: nn.Module, rows: Tensor, again: int, *, use_reentrant: bool
) -> None:
    """The older form runs the inner piece again for the outer one, and once more for itself."""

    def inner(x: Tensor) -> Tensor:
        kept: Tensor = checkpoint(model, x, use_reentrant=use_reentrant)
        return kept

    counted = count(lambda: checkpoint(inner, rows, use_reentrant=use_reentrant).sum().backward())
    assert _phases(counted) == (2, 4, again)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_gradient_taken_inside_a_checkpoint(
    count: Count, model: nn.Module, rows: Tensor, *, use_reentrant: bool
) -> None:
    """The model's own gradient (two layers) is backward work the first time, and then computed again."""

    def with_gradient(x: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(model(leaf).square().sum(), leaf)
        mixed: Tensor = model(x) + gradient
        return mixed

    counted = count(lambda: checkpoint(with_gradient, rows, use_reentrant=use_reentrant).sum().backward())
    forward, backward, again = _phases(counted)
    assert (forward, backward) == (4, 2 + 4)
    assert again == (6 if use_reentrant else 7)


def test_selective_checkpoints_keep_their_products(count: Count, model: nn.Module, rows: Tensor) -> None:
    def policy(_ctx: object, op: object, *_args: object, **_kwargs: object) -> CheckpointPolicy:
        keep = op == torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    counted = count(
        lambda: checkpoint(model, rows, use_reentrant=False, context_fn=contexts).sum().backward()
    )
    assert _phases(counted) == (2, 4, 0)
    assert counted.is_complete


def test_second_derivatives_are_no_recomputation(count: Count, model: nn.Module, rows: Tensor) -> None:
    def work() -> None:
        (gradient,) = torch.autograd.grad(model(rows).square().sum(), rows, create_graph=True)
        gradient.sum().backward()

    counted = count(work)
    assert counted.recomputed_flop == 0
    assert [note.kind for note in counted.notes] == ["gradients-in-backward"]


def test_another_librarys_checkpoint_is_backward_work_and_told(
    count: Count, model: nn.Module, rows: Tensor
) -> None:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            with torch.no_grad():
                out: Tensor = model(x)
            return out

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
            leaf = x.detach().requires_grad_()
            with torch.enable_grad():
                out = model(leaf)
            torch.autograd.backward(out, grad)
            gradient: Tensor = leaf.grad
            return gradient

    counted = count(lambda: Own.apply(rows).sum().backward())
    assert _phases(counted) == (2, 2 + 4, 0)
    assert [note.kind for note in counted.notes] == ["gradients-in-backward"]
