import json
from pathlib import Path

import pytest

from flopwitness.counting.chain import Chain, ChainCount, ChainLayer, count_chain, read_chain
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.toml_table import TomlTable, decode_toml


def table(text: str) -> TomlTable:
    return decode_toml(text.encode(), where="chain.toml").table("chain")


def chain(*layers: ChainLayer, input_learns: bool = False) -> Chain:
    return Chain(tokens=3, steps=1, input_learns=input_learns, layers=layers)


def test_what_learns_all_the_way_takes_three_times_the_forward_pass() -> None:
    count = count_chain(chain(ChainLayer(inner=5, outer=7), ChainLayer(inner=7, outer=2), input_learns=True))
    forward = 2 * 3 * (5 * 7 + 7 * 2)
    assert count == ChainCount(forward_flop=forward, backward_flop=2 * forward)
    assert count.step_flop == 3 * forward


def test_below_the_lowest_layer_that_learns_nothing_needs_a_gradient() -> None:
    frozen, free = ChainLayer(inner=5, outer=7, is_frozen=True), ChainLayer(inner=7, outer=2)
    assert count_chain(chain(frozen, free)).backward_flop == 2 * 3 * 7 * 2
    assert count_chain(chain(frozen, frozen_like(free))).backward_flop == 0


def frozen_like(layer: ChainLayer) -> ChainLayer:
    return ChainLayer(inner=layer.inner, outer=layer.outer, is_frozen=True)


def test_case_h16_lora_frozen_base(cases: Path) -> None:
    folder = cases / "h16_lora_frozen_base"
    spec = json.loads((folder / "spec.json").read_text())
    case = json.loads((folder / "expected.json").read_text())
    layers = tuple(
        ChainLayer(
            inner=layer["in"], outer=layer["out"], rank=layer["lora_rank"], is_frozen=layer["base_frozen"]
        )
        for layer in spec["layers"]
    )
    given = Chain(tokens=spec["tokens"], steps=1, input_learns=spec["input_requires_grad"], layers=layers)
    count = count_chain(given)
    assert count.forward_flop == case["expect"]["forward_flops"]
    assert count.backward_flop == case["expect"]["backward_flops"]
    assert count.step_flop == case["expect"]["step_flops"]
    assert count.step_flop not in case["wrong_answers"].values()


GOOD = """
[chain]
tokens = 50
[[chain.layer]]
in = 64
out = 128
lora_rank = 4
frozen = true
[[chain.layer]]
in = 128
out = 32
"""


def test_a_table_is_read_layer_by_layer() -> None:
    assert read_chain(table(GOOD)) == Chain(
        tokens=50,
        steps=1,
        input_learns=False,
        layers=(
            ChainLayer(inner=64, outer=128, rank=4, is_frozen=True),
            ChainLayer(inner=128, outer=32),
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("tokens = 50", "", "chain.tokens: missing key"),
        ("tokens = 50", "tokens = 0", "chain.tokens: out of range"),
        ("tokens = 50", "tokens = 50\nrows = 1", "chain.rows: unknown key"),
        ("in = 128", "in = 127", r"chain.layer\[1\].in: does not fit the layer below"),
        ("out = 32", "out = -1", r"chain.layer\[1\].out: out of range"),
        ("out = 32", "", r"chain.layer\[1\].out: missing key"),
        ("out = 32", "out = 32\nbias = true", r"chain.layer\[1\].bias: unknown key"),
        ("lora_rank = 4", "lora_rank = 0", r"chain.layer\[0\].lora_rank: out of range"),
    ],
)
def test_a_table_that_is_no_chain_is_refused_by_its_key(old: str, new: str, place: str) -> None:
    with pytest.raises(DecodeError, match=f"chain.toml, {place}"):
        read_chain(table(GOOD.replace(old, new)))


def test_a_chain_without_layers_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"chain.toml, chain.layer: no layers"):
        read_chain(table("[chain]\ntokens = 1\n"))
