"""The closed form beside what the trainer really runs, operator by operator, for every choice it offers."""

from pathlib import Path

import pytest

from flopwitness.cli.instrumented import InstrumentedPass, count_instrumented, tell_instrumented

pytest.importorskip("torch")

RUN = """
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 2
d_model = 16
heads = 4
d_ff = 40
sequence = 24
vocabulary = 50
{model}
[training]
batch = 3
steps = 4
seed = 1
precision = "fp32"
device = "cpu"
threads = 1
{training}
[optimizer]
name = "adamw"
learning_rate = 1e-3
[data]
kind = "random"
"""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def counted(*, model: str = "", training: str = "") -> InstrumentedPass:
    text = RUN.format(model=model, training=training)
    if 'precision = "' in training:
        text = text.replace('precision = "fp32"\n', "", 1)
    return count_instrumented(text.encode(), where="run.toml")


@pytest.mark.parametrize(
    "model",
    [
        "",
        "kv_heads = 2",
        "kv_heads = 1\nhead_dim = 6",
        "feed_forward = 'swiglu'\nnorm = 'rms'\npositions = 'rotary'\nbias = false",
        "feed_forward = 'geglu'\npositions = 'none'",
        "tied = true",
        "pre_norm = false\nfinal_norm = false\nembedding_norm = true",
        "dropout = 0.1",
        "frozen = ['embedding', 'norm']\nfrozen_layers = 1",
        "frozen = ['feed_forward']",
        "frozen = ['embedding', 'norm', 'attention', 'feed_forward']",
    ],
)
def test_every_model_is_counted_as_it_runs(model: str) -> None:
    both = counted(model=model)
    assert both.seen.model_flop == both.closed.once_flop
    assert both.seen.executed_flop == both.closed.executed_flop
    assert both.seen.is_complete
    assert not tell_instrumented(both)


@pytest.mark.parametrize(
    "training",
    [
        "attention = 'unfused'",
        "checkpointing = 'layers'",
        "checkpointing = 'attention'",
        "checkpointing = 'layers'\nattention = 'unfused'",
        "accumulation = 4\nprocesses = 2",
        'precision = "bf16"',
        'precision = "fp16"',
        'precision = "bf16-weights"',
        "clip_norm = 1.0",
    ],
)
def test_every_training_is_counted_as_it_runs(training: str) -> None:
    both = counted(training=training)
    assert both.seen.model_flop == both.closed.once_flop
    assert both.seen.executed_flop == both.closed.executed_flop
    assert both.seen.is_complete


def test_a_masked_window_is_executed_in_full() -> None:
    both = counted(model="window = 8", training="masking = 'dense'")
    assert both.seen.executed_flop == both.closed.executed_flop
    assert both.seen.model_flop == both.closed.once_flop > both.closed.model_flop
    assert both.seen.is_complete
    assert not tell_instrumented(both)


@pytest.mark.parametrize("name", ["decoder_tiny.toml", "decoder_gqa_bf16.toml"])
def test_the_examples_are_counted_as_they_run(name: str) -> None:
    both = count_instrumented((EXAMPLES / name).read_bytes(), where=name)
    assert both.seen.model_flop == both.closed.once_flop
    assert both.seen.executed_flop == both.closed.executed_flop
