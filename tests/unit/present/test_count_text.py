"""What `count` says to a person: the count, where it goes, and why others count otherwise."""

from collections.abc import Sequence

import pytest

from flopwitness.counting.chain import Chain, ChainLayer, count_chain
from flopwitness.counting.config import CountedRun, decode_counted
from flopwitness.counting.conventions import count_conventions
from flopwitness.counting.step import count_step
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.count_text import render_chain_text, render_count_text, render_total_text

RUN = """
spec = "flopwitness/run/v1"
[model]
kind = "decoder"
layers = 2
d_model = 64
heads = 4
d_ff = 256
sequence = 64
vocabulary = 256
[training]
batch = 4
accumulation = 2
steps = 10
"""
NOTE = Finding(code="settings-used", severity=Severity.NOTE, message="a file sets options")


def run_of(text: str) -> CountedRun:
    decoded = decode_counted(text.encode())
    assert isinstance(decoded, CountedRun)
    return decoded


def told(run: CountedRun, *, findings: Sequence[Finding] = ()) -> list[str]:
    step = count_step(run.model, run.training)
    conventions = count_conventions(run.model, run.training)
    return render_count_text(run, step, conventions, findings=findings).splitlines()


def test_a_run_is_told_from_its_sizes_to_its_conventions() -> None:
    lines = told(run_of(RUN))
    assert lines[0] == "decoder: 2 layers, d_model 64, 4 heads, d_ff 256 (gelu); 136,832 parameters"
    assert lines[1] == "run: 10 steps x 8 rows x 64 tokens = 5,120 tokens"
    forward = 5120 * (2 * (2 * 4 * 64 * 64 + 4 * 64 * 64 + 2 * 2 * 64 * 256) + 2 * 64 * 256)
    assert lines[2].startswith(f"  model       {forward * 3 / 1e9:.4f}e9 FLOP: forward ")
    assert lines[3].startswith("  executed    ")
    assert "fused attention computes its scores again (+2.1 %)" in lines[3]
    assert lines[4].startswith("  optimizer   17,788,160 operations")
    assert lines[5].startswith(
        "  where       feed-forward 50.0 %, attention projections 25.0 %, attention scores 12.5 %"
    )
    assert lines[6] == "conventions"
    heads = [line.split()[0] for line in lines[7:] if line[:3].strip() and line.startswith("  ")]
    assert heads == [
        "model",
        "model-masked",
        "executed",
        "epoch",
        "kaplan",
        "nanogpt",
        "torchtitan",
        "megatron",
        "megatron-2021",
    ]


def test_every_difference_stands_under_its_convention_largest_first() -> None:
    lines = told(run_of(RUN))
    start = next(i for i, line in enumerate(lines) if line.startswith("  epoch"))
    under = [line.strip() for line in lines[start + 1 : start + 5]]
    assert under[:2] == [
        "-12.5 % the attention scores are left out",
        "+12.5 % the embedding's lookup is counted as a product",
    ]
    shares = [float(line.split()[0][1:]) for line in under if line[0] in "+-"]
    assert shares == sorted(shares, reverse=True)


def test_what_makes_a_model_special_is_told() -> None:
    grouped = RUN.replace("heads = 4", "heads = 4\nkv_heads = 2\nfrozen = ['embedding']")
    text = grouped + "[model.experts]\ncount = 8\nactive = 2\n"
    head = " ".join(told(run_of(text))[:2])
    assert "4 heads over 2 of keys and values" in head
    assert "2 of 8 experts a token" in head
    assert "that a token meets)" in head
    assert "of them learn" in head
    adapters = RUN + "[model.lora]\nrank = 4\non = ['query']\n"
    assert "adapters of rank 4" in told(run_of(adapters))[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RUN + "checkpointing = 'layers'\n", "activations are computed again (+"),
        (RUN + "documents = [10]\nmasking = 'dense'\n", "padding and masked pairs are computed (+"),
        (RUN + "attention = 'unfused'\n", "nothing is computed twice"),
    ],
)
def test_what_is_computed_twice_is_named(text: str, said: str) -> None:
    assert said in " ".join(" ".join(told(run_of(text))).split())


def test_of_a_published_model_no_updates_are_told() -> None:
    run = decode_counted(b'{"model_type": "gpt2"}', tokens=10**6)
    assert isinstance(run, CountedRun)
    lines = told(run)
    assert lines[1] == "run: 977 rows x 1,024 tokens = 1,000,448 tokens"
    assert not any(line.startswith("  optimizer") for line in lines)


def test_findings_stand_last() -> None:
    assert told(run_of(RUN), findings=[NOTE])[-2:] == ["findings", "    settings-used  a file sets options"]


def test_no_line_is_wider_than_a_terminal_is_read() -> None:
    text = RUN.replace("layers = 2", "layers = 12345").replace("d_model = 64", "d_model = 65536")
    assert max(map(len, told(run_of(text)))) <= 110


def test_a_chain_is_told_beside_three_forward_passes() -> None:
    frozen = ChainLayer(inner=64, outer=128, rank=4, is_frozen=True)
    chain = Chain(tokens=50, steps=2, input_learns=False, layers=(frozen,))
    lines = render_chain_text(chain, count_chain(chain), findings=[NOTE]).splitlines()
    forward = 2 * 2 * 50 * (64 * 128 + 4 * (64 + 128))
    backward = 2 * 2 * 50 * 4 * (64 + 2 * 128)
    ratio = 3 * forward / (forward + backward)
    assert lines[:5] == [
        "chain: 1 linear layer, 50 tokens a step, 2 steps",
        f"  forward     {forward:,} FLOP",
        f"  backward    {backward:,} FLOP, only the gradients that are needed",
        f"  in all      {forward + backward:,} FLOP; a multiply-add is 2",
        f"  three times the forward pass would be {3 * forward:,} FLOP, {ratio:.2f} times as much",
    ]
    assert lines[5] == "findings"


def test_where_everything_learns_three_forward_passes_are_not_held_against_it() -> None:
    chain = Chain(tokens=5, steps=1, input_learns=True, layers=(ChainLayer(inner=2, outer=3),))
    assert len(render_chain_text(chain, count_chain(chain)).splitlines()) == 4


def test_a_table_of_modules_says_why_rows_are_not_added() -> None:
    text = render_total_text(12000, rows=6)
    assert text.startswith("table of 6 modules: 12,000 FLOP in all\n")
    assert "rows are never added" in text
