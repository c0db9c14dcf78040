"""Make the prior's reference classes from recordings of runs of known size, and judge them.

    python campaigns/prior_reference.py [--shared DIR] [--write FILE]

Prints the groups, the classes, and how each class covers sources left out of it; with --write it also
freezes the table. docs/adr/0004 says why it is made like this. The MLPerf runs with measured node power
(GPT-3, Llama-2 LoRA, BERT, ResNet-50, and their neighbours on the same machines) are not among the
evidence: the prior is judged on them.
"""

import argparse
import dataclasses
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision, load_chips
from flopwitness.challenge.evaluation.reference_fit import EvidenceRow, fit_classes, judge_classes
from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.encoding import encode_canonical
from flopwitness.foundation.files import write_whole
from flopwitness.measure.estimators.prior import unit_of
from flopwitness.measure.reference import NodeShare, ReferenceTable, Unit, encode_reference

NEAR_LIMIT_FROM: Final = 0.75
PUBLISHED_LOAD: Final = 0.87  # published runs record no power; large ones draw 0.75 to 1.0 of the limit
NODE_SHARE: Final = {
    "node-ac": NodeShare(
        low=1.15,
        high=1.60,
        source=(
            "high: Latif et al., IEEE Access 13 (2025), arXiv 2412.08602: an air-cooled node of 8 "
            "H100 peaks at "
            "8.4 kW with its GPUs near full use, 1.5 times their 5.6 kW limit, rounded up; low: a power "
            "supply's own losses of 4 to 6 % and a tenth for hosts and network (judgement)"
        ),
    ),
    "node-dc": NodeShare(
        low=1.10, high=1.54, source="as node-ac, 4 % lower: the power supply's losses are not in the figure"
    ),
    "node": NodeShare(low=1.10, high=1.60, source="the union of node-ac and node-dc"),
}

_FLOP_PER_IMAGENET_EPOCH: Final = 3.15e16  # ResNet-50, 1.28 M images x 3 x 8.2 GFLOP
_FLOP_PER_SQUAD_EPOCH: Final = 1.89e16  # BERT base, 384 tokens, stride 128 (assumed)
_GAISSA_IMAGES: Final = 23_776 * 3 + 10_176  # forward passes an epoch: training counts three, validation one
_SPAR_GPT2_FLOP: Final = 1.3226e15  # 400 steps x 8 x 512 tokens of GPT-2 124M
_BUSY_FROM_PCT: Final = 5.0


def read_evidence_rows(shared: Path) -> list[EvidenceRow]:
    """All rows, in a fixed order."""
    data, chips = shared / "data", load_chips()
    return [
        *_jetson_rows(data, chips),
        *_v100_rows(data, chips),
        *_zeus_rows(data, chips),
        *_gaissa_rows(data, chips),
        *_spar_rows(data, chips),
        *_epoch_rows(data),
    ]


def _row(
    *,
    source: str,
    model: str,
    chip: Chip,
    precision: Precision,
    flop: float,
    time_s: float,
    power_w: float,
    count: int = 1,
) -> EvidenceRow:
    """One run from its size, length and mean power, all chips together, idle included."""
    if chip.power_limit_w is None:
        raise ValueError(f"no power limit for {chip.id}")
    return EvidenceRow(
        source=source,
        group=f"{model}/{chip.id}/{precision}/{source}",
        is_transformer=model in ("encoder", "bert", "gpt2"),
        unit=unit_of(chip, precision),
        mfu=flop / (count * time_s * chip.peak(precision).value),
        power_share=power_w / (count * chip.power_limit_w.value),
    )


def _jetson_rows(data: Path, chips: ChipCatalogue) -> Iterator[EvidenceRow]:
    """Encoders on an Orin Nano; power is that of the CPU-GPU rail, narrower than the module's limit."""
    (chip,) = chips.find("jetson-orin-nano-8gb")
    for name, mode in (("runs_25w_trial1", "25W"), ("runs_25w_trial2", "25W"), ("runs_15w", "15W")):
        for run in pl.read_csv(data / "jetson_orin_nano" / f"{name}.csv").iter_rows(named=True):
            yield _row(
                source="fowler-jetson",
                model="encoder",
                chip=chip.in_mode(mode),
                precision=Precision(run["precision"]),
                flop=run["true_tflop"] * 1e12,
                time_s=run["duration_s"],
                power_w=run["mean_power_w"],
            )


