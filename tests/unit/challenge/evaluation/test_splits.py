"""Which runs teach and which judge: no workload ever does both."""

import numpy as np
import pytest

from flopwitness.challenge.evaluation.splits import Split, check_split, leave_one_value_out, random_splits
from flopwitness.foundation.errors import InputError

WORKLOAD = np.array([0, 1, 1, 2, 3, 0, 4, 2, 2, 5], dtype=np.intp)


def splits(n_train: int = 4, n_splits: int = 50, seed: int = 1000) -> list[Split]:
    return list(random_splits(WORKLOAD, n_train=n_train, n_splits=n_splits, seed=seed))


@pytest.mark.parametrize("n_train", [1, 3, 5])
def test_workloads_are_split_and_never_shared(n_train: int) -> None:
    for split in splits(n_train):
        teaching, judging = set(WORKLOAD[split.train]), set(WORKLOAD[split.test])
        assert len(teaching) == n_train
        assert len(judging) == 6 - n_train
        assert not teaching & judging


def test_every_run_is_on_one_side() -> None:
    for split in splits():
        assert sorted([*split.train, *split.test]) == list(range(10))


def test_the_same_seed_gives_the_same_splits() -> None:
    for one, other in zip(splits(), splits(), strict=True):
        np.testing.assert_array_equal(one.train, other.train)
        np.testing.assert_array_equal(one.test, other.test)


def test_another_seed_gives_other_splits() -> None:
    one, other = ([tuple(split.train) for split in splits(seed=seed)] for seed in (1, 2))
    assert one != other


def test_the_splits_are_numpys_permutations() -> None:
    generator = np.random.default_rng(7)
    for split in splits(seed=7):
        chosen = set(generator.permutation(6)[:4])
        assert set(WORKLOAD[split.train]) == chosen


def test_more_splits_begin_with_the_same_ones() -> None:
    for short, long in zip(splits(n_splits=5), splits(n_splits=50), strict=False):
        np.testing.assert_array_equal(short.train, long.train)


def test_every_workload_judges_about_as_often() -> None:
    counts = np.zeros(6)
    for split in splits(n_splits=3_000):
        counts[np.unique(WORKLOAD[split.test])] += 1
    assert counts.sum() == 2 * 3_000
    assert (np.abs(counts / 3_000 - 1 / 3) < 0.05).all()


@pytest.mark.parametrize("n_train", [0, -1, 6, 7, 10_000])
def test_a_split_that_leaves_nobody_is_refused(n_train: int) -> None:
    with pytest.raises(InputError, match="no such split") as refusal:
        splits(n_train)
    assert refusal.value.expected == "1 to 5 of 6 workloads"
    assert refusal.value.found == str(n_train)


@pytest.mark.parametrize("workload", [[], [0], [0, 0, 0]])
def test_fewer_than_two_workloads_cannot_be_split(workload: list[int]) -> None:
    with pytest.raises(InputError, match="no such split") as refusal:
        list(random_splits(np.array(workload, dtype=np.intp), n_train=1, n_splits=1, seed=0))
    assert "two workloads" in refusal.value.expected


@pytest.mark.parametrize("n_train", [1, 5])
def test_a_split_that_leaves_somebody_on_both_sides_is_possible(n_train: int) -> None:
    assert check_split(WORKLOAD, n_train) == 6


@pytest.mark.parametrize("n_train", [0, 6])
def test_the_option_that_asked_for_it_is_named(n_train: int) -> None:
    with pytest.raises(InputError) as refusal:
        check_split(WORKLOAD, n_train, where="--curve")
    assert refusal.value.where == "--curve"


def test_each_value_is_left_out_once_in_the_order_of_the_table() -> None:
    found = {
        value: (split.train.tolist(), split.test.tolist())
        for value, split in leave_one_value_out(["512", "256", "512", "1024"], np.arange(4))
    }
    assert found == {"512": ([1, 3], [0, 2]), "256": ([0, 2, 3], [1]), "1024": ([0, 1, 2], [3])}
    assert list(found) == ["512", "256", "1024"]


def test_a_column_that_never_varies_leaves_nobody_to_teach() -> None:
    ((value, split),) = leave_one_value_out(["a", "a"], np.arange(2))
    assert value == "a"
    assert split.train.size == 0
    assert split.test.tolist() == [0, 1]


def test_no_runs_have_no_values() -> None:
    assert list(leave_one_value_out([], np.arange(0))) == []


def test_no_workload_teaches_what_its_own_repeat_is_judged_by() -> None:
    found = dict(leave_one_value_out(["day 1", "day 2", "day 1"], np.array([0, 0, 1])))
    assert found["day 2"].test.tolist() == [1]
    assert found["day 2"].train.tolist() == [2]
    assert found["day 1"].train.tolist() == []
