"""Configurations: decoding them, and counting what was decoded in every convention."""

from typing import Final

from flopwitness.counting.chain import Chain, count_chain
from flopwitness.counting.config import decode_counted
from flopwitness.counting.conventions import count_conventions
from flopwitness.testing.known_decoder import KnownDecoder
from flopwitness.trainers.config import describe_run, digest_run
from flopwitness.trainers.config_file import decode_run

__all__ = ["decoders"]

_RUN: Final = b"""
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 4
d_model = 64
heads = 8
kv_heads = 2
d_ff = 128
sequence = 32
vocabulary = 100
window = 8
frozen = ["norm"]
[training]
batch = 2
accumulation = 2
steps = 10
seed = 7
precision = "bf16"
device = "cpu"
threads = 1
masking = "dense"
checkpointing = "layers"
[optimizer]
name = "adamw"
learning_rate = 1e-3
betas = [0.9, 0.95]
[schedule]
kind = "cosine"
warmup_steps = 2
[data]
kind = "tokens"
path = "tokens.bin"
dtype = "uint16"
[checkpoints]
every = 5
"""
_MIXTURE: Final = b"""{
    "model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 32
}"""
_COUNTED: Final = (
    _RUN.split(b"[optimizer]")[0].replace(
        b"[training]", b"[model.experts]\ncount = 4\nactive = 2\n[training]"
    ),
    _RUN.split(b"[optimizer]")[0].replace(
        b"[training]", b'[model.lora]\nrank = 2\non = ["query", "down"]\n[training]'
    ),
    b'spec = "flopwitness/run/v1"\n[chain]\ntokens = 5\n[[chain.layer]]\nin = 2\nout = 3\nlora_rank = 1\n',
    _MIXTURE,
    b'{"model_type": "gpt2"}',
)


def decoders() -> tuple[KnownDecoder, ...]:
    """The readers of what is counted and of what is trained."""
    return (
        KnownDecoder(name="counted", decode=_count, seeds=(_RUN, *_COUNTED)),
        KnownDecoder(name="trained", decode=_describe, seeds=(_RUN,)),
    )


def _count(data: bytes) -> object:
    """The counts of whatever the bytes describe."""
    counted = decode_counted(data, where="run.toml")
    if isinstance(counted, Chain):
        return count_chain(counted)
    return count_conventions(counted.model, counted.training)


def _describe(data: bytes) -> object:
    """The record of a declared run, whose digest names it."""
    run = decode_run(data, where="run.toml")
    return digest_run(run), describe_run(run)
