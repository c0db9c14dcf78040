"""Whether link traffic catches a claim of fewer tokens, judged on runs held out."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.made_runs import make_cells, read_table

from flopwitness.challenge.evaluation.claims import UNDERSTATEMENTS, ClaimScore, judge_claims
from flopwitness.challenge.evaluation.splits import Split, random_splits
from flopwitness.challenge.evaluation.table import gather_runs
from flopwitness.measure.calibration.fitted import Method, fit_methods
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.link_operations import DeclaredSteps, fit_link, gate
from flopwitness.measure.observed import ObservedRuns
from flopwitness.measure.sources.workloads import workload_columns

ROWS = read_table(make_cells(40)).rows
RUNS = gather_runs(ROWS, columns=workload_columns(ROWS))
SPLITS = list(random_splits(RUNS.workload, n_train=28, n_splits=5, seed=5))


def judge(
    runs: ObservedRuns = RUNS.observed,
    declared: DeclaredSteps = RUNS.declared,
    splits: Sequence[Split] = SPLITS,
) -> ClaimScore:
    found = judge_claims(runs, declared, RUNS.flop, splits)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def honest() -> ClaimScore:
    return judge()


def test_honest_claims_are_close_and_are_not_doubted(honest: ClaimScore) -> None:
    assert honest.n_estimates == 5 * 12
    assert 0 < honest.mean_abs_error_pct < 4
    assert honest.mean_abs_error_pct < honest.p95_abs_error_pct <= honest.max_abs_error_pct
    assert honest.false_alarm_pct <= 2
    assert honest.gate < 0


def test_larger_lies_are_caught_more_often(honest: ClaimScore) -> None:
    assert tuple(honest.caught_pct) == UNDERSTATEMENTS == (0.8, 0.7, 0.6, 0.5)
    caught = list(honest.caught_pct.values())
    assert caught == sorted(caught)
    assert honest.false_alarm_pct <= caught[0]
    assert caught[-1] == 100


def test_what_is_caught_is_what_lies_under_the_gate() -> None:
    split = SPLITS[0]
    train, judges = RUNS.observed.take(split.train), RUNS.observed.take(split.test)
    fitted = fit_methods(train, RUNS.flop[split.train])
    link = fit_link(train.link_tb, RUNS.declared.take(split.train), RUNS.flop[split.train])
    model = fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    limit = gate(link, model.errors)
    energy = fitted.predict(Method.EFFICIENCY, judges).flop
    operations = link.predict(judges.link_tb, RUNS.declared.take(split.test), 0.9).flop
    found = judge(splits=[split])
    assert found.gate == pytest.approx(limit)
    error = np.abs(operations / RUNS.flop[split.test] - 1)
    assert found.mean_abs_error_pct == pytest.approx(100 * error.mean())
    assert found.max_abs_error_pct == pytest.approx(100 * error.max())
    assert found.p95_abs_error_pct == pytest.approx(100 * np.quantile(error, 0.95))
    for factor, caught_pct in found.caught_pct.items():
        share = np.mean(np.log(factor * operations / energy) < limit)
        assert caught_pct == pytest.approx(100 * share)


def test_judges_that_really_understate_are_doubted_as_often() -> None:
    split = SPLITS[0]
    tokens = RUNS.declared.tokens.copy()
    tokens[split.test] *= 0.7
    lying = judge(declared=replace(RUNS.declared, tokens=tokens), splits=[split])
    assert lying.false_alarm_pct == pytest.approx(judge(splits=[split]).caught_pct[0.7])


def test_all_who_overstate_alike_are_not_doubted(honest: ClaimScore) -> None:
    # the constant takes up a factor that all declarations share
    double = judge(declared=replace(RUNS.declared, tokens=2 * RUNS.declared.tokens))
    assert double.mean_abs_error_pct == pytest.approx(honest.mean_abs_error_pct)
    assert double.caught_pct == honest.caught_pct


@pytest.mark.parametrize("name", ["tokens", "sequence_length", "width"])
def test_without_declarations_nothing_is_judged(name: str) -> None:
    missing = replace(RUNS.declared, **{name: np.full(40, math.nan)})
    assert judge_claims(RUNS.observed, missing, RUNS.flop, SPLITS) is None


@pytest.mark.parametrize("value", [math.nan, 0.0])
def test_without_link_traffic_nothing_is_judged(value: float) -> None:
    missing = replace(RUNS.observed, link_tb=np.full(40, value))
    assert judge_claims(missing, RUNS.declared, RUNS.flop, SPLITS) is None


def test_splits_that_teach_too_little_judge_nothing() -> None:
    splits = list(random_splits(RUNS.workload, n_train=5, n_splits=3, seed=5))
    assert judge_claims(RUNS.observed, RUNS.declared, RUNS.flop, splits) is None
    assert judge_claims(RUNS.observed, RUNS.declared, RUNS.flop, []) is None
    mixed = judge_claims(RUNS.observed, RUNS.declared, RUNS.flop, [*splits, SPLITS[0]])
    assert mixed == judge(splits=SPLITS[:1])


def test_a_judge_without_a_declaration_is_passed_over(honest: ClaimScore) -> None:
    place = int(SPLITS[0].test[0])
    tokens = RUNS.declared.tokens.copy()
    tokens[place] = math.nan
    found = judge(declared=replace(RUNS.declared, tokens=tokens))
    n_judged = sum(int(place in split.test) for split in SPLITS)
    assert found.n_estimates == honest.n_estimates - n_judged


def test_a_judges_truth_moves_no_gate_and_no_alarm() -> None:
    split = SPLITS[0]
    flop = RUNS.flop.copy()
    flop[split.test] *= 3
    own, other = judge(splits=[split]), judge_claims(RUNS.observed, RUNS.declared, flop, [split])
    assert other is not None
    assert (other.gate, other.caught_pct, other.false_alarm_pct) == (
        own.gate,
        own.caught_pct,
        own.false_alarm_pct,
    )
    assert other.mean_abs_error_pct > own.mean_abs_error_pct


def test_a_judges_declaration_and_sensors_do_not_move_the_gate() -> None:
    split = SPLITS[0]
    tokens, link_tb = RUNS.declared.tokens.copy(), RUNS.observed.link_tb.copy()
    tokens[split.test] *= 0.1
    link_tb[split.test] *= 1.3
    other = judge(replace(RUNS.observed, link_tb=link_tb), replace(RUNS.declared, tokens=tokens), [split])
    assert other.gate == judge(splits=[split]).gate


def test_repeats_among_the_teachers_move_no_estimate_from_energy() -> None:
    split = SPLITS[0]
    repeated = np.concatenate([np.arange(40), np.tile(split.train, 3)])
    wider = Split(np.concatenate([split.train, np.arange(40, repeated.size)]), split.test)
    own = judge(splits=[split])
    other = judge_claims(
        RUNS.observed.take(repeated),
        RUNS.declared.take(repeated),
        RUNS.flop[repeated],
        [wider],
        workload=RUNS.workload[repeated],
    )
    assert other is not None
    assert other.mean_abs_error_pct == pytest.approx(own.mean_abs_error_pct)
    assert other.gate == pytest.approx(own.gate, rel=0.05)
