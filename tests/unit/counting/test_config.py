import json

import pytest

from flopwitness.counting.chain import Chain
from flopwitness.counting.config import RUN_SPEC, CountedRun, decode_counted
from flopwitness.foundation.errors import InputError

RUN = f"""
spec = "{RUN_SPEC}"
[model]
kind = "decoder"
layers = 2
d_model = 8
heads = 2
d_ff = 32
sequence = 16
vocabulary = 50
[training]
batch = 2
steps = 3
seed = 1
precision = "fp32"
[optimizer]
name = "sgd"
learning_rate = 0.1
[schedule]
kind = "cosine"
[data]
kind = "random"
"""
CHAIN = f'spec = "{RUN_SPEC}"\n[chain]\ntokens = 5\n[[chain.layer]]\nin = 2\nout = 3\n'


def run_of(text: str) -> CountedRun:
    decoded = decode_counted(text.encode(), where="run.toml")
    assert isinstance(decoded, CountedRun)
    return decoded


def test_a_run_is_read_with_what_only_the_trainer_needs_beside_it() -> None:
    run = run_of(RUN)
    assert (run.model.layers, run.training.batch, run.training.steps) == (2, 2, 3)


def test_a_chain_is_told_by_its_table() -> None:
    chain = decode_counted(CHAIN.encode())
    assert isinstance(chain, Chain)
    assert chain.tokens == 5


@pytest.mark.parametrize(
    ("tokens", "rows"), [(None, 1), (1, 1), (512, 1), (513, 2), (15 * 10**12, 29_296_875_000)]
)
def test_a_published_model_takes_its_tokens_in_whole_rows(tokens: int | None, rows: int) -> None:
    data = json.dumps({"model_type": "gpt2"}).encode()
    run = decode_counted(data, tokens=tokens, sequence=512)
    assert isinstance(run, CountedRun)
    assert (run.model.sequence, run.training.rows) == (512, rows)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (RUN.replace("v1", "v2"), "run.toml, spec: another kind of file"),
        (RUN.replace(f'spec = "{RUN_SPEC}"', ""), "run.toml, spec: missing key"),
        (RUN.replace("[schedule]", "[schedul]"), "run.toml, schedul: unknown key"),
        (RUN.replace("seed = 1", "sed = 1"), "run.toml, training.sed: unknown key"),
        (RUN.replace("heads = 2", "heads = 3"), "run.toml, model.heads: does not fit the model"),
        (RUN.replace("[model]", "[modell]"), "run.toml, model: missing key"),
        (RUN.replace("[training]", "[model.training]"), "run.toml, model.training: unknown key"),
        (CHAIN + "[model]\n", "run.toml, model: unknown key"),
        ("spec = ", "run.toml: not TOML"),
        ("", "run.toml, spec: missing key"),
    ],
)
def test_a_wrong_configuration_is_refused_by_its_key(text: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        decode_counted(text.encode(), where="run.toml")
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("options", [{"tokens": 5}, {"sequence": 5}])
def test_a_run_names_its_own_tokens(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="names its own rows and steps"):
        decode_counted(RUN.encode(), where="run.toml", **options)
