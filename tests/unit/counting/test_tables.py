import pytest

from flopwitness.counting.model import (
    Experts,
    FeedForward,
    Lora,
    Model,
    ModelInput,
    ModelKind,
    Norm,
    Part,
    Positions,
    Projection,
)
from flopwitness.counting.tables import read_model, read_training
from flopwitness.counting.training import (
    AttentionKernel,
    Checkpointing,
    Masking,
    OptimizerKind,
    Training,
)
from flopwitness.foundation.errors import InputError
from flopwitness.foundation.toml_table import decode_toml

SMALL = """
[model]
kind = "decoder"
layers = 4
d_model = 64
heads = 8
d_ff = 256
sequence = 128
vocabulary = 1000
"""
EXPERTS = "[model.experts]\ncount = 8\nactive = 2\n"
LORA = '[model.lora]\nrank = 4\non = ["query", "value"]\n'
STEP = "[training]\nbatch = 2\nsteps = 3\n"


def model_of(text: str) -> Model:
    return read_model(decode_toml(text.encode(), where="run.toml").table("model"))


def training_of(text: str) -> Training:
    top = decode_toml((SMALL + text).encode(), where="run.toml")
    model = read_model(top.table("model"))
    return read_training(top.table("training"), optimizer=top.optional_table("optimizer"), model=model)


def test_what_is_left_out_has_its_usual_value() -> None:
    assert model_of(SMALL) == Model(
        kind=ModelKind.DECODER,
        layers=4,
        d_model=64,
        heads=8,
        kv_heads=8,
        head_dim=8,
        d_ff=256,
        feed_forward=FeedForward.GELU,
        sequence=128,
        vocabulary=1000,
        outputs=1000,
        biases=frozenset(Projection) - {Projection.KEY},
    )
    assert training_of(STEP) == Training(batch=2, steps=3)


def test_every_key_of_a_model_is_read() -> None:
    text = SMALL + (
        "kv_heads = 2\nhead_dim = 16\nfeed_forward = 'swiglu'\noutputs = 1000\ntied = true\nwindow = 32\n"
        "window_layers = 2\nfrozen = ['norm']\nfrozen_layers = 1\nbias = false\nnorm = 'rms'\n"
        "pre_norm = false\nfinal_norm = false\nembedding_norm = true\npositions = 'rotary'\ndropout = 0.1\n"
    )
    assert model_of(
        text + EXPERTS + "shared = 1\nd_ff = 32\nshared_d_ff = 48\nevery = 2\ndense_first = 1\n"
    ) == Model(
        kind=ModelKind.DECODER,
        layers=4,
        d_model=64,
        heads=8,
        kv_heads=2,
        head_dim=16,
        d_ff=256,
        feed_forward=FeedForward.SWIGLU,
        sequence=128,
        vocabulary=1000,
        outputs=1000,
        is_tied=True,
        window=32,
        window_layers=2,
        experts=Experts(count=8, active=2, shared=1, d_ff=32, shared_d_ff=48, every=2, dense_first=1),
        frozen=frozenset({Part.NORM}),
        frozen_layers=1,
        norm=Norm.RMS,
        is_pre_norm=False,
        has_final_norm=False,
        has_embedding_norm=True,
        positions=Positions.ROTARY,
        dropout=0.1,
    )


def test_features_have_no_vocabulary() -> None:
    text = SMALL.replace("vocabulary = 1000", "input = 'features'\noutputs = 64")
    model = model_of(text)
    assert (model.inputs, model.vocabulary, model.outputs) == (ModelInput.FEATURES, 0, 64)


def test_a_window_is_in_every_layer_unless_said_otherwise() -> None:
    assert model_of(SMALL + "window = 32\n").window_layers == 4


def test_adapters_and_experts_have_tables_of_their_own() -> None:
    assert model_of(SMALL + LORA).lora == Lora(rank=4, on=frozenset({Projection.QUERY, Projection.VALUE}))
    assert model_of(SMALL + EXPERTS).experts == Experts(count=8, active=2, d_ff=256, shared_d_ff=256)


