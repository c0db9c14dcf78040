"""An instrumented count for a person: beside the closed form, and with all that was not counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from flopwitness.counting.step import StepCount
from flopwitness.integrations.operation_count import OperationCount, UncountedReason
from flopwitness.present.safe_text import name_count

__all__ = ["instrumented_lines"]

_MOST_NAMED: Final = 4


def instrumented_lines(closed: StepCount, seen: OperationCount, *, rows: int) -> Iterator[str]:
    """The block of `count --torch`, line by line.

    Args:
        closed: The count of the pass from shapes.
        seen: The count of what ran.
        rows: Rows of the pass.
    """
    yield f"instrumented, one pass of {name_count(rows, 'row')}"
    masked = ", padding and masked pairs included" if closed.padding_flop else ""
    yield f"  once        {seen.model_flop:,} FLOP, {_compare(seen.model_flop, closed.once_flop)}{masked}"
    yield f"  executed    {seen.executed_flop:,} FLOP, {_compare(seen.executed_flop, closed.executed_flop)}"
    counted = ", ".join(f"{row.name} x {row.calls:,}" for row in seen.by_operator[:_MOST_NAMED])
    more = len(seen.by_operator) - _MOST_NAMED
    yield f"  counted     {counted}" + (f" and {name_count(more, 'other')}" if more > 0 else "")
    yield f"  not counted {_describe_uncounted(seen)}"
    yield f"  complete    {_describe_completeness(seen)}"


def _compare(seen_flop: int, closed_flop: int) -> str:
    if seen_flop == closed_flop:
        return "as the closed form says"
    if not closed_flop:
        return "where the closed form says none"
    more = 100 * (seen_flop - closed_flop) / closed_flop
    return f"{abs(more):.3g} % {'more' if more > 0 else 'less'} than the closed form ({closed_flop:,})"


def _describe_uncounted(seen: OperationCount) -> str:
    volumes: Counter[UncountedReason] = Counter()
    for row in seen.uncounted:
        volumes[row.reason] += row.volume
    told = [f"{reason} {volume:,}" for reason, volume in volumes.most_common() if volume]
    return f"{', '.join(told)} elements read and written" if told else "nothing"


def _describe_completeness(seen: OperationCount) -> str:
    if seen.is_complete:
        return "yes: every operator that ran is counted, or known to do no products"
    names = ", ".join(f"{row.name} ({row.volume:,} elements)" for row in seen.unrecognised[:_MOST_NAMED])
    return f"no, {100 * float(seen.completeness):.4g} % of the volume is understood; not recognised: {names}"
