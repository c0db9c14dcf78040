"""The answer of `count` for a person: the count, where it goes, and why others count otherwise."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from flopwitness.counting.chain import Chain, ChainCount
from flopwitness.counting.config import CountedRun
from flopwitness.counting.conventions import Convention, Difference, Share
from flopwitness.counting.model import Model
from flopwitness.counting.parameters import Parameters, count_parameters
from flopwitness.counting.step import StepCount
from flopwitness.foundation.units import format_flop
from flopwitness.foundation.verdict import Finding
from flopwitness.present.finding_lines import finding_lines
from flopwitness.present.safe_text import join_lines, name_count

__all__ = ["render_chain_text", "render_count_text", "render_total_text"]

_WIDTH: Final = 110
_DIGITS: Final = 5
_LARGEST_WHOLE: Final = 10**8
_SMALLEST_TOLD: Final = 0.0005


def render_count_text(
    run: CountedRun,
    step: StepCount,
    conventions: Sequence[Convention],
    *,
    torch_lines: Sequence[str] = (),
    findings: Sequence[Finding] = (),
) -> str:
    """The whole answer of `count` for a run, ready to print.

    Args:
        run: The model and what the run does.
        step: The count of one step.
        conventions: The count of the whole run in every convention, ours first.
        torch_lines: What an instrumented step showed, as lines.
        findings: What a reader must know, worst first.
    """
    lines = [
        *_wrap(_describe_model(run.model, count_parameters(run.model)), first="", further="  "),
        _describe_run(run, step),
        *(line for text in _step_lines(run, step) for line in _wrap(text, first="", further=" " * 14)),
        "conventions",
        *_convention_lines(conventions),
        *torch_lines,
        *finding_lines(findings),
    ]
    return join_lines(lines)


def render_chain_text(chain: Chain, count: ChainCount, *, findings: Sequence[Finding] = ()) -> str:
    """The whole answer of `count` for a chain of layers, ready to print."""
    steps = chain.steps
    thrice = 3 * count.forward_flop
    layers, tokens = name_count(len(chain.layers), "linear layer"), name_count(chain.tokens, "token")
    lines = [
        f"chain: {layers}, {tokens} a step, {name_count(steps, 'step')}",
        f"  forward     {_flop(steps * count.forward_flop)} FLOP",
        f"  backward    {_flop(steps * count.backward_flop)} FLOP, only the gradients that are needed",
        f"  in all      {_flop(steps * count.step_flop)} FLOP; a multiply-add is 2",
    ]
    if thrice != count.step_flop:
        lines.append(
            f"  three times the forward pass would be {_flop(steps * thrice)} FLOP, "
            f"{thrice / count.step_flop:.2f} times as much"
        )
    return join_lines([*lines, *finding_lines(findings)])


def render_total_text(flop: int, *, rows: int, findings: Sequence[Finding] = ()) -> str:
    """The whole answer of `count` for another counter's table of modules, ready to print."""
    lines = [
        f"table of {name_count(rows, 'module')}: {_flop(flop)} FLOP in all",
        "  a module's row holds those of the modules in it, so rows are never added",
    ]
    return join_lines([*lines, *finding_lines(findings)])


def _flop(flop: int) -> str:
    """Whole where the eye still reads it, else five digits."""
    return f"{flop:,}" if flop < _LARGEST_WHOLE else format_flop(flop, digits=_DIGITS)


def _describe_model(model: Model, parameters: Parameters) -> str:
    heads = name_count(model.heads, "head")
    if model.kv_heads != model.heads:
        heads += f" over {model.kv_heads:,} of keys and values"
    sizes = [
        name_count(model.layers, "layer"),
        f"d_model {model.d_model:,}",
        heads,
        f"d_ff {model.d_ff:,} ({model.feed_forward})",
    ]
    if model.experts is not None:
        sizes.append(f"{model.experts.active:,} of {name_count(model.experts.count, 'expert')} a token")
    if model.lora is not None:
        sizes.append(f"adapters of rank {model.lora.rank:,}")
    told = name_count(parameters.total, "parameter")
    if parameters.active_total != parameters.total:
        told += f" ({parameters.active_total:,} that a token meets)"
    if parameters.learning != parameters.total:
        told += f", {parameters.learning:,} of them learn"
    return f"{model.kind}: {', '.join(sizes)}; {told}"


def _describe_run(run: CountedRun, step: StepCount) -> str:
    training = run.training
    factors = [(training.rows_per_step, "row"), (step.tokens // training.rows_per_step, "token")]
    factors = (
        [(training.steps, "step"), *factors] if run.has_updates else [(training.rows, "row"), factors[1]]
    )
    told = " x ".join(name_count(count, name) for count, name in factors)
    return f"run: {told} = {name_count(step.tokens * training.steps, 'token')}"


def _step_lines(run: CountedRun, step: StepCount) -> Iterator[str]:
    steps = run.training.steps
    forward, backward = _flop(steps * step.forward_flop), _flop(steps * step.backward_flop)
    yield (
        f"  model       {_flop(steps * step.model_flop)} FLOP: forward {forward}, backward {backward}; "
        "a multiply-add is 2, attention in full"
    )
    yield f"  executed    {_flop(steps * step.executed_flop)} FLOP: {_describe_twice(step)}"
    if run.has_updates:
        operations = _flop(steps * step.optimizer_flop)
        yield f"  optimizer   {operations} operations, element by element; in no convention below"
    parts = sorted(step.components.items(), key=lambda part: -part[1].flop)
    shares = [f"{Share[name.name]} {_percent(part.flop, step.model_flop)}" for name, part in parts]
    yield f"  where       {', '.join(shares)}"


def _describe_twice(step: StepCount) -> str:
    parts = (
        (step.again_flop, "fused attention computes its scores again"),
        (step.recomputed_flop, "activations are computed again"),
        (step.padding_flop, "padding and masked pairs are computed"),
    )
    told = [f"{what} (+{_percent(flop, step.model_flop)})" for flop, what in parts if flop]
    return ", ".join(told) or "nothing is computed twice"


def _percent(flop: int, whole: int) -> str:
    return f"{100 * flop / whole:.1f} %" if whole else "0 %"


def _convention_lines(conventions: Sequence[Convention]) -> Iterator[str]:
    ours = conventions[0].flop
    for item in conventions:
        ratio = f"{item.flop / ours:.4f}" if ours else ""
        head = f"  {item.id:<14} {_flop(item.flop):>11}  {ratio:>6}  "
        yield from _wrap(item.says, first=head, further=_INDENT)
        told = [_describe_difference(part, ours) for part in item.differences if _is_told(part, ours)]
        if item.differences and not told:
            told = ["less than 0.05 % apart"]
        for line in told:
            yield from _wrap(line, first=_INDENT + "  ", further=_INDENT + "    ")


_INDENT: Final = " " * 37


def _wrap(text: str, *, first: str, further: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _is_told(part: Difference, whole: int) -> bool:
    return abs(part.flop) >= _SMALLEST_TOLD * whole


def _describe_difference(part: Difference, whole: int) -> str:
    sign = "+" if part.flop > 0 else "-"
    return f"{sign}{_percent(abs(part.flop), whole)} {part.reason}"
