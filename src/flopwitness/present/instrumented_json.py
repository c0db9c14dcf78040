"""An instrumented count as JSON: beside the closed form, and with all that was not counted."""

from typing import Any

from flopwitness.counting.step import StepCount
from flopwitness.foundation.units import encode_flop
from flopwitness.integrations.operation_count import OperationCount

__all__ = ["render_instrumented"]


def render_instrumented(closed: StepCount, seen: OperationCount, *, rows: int) -> dict[str, Any]:
    """The record of `count --torch`."""
    return {
        "rows": rows,
        "once_flop": encode_flop(seen.model_flop),
        "executed_flop": encode_flop(seen.executed_flop),
        "closed_once_flop": encode_flop(closed.once_flop),
        "closed_executed_flop": encode_flop(closed.executed_flop),
        "completeness": float(seen.completeness),
        "is_complete": seen.is_complete,
        "operators": [
            {"name": row.name, "calls": row.calls, "flop": encode_flop(row.work.executed_flop)}
            for row in seen.by_operator
        ],
        "uncounted": [
            {"name": row.name, "reason": str(row.reason), "calls": row.calls, "volume": str(row.volume)}
            for row in seen.uncounted
        ],
        "notes": [note.message for note in seen.notes],
    }
