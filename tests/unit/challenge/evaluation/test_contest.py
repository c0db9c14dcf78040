"""Estimators on runs held out: nothing of the judging runs but their sensors reaches a prediction."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.made_runs import Cells, make_cells, read_table

from flopwitness.challenge.evaluation.contest import ABLATIONS, CONTESTANTS, Contestant, hold_contest
from flopwitness.challenge.evaluation.metrics import Errors
from flopwitness.challenge.evaluation.splits import Split, random_splits
from flopwitness.challenge.evaluation.table import KnownRuns, gather_runs
from flopwitness.measure.calibration.fitted import Method, fit_methods
from flopwitness.measure.observed import Feature, ObservedRuns
from flopwitness.measure.sources.workloads import HYPERPARAMETERS, workload_columns

Vector = NDArray[np.float64]

N_RUNS = 24
CELLS = make_cells(N_RUNS)
CLAIMS = ("run_id", "true_tflop", *HYPERPARAMETERS)


def gather(cells: Sequence[Cells]) -> KnownRuns:
    rows = read_table(cells).rows
    return gather_runs(rows, columns=workload_columns(rows))


RUNS = gather(CELLS)
SPLITS = list(random_splits(RUNS.workload, n_train=16, n_splits=6, seed=3))


def contest(
    runs: ObservedRuns = RUNS.observed,
    flop: Vector = RUNS.flop,
    splits: Sequence[Split] = SPLITS,
    contestants: Sequence[Contestant] = CONTESTANTS,
    workload: NDArray[np.intp] = RUNS.workload,
) -> dict[str, Errors]:
    found, refusals = hold_contest(runs, flop, splits, contestants, workload=workload)
    assert refusals == {}
    return {name: errors for (name, _), errors in found.items()}


def predictions(errors: Errors, flop: Vector = RUNS.flop) -> dict[tuple[int, int], float]:
    """The estimates in FLOP by split and run."""
    return {
        (int(split), int(run)): float(ratio * flop[run])
        for split, run, ratio in zip(errors.split, errors.run, errors.ratio, strict=True)
    }


def with_place(runs: ObservedRuns, place: int, factor: float) -> ObservedRuns:
    """The runs with everything that sensors saw of one of them changed."""
    changed = {item.name: getattr(runs, item.name).copy() for item in fields(runs)}
    for number, column in enumerate(changed.values()):
        column[place] *= factor * (1 + 0.1 * number)
    return ObservedRuns(**changed)


def test_every_contestant_judges_every_run_that_is_held_out() -> None:
    found = contest()
    assert set(found) == {"constant", "paper-eq1", "paper-eq2", "efficiency"}
    for errors in found.values():
        assert errors.split.tolist() == np.repeat(np.arange(6), 8).tolist()
        assert errors.run.tolist() == [int(place) for split in SPLITS for place in split.test]
        assert np.isfinite(errors.ratio).all()


def test_estimates_are_those_of_a_fit_to_the_teaching_runs() -> None:
    found = contest()
    for number, split in enumerate(SPLITS):
        fitted = fit_methods(RUNS.observed.take(split.train), RUNS.flop[split.train])
        judges = RUNS.observed.take(split.test)
        for name, errors in found.items():
            own = errors.split == number
            answer = fitted.predict(Method(name), judges, 0.9)
            np.testing.assert_allclose(errors.ratio[own], answer.flop / RUNS.flop[split.test], rtol=1e-12)
            np.testing.assert_allclose(errors.log_half[own], answer.log_half, rtol=1e-12)
            np.testing.assert_array_equal(errors.is_refused[own], fitted.is_outside(judges))


def test_another_truth_of_a_judge_moves_no_prediction() -> None:
    for split in SPLITS:
        other = RUNS.flop.copy()
        other[split.test] = other[split.test[::-1]] * 17
        own = {name: predictions(errors) for name, errors in contest(splits=[split]).items()}
        theirs = {
            name: predictions(errors, other) for name, errors in contest(flop=other, splits=[split]).items()
        }
        for name, found in own.items():
            assert theirs[name] == pytest.approx(found, rel=1e-12), name


def test_other_sensors_of_a_judge_move_its_own_prediction_alone() -> None:
    split = SPLITS[0]
    place = int(split.test[2])
    own, theirs = contest(splits=[split]), contest(with_place(RUNS.observed, place, 1.05), splits=[split])
    for name in own:
        before, after = predictions(own[name]), predictions(theirs[name])
        assert {run for (_, run) in before if before[0, run] != after[0, run]} == {place}, name
        others = own[name].run != place
        np.testing.assert_array_equal(own[name].log_half[others], theirs[name].log_half[others])
        np.testing.assert_array_equal(own[name].is_refused[others], theirs[name].is_refused[others])


def test_a_judge_without_readings_takes_nothing_from_the_others() -> None:
    split = SPLITS[0]
    place = int(split.test[2])
    own, theirs = contest(splits=[split]), contest(with_place(RUNS.observed, place, np.nan), splits=[split])
    for name in own:
        before, after = predictions(own[name]), predictions(theirs[name])
        assert np.isnan(after.pop((0, place)))
        del before[0, place]
        assert after == before


def test_a_teacher_does_move_predictions() -> None:
    split = SPLITS[0]
    place = int(split.train[2])
    own, theirs = contest(splits=[split]), contest(with_place(RUNS.observed, place, 1.05), splits=[split])
    for name in own:
        assert predictions(own[name]) != predictions(theirs[name])


@pytest.mark.parametrize("seed", range(4))
def test_permuted_claims_of_the_judges_move_no_prediction(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for split in SPLITS:
        permuted = [dict(cells) for cells in CELLS]
        for claim in CLAIMS:
            if claim not in CELLS[0]:
                continue
            order = generator.permutation(split.test)
            for place, source in zip(split.test, order, strict=True):
                permuted[place][claim] = CELLS[source][claim]
        other = gather(permuted)
        own = contest(splits=[split])
        theirs = contest(other.observed, other.flop, [split], workload=other.workload)
        for name in own:
            found = predictions(theirs[name], other.flop)
            assert found == pytest.approx(predictions(own[name]), rel=1e-9), name
            np.testing.assert_allclose(theirs[name].log_half, own[name].log_half, rtol=1e-6)
            np.testing.assert_array_equal(theirs[name].is_refused, own[name].is_refused)


def test_nothing_is_handed_from_one_split_to_the_next() -> None:
    together = contest()
    for number, split in enumerate(SPLITS):
        alone = contest(splits=[split])
        for name, errors in alone.items():
            own = together[name].split == number
            np.testing.assert_array_equal(together[name].ratio[own], errors.ratio)
            np.testing.assert_array_equal(together[name].log_half[own], errors.log_half)


def test_who_else_takes_part_does_not_matter() -> None:
    together = contest(splits=SPLITS[:2], contestants=[*CONTESTANTS, *ABLATIONS])
    for contestant in [*CONTESTANTS, *ABLATIONS]:
        alone = contest(splits=SPLITS[:2], contestants=[contestant])[contestant.name]
        np.testing.assert_array_equal(together[contestant.name].ratio, alone.ratio)
        np.testing.assert_array_equal(together[contestant.name].log_half, alone.log_half)


def test_an_ablation_does_not_see_what_it_leaves_out() -> None:
    shuffled = replace(RUNS.observed, host_tb=RUNS.observed.host_tb[::-1].copy())
    whole, bare = Contestant(name="whole", method=Method.EFFICIENCY), ABLATIONS[-1]
    assert Feature.HOST not in bare.candidates
    own, theirs = (contest(runs, contestants=[whole, bare]) for runs in (RUNS.observed, shuffled))
    np.testing.assert_array_equal(own[bare.name].ratio, theirs[bare.name].ratio)
    assert not np.array_equal(own["whole"].ratio, theirs["whole"].ratio)


def test_each_traffic_counter_has_its_ablation() -> None:
    left_out = {contestant.name: set(Feature) - set(contestant.candidates) for contestant in ABLATIONS}
    assert left_out == {
        "efficiency-no-traffic": {Feature.MEMORY, Feature.LINK, Feature.HOST},
        "efficiency-no-memory": {Feature.MEMORY},
        "efficiency-no-link": {Feature.LINK},
        "efficiency-no-host": {Feature.HOST},
    }
    assert {contestant.method for contestant in ABLATIONS} == {Method.EFFICIENCY}


def test_levels_share_their_points() -> None:
    found, _ = hold_contest(
        RUNS.observed, RUNS.flop, SPLITS, CONTESTANTS, workload=RUNS.workload, levels=(0.5, 0.9, 0.95)
    )
    assert {level for _, level in found} == {0.5, 0.9, 0.95}
    for contestant in CONTESTANTS:
        low, mid, high = (found[contestant.name, level] for level in (0.5, 0.9, 0.95))
        np.testing.assert_array_equal(low.ratio, high.ratio)
        assert (low.log_half < mid.log_half).all()
        assert (mid.log_half <= high.log_half).all()


def test_who_cannot_be_fitted_is_told_with_the_first_reason() -> None:
    splits = list(random_splits(RUNS.workload, n_train=4, n_splits=5, seed=1))
    found, refusals = hold_contest(RUNS.observed, RUNS.flop, splits, CONTESTANTS)
    assert {name for name, _ in found} == {"constant", "paper-eq2"}
    assert {name: count for name, (count, _) in refusals.items()} == {"efficiency": 5, "paper-eq1": 5}
    assert "at least 8" in refusals["efficiency"][1]
    assert "at least 5" in refusals["paper-eq1"][1]


def test_a_split_that_teaches_too_little_refuses_all() -> None:
    splits = [*random_splits(RUNS.workload, n_train=2, n_splits=1, seed=1), SPLITS[0]]
    found, refusals = hold_contest(RUNS.observed, RUNS.flop, splits, CONTESTANTS)
    assert {name: count for name, (count, _) in refusals.items()} == dict.fromkeys(
        ("constant", "paper-eq1", "paper-eq2", "efficiency"), 1
    )
    assert all("too few workloads" in reason for _, reason in refusals.values())
    assert {int(split) for errors in found.values() for split in errors.split} == {1}


def test_two_names_of_one_estimator_are_both_told() -> None:
    split = next(random_splits(RUNS.workload, n_train=4, n_splits=1, seed=1))
    twins = [Contestant(name=name, method=Method.EFFICIENCY) for name in ("one", "other")]
    _, refusals = hold_contest(RUNS.observed, RUNS.flop, [split], twins)
    assert set(refusals) == {"one", "other"}


def test_no_splits_have_no_errors() -> None:
    assert hold_contest(RUNS.observed, RUNS.flop, [], CONTESTANTS) == ({}, {})


def test_repeats_among_the_teachers_count_once() -> None:
    split = SPLITS[0]
    repeated = np.concatenate([np.arange(N_RUNS), split.train[:5]])
    wider = Split(np.concatenate([split.train, np.arange(N_RUNS, N_RUNS + 5)]), split.test)
    own = contest(splits=[split])
    theirs = contest(
        RUNS.observed.take(repeated), RUNS.flop[repeated], [wider], workload=RUNS.workload[repeated]
    )
    for name in own:
        np.testing.assert_allclose(theirs[name].ratio, own[name].ratio, rtol=1e-9)
        np.testing.assert_allclose(theirs[name].log_half, own[name].log_half, rtol=1e-6)


def test_a_judge_outside_the_calibration_is_refused() -> None:
    split = SPLITS[0]
    far = RUNS.observed.memory_tb.copy()
    far[split.test[0]] *= 1_000
    found = contest(replace(RUNS.observed, memory_tb=far), splits=[split])
    for errors in found.values():
        assert errors.is_refused.tolist() == [True, *[False] * 7]
