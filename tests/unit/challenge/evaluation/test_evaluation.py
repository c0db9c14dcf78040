"""The whole judgement of a table: its parts agree with each other and with the contest behind them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.made_runs import Cells, catalogue, make_cells, read_table

from flopwitness.challenge.evaluation.contest import CONTESTANTS, hold_contest
from flopwitness.challenge.evaluation.evaluation import LEVELS, Evaluation, Plan, evaluate_runs
from flopwitness.challenge.evaluation.metrics import score
from flopwitness.challenge.evaluation.splits import random_splits
from flopwitness.challenge.evaluation.table import KnownRuns, gather_runs
from flopwitness.foundation.errors import InputError
from flopwitness.measure.observed import settle_net_energy
from flopwitness.measure.sources.workloads import workload_columns

PLAN = Plan(n_train=16, n_splits=6, seed=4, leave_out=("d_model",), curve=(5, 10))
NAMES = {"constant", "paper-eq1", "paper-eq2", "efficiency"}


def gather(cells: Sequence[Cells], *, without: Sequence[str] = ()) -> KnownRuns:
    rows = read_table(cells, without=without).rows
    return gather_runs(rows, columns=workload_columns(rows))


RUNS = gather(make_cells(24))


def evaluate(runs: KnownRuns = RUNS, plan: Plan = PLAN) -> Evaluation:
    return evaluate_runs(runs, plan, catalogue=catalogue())


@pytest.fixture(scope="module")
def whole() -> Evaluation:
    return evaluate()


def test_every_part_is_there(whole: Evaluation) -> None:
    assert whole.runs is RUNS
    assert whole.plan is PLAN
    assert set(whole.scores) == set(whole.by_run) == set(whole.by_value) == set(whole.coverage) == NAMES
    assert set(whole.ablations) == {
        "efficiency-no-traffic",
        "efficiency-no-memory",
        "efficiency-no-link",
        "efficiency-no-host",
    }
    assert whole.refusals == {}
    assert whole.claims is not None
    assert whole.bounds.total_energy is not None
    assert whole.bounds.total_energy.n_runs == 24
    assert whole.repeats is None


def test_scores_are_those_of_the_contest(whole: Evaluation) -> None:
    splits = random_splits(RUNS.workload, n_train=16, n_splits=6, seed=4)
    found, _ = hold_contest(RUNS.observed, RUNS.flop, splits, CONTESTANTS, workload=RUNS.workload)
    for name in NAMES:
        assert whole.scores[name] == score(found[name, 0.9])
        assert whole.coverage[name][0.9] == pytest.approx(whole.scores[name].coverage_pct)


def test_coverage_grows_with_the_level(whole: Evaluation) -> None:
    for shares in whole.coverage.values():
        assert tuple(shares) == LEVELS
        assert list(shares.values()) == sorted(shares.values())


def test_runs_make_up_the_scores(whole: Evaluation) -> None:
    for name, scores in whole.by_run.items():
        n_estimates = np.array([item.n_estimates for item in scores])
        assert n_estimates.sum() == whole.scores[name].n_estimates == 6 * 8
        bias = np.array([100 * (item.mean_ratio - 1) for item in scores]) @ n_estimates / n_estimates.sum()
        assert bias == pytest.approx(whole.scores[name].bias_pct)
        held = np.array([item.coverage_pct for item in scores]) @ n_estimates / n_estimates.sum()
        assert held == pytest.approx(whole.scores[name].coverage_pct)
        largest = max(max(item.most_ratio - 1, 1 - item.least_ratio) for item in scores)
        assert 100 * largest == pytest.approx(whole.scores[name].max_abs_error_pct)
        assert [item.place for item in scores] == sorted({item.place for item in scores})
        assert all(item.least_ratio <= item.mean_ratio <= item.most_ratio for item in scores)


def test_values_gather_their_runs(whole: Evaluation) -> None:
    scores = {item.place: 100 * (item.mean_ratio - 1) for item in whole.by_run["efficiency"]}
    found = {(item.column, item.value): item for item in whole.by_value["efficiency"]}
    assert {column for column, _ in found} == set(RUNS.axes())
    for column in RUNS.axes():
        values = RUNS.values(column)
        for value in set(values):
            own = [scores[place] for place in scores if values[place] == value]
            item = found[column, value]
            assert item.n_runs == len(own)
            assert item.mean_error_pct == pytest.approx(np.mean(own))
            assert (item.least_error_pct, item.most_error_pct) == (min(own), max(own))


def test_numbers_are_sorted_by_size_before_words() -> None:
    cells = make_cells(24, batch_size=lambda n: ("8", "16", "128", "big")[n % 4])
    found = evaluate(gather(cells), replace(PLAN, curve=(), leave_out=(), n_splits=3)).by_value["constant"]
    assert [item.value for item in found if item.column == "batch_size"] == ["8", "16", "128", "big"]


def test_each_value_of_a_column_is_left_out(whole: Evaluation) -> None:
    (left_out,) = whole.left_out
    assert left_out.column == "d_model"
    assert set(left_out.values) == set(RUNS.values("d_model"))
    assert set(left_out.scores) == NAMES
    assert left_out.scores["constant"].n_estimates == 24


def test_a_value_that_leaves_too_few_to_teach_is_passed_over() -> None:
    cells = make_cells(24, group=lambda n: "few" if n < 2 else "many")
    runs = gather(cells)
    (left_out,) = evaluate(runs, replace(PLAN, leave_out=("group",), curve=(), n_splits=1)).left_out
    assert left_out.values == ("few",)
    assert left_out.scores["constant"].n_estimates == 2


def test_the_curve_learns_from_what_was_asked(whole: Evaluation) -> None:
    assert [point.n_train for point in whole.curve] == [5, 10]
    assert set(whole.curve[0].scores) == {"constant", "paper-eq1", "paper-eq2"}
    assert set(whole.curve[1].scores) == NAMES
    assert whole.curve[0].scores["constant"].n_estimates == 6 * 19


def test_the_usual_curve_leaves_an_eighth_to_judge() -> None:
    plan = replace(PLAN, curve=None, leave_out=(), n_splits=2)
    assert [point.n_train for point in evaluate(plan=plan).curve] == [5, 8, 14, 20]
    assert [point.n_train for point in evaluate(gather(make_cells(20)), plan).curve] == [5, 8, 14]
    assert evaluate(plan=replace(PLAN, curve=(), leave_out=(), n_splits=2)).curve == ()


def test_the_same_seed_gives_the_same_answer(whole: Evaluation) -> None:
    again = evaluate(plan=replace(PLAN, leave_out=(), curve=()))
    assert again.scores == whole.scores
    assert again.ablations == whole.ablations
    assert again.coverage == whole.coverage
    assert again.claims == whole.claims


def test_another_seed_judges_others(whole: Evaluation) -> None:
    other = evaluate(plan=replace(PLAN, seed=5, leave_out=(), curve=()))
    assert other.scores != whole.scores
    assert other.bounds == whole.bounds


def test_the_order_of_rows_moves_no_score_of_values_left_out(whole: Evaluation) -> None:
    cells = make_cells(24)
    other = evaluate(gather([*cells[10:], *cells[:10]]), replace(PLAN, n_splits=1, curve=()))
    assert other.left_out[0].scores["efficiency"].mean_abs_error_pct == pytest.approx(
        whole.left_out[0].scores["efficiency"].mean_abs_error_pct
    )


def test_a_table_without_traffic_has_nothing_to_leave_out() -> None:
    bare = gather(make_cells(24), without=["memory_traffic_tb", "link_traffic_tb", "host_traffic_tb"])
    found = evaluate(bare, replace(PLAN, leave_out=(), curve=()))
    assert found.ablations == {}
    assert found.claims is None
    assert set(found.refusals) == {"paper-eq1"}
    assert found.refusals["paper-eq1"][0] == 6


def test_ablations_that_leave_out_the_same_are_held_once() -> None:
    memory = gather(make_cells(24), without=["link_traffic_tb", "host_traffic_tb"])
    found = evaluate(memory, replace(PLAN, leave_out=(), curve=()))
    assert set(found.ablations) == {"efficiency-no-traffic"}
    assert found.claims is None


def test_repeats_tell_how_closely_workloads_repeat() -> None:
    cells = make_cells(24)
    repeats = []
    for factor, places in ((1.01, (0, 1, 2)), (0.97, (0,))):
        for place in places:
            again = dict(cells[place])
            again["net_energy_j"] = f"{factor * float(again['net_energy_j']):.6f}"
            repeats.append(again)
    runs = gather([*cells, *repeats])
    found = evaluate(runs, replace(PLAN, leave_out=(), curve=(), n_splits=1)).repeats
    assert found is not None
    assert (found.n_workloads, found.n_runs) == (3, 7)
    net_j = settle_net_energy(runs.observed).of(runs.observed)
    groups = [[0, 24, 27], [1, 25], [2, 26]]
    logs = [np.log(runs.flop[group] / net_j[group]) for group in groups]
    square = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    assert found.spread_pct == pytest.approx(100 * math.sqrt(square / (7 - 3)))
    assert 0.5 < found.spread_pct < 3


def test_repeats_never_teach_and_judge() -> None:
    cells = make_cells(12)
    twice = gather([*cells, *cells])
    found = evaluate(twice, Plan(n_train=8, n_splits=2, seed=1, curve=()))
    once = evaluate(gather(cells), Plan(n_train=8, n_splits=2, seed=1, curve=()))
    for name in found.scores:
        assert found.scores[name].mean_abs_error_pct == pytest.approx(once.scores[name].mean_abs_error_pct)
        assert found.scores[name].coverage_pct == pytest.approx(once.scores[name].coverage_pct)


@pytest.mark.parametrize("n_train", [0, 24, 100])
def test_a_split_that_leaves_nobody_is_refused(n_train: int) -> None:
    with pytest.raises(InputError, match="no such split"):
        evaluate(plan=replace(PLAN, n_train=n_train))


@pytest.mark.parametrize("curve", [(24,), (5, 0), (1_000,)])
def test_a_curve_that_leaves_nobody_is_refused(curve: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as refusal:
        evaluate(plan=replace(PLAN, n_splits=2, leave_out=(), curve=curve))
    assert refusal.value.where == "--curve"


def test_the_safety_factor_reaches_the_bounds() -> None:
    found = evaluate(plan=replace(PLAN, n_splits=2, leave_out=(), curve=(), safety=Fraction(3, 10)))
    assert found.bounds.safety == Fraction(3, 10)


def test_each_step_is_named_before_it_is_taken() -> None:
    told: list[str] = []
    evaluate_runs(RUNS, replace(PLAN, n_splits=2), catalogue=catalogue(), tick=told.append)
    assert set(told) >= {
        "random splits",
        "ablations",
        "leaving out d_model",
        "learning from 5",
        "learning from 10",
        "declared steps",
    }
