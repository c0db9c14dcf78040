"""The record of `count`: exact, and every count a decimal string."""

import json
from typing import Any

from flopwitness.counting.chain import Chain, ChainLayer, count_chain
from flopwitness.counting.config import CountedRun, decode_counted
from flopwitness.counting.conventions import count_conventions
from flopwitness.counting.parameters import count_parameters
from flopwitness.counting.step import count_step
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.count_json import render_chain, render_count, render_total

RUN = """
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 96
d_model = 12288
heads = 96
d_ff = 49152
sequence = 2048
vocabulary = 51200
[model.experts]
count = 16
active = 2
[model.lora]
rank = 8
on = ["query", "value"]
[training]
batch = 1000
steps = 1000000
checkpointing = "layers"
"""
NOTE = Finding(code="settings-used", severity=Severity.NOTE, message="m", reproduce="flopwitness count x")


def record_of(text: str, *, tokens: int | None = None) -> tuple[CountedRun, dict[str, Any]]:
    run = decode_counted(text.encode(), tokens=tokens)
    assert isinstance(run, CountedRun)
    step = count_step(run.model, run.training)
    record = render_count(run, step, count_conventions(run.model, run.training), findings=[NOTE])
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    return run, record


def numbers(value: object) -> list[float]:
    """Every number in the record that is no text."""
    if isinstance(value, dict):
        return [found for item in value.values() for found in numbers(item)]
    if isinstance(value, list):
        return [found for item in value for found in numbers(item)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_counts_are_exact_decimal_strings() -> None:
    run, record = record_of(RUN)
    step = count_step(run.model, run.training)
    assert record["spec"] == "flopwitness/count/v1"
    assert record["flop"] == {
        "model": str(10**6 * step.model_flop),
        "model_masked": str(10**6 * step.causal_flop),
        "executed": str(10**6 * step.executed_flop),
        "optimizer": str(10**6 * step.optimizer_flop),
    }
    assert max(numbers(record)) < 2**53
    parts = [record["step"][name] for name in ("padding_flop", "recomputed_flop", "again_flop")]
    assert sum(map(int, parts)) == step.executed_flop - step.model_flop
    assert record["step"]["model_flop"] == str(
        sum(int(part["forward_flop"]) + int(part["backward_flop"]) for part in record["step"]["components"])
    )


def test_differences_are_signed_and_add_up() -> None:
    _, record = record_of(RUN)
    ours = int(record["conventions"][0]["flop"])
    for convention in record["conventions"]:
        apart = sum(int(part["flop"]) for part in convention["differences"])
        assert int(convention["flop"]) == ours + apart
        assert convention["of_model"] == round(int(convention["flop"]) / ours, 6)


def test_parameters_are_those_of_the_model() -> None:
    run, record = record_of(RUN)
    parameters = count_parameters(run.model)
    assert record["parameters"]["total"] == str(parameters.total)
    assert record["parameters"]["active"] == str(parameters.active_total)
    assert record["parameters"]["learning"] == str(parameters.learning)
    assert sum(map(int, record["parameters"]["groups"].values())) == parameters.total
    assert record["model"]["lora"] == {"rank": 8, "on": ["query", "value"]}
    assert record["findings"][0]["code"] == "settings-used"


def test_of_a_published_model_no_updates_are_known() -> None:
    _, record = record_of('{"model_type": "gpt2"}', tokens=10**12)
    assert record["steps"] is None
    assert record["flop"]["optimizer"] is None
    assert record["tokens"] == "1000000000000"


def test_a_chain_and_a_table_have_records_of_the_same_kind() -> None:
    chain = Chain(tokens=3, steps=2, input_learns=True, layers=(ChainLayer(inner=5, outer=7),))
    record = render_chain(chain, count_chain(chain), findings=[NOTE])
    assert record["kind"] == "chain"
    assert record["flop"] == {"model": str(2 * 3 * 2 * 3 * 5 * 7)}
    assert render_total(12000, rows=6)["flop"] == {"total": "12000"}
