"""The run's random numbers: golden values, a second implementation, and that they look random."""

import hashlib

import numpy as np
import pytest

from flopwitness.trainers.randomness import BELL_SD, Randomness, derive_root

ROOT = derive_root(2026)


def _philox(key: tuple[int, int], counter: int) -> list[int]:
    """Philox4x64-10 as its authors print it, on Python integers."""
    mask, words = (1 << 64) - 1, [counter, 0, 0, 0]
    first, second = key
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * words[0], 0xCA5A826395121157 * words[2]
        words = [
            (high >> 64) ^ words[1] ^ first,
            high & mask,
            (low >> 64) ^ words[3] ^ second,
            low & mask,
        ]
        first, second = (first + 0x9E3779B97F4A7C15) & mask, (second + 0xBB67AE8584CAA73B) & mask
    return words


def test_words_are_philox_of_the_key_from_counter_one_on() -> None:
    randomness = Randomness(ROOT)
    data = randomness.key("test", 3, "a")
    key = (int.from_bytes(data[:8], "little"), int.from_bytes(data[8:16], "little"))
    expected = _philox(key, 1) + _philox(key, 2) + _philox(key, 3)
    assert randomness.words(12, "test", 3, "a").tolist() == expected


def test_golden_values() -> None:
    randomness = Randomness(ROOT)
    assert ROOT.hex() == "892825f5afb5516a28d3258bd196b619e9eb79df0ae908949d513b7673d03b4e"
    assert randomness.words(2, "golden").tolist() == [6942848848933742934, 1637798178117521585]
    assert randomness.below(256, 8, "golden").tolist() == [73, 96, 252, 22, 170, 176, 25, 25]
    assert randomness.permutation(8, "golden").tolist() == [1, 3, 7, 5, 4, 0, 2, 6]
    assert randomness.bells(4, "golden").tolist() == [39178, -81430, -111460, 221140]


def test_a_key_is_the_hash_of_its_parts() -> None:
    data = b"flopwitness/randomness/v1" + ROOT
    data += b"s" + (4).to_bytes(4, "big") + b"test"
    data += b"i" + (8).to_bytes(4, "big") + (5).to_bytes(8, "big")
    assert Randomness(ROOT).key("test", 5) == hashlib.sha256(data).digest()


def test_every_name_has_numbers_of_its_own() -> None:
    randomness = Randomness(ROOT)
    names: list[tuple[int | str, ...]] = [
        (),
        (0,),
        (1,),
        ("0",),
        (0, 0),
        ("", 0),
        (256,),
        ("a", "b"),
        ("ab",),
    ]
    drawn = {randomness.key("test", *name) for name in names} | {Randomness(derive_root(1)).key("test")}
    assert len(drawn) == len(names) + 1


def test_a_root_is_bound_to_what_others_chose() -> None:
    assert derive_root(1) != derive_root(2)
    assert derive_root(1, binding=b"nonce") != derive_root(1)
    assert derive_root(1, binding=b"nonce") == derive_root(1, binding=b"nonce")


def test_the_first_numbers_do_not_depend_on_how_many_are_drawn() -> None:
    randomness = Randomness(ROOT)
    assert randomness.words(5, "test").tolist() == randomness.words(50, "test").tolist()[:5]
    assert randomness.below(10, 5, "test").tolist() == randomness.below(10, 50, "test").tolist()[:5]
    assert randomness.bells(5, "test").tolist() == randomness.bells(50, "test").tolist()[:5]


def test_tokens_are_even_and_below_the_bound() -> None:
    drawn = Randomness(ROOT).below(7, 70_000, "test")
    counts = np.bincount(drawn, minlength=7)
    assert len(counts) == 7
    assert abs(counts - 10_000).max() < 5 * np.sqrt(10_000)
    assert Randomness(ROOT).below(1, 3, "test").tolist() == [0, 0, 0]
    assert Randomness(ROOT).below(1 << 32, 1_000, "test").max() > 1 << 31


def test_bells_are_nearly_normal() -> None:
    drawn = Randomness(ROOT).bells(200_000, "test") / BELL_SD
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01
    assert abs((drawn**4).mean() - 2.85) < 0.05
    assert abs((abs(drawn) < 1).mean() - 0.68) < 0.01
    assert abs(drawn).max() < 4.9


def test_a_permutation_is_one() -> None:
    drawn = Randomness(ROOT).permutation(1_000, "test")
    assert sorted(drawn.tolist()) == list(range(1_000))
    assert drawn.tolist() != list(range(1_000))


@pytest.mark.parametrize("bound", [0, -1, (1 << 32) + 1])
def test_a_bound_outside_a_word_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        Randomness(ROOT).below(bound, 1, "test")


@pytest.mark.parametrize("root", [b"", b"x" * 31, b"x" * 33])
def test_a_root_of_another_length_is_refused(root: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Randomness(root)
