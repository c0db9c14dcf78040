"""What counting costs a training run: no counting, our run counter, PyTorch's own counter on every step.

    python benchmarks/counting_cost.py [--steps 480] [--rounds 3]

Trains small GPTs (plain PyTorch, AdamW, one thread) in one process. The three ways take turns step by step,
in an order that turns too, so that a busy computer slows all of them; each way keeps one model and one run
for a round. Processor time. Prints the time of a step and its ratio to no counting, the median over rounds
with the least and the most, what one counted step costs by itself, and what share of the run that is. The
second model does little in each of its many operators, which is the worst case for any counter.
"""

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.run_counter import RunCounter

__all__ = ["Decoder", "Size", "main"]

_WARM_UP: Final = 5
_COUNTED_STEPS: Final = 30
_VOCABULARY: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a decoder and its batches measure."""

    layers: int
    width: int
    heads: int
    length: int
    batch: int


_SIZES: Final = {
    "a small GPT": Size(layers=4, width=128, heads=4, length=64, batch=4),
    "many small operators": Size(layers=8, width=16, heads=2, length=16, batch=2),
}


class _Layer(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm_in, self.norm_out = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.mix_in, self.mix_out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
        self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.mix_in(self.norm_in(hidden)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.mix_out(mixed.transpose(1, 2).flatten(-2))
        result: Tensor = hidden + self.down(F.gelu(self.up(self.norm_out(hidden))))
        return result


class Decoder(nn.Module):
    """A decoder with learned positions and a tied head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.table = nn.Embedding(_VOCABULARY, size.width)
        self.places = nn.Parameter(torch.zeros(size.length, size.width))
        self.layers = nn.Sequential(*(_Layer(size) for _ in range(size.layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        """The logits of each next token, shape (batch, length, vocabulary)."""
        return F.linear(self.layers(self.table(tokens) + self.places), self.table.weight)


Around = Callable[[Tensor], AbstractContextManager[object]]


class _Way:
    """One model under one way of counting."""

    def __init__(self, size: Size, around: Callable[[nn.Module], Around]) -> None:
        torch.manual_seed(0)
        self._model = Decoder(size)
        self._optimizer = torch.optim.AdamW(self._model.parameters())
        self._tokens = torch.randint(_VOCABULARY, (size.batch, size.length))
        self._around = around(self._model)
        self._step(contextlib.nullcontext())

    def _step(self, context: AbstractContextManager[object]) -> None:
        with context:
            self._optimizer.zero_grad()
            loss = F.cross_entropy(self._model(self._tokens).flatten(0, 1), self._tokens.flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()

    def step_s(self) -> float:
        """How long one step takes [s]."""
        start_s = time.process_time()
        self._step(self._around(self._tokens))
        return time.process_time() - start_s

    def warm_up(self) -> None:
        """Steps without counting, so that nobody pays for the first ones."""
        for _ in range(_WARM_UP):
            self._step(contextlib.nullcontext())


def _around_run(model: nn.Module) -> Around:
    run = RunCounter(model)
    return run.step


_WAYS: Final[dict[str, Callable[[nn.Module], Around]]] = {
    "no counting": lambda _model: lambda _tokens: contextlib.nullcontext(),
    "RunCounter": _around_run,
    "FlopCounterMode": lambda _model: lambda _tokens: FlopCounterMode(display=False),
}


def _round_s(size: Size, steps: int, arounds: dict[str, Callable[[nn.Module], Around]]) -> dict[str, float]:
    """The time of each way over so many steps [s], taken in turns."""
    ways = {name: _Way(size, around) for name, around in arounds.items()}
    for way in ways.values():
        way.warm_up()
    total_s, names = dict.fromkeys(ways, 0.0), list(ways)
    for index in range(steps):
        first = index % len(names)
        for name in names[first:] + names[:first]:
            total_s[name] += ways[name].step_s()
    return total_s


def _counted_step(size: Size) -> float:
    """How many times as long a step takes that is counted operator by operator."""
    plain, counted = "no counting", "OperationCounter"
    ways = {plain: _WAYS[plain], counted: lambda model: lambda _tokens: OperationCounter(model)}
    total_s = _round_s(size, _COUNTED_STEPS, ways)
    return total_s[counted] / total_s[plain]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for title, size in _SIZES.items():
        rounds = [_round_s(size, options.steps, _WAYS) for _ in range(options.rounds)]
        print(
            f"{title}: {size.layers} layers of {size.width}, {options.steps} steps, {options.rounds} rounds"
        )
        for name in _WAYS:
            step_ms = statistics.median(1e3 * round_s[name] / options.steps for round_s in rounds)
            ratios = [round_s[name] / round_s["no counting"] for round_s in rounds]
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(f"  {name:16} {step_ms:8.2f} ms/step {statistics.median(ratios):7.3f} times ({spread})")
        counted = _counted_step(size)
        share_pct = 100 * (counted - 1) / options.steps
        print(f"  one counted step {counted:26.2f} times, {share_pct:.2f} % of {options.steps} steps")


if __name__ == "__main__":
    main()