def _v100_rows(data: Path, chips: ChipCatalogue) -> Iterator[EvidenceRow]:
    """The same encoders, data-parallel on two V100."""
    (chip,) = chips.find("V100-SXM2-16GB")
    for run in pl.read_csv(data / "v100_ddp" / "runs_benign.csv").iter_rows(named=True):
        yield _row(
            source="fowler-v100",
            model="encoder",
            chip=chip,
            precision=Precision(run["precision"]),
            flop=run["true_tflop"] * 1e12,
            time_s=run["duration_s"],
            power_w=run["mean_power_w"],
            count=2,
        )


def _zeus_rows(data: Path, chips: ChipCatalogue) -> Iterator[EvidenceRow]:
    """ResNet-50 and BERT by batch size and power limit.

    The precision is inferred: the trainers' default, which is fp32, and tf32 on the A40, where the
    framework of that time turned it on by itself.
    """
    machines = (
        ("v100", "V100-PCIE-16GB", Precision.FP32),
        ("a40", "A40", Precision.TF32),
        ("rtx6000", "Quadro RTX 6000", Precision.FP32),
        ("p100", "P100-PCIE-16GB", Precision.FP32),
    )
    workloads = (("imagenet", "resnet50", _FLOP_PER_IMAGENET_EPOCH), ("squad", "bert", _FLOP_PER_SQUAD_EPOCH))
    for name, chip_name, precision in machines:
        (chip,) = chips.find(chip_name)
        table = pl.read_csv(data / "zeus_traces" / f"summary_power_{name}.csv")
        for dataset, model, flop in workloads:
            for run in table.filter(pl.col("dataset") == dataset).iter_rows(named=True):
                yield _row(
                    source="zeus",
                    model=model,
                    chip=chip,
                    precision=precision,
                    flop=flop,
                    time_s=run["time_per_epoch"],
                    power_w=run["average_power"],
                )


def _gaissa_rows(data: Path, chips: ChipCatalogue) -> Iterator[EvidenceRow]:
    """Convolutional networks in Keras, which uses tf32 where there is a unit for it."""
    cards = {
        "NVIDIA GeForce RTX 3090": Precision.TF32,
        "NVIDIA GeForce RTX 3070": Precision.TF32,
        "NVIDIA GeForce GTX 750 Ti": Precision.FP32,
    }
    table = pl.read_csv(data / "gaissa_keras" / "runs.csv", infer_schema_length=1000)
    for run in table.iter_rows(named=True):
        name = run["gpu model"]
        if name not in cards or not run["training duration (h)"] or not run["trained epochs"]:
            continue
        (chip,) = chips.find(name)
        yield _row(
            source="gaissa",
            model=run["architecture"],
            chip=chip,
            precision=cards[name],
            flop=run["trained epochs"] * _GAISSA_IMAGES * run["GFLOPs"] * 1e9,
            time_s=run["training duration (h)"] * 3600,
            power_w=run["average power draw (W)"],
        )


def _spar_rows(data: Path, chips: ChipCatalogue) -> Iterator[EvidenceRow]:
    """GPT-2 on an A100, over the seconds in which the GPU was busy."""
    (chip,) = chips.find("A100-SXM4-40GB")
    for path in sorted((data / "spar_a100").glob("gpt2_*.parquet")):
        busy = pl.read_parquet(path).filter(pl.col("gpu_utilization_pct") > _BUSY_FROM_PCT)
        yield _row(
            source="spar",
            model="gpt2",
            chip=chip,
            precision=Precision.FP16,
            flop=_SPAR_GPT2_FLOP,
            time_s=float(busy.height),
            power_w=float(busy["power_draw_w"].to_numpy().mean()),
        )


