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


def test_the_mask_is_drawn_by_the_runs_own_generator() -> None:
    words = DROPOUT.randomness.words(6 * 8 * 32 // 2, "dropout", 3, 0, 0, "place")
    halves = [half for word in words.tolist() for half in (word & 0xFFFFFFFF, word >> 32)]
    expected = torch.tensor([half < 2**30 for half in halves]).view(6, 8, 32)
    assert torch.equal(DROPOUT.drop(ONES, "place") == 0, expected)


def test_every_bit_of_a_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = []
    for flipped in (None, 0, 5, 15):
        key = bytearray(range(32))
        if flipped is not None:
            key[flipped] ^= 0x80
        monkeypatch.setattr(Randomness, "key", lambda *_, key=bytes(key): key)
        masks.append(DROPOUT.drop(ONES, "place"))
    assert not any(torch.equal(masks[0], mask) for mask in masks[1:])


def test_an_odd_number_of_values() -> None:
    ones = torch.ones(1, 1, 5)
    assert torch.equal(
        replace(DROPOUT, batch=1).drop(ones, "place")[0, 0], DROPOUT.drop(ONES, "place")[0, 0, :5]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_scale_is_right_to_fp32_for_short_types_too(dtype: torch.dtype) -> None:
    values = (torch.arange(6 * 8 * 32).view(6, 8, 32) % 97 + 1.0).to(dtype).requires_grad_()
    dropped = replace(DROPOUT, probability=0.1).drop(values, "place")
    dropped.sum().backward()  # type: ignore[no-untyped-call] # PyTorch's
    exact = (values.detach().float() * (1 / 0.9)).to(dtype)
    kept = dropped != 0
    assert torch.equal(dropped[kept], exact[kept])
    assert values.grad is not None
    assert set(values.grad.reshape(-1).tolist()) == {0.0, torch.tensor(1 / 0.9).to(dtype).item()}


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    DROPOUT.drop(ONES, "place")
    assert torch.equal(before, torch.get_rng_state())


def test_short_types_stay_short() -> None:
    assert DROPOUT.drop(ONES.bfloat16(), "place").dtype is torch.bfloat16
