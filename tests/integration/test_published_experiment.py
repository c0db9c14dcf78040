"""The published experiment again, on the recordings: its constants, its errors, and what is refused.

The figures are those of the publication and of the acceptance table in docs/adr/0008; none is fitted to here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.made_runs import Cells, read_table

from flopwitness.catalogue.chips import ChipCatalogue, load_chips
from flopwitness.challenge.evaluation.bound_margins import judge_bounds
from flopwitness.challenge.evaluation.claims import judge_claims
from flopwitness.challenge.evaluation.contest import CONTESTANTS, hold_contest
from flopwitness.challenge.evaluation.metrics import Errors, Score, score
from flopwitness.challenge.evaluation.splits import Split, leave_one_value_out, random_splits
from flopwitness.challenge.evaluation.table import KnownRuns, gather_runs
from flopwitness.measure.calibration.calibrate import calibrate
from flopwitness.measure.calibration.fingerprint import fingerprint_of
from flopwitness.measure.calibration.fitted import Method, fit_methods
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.run_table import RunRow, RunTable, decode_run_table
from flopwitness.measure.sources.selection import parse_where, select
from flopwitness.measure.sources.workloads import HYPERPARAMETERS, workload_columns

pytestmark = pytest.mark.shared_data

SEEDS = (1000, 1, 2)
GATE_PCT = 80.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One set of recordings, as it is judged.

    Attributes:
        path: The table.
        precision: Which of its runs.
        n_train: How many workloads teach.
        n_splits: How many splits.
        names: Who takes part.
    """

    path: str
    precision: str
    n_train: int
    n_splits: int
    names: tuple[str, ...] = ("efficiency",)


TRIAL_1 = Part(
    path="jetson_orin_nano/runs_25w_trial1.csv",
    precision="fp32",
    n_train=14,
    n_splits=200,
    names=("paper-eq1", "paper-eq2", "efficiency"),
)
TRIAL_2 = Part(path="jetson_orin_nano/runs_25w_trial2.csv", precision="fp32", n_train=14, n_splits=200)
CAPPED = Part(path="jetson_orin_nano/runs_15w.csv", precision="fp32", n_train=14, n_splits=200)
V100 = Part(
    path="v100_ddp/runs_benign.csv",
    precision="fp16",
    n_train=58,
    n_splits=100,
    names=("constant", "efficiency"),
)
PARTS = {"trial-1": TRIAL_1, "trial-2": TRIAL_2, "15w": CAPPED, "v100": V100}
ALL_PARTS = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
ALL_SEEDS = pytest.mark.parametrize("seed", SEEDS)


@cache
def read(shared_data: Path, path: str) -> RunTable:
    return decode_run_table((shared_data / "data" / path).read_bytes(), where=path)


@cache
def gather(shared_data: Path, part: Part) -> KnownRuns:
    condition = parse_where(f"precision={part.precision}")
    rows = select(read(shared_data, part.path).rows, [condition], GATE_PCT).rows
    return gather_runs(rows, columns=workload_columns(rows))


@cache
def split(shared_data: Path, part: Part, seed: int) -> tuple[Split, ...]:
    workload = gather(shared_data, part).workload
    return tuple(random_splits(workload, n_train=part.n_train, n_splits=part.n_splits, seed=seed))


@cache
def contest(shared_data: Path, part: Part, seed: int) -> Mapping[str, Errors]:
    """The errors over the random splits, fitted once for all tests."""
    return hold(gather(shared_data, part), split(shared_data, part, seed), part.names)


def hold(runs: KnownRuns, splits: Sequence[Split], names: Sequence[str]) -> dict[str, Errors]:
    chosen = [contestant for contestant in CONTESTANTS if contestant.name in names]
    found, refusals = hold_contest(runs.observed, runs.flop, splits, chosen, workload=runs.workload)
    assert refusals == {}
    return {name: errors for (name, _), errors in found.items()}


def judged(shared_data: Path, part: Part, seed: int, name: str = "efficiency") -> Score:
    found = score(contest(shared_data, part, seed)[name])
    assert found is not None
    assert found.n_missing == 0
    return found


@pytest.fixture(scope="module")
def chips() -> ChipCatalogue:
    return load_chips()


@pytest.mark.parametrize(("part", "n_runs"), [(TRIAL_1, 21), (TRIAL_2, 21), (CAPPED, 22), (V100, 88)])
def test_the_runs_are_those_of_the_publication(part: Part, n_runs: int, shared_data: Path) -> None:
    runs = gather(shared_data, part)
    assert len(runs.rows) == runs.n_workloads == n_runs


def test_the_published_constants_come_back(shared_data: Path) -> None:
    runs = gather(shared_data, TRIAL_1)
    fitted = fit_methods(runs.observed, runs.flop)
    first, second = fitted.models[Method.PAPER_EQ1], fitted.models[Method.PAPER_EQ2]
    assert isinstance(first, PaperModel)
    assert isinstance(second, PaperModel)
    assert first.energy_per_tflop_j == pytest.approx(5.61, abs=0.005)
    assert first.energy_per_tb_j == pytest.approx(4621.7, abs=0.05)
    assert first.overhead_w == pytest.approx(1.4625)
    assert second.energy_per_tflop_j == pytest.approx(5.71, abs=0.005)
    assert second.overhead_w == pytest.approx(3.75)


