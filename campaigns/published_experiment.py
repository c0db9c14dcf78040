"""The published experiment and what follows from it, on recorded runs of known size.

    python campaigns/published_experiment.py [--shared DIR]

Prints the tables of docs/results.md: errors, intervals, refusals, brackets, bounds. The recordings: one sweep
on a Jetson Orin Nano three times (26 fp32 runs each, once in 15 W mode, once with twelve runs in other
precisions), and 91 data-parallel runs on two V100. Seeds of the random splits: 1000, 1 and 2.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from flopwitness.catalogue.chips import load_chips
from flopwitness.challenge.evaluation.bound_margins import judge_bounds
from flopwitness.challenge.evaluation.contest import CONTESTANTS
from flopwitness.challenge.evaluation.evaluation import Evaluation, Plan, evaluate_runs
from flopwitness.challenge.evaluation.metrics import Score
from flopwitness.challenge.evaluation.table import KnownRuns, gather_runs
from flopwitness.measure.calibration.calibrate import calibrate
from flopwitness.measure.calibration.fingerprint import fingerprint_of
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.run_table import RunRow, RunTable, decode_run_table
from flopwitness.measure.sources.selection import parse_where, select
from flopwitness.measure.sources.workloads import workload_columns

SEEDS: Final = (1000, 1, 2)
_JETSON: Final = "data/jetson_orin_nano"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One table of runs, and how it is judged.

    Attributes:
        name: Its name here.
        path: The table under the shared folder.
        precision: The precision whose runs are judged.
        n_train: How many runs teach in each split.
        n_splits: How many splits.
    """

    name: str
    path: str
    precision: str
    n_train: int
    n_splits: int


SETS: Final = (
    Recorded(
        name="Jetson 25 W, trial 1",
        path=f"{_JETSON}/runs_25w_trial1.csv",
        precision="fp32",
        n_train=14,
        n_splits=200,
    ),
    Recorded(
        name="Jetson 25 W, trial 2",
        path=f"{_JETSON}/runs_25w_trial2.csv",
        precision="fp32",
        n_train=14,
        n_splits=200,
    ),
    Recorded(name="Jetson 15 W", path=f"{_JETSON}/runs_15w.csv", precision="fp32", n_train=14, n_splits=200),
    Recorded(
        name="2 x V100", path="data/v100_ddp/runs_benign.csv", precision="fp16", n_train=58, n_splits=100
    ),
)


def read_table(shared: Path, path: str) -> RunTable:
    """A table of the shared folder."""
    return decode_run_table((shared / path).read_bytes(), where=path)


def busy_rows(table: RunTable, precision: str, gate_pct: float | None = 80) -> tuple[RunRow, ...]:
    """The rows of one precision past the gate."""
    return select(table.rows, [parse_where(f"precision={precision}")], gate_pct).rows


def known(rows: Sequence[RunRow]) -> KnownRuns:
    """The rows as a judge takes them."""
    return gather_runs(rows, columns=workload_columns(rows))


def judge(shared: Path, item: Recorded, seed: int, *, is_whole: bool) -> Evaluation:
    """The evaluation of one table; leaving out and learning curves only where it is asked to be whole."""
    runs = known(busy_rows(read_table(shared, item.path), item.precision))
    plan = Plan(
        n_train=item.n_train,
        n_splits=item.n_splits,
        seed=seed,
        leave_out=runs.axes() if is_whole else (),
        curve=None if is_whole else (),
    )
    return evaluate_runs(runs, plan, catalogue=load_chips())


def _score_row(where: str, name: str, score: Score) -> str:
    return (
        f"| {where} | {name} | {score.mean_abs_error_pct:.2f} | {score.sd_pct:.2f} | {score.bias_pct:+.2f} "
        f"| {score.median_abs_error_pct:.2f} | {score.p95_abs_error_pct:.1f} | {score.max_abs_error_pct:.1f} "
        f"| {score.splits_over_10pct_pct:.1f} | {score.coverage_pct:.1f} | {score.interval_ratio:.2f} "
        f"| {score.refused_pct:.2f} |"
    )


