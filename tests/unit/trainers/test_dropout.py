"""Dropout's masks: named, cut without change, and even."""

from dataclasses import replace

import pytest
import torch

from flopwitness.trainers.dropout import Dropout
from flopwitness.trainers.randomness import Randomness, derive_root

DROPOUT = Dropout(probability=0.25, randomness=Randomness(derive_root(7)), step=3, rank=0, index=0, batch=6)
ONES = torch.ones(6, 8, 32)


def test_values_are_dropped_or_scaled_up() -> None:
    dropped = DROPOUT.drop(ONES, "place")
    assert sorted(set(dropped.reshape(-1).tolist())) == pytest.approx([0.0, 4 / 3])
    assert abs((dropped == 0).float().mean().item() - 0.25) < 0.03


def test_nothing_is_dropped_with_probability_zero() -> None:
    assert replace(DROPOUT, probability=0.0).drop(ONES, "place") is ONES


@pytest.mark.parametrize("changes", [{"step": 4}, {"rank": 1}, {"index": 1}])
def test_every_name_has_a_mask_of_its_own(changes: dict[str, int]) -> None:
    mask = DROPOUT.drop(ONES, "place")
    assert torch.equal(mask, DROPOUT.drop(ONES, "place"))
    assert not torch.equal(mask, replace(DROPOUT, **changes).drop(ONES, "place"))  # type: ignore[arg-type] # any field
    assert not torch.equal(mask, DROPOUT.drop(ONES, "other"))


def test_a_part_of_a_pass_has_its_part_of_the_mask() -> None:
    mask = DROPOUT.drop(ONES, "place")
    part = replace(DROPOUT, first=2).drop(ONES[2:5], "place")
    assert torch.equal(part, mask[2:5])


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    DROPOUT.drop(ONES, "place")
    assert torch.equal(before, torch.get_rng_state())


def test_short_types_stay_short() -> None:
    assert DROPOUT.drop(ONES.bfloat16(), "place").dtype is torch.bfloat16
