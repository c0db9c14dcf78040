"""The trainer: from a state and a declaration to the state some steps later, without files.

A step is a function of the declaration, the state and the step's number. So any stretch of steps can be done
again from the state in front of it, by another process, with other kernels, whenever somebody asks.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch

from flopwitness.foundation.errors import InputError, OutOfRangeError
from flopwitness.trainers.config import Precision, RunConfig
from flopwitness.trainers.decoder import Decoder
from flopwitness.trainers.dropout import Dropout
from flopwitness.trainers.execution import Execution, ScaleDecision
from flopwitness.trainers.gradients import clip_gradients, gradient_norm
from flopwitness.trainers.group import Group, PlayedGroup
from flopwitness.trainers.loss_scale import LossScale
from flopwitness.trainers.observer import Observer, StepOutcome
from flopwitness.trainers.optimizers import Updater
from flopwitness.trainers.order import RowPlan
from flopwitness.trainers.parameters import list_parameters
from flopwitness.trainers.randomness import Randomness
from flopwitness.trainers.rows import RowSource
from flopwitness.trainers.schedule import learning_rate
from flopwitness.trainers.state import TrainState, initial_state, list_moments, weight_type
from flopwitness.trainers.torch_settings import choose_device, hold_settings

__all__ = ["Trainer"]

_AUTOCAST: Final = {Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


class Trainer:
    """One run in the making. It starts at the run's initial state; `load` puts it anywhere else."""

    def __init__(
        self,
        run: RunConfig,
        source: RowSource,
        randomness: Randomness,
        *,
        execution: Execution | None = None,
        group: Group | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Set up a run, and make its initial weights.

        Args:
            run: The run.
            source: Its rows.
            randomness: Its random numbers.
            execution: How to carry it out; None is as declared.
            group: Its processes; None is that this one plays all of them.
            clock_ns: A monotonic clock [ns], for the duration of steps alone.

        Raises:
            InputError: The execution does not fit the run.
            SourceUnavailableError: The declared device is not there.
        """
        self.run: Final = run
        self.execution: Final = execution or Execution.declared(run)
        self.execution.check(run)
        self.plan: Final = RowPlan(run, source, randomness)
        self._randomness, self._clock_ns = randomness, clock_ns
        self._group: Group = group or PlayedGroup(run.training.processes)
        self._device = choose_device(run, rank=self._group.ranks[0])
        with torch.inference_mode(mode=False):
            self._decoder = Decoder(run.model, checkpointing=run.training.checkpointing, device=self._device)
        self._learning = [each for each in list_parameters(run.model) if not each.is_frozen]
        self.load(initial_state(run, randomness))

    @property
    def state(self) -> TrainState:
        """The state now. Its tensors are the live ones: `copy` what has to outlast the next step."""
        return self._state

    def load(self, state: TrainState) -> None:
        """Go on from a state, whose tensors are copied.

        Raises:
            InputError: It has not the weights and moments of this run.
        """
        _check_state(self.run, state)
        frozen = {each.name for each in list_parameters(self.run.model) if each.is_frozen}
        with torch.inference_mode(mode=False), torch.no_grad():  # weights that can learn, whoever calls
            weights = {
                name: tensor.to(self._device, copy=True).requires_grad_(name not in frozen)
                for name, tensor in state.weights.items()
            }
            moments = {name: tensor.to(self._device, copy=True) for name, tensor in state.moments.items()}
        self._state = TrainState(
            step=state.step, updates=state.updates, weights=weights, moments=moments, scale=state.scale
        )
        self._updater = Updater(self.run.optimizer, self._learning, weights, moments)

    def train(self, *, stop: int, observers: Sequence[Observer] = ()) -> None:
        """Do the steps up to one, and tell the observers of each in their order.

        Args:
            stop: Steps of the run that are done afterwards.
            observers: Who looks on.

        Raises:
            InputError: The run has no such step, or it is done already; or the rows changed, or somebody
                hooked into all of PyTorch's optimizers.
            OutOfRangeError: The loss or the gradient is not finite; the state is that before the step.

        Side effects:
            Sets PyTorch's global settings for the time of every step; observers run under the caller's.
        """
        if not self._state.step <= stop <= self.run.training.steps:
            raise InputError(
                "no such step",
                where="stop",
                expected=f"{self._state.step} to {self.run.training.steps}",
                found=str(stop),
            )
        for observer in observers:
            observer.start(self._state, self.plan)
        while self._state.step < stop:
            with hold_settings(self.run, self.execution):
                outcome = self._step()
            for observer in observers:
                observer.after_step(outcome, self._state)

    def _step(self) -> StepOutcome:
        start_ns, state, run = self._clock_ns(), self._state, self.run
        forced = self.execution.scales.get(state.step)
        scale = _begin_scale(state.scale, forced)
        loss, gradients = self._gradients(state, scale)
        norm = gradient_norm(gradients)
        is_skipped = forced.is_skipped if forced and scale else scale is not None and not math.isfinite(norm)
        place = f"step {state.step}"
        if not math.isfinite(loss):
            raise OutOfRangeError("the loss is not finite", where=place, found=str(loss))
        if not is_skipped and not math.isfinite(norm):
            raise OutOfRangeError("the gradient is not finite", where=place, found=str(norm))
        rate = learning_rate(run, state.step)
        if not is_skipped:
            clip_gradients(gradients, norm=norm, limit=run.clip_norm)
            self._updater.update(learning_rate=rate, updates=state.updates)
        for each in self._learning:
            state.weights[each.name].grad = None
        self._state = TrainState(
            step=state.step + 1,
            updates=state.updates + (not is_skipped),
            weights=state.weights,
            moments=state.moments,
            scale=scale.after(is_finite=not is_skipped) if scale else None,
        )
        return StepOutcome(
            step=state.step,
            loss=loss,
            learning_rate=rate,
            gradient_norm=norm,
            rows=self.plan.rows(state.step),
            tokens=run.tokens_per_step,
            scale_exponent=scale.exponent if scale else None,
            is_skipped=is_skipped,
            duration_ns=self._clock_ns() - start_ns,
        )

    def _gradients(self, state: TrainState, scale: LossScale | None) -> tuple[float, list[torch.Tensor]]:
        """The mean loss and the mean gradient over all processes; the latter stands at the weights too."""
        factor = scale.factor if scale else 1.0
        sums: list[torch.Tensor] = []
        losses = []
        weights = [state.weights[each.name] for each in self._learning]
        for rank in self._group.ranks:
            for weight in weights:
                weight.grad = None
            losses.append(self._rank_passes(state, rank, factor))
            shares = [_gradient(weight) for weight in weights]
            if sums:
                for total, share in zip(sums, shares, strict=True):
                    total.add_(share)
            else:
                sums = shares
        self._group.sum_in_order(sums)
        size = self._group.size
        for weight, total in zip(weights, sums, strict=True):
            weight.grad = total if size * factor == 1.0 else total.mul_(1.0 / (size * factor))
        return math.fsum(self._group.gather(losses)) / size, sums

    def _rank_passes(self, state: TrainState, rank: int, factor: float) -> float:
        """Add one process's gradients, pass by pass; its mean loss."""
        training = self.run.training
        losses = []
        for index in range(training.accumulation):
            rows = self.plan.pass_rows(state.step, rank=rank, index=index)
            tokens = self.plan.tokens(rows)
            for first, last in _cut(training.batch, self.execution.parts):
                dropout = Dropout(
                    probability=self.run.model.dropout,
                    randomness=self._randomness,
                    step=state.step,
                    rank=rank,
                    index=index,
                    batch=training.batch,
                    first=first,
                )
                tokens_bt = torch.from_numpy(tokens[first:last]).to(self._device)
                share = (last - first) / (training.batch * training.accumulation)
                with self._autocast():
                    loss = self._decoder.loss(state.weights, tokens_bt, dropout=dropout)
                torch.autograd.backward(loss * (share * factor))
                losses.append(float(loss.detach()) * share)
        return math.fsum(losses)

    @contextmanager
    def _autocast(self) -> Iterator[None]:
        """The run's own; casts that a pass has kept end with it, also within a caller's autocast."""
        dtype = _AUTOCAST.get(self.run.precision)
        if dtype is None:
            yield
            return
        with torch.autocast(self._device.type, dtype=dtype, cache_enabled=True):
            torch.clear_autocast_cache()
            try:
                yield
            finally:
                torch.clear_autocast_cache()


def _gradient(weight: torch.Tensor) -> torch.Tensor:
    if weight.grad is None:
        raise RuntimeError("a weight that learns got no gradient")
    return weight.grad


def _begin_scale(scale: LossScale | None, forced: ScaleDecision | None) -> LossScale | None:
    if scale is None or forced is None:
        return scale
    return LossScale(exponent=forced.exponent, good_steps=scale.good_steps)


def _cut(rows: int, parts: int) -> Iterator[tuple[int, int]]:
    """First row and the one after the last of every part, as even as can be."""
    for part in range(parts):
        yield part * rows // parts, (part + 1) * rows // parts


def _check_state(run: RunConfig, state: TrainState) -> None:
    dtype = weight_type(run)
    expected = {each.name: each.shape for each in list_parameters(run.model)} | list_moments(run)
    found = dict(state.buffers())
    odd = sorted(expected.keys() ^ found.keys()) or sorted(
        name
        for name, tensor in found.items()
        if tuple(tensor.shape) != expected[name] or tensor.dtype != dtype
    )
    if odd:
        raise InputError("another run's state", where=odd[0], expected="this run's weights and moments")