def test_every_key_of_a_training_that_counts_is_read() -> None:
    text = STEP + (
        "accumulation = 4\nprocesses = 2\ndocuments = [100, 20]\nmasking = 'dense'\n"
        "checkpointing = 'layers'\nattention = 'unfused'\n"
        "[optimizer]\nname = 'sgd'\nmomentum = 0.9\nweight_decay = 0.1\n"
    )
    assert training_of(text) == Training(
        batch=2,
        accumulation=4,
        processes=2,
        steps=3,
        documents=(100, 20),
        masking=Masking.DENSE,
        checkpointing=Checkpointing.LAYERS,
        kernel=AttentionKernel.UNFUSED,
        optimizer=OptimizerKind.SGD,
        has_momentum=True,
        has_decay=True,
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SMALL.replace("decoder", "mixer"), "model.kind: bad value (expected one of decoder, encoder; found"),
        (SMALL.replace("layers = 4", ""), "model.layers: missing key (expected a whole number from 1 to 100"),
        (SMALL.replace("layers = 4", "layers = 4.0"), "model.layers: bad value"),
        (SMALL.replace("layers = 4", "layers = 0"), "model.layers: out of range"),
        (SMALL.replace("d_model = 64", "d_model = '64'"), "model.d_model: bad value"),
        (SMALL.replace("heads = 8", "heads = 7"), "model.heads: does not fit the model (expected a divisor"),
        (SMALL.replace("heads = 8", "heads = true"), "model.heads: bad value"),
        (SMALL + "kv_heads = 3\n", "model.kv_heads: does not fit the model (expected a divisor of heads (8)"),
        (SMALL + "layer = 2\n", "model.layer: unknown key"),
        (SMALL.replace("vocabulary = 1000", ""), "model.vocabulary: missing key"),
        (SMALL + "input = 'features'\n", "model.vocabulary: features have no vocabulary"),
        (SMALL + "tied = true\noutputs = 10\n", "model.tied: does not fit the model (expected a head of the"),
        (SMALL + "window_layers = 2\n", "model.window_layers: does not fit"),
        (SMALL + "window = 0\n", "model.window: out of range"),
        (SMALL + "window = 2\nwindow_layers = 5\n", "model.window_layers: out of range"),
        (SMALL + "frozen = ['body']\n", "model.frozen: bad value (expected some of embedding, attention"),
        (SMALL + "frozen = 'norm'\n", "model.frozen: bad value"),
        (SMALL + "frozen_layers = 5\n", "model.frozen_layers: out of range"),
        (SMALL + "dropout = 1.0\n", "model.dropout: out of range"),
        (SMALL + "dropout = nan\n", "model.dropout: out of range"),
        (SMALL + "norm = 'batch'\n", "model.norm: bad value"),
        (SMALL + "bias = 1\n", "model.bias: bad value"),
        (SMALL + EXPERTS.replace("active = 2", "active = 9"), "model.experts.active: does not fit the model"),
        (SMALL + EXPERTS.replace("count = 8", ""), "model.experts.count: missing key"),
        (SMALL + EXPERTS + "every = 5\n", "model.experts.every: does not fit the model (expected 1 to 4; fo"),
        (SMALL + EXPERTS + "top_k = 2\n", "model.experts.top_k: unknown key"),
        (SMALL + LORA.replace("4", "0"), "model.lora.rank: out of range"),
        (SMALL + LORA.replace('"value"', '"values"'), "model.lora.on: bad value"),
        (SMALL + "[model.lora]\nrank = 4\n", "model.lora.on: does not fit the model (expected at least one"),
        (SMALL + LORA.replace('"value"', '"gate"'), "model.lora.on: does not fit the model (expected no gat"),
        (SMALL + EXPERTS + LORA.replace('"value"', '"up"'), "model.lora.on: does not fit the model (expecte"),
    ],
)  # fmt: skip
def test_a_wrong_model_is_refused_by_its_key(text: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        model_of(text)
    assert str(refused.value).startswith(f"run.toml, {told}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[training]\nbatch = 2\n", "training.steps: missing key"),
        ("[training]\nsteps = 2\n", "training.batch: missing key"),
        (STEP + "accumulation = 0\n", "training.accumulation: out of range"),
        (STEP + "processes = -1\n", "training.processes: out of range"),
        (STEP + "documents = [0]\n", "training.documents: out of range"),
        (STEP + "documents = [129]\n", "training.documents: out of range"),
        (STEP + "documents = [100, 29]\n", "training.documents: documents longer than a row (expected at mo"),
        (STEP + "documents = 100\n", "training.documents: bad value"),
        (STEP + "masking = 'causal'\n", "training.masking: bad value"),
        (STEP + "checkpointing = 'full'\n", "training.checkpointing: bad value"),
        (STEP + "attention = 'flash'\n", "training.attention: bad value"),
        (STEP + "[optimizer]\nname = 'lion'\n", "optimizer.name: bad value (expected one of adamw, sgd; fou"),
        (STEP + "[optimizer]\nmomentum = 2\n", "optimizer.momentum: out of range"),
    ],
)  # fmt: skip
def test_a_wrong_training_is_refused_by_its_key(text: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        training_of(text)
    assert str(refused.value).startswith(f"run.toml, {told}")
