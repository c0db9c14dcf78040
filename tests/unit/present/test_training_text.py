"""What `train` says to a person."""

from dataclasses import replace

import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.training_text import format_rate, render_training_text
from flopwitness.trainers.config import Precision
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.report import StepFlop, TrainingReport

RUN = decode_run(
    b"""
spec = "flopwitness/run/v1"
model = {kind = "decoder", layers = 1, d_model = 8, heads = 2, d_ff = 8, sequence = 8, vocabulary = 9}
training = {batch = 2, steps = 40, seed = 1, precision = "fp32", device = "cpu", threads = 2, processes = 2}
optimizer = {name = "sgd", learning_rate = 0.1}
data = {kind = "random"}
"""
)
REPORT = TrainingReport(
    run=RUN,
    digest=digest_bytes(b"run"),
    data=digest_bytes(b"data"),
    n_parameters=1_234,
    flop=StepFlop(model_flop=10**9, executed_flop=12 * 10**8),
    first_step=10,
    last_step=40,
    skipped_steps=0,
    first_loss=2.19722,
    last_loss=1.5,
    duration_s=75.0,
    out="out",
    resumed_from="out/checkpoints/step-000010",
    checkpoint="out/checkpoints/step-000040",
    findings=(),
)


def test_a_resumed_run() -> None:
    assert render_training_text(REPORT).splitlines() == [
        "decoder of 1,234 parameters, sgd, fp32 on cpu, 2 threads in each of 2 processes",
        "  resumed    from out/checkpoints/step-000010",
        "  steps      11 to 40 of 40",
        "  loss       2.1972 to 1.5000 nat",
        "  time       1 min 15 s for 960 tokens, 13 token/s",
        "  model      3.0e10 FLOP (attention in full), 4.0e8 FLOP/s",
        "  executed   3.6e10 FLOP (with what is computed again), 4.8e8 FLOP/s",
        "  kept       out/checkpoints/step-000040",
    ]


def test_nothing_done_and_nothing_kept() -> None:
    done = replace(REPORT, first_step=40, first_loss=None, last_loss=None)
    assert render_training_text(done).splitlines()[2:] == ["  steps      40 of 40 done; complete already"]
    still = replace(done, first_step=5, last_step=5, resumed_from="")
    assert render_training_text(still).splitlines()[1:] == ["  steps      5 of 40 done; nothing to do"]
    assert render_training_text(replace(REPORT, out="", checkpoint="")).endswith("nothing (--out keeps it)\n")


def test_skipped_steps_are_told_of_fp16_alone() -> None:
    scaled = replace(REPORT, run=replace(RUN, precision=Precision.FP16), skipped_steps=1)
    assert "  skipped    1 step whose gradient overflowed" in render_training_text(scaled)
    assert "skipped" not in render_training_text(REPORT)


def test_findings_and_names_are_safe_to_print() -> None:
    finding = Finding(code="checkpoint-damaged", severity=Severity.WARNING, message="odd \x1b[2J name")
    text = render_training_text(replace(REPORT, findings=(finding,), out="o\x1bo", checkpoint="o\x1bo"))
    assert "\x1b" not in text
    assert "checkpoint-damaged" in text


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0.4, "0 FLOP/s"), (9_999.0, "9999 FLOP/s"), (1.26e12, "1.3e12 FLOP/s")]
)
def test_a_rate(value: float | None, text: str) -> None:
    assert format_rate(value, "FLOP") == text