_HEAD: Final = (
    "| set | estimator | mean, % | sd | bias | median | 95 % | largest | splits over 10 % | held, % | ends "
    "| refused, % |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def print_errors(shared: Path) -> list[Evaluation]:
    """The estimators on random splits; gives the whole evaluations of the first seed."""
    seeds = ", ".join(map(str, SEEDS))
    print(f"\nrandom splits, all seeds ({seeds})\n")
    print("| set | estimator | mean error, % | splits with one over 10 %, % | held, % | ends |")
    print("|---|---|---|---|---|---|")
    firsts = []
    for item in SETS:
        found = [judge(shared, item, seed, is_whole=seed == SEEDS[0]) for seed in SEEDS]
        firsts.append(found[0])
        for name in found[0].scores:
            scores = [evaluation.scores[name] for evaluation in found]
            cells = [
                ", ".join(f"{score.mean_abs_error_pct:.2f}" for score in scores),
                ", ".join(f"{score.splits_over_10pct_pct:.1f}" for score in scores),
                ", ".join(f"{score.coverage_pct:.1f}" for score in scores),
                ", ".join(f"{score.interval_ratio:.2f}" for score in scores),
            ]
            print(f"| {item.name} | {name} | {' | '.join(cells)} |")
    print(f"\nthe same, seed {SEEDS[0]}\n\n{_HEAD}")
    for item, first in zip(SETS, firsts, strict=True):
        for name, score in first.scores.items():
            print(_score_row(item.name, name, score))
    return firsts


def print_structure(found: Sequence[Evaluation]) -> None:
    """Values left out, learning curves and ablations."""
    print("\na value that no calibration run had (efficiency)\n")
    print("| set | column | values | mean, % | held, % |\n|---|---|---|---|---|")
    for item, evaluation in zip(SETS, found, strict=True):
        for left in evaluation.left_out:
            score = left.scores["efficiency"]
            print(
                f"| {item.name} | {left.column} | {len(left.values)} | {score.mean_abs_error_pct:.1f} "
                f"| {score.coverage_pct:.0f} |"
            )
    print("\nfewer or more calibration runs (mean error, %)\n")
    names = [contestant.name for contestant in CONTESTANTS]
    print(f"| set | runs | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for item, evaluation in zip(SETS, found, strict=True):
        for point in evaluation.curve:
            cells = [
                f"{point.scores[name].mean_abs_error_pct:.1f}" if name in point.scores else "refused"
                for name in names
            ]
            print(f"| {item.name} | {point.n_train} | {' | '.join(cells)} |")
    print(f"\nefficiency without some features\n\n{_HEAD}")
    for item, evaluation in zip(SETS, found, strict=True):
        for name, score in evaluation.ablations.items():
            print(_score_row(item.name, name, score))


def print_claims(found: Evaluation) -> None:
    """Declared steps against link traffic."""
    claims = found.claims
    if claims is None:
        raise SystemExit("no link traffic")
    print("\ndeclared steps x link traffic, 2 x V100; the understatement is made up\n")
    caught = " | ".join(f"{factor:g}" for factor in claims.caught_pct)
    head = "| mean, % | 95 % | largest | gate | false alarms, %"
    print(f"{head} | caught at {caught} of the tokens, % |")
    print(f"|---|---|---|---|---|{'---|' * len(claims.caught_pct)}")
    shares = " | ".join(f"{share:.1f}" for share in claims.caught_pct.values())
    print(
        f"| {claims.mean_abs_error_pct:.2f} | {claims.p95_abs_error_pct:.1f} "
        f"| {claims.max_abs_error_pct:.1f} | {claims.gate:.3f} | {claims.false_alarm_pct:.2f} | {shares} |"
    )


def _calibration(table: RunTable, rows: Sequence[RunRow]) -> Calibration:
    return calibrate([(table, rows)], catalogue=load_chips()).calibration


def _bare(row: RunRow) -> RunRow:
    """The row as a Prover hands it over who records neither precision nor power mode."""
    return replace(row, precisions=(), power_mode="")


def ask(calibration: Calibration, row: RunRow) -> CalibratedAnswer:
    """What a calibration says of a row."""
    catalogue = load_chips()
    return answer_from_calibration(
        calibration,
        observe([row]),
        fingerprint_of(row, catalogue),
        chips=catalogue.find_all(row.chip_name),
    )


def print_refusals(shared: Path) -> None:
    """Rows of another precision or mode, with neither recorded: refused by their features alone?"""
    trial1, trial2 = (read_table(shared, item.path) for item in SETS[:2])
    mode15 = read_table(shared, SETS[2].path)
    calibrations = {
        "trial 1, past the gate": _calibration(trial1, busy_rows(trial1, "fp32")),
        "trial 2, past the gate": _calibration(trial2, busy_rows(trial2, "fp32")),
        "trial 1, fp32, no gate": _calibration(trial1, busy_rows(trial1, "fp32", None)),
        "trial 2, fp32, no gate": _calibration(trial2, busy_rows(trial2, "fp32", None)),
    }
    print("\nrefused by features alone, precision and power mode not recorded\n")
    print("| calibration | tf32 | fp16 | bf16 | 15 W | fp32 of the other trial, past the gate |")
    print("|---|---|---|---|---|---|")
    for name, calibration in calibrations.items():
        other = trial2 if name.startswith("trial 1") else trial1
        groups = [
            *(
                [row for row in trial1.rows if row.precisions == (precision,)]
                for precision in ("tf32", "fp16", "bf16")
            ),
            mode15.rows,
            busy_rows(other, "fp32"),
        ]
        cells = [
            f"{sum(ask(calibration, _bare(row)).point is None for row in rows)} of {len(rows)}"
            for rows in groups
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def print_brackets(shared: Path) -> None:
    """The bracket of trial 1 with the precision not recorded, from calibrations on trial 2."""
    trial1, trial2 = (read_table(shared, item.path) for item in SETS[:2])
    print("\nbracket for all 38 rows of trial 1, precision not recorded, calibrated on trial 2\n")
    print("| calibration | holds the truth | largest ratio of the ends |\n|---|---|---|")
    for name, gate_pct in (("all 26 runs", None), ("21 runs past the gate", 80.0)):
        calibration = _calibration(trial2, busy_rows(trial2, "fp32", gate_pct))
        held, ratios = 0, []
        for row in trial1.rows:
            bracket = ask(calibration, replace(row, precisions=())).bracket
            if bracket is None:
                continue
            held += bracket.low_flop <= (row.true_flop or 0) <= bracket.high_flop
            ratios.append(bracket.ratio)
        print(f"| {name} | {held} of {len(trial1.rows)} | {max(ratios):.1f} |")


def print_other_day(shared: Path) -> None:
    """A calibration used on another day, with its own idle power and with that day's."""
    tables = [read_table(shared, item.path) for item in SETS[:2]]
    rows = [busy_rows(table, "fp32") for table in tables]
    print("\ncalibrated on one day, used on another (Jetson 25 W, fp32 past the gate)\n")
    print("| calibrated on | used on | mean error, % | bias, % | held, % |\n|---|---|---|---|---|")
    for here, there in ((0, 1), (1, 0)):
        calibration = _calibration(tables[here], rows[here])
        answers = [(ask(calibration, row).point, float(row.true_flop or 0)) for row in rows[there]]
        ratio = np.array([point.flop / truth for point, truth in answers if point is not None])
        held = [point.low_flop <= truth <= point.high_flop for point, truth in answers if point is not None]
        print(
            f"| trial {here + 1} | trial {there + 1} | {100 * np.abs(ratio - 1).mean():.1f} "
            f"| {100 * (ratio - 1).mean():+.1f} | {100 * np.mean(held):.0f} |"
        )


def print_bounds(shared: Path) -> None:
    """The bound's margins over all rows, whatever their precision and utilisation."""
    print("\nthe upper bound over the truth, all rows (s = 0.5)\n")
    parts = ("energy, idle included", "energy above idle", "time")
    print(f"| set | rows | violated | {' | '.join(f'{part}: least, median' for part in parts)} |")
    print("|---|---|---|---|---|---|")
    for item in SETS:
        table = read_table(shared, item.path)
        rows = [row if row.count else replace(row, count=1) for row in table.rows]
        found = judge_bounds(rows, load_chips())
        margins = [margin for margin in (found.total_energy, found.net_energy, found.time) if margin]
        cells = [f"{margin.least:.1f}, {margin.median:.1f}" for margin in margins]
        violated = max(margin.n_violated for margin in margins)
        print(f"| {item.name} | {len(rows)} | {violated} | {' | '.join(cells)} |")


def print_repeats(shared: Path) -> None:
    """Both 25 W trials together: each workload twice."""
    rows = [row for item in SETS[:2] for row in busy_rows(read_table(shared, item.path), item.precision)]
    runs = known(rows)
    plan = Plan(n_train=14, n_splits=200, seed=SEEDS[0], curve=())
    found = evaluate_runs(runs, plan, catalogue=load_chips())
    print(f"\nboth 25 W trials together: {len(rows)} runs of {runs.n_workloads} workloads\n\n{_HEAD}")
    for name, score in found.scores.items():
        print(_score_row("both", name, score))
    if found.repeats is not None:
        print(f"\nFLOP per joule of a workload scatters by {found.repeats.spread_pct:.1f} %.")


def _steps() -> Iterator[Callable[[Path], None]]:
    yield print_refusals
    yield print_brackets
    yield print_other_day
    yield print_bounds
    yield print_repeats


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="The published experiment and its successors.")
    default = Path(os.environ.get("FLOPWITNESS_SHARED_DATA", "../shared"))
    parser.add_argument("--shared", type=Path, default=default)
    shared = parser.parse_args().shared
    found = print_errors(shared)
    print_structure(found)
    print_claims(found[-1])
    for step in _steps():
        step(shared)


if __name__ == "__main__":
    main()
