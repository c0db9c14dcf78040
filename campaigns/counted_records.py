"""The closed form beside every instrumented run of the public records.

    python campaigns/counted_records.py [--shared DIR]

Each row is a run whose author counted it with an instrumented counter.
"""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import click

from flopwitness.counting.conventions import ConventionId, count_conventions
from flopwitness.counting.model import FeedForward, Model, ModelInput, ModelKind, Positions
from flopwitness.counting.step import count_step
from flopwitness.counting.training import Training

__all__ = ["RECORDS", "command", "compare_table", "describe_row"]

_REPOSITORY = Path(__file__).resolve().parent.parent

RECORDS = (
    "jetson_orin_nano/runs_25w_trial1.csv",
    "jetson_orin_nano/runs_25w_trial2.csv",
    "jetson_orin_nano/runs_15w.csv",
    "v100_ddp/runs_benign.csv",
)


def describe_row(row: dict[str, str]) -> tuple[Model, Training]:
    """The encoder of one row: random features, norms after each block, a linear head as wide as the model."""
    width, heads = int(row["d_model"]), int(row["n_heads"])
    model = Model(
        kind=ModelKind.ENCODER,
        layers=int(row["n_layers"]),
        d_model=width,
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        d_ff=int(row["d_ff"]),
        feed_forward=FeedForward.RELU,
        sequence=int(row["seq_len"]),
        vocabulary=0,
        outputs=width,
        inputs=ModelInput.FEATURES,
        is_pre_norm=False,
        has_final_norm=False,
        positions=Positions.NONE,
    )
    training = Training(
        batch=int(row["batch_size"]),
        processes=int(row.get("world_size") or 1),
        steps=int(row["steps"]),
    )
    return model, training


def compare_table(path: Path) -> Iterator[tuple[str, float, float]]:
    """Of each row its name, the relative distance of executed FLOP from the record, and that of 6 N D."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            model, training = describe_row(row)
            true_flop = 1e12 * float(row["true_tflop"])
            executed = training.steps * count_step(model, training).executed_flop
            rule = next(item for item in count_conventions(model, training) if item.id is ConventionId.EPOCH)
            yield row["run_id"], executed / true_flop - 1, rule.flop / true_flop - 1


@click.command()
@click.option("--shared", type=click.Path(path_type=Path, file_okay=False, exists=True), default=None)
def command(*, shared: Path | None) -> None:  # noqa: D103 (the module's docstring is its help)
    named = shared or Path(os.environ.get("FLOPWITNESS_SHARED_DATA") or _REPOSITORY.parent / "shared")
    print("| records | rows | largest difference of the closed form | 6 N D is off by |")
    print("|---|---|---|---|")
    for name in RECORDS:
        rows = list(compare_table(named / "data" / name))
        worst = max(abs(own) for _, own, _ in rows)
        rule = [100 * other for _, _, other in rows]
        print(f"| `{name}` | {len(rows)} | {worst:.1e} | {min(rule):+.1f} to {max(rule):+.1f} % |")


if __name__ == "__main__":
    command()