@ALL_SEEDS
def test_equation_1_errs_as_published(seed: int, shared_data: Path) -> None:
    found = judged(shared_data, TRIAL_1, seed, "paper-eq1")
    assert 3.9 <= found.mean_abs_error_pct <= 4.9
    assert 42 <= found.splits_over_10pct_pct <= 64


@ALL_SEEDS
def test_equation_2_errs_as_published(seed: int, shared_data: Path) -> None:
    assert 4.0 <= judged(shared_data, TRIAL_1, seed, "paper-eq2").mean_abs_error_pct <= 4.9


@ALL_SEEDS
def test_efficiency_on_the_first_trial(seed: int, shared_data: Path) -> None:
    found = judged(shared_data, TRIAL_1, seed)
    assert found.mean_abs_error_pct <= 4.1
    assert found.p95_abs_error_pct <= 10.4
    assert abs(found.bias_pct) <= 0.6
    assert found.max_abs_error_pct <= 16


@ALL_SEEDS
def test_efficiency_on_the_second_trial(seed: int, shared_data: Path) -> None:
    found = judged(shared_data, TRIAL_2, seed)
    assert found.mean_abs_error_pct <= 3.6
    assert found.splits_over_10pct_pct <= 2
    assert found.max_abs_error_pct <= 12


@ALL_SEEDS
def test_efficiency_in_the_lower_power_mode(seed: int, shared_data: Path) -> None:
    found = judged(shared_data, CAPPED, seed)
    assert found.mean_abs_error_pct <= 3.6
    assert found.p95_abs_error_pct <= 7.6
    assert found.max_abs_error_pct <= 12


@ALL_SEEDS
def test_efficiency_on_two_v100(seed: int, shared_data: Path) -> None:
    found, constant = (judged(shared_data, V100, seed, name) for name in ("efficiency", "constant"))
    assert found.mean_abs_error_pct <= 8.2
    assert found.median_abs_error_pct <= 7.0
    assert found.mean_abs_error_pct <= 0.65 * constant.mean_abs_error_pct
    assert found.p95_abs_error_pct <= 21.5
    assert found.max_abs_error_pct <= 35


@ALL_SEEDS
@ALL_PARTS
def test_intervals_hold_the_truth_and_are_narrow(part: Part, seed: int, shared_data: Path) -> None:
    found = judged(shared_data, part, seed)
    assert 88 <= found.coverage_pct <= 98
    assert found.interval_ratio <= (1.52 if part is V100 else 1.32)


@pytest.mark.parametrize("part", [TRIAL_1, V100], ids=["trial-1", "v100"])
def test_intervals_hold_models_of_an_unknown_width(part: Part, shared_data: Path) -> None:
    runs = gather(shared_data, part)
    splits = [each for _, each in leave_one_value_out(runs.values("d_model"), runs.workload)]
    found = score(hold(runs, splits, part.names)["efficiency"])
    assert found is not None
    assert found.n_estimates == len(runs.rows)
    assert found.coverage_pct >= 85
    assert found.mean_abs_error_pct <= (9.7 if part is V100 else 4.6)


@ALL_PARTS
def test_honest_runs_are_seldom_refused(part: Part, shared_data: Path) -> None:
    refused = np.concatenate([contest(shared_data, part, seed)["efficiency"].is_refused for seed in SEEDS])
    assert 100 * refused.mean() <= 2


@ALL_SEEDS
def test_declared_operations_test_a_claim(seed: int, shared_data: Path) -> None:
    runs = gather(shared_data, V100)
    splits = split(shared_data, V100, seed)[:50]
    found = judge_claims(runs.observed, runs.declared, runs.flop, splits, workload=runs.workload)
    assert found is not None
    assert found.mean_abs_error_pct <= 3
    assert found.caught_pct[0.5] >= 95
    assert found.false_alarm_pct <= 2


@ALL_PARTS
def test_no_run_exceeds_its_bound(part: Part, shared_data: Path, chips: ChipCatalogue) -> None:
    rows = read(shared_data, part.path).rows
    found = judge_bounds(rows, chips)
    for margin in (found.total_energy, found.net_energy):
        assert margin is not None
        assert margin.n_runs == len(rows)
        assert margin.n_violated == 0
        assert margin.least >= 2.3
    assert found.time is None or found.time.n_violated == 0


def cells_of(shared_data: Path, part: Part) -> list[Cells]:
    return [dict(row.cells) for row in read(shared_data, part.path).rows]


def without(shared_data: Path, part: Part, *columns: str) -> tuple[RunRow, ...]:
    """All rows of a table as if nobody had recorded some columns."""
    return read_table(cells_of(shared_data, part), without=columns).rows