def _epoch_rows(data: Path) -> Iterator[EvidenceRow]:
    """Published utilisations; each developer counts as a source of its own, no power is recorded."""
    table = pl.read_csv(data / "epoch" / "notable_ai_models.csv", infer_schema_length=10_000)
    for run in table.filter(pl.col("Hardware utilization (MFU)").is_not_null()).iter_rows(named=True):
        is_vector = run["Numerical format"] == "FP32"
        yield EvidenceRow(
            source=f"epoch: {run['Organization']}",
            group=f"epoch: {run['Model']}",
            is_transformer=not is_vector,
            unit=Unit.VECTOR if is_vector else Unit.MATRIX,
            mfu=run["Hardware utilization (MFU)"],
            power_share=None,
        )


def make_table(rows: list[EvidenceRow]) -> ReferenceTable:
    """The reference table with the digest of the rows it was made from."""
    evidence = encode_canonical([{k: str(v) for k, v in dataclasses.asdict(row).items()} for row in rows])
    return ReferenceTable(
        classes=fit_classes(rows, near_limit_from=NEAR_LIMIT_FROM, published_load=PUBLISHED_LOAD),
        node_share=NODE_SHARE,
        near_limit_from=NEAR_LIMIT_FROM,
        published_load=PUBLISHED_LOAD,
        evidence=str(digest_bytes(evidence)),
        digest=digest_bytes(b""),
    )


def _print_groups(rows: list[EvidenceRow]) -> None:
    groups: dict[str, list[EvidenceRow]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    print(f"{len(rows)} rows in {len(groups)} groups from {len({row.source for row in rows})} sources\n")
    print(f"{'group':<52} {'unit':<7} {'n':>4} {'power/limit':>11} {'mfu':>6} {'rho':>6}")
    for name, members in groups.items():
        shares = [row.power_share for row in members if row.power_share is not None]
        mfu = math.exp(sum(math.log(row.mfu) for row in members) / len(members))
        share = sum(shares) / len(shares) if shares else None
        load = "-" if share is None else f"{share:.2f}"
        rho = (share if share is not None else PUBLISHED_LOAD) / mfu
        print(f"{name[:52]:<52} {members[0].unit:<7} {len(members):>4} {load:>11} {mfu:>6.3f} {rho:>6.2f}")


def _print_classes(rows: list[EvidenceRow]) -> None:
    print(
        f"\n{'class':<44} {'groups':>6} {'nominal 90 %':>16} {'ratio':>6}  left-out sources: covered, ratio"
    )
    judged = judge_classes(rows, near_limit_from=NEAR_LIMIT_FROM, published_load=PUBLISHED_LOAD)
    for answer in judged:
        item = answer.item
        low, high = item.spread.interval(level=0.9)
        name = f"{item.workload} {item.load} {item.unit} {item.quantity}"
        share = f"{answer.covered}/{answer.judged}" if answer.judged else "-"
        print(
            f"{name:<44} {item.spread.n_groups:>6} {low:>7.3g} to {high:<6.3g} {high / low:>6.2f}  "
            f"{share:>7}, {answer.ratio:.2f}"
        )


def main() -> None:
    """Print the evidence and the classes; write the table where asked."""
    parser = argparse.ArgumentParser(description="Make and judge the prior's reference classes.")
    parser.add_argument(
        "--shared", type=Path, default=Path(os.environ.get("FLOPWITNESS_SHARED_DATA", "../shared"))
    )
    parser.add_argument("--write", type=Path, help="where to freeze the table")
    arguments = parser.parse_args()
    rows = read_evidence_rows(arguments.shared)
    _print_groups(rows)
    _print_classes(rows)
    table = make_table(rows)
    data = encode_reference(table)
    print(f"\nevidence {table.evidence}\ntable    {digest_bytes(data)}")
    if arguments.write is not None:
        write_whole(arguments.write, data)


if __name__ == "__main__":
    main()
