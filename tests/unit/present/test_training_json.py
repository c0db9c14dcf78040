"""What `train` says to a program."""

import json
from dataclasses import replace

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.safe_text import encode_answer
from flopwitness.present.training_json import SPEC, render_training
from flopwitness.trainers.config_file import decode_run
from flopwitness.trainers.report import StepFlop, TrainingReport

REPORT = TrainingReport(
    run=decode_run(
        b"""
spec = "flopwitness/run/v1"
model = {kind = "decoder", layers = 1, d_model = 8, heads = 2, d_ff = 8, sequence = 8, vocabulary = 9}
training = {batch = 2, steps = 40, seed = 1, precision = "fp32", device = "cpu", threads = 2}
optimizer = {name = "sgd", learning_rate = 0.1}
data = {kind = "random"}
"""
    ),
    digest=digest_bytes(b"run"),
    data=digest_bytes(b"data"),
    n_parameters=1_234,
    flop=StepFlop(model_flop=10**25, executed_flop=2 * 10**25),
    first_step=0,
    last_step=40,
    skipped_steps=0,
    first_loss=2.0,
    last_loss=1.5,
    duration_s=4.0,
    out="out",
    resumed_from="",
    checkpoint="out/checkpoints/step-000040",
    findings=(Finding(code="environment-changed", severity=Severity.NOTE, message="odd"),),
)


def test_flop_are_decimal_strings_and_nothing_is_lost() -> None:
    record = json.loads(encode_answer(render_training(REPORT)))
    assert record["spec"] == SPEC == "flopwitness/train/v1"
    assert record["model_flop"] == "4" + "0" * 26
    assert record["executed_flop_per_step"] == "2" + "0" * 25
    assert record["tokens_per_s"] == 160.0
    assert (record["complete"], record["resumed_from"]) == (True, None)
    assert record["config"] == str(digest_bytes(b"run"))
    assert record["findings"][0]["code"] == "environment-changed"


def test_where_no_time_passed_there_is_no_rate() -> None:
    still = replace(
        REPORT, first_step=40, first_loss=None, last_loss=None, duration_s=0.0, out="", checkpoint=""
    )
    record = render_training(still)
    assert record["model_flop"] == "0"
    assert (record["tokens_per_s"], record["model_flop_per_s"], record["first_loss"]) == (None, None, None)
    assert (record["out"], record["checkpoint"]) == (None, None)