def ask(calibration: Calibration, row: RunRow, chips: ChipCatalogue) -> CalibratedAnswer:
    return answer_from_calibration(
        calibration,
        observe([row]),
        fingerprint_of(row, chips),
        chips=chips.find_all(row.chip_name),
    )


def calibrate_trial_2(shared_data: Path, chips: ChipCatalogue, gate_pct: float | None) -> Calibration:
    table = read(shared_data, TRIAL_2.path)
    rows = select(table.rows, [], gate_pct).rows
    return calibrate([(table, rows)], catalogue=chips, gate_pct=gate_pct).calibration


@pytest.mark.parametrize("gate_pct", [GATE_PCT, None])
def test_another_precision_is_refused_by_its_features_alone(
    gate_pct: float | None, shared_data: Path, chips: ChipCatalogue
) -> None:
    calibration = calibrate_trial_2(shared_data, chips, gate_pct)
    plain = without(shared_data, TRIAL_1, "precision", "power_mode")
    named = read(shared_data, TRIAL_1.path).rows
    foreign = [row for row, known in zip(plain, named, strict=True) if known.precisions != ("fp32",)]
    assert len(foreign) == 12
    for row in foreign:
        assert row.precisions == ()
        answer = ask(calibration, row, chips)
        assert answer.point is None
        assert {finding.code for finding in answer.refusals} <= {"feature-outside", "features-unlike"}


def test_another_power_mode_is_refused_by_its_features_alone(shared_data: Path, chips: ChipCatalogue) -> None:
    calibration = calibrate_trial_2(shared_data, chips, GATE_PCT)
    rows = without(shared_data, CAPPED, "precision", "power_mode")
    assert len(rows) == 26
    for row in rows:
        answer = ask(calibration, row, chips)
        assert answer.point is None
        assert {finding.code for finding in answer.refusals} <= {"feature-outside", "features-unlike"}


@pytest.mark.parametrize(("part", "field"), [(TRIAL_1, "precisions"), (CAPPED, "power_mode")])
def test_what_was_recorded_otherwise_is_refused_by_name(
    part: Part, field: str, shared_data: Path, chips: ChipCatalogue
) -> None:
    calibration = calibrate_trial_2(shared_data, chips, None)
    foreign = [
        row
        for row in read(shared_data, part.path).rows
        if (row.precisions, row.power_mode) != (("fp32",), "25W")
    ]
    assert len(foreign) == (12 if part is TRIAL_1 else 26)
    for row in foreign:
        assert field in {finding.where for finding in ask(calibration, row, chips).refusals}


def test_the_same_mode_on_another_day_is_answered(shared_data: Path, chips: ChipCatalogue) -> None:
    calibration = calibrate_trial_2(shared_data, chips, GATE_PCT)
    held = []
    for row in gather(shared_data, TRIAL_1).rows:
        point = ask(calibration, row, chips).point
        assert point is not None
        assert row.true_flop is not None
        held.append(point.low_flop <= row.true_flop <= point.high_flop)
    assert np.mean(held) >= 0.85


def test_the_bracket_holds_every_run_of_unknown_precision(shared_data: Path, chips: ChipCatalogue) -> None:
    calibration = calibrate_trial_2(shared_data, chips, None)
    rows = without(shared_data, TRIAL_1, "precision")
    assert len(rows) == 38
    for row in rows:
        bracket = ask(calibration, row, chips).bracket
        assert bracket is not None
        assert row.true_flop is not None
        assert bracket.low_flop <= row.true_flop <= bracket.high_flop
        assert bracket.ratio <= 11


@ALL_PARTS
def test_shuffled_claims_of_recorded_runs_move_no_prediction(part: Part, shared_data: Path) -> None:
    runs = gather(shared_data, part)
    cells = [dict(row.cells) for row in runs.rows]
    claims: list[str] = [name for name in ("run_id", "true_tflop", *HYPERPARAMETERS) if name in cells[0]]
    assert {"run_id", "true_tflop", "d_model", "n_layers", "seq_len", "batch_size", "steps"} <= set(claims)
    generator = np.random.default_rng(7)
    for each in split(shared_data, part, SEEDS[0])[:5]:
        shuffled = [dict(own) for own in cells]
        for name in claims:
            for place, source in zip(each.test, generator.permutation(each.test), strict=True):
                shuffled[place][name] = cells[source][name]
        rows = read_table(shuffled).rows
        other = gather_runs(rows, columns=workload_columns(rows))
        assert other.flop.tolist() != runs.flop.tolist()
        own, theirs = (hold(table, [each], list(Method)) for table in (runs, other))
        for name in own:
            np.testing.assert_allclose(
                theirs[name].ratio * other.flop[each.test],
                own[name].ratio * runs.flop[each.test],
                rtol=1e-9,
            )
            np.testing.assert_allclose(theirs[name].log_half, own[name].log_half, rtol=1e-6)
            np.testing.assert_array_equal(theirs[name].is_refused, own[name].is_refused)
