"""What `count --torch` says of an instrumented pass: agreement, disagreement, and what was not counted."""

from dataclasses import replace

from flopwitness.counting.config import CountedRun, decode_counted
from flopwitness.counting.step import StepCount, count_step
from flopwitness.integrations.operation_count import (
    OperationCount,
    OperatorCount,
    UncountedOperator,
    UncountedReason,
    Work,
)
from flopwitness.present.instrumented_json import render_instrumented
from flopwitness.present.instrumented_text import instrumented_lines

RUN = """
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 1
d_model = 8
heads = 2
d_ff = 32
sequence = 16
vocabulary = 50
[training]
batch = 2
steps = 3
"""


def closed_form(text: str = RUN) -> StepCount:
    run = decode_counted(text.encode())
    assert isinstance(run, CountedRun)
    return count_step(run.model, run.training)


def seen_of(closed: StepCount, *, more_flop: int = 0) -> OperationCount:
    work = Work(
        forward_flop=closed.forward_flop + more_flop,
        backward_flop=closed.backward_flop + closed.padding_flop,
        recomputed_flop=closed.again_flop,
    )
    rows = [OperatorCount(name=f"aten::op{i}", calls=1, volume=0, work=Work()) for i in range(6)]
    return OperationCount(
        work=work,
        by_operator=(OperatorCount(name="aten::mm", calls=7, volume=70, work=work), *rows),
        uncounted=(
            UncountedOperator(name="aten::add", reason=UncountedReason.ELEMENTWISE, calls=3, volume=30),
        ),
    )


def test_counts_that_agree_are_told_so() -> None:
    closed = closed_form()
    lines = list(instrumented_lines(closed, seen_of(closed), rows=2))
    assert lines == [
        "instrumented, one pass of 2 rows",
        f"  once        {closed.model_flop:,} FLOP, as the closed form says",
        f"  executed    {closed.executed_flop:,} FLOP, as the closed form says",
        "  counted     aten::mm x 7, aten::op0 x 1, aten::op1 x 1, aten::op2 x 1 and 3 others",
        "  not counted elementwise 30 elements read and written",
        "  complete    yes: every operator that ran is counted, or known to do no products",
    ]


def test_counts_that_do_not_agree_say_by_how_much() -> None:
    closed = closed_form()
    more = closed.model_flop // 100
    text = "\n".join(instrumented_lines(closed, seen_of(closed, more_flop=more), rows=2))
    assert f"1 % more than the closed form ({closed.model_flop:,})" in text
    less = "\n".join(instrumented_lines(closed, seen_of(closed, more_flop=-more), rows=2))
    assert "1 % less than the closed form" in less


def test_masked_pairs_are_named_where_they_are_executed() -> None:
    closed = closed_form(RUN + "documents = [5]\nmasking = 'dense'\n")
    lines = list(instrumented_lines(closed, seen_of(closed), rows=2))
    assert lines[1].endswith("as the closed form says, padding and masked pairs included")


def test_what_is_not_recognised_stands_in_the_open() -> None:
    closed = closed_form()
    hidden = UncountedOperator(
        name="lib::fused", reason=UncountedReason.UNRECOGNISED, explanation="x", calls=1, volume=100
    )
    seen = replace(seen_of(closed), uncounted=(hidden,))
    assert list(instrumented_lines(closed, seen, rows=2))[-1] == (
        "  complete    no, 41.18 % of the volume is understood; not recognised: lib::fused (100 elements)"
    )
    record = render_instrumented(closed, seen, rows=2)
    assert record["is_complete"] is False
    assert record["uncounted"] == [
        {"name": "lib::fused", "reason": "unrecognised", "calls": 1, "volume": "100"}
    ]
    assert record["closed_executed_flop"] == str(closed.executed_flop) == record["executed_flop"]
