import json
from typing import Any, Final

import pytest

from flopwitness.counting.hugging_face import HUGGING_FACE_TYPES, decode_hugging_face
from flopwitness.counting.parameters import count_parameters
from flopwitness.foundation.errors import InputError

LLAMA: Final[dict[str, Any]] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}
SEVEN_B: Final = LLAMA | {"vocab_size": 32000, "max_position_embeddings": 32768}
PUBLISHED: Final[dict[str, tuple[dict[str, Any], int, int]]] = {
    # What the published weights hold, by the sum over their tensors; and what a token meets.
    "gpt2": ({"model_type": "gpt2"}, 124_439_808, 124_439_808),
    "gpt2-xl": (
        {"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48},
        1_557_611_200,
        1_557_611_200,
    ),
    "llama-3.1-8b": (LLAMA, 8_030_261_248, 8_030_261_248),
    "llama-2-7b": (
        SEVEN_B | {"intermediate_size": 11008, "num_key_value_heads": None},
        6_738_415_616,
        6_738_415_616,
    ),
    "mistral-7b": (
        SEVEN_B | {"model_type": "mistral", "sliding_window": 4096},
        7_241_732_096,
        7_241_732_096,
    ),
    "mixtral-8x7b": (
        SEVEN_B | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
        46_702_792_704,
        12_879_925_248,
    ),
    "qwen2-7b": (
        {
            "model_type": "qwen2",
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
            "max_position_embeddings": 32768,
        },
        7_615_616_512,
        7_615_616_512,
    ),
    "gpt-neox-20b": (
        {
            "model_type": "gpt_neox",
            "hidden_size": 6144,
            "intermediate_size": 24576,
            "num_hidden_layers": 44,
            "num_attention_heads": 64,
            "vocab_size": 50432,
        },
        20_554_567_680,
        20_554_567_680,
    ),
}


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_published_model_has_its_published_parameters(name: str) -> None:
    record, total, active = PUBLISHED[name]
    parameters = count_parameters(decode_hugging_face(json.dumps(record).encode()))
    assert (parameters.total, parameters.active_total) == (total, active)


def test_every_architecture_is_held_against_a_published_model() -> None:
    assert {record["model_type"] for record, _, _ in PUBLISHED.values()} == set(HUGGING_FACE_TYPES)


def test_the_row_may_be_shorter_than_the_model_allows() -> None:
    data = json.dumps(LLAMA).encode()
    assert decode_hugging_face(data).sequence == 131072
    assert decode_hugging_face(data, sequence=8192).sequence == 8192


def test_a_shorter_row_leaves_learned_positions_as_they_are() -> None:
    data = json.dumps({"model_type": "gpt2"}).encode()
    assert count_parameters(decode_hugging_face(data, sequence=128)).total == 124_439_808
    with pytest.raises(InputError, match=r"n_positions: does not fit the model .*\(1024\); found 4096"):
        decode_hugging_face(data, where="c.json", sequence=4096)


def test_a_window_is_in_every_layer() -> None:
    model = decode_hugging_face(json.dumps(PUBLISHED["mistral-7b"][0]).encode())
    assert (model.window, model.window_layers) == (4096, 32)
    without = decode_hugging_face(
        json.dumps(SEVEN_B | {"model_type": "mistral", "sliding_window": None}).encode()
    )
    assert (without.window, without.window_layers) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "deepseek_v3"}, "c.json, model_type: an architecture that is not known here"),
        ({"model_type": None}, "c.json, model_type: an architecture that is not known here"),
        ({"model_type": ["llama"]}, "c.json, model_type: an architecture that is not known here"),
        ({"hidden_size": None}, "c.json, hidden_size: missing key"),
        ({"hidden_size": 0}, "c.json, hidden_size: bad value"),
        ({"hidden_size": 4096.0}, "c.json, hidden_size: bad value"),
        ({"hidden_size": True}, "c.json, hidden_size: bad value"),
        ({"hidden_size": 1 << 41}, "c.json, hidden_size: bad value"),
        ({"num_key_value_heads": 7}, "c.json, num_key_value_heads: does not fit the model"),
        ({"num_hidden_layers": 1_000_000}, "c.json, num_hidden_layers: does not fit the model"),
        ({"num_attention_heads": 31, "num_key_value_heads": 1}, "c.json, num_attention_heads: does not fit"),
        ({"num_experts": 8}, "c.json, num_experts: a key of another architecture"),
        ({"num_local_experts": 8}, "c.json, num_local_experts: a key of another architecture"),
        ({"model_type": "mixtral", "kv_lora_rank": 512}, "c.json, kv_lora_rank: a key of another"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "c.json, num_experts_per_tok: does not fit"),
        ({"model_type": "gpt2", "n_embd": 100}, "c.json, n_head: does not fit the model"),
        ({"hidden_act": "mish"}, "c.json, hidden_act: an activation that is not known here"),
        ({"hidden_act": {}}, "c.json, hidden_act: an activation that is not known here"),
        ({"tie_word_embeddings": "no"}, "c.json, tie_word_embeddings: bad value"),
        ({"attention_bias": 1}, "c.json, attention_bias: bad value"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "c.json, use_sliding_window: a window"),
        ({"model_type": "mistral", "sliding_window": 0}, "c.json, sliding_window: bad value"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused_by_its_key(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as refused:
        decode_hugging_face(json.dumps(LLAMA | changes).encode(), where="c.json")
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{", b'{"model_type": "gpt2", "model_type": "gpt2"}'])
def test_what_is_no_configuration_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        decode_hugging_face(data)
