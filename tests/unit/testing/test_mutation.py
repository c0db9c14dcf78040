"""Mutations: the same for the same seed, bounded, and of every kind that is promised."""

from random import Random

import pytest

from flopwitness.testing import mutation
from flopwitness.testing.mutation import LARGEST_MUTANT_BYTES, mutate

SEED = b':::MLLOG {"key": "power_reading", "value": 2090, "time_ms": 17}\nsecond line\nthird\n'


def _rng(number: int) -> Random:
    return Random(number)  # noqa: S311 (damage, not secrets)


def _mutants(n: int, seed: bytes = SEED) -> list[bytes]:
    return [mutate(seed, _rng(number)) for number in range(n)]


def test_the_same_seed_gives_the_same_mutant() -> None:
    assert _mutants(200) == _mutants(200)


def test_most_mutants_differ_from_the_seed_and_from_each_other() -> None:
    mutants = _mutants(500)
    assert len(set(mutants)) > 400
    assert mutants.count(SEED) < 50


@pytest.mark.parametrize("seed", [b"", b"\n", b"a", b"\x00\xff"])
def test_the_smallest_seeds_can_be_wounded(seed: bytes) -> None:
    assert any(mutant != seed for mutant in _mutants(50, seed))


def test_no_mutant_is_larger_than_promised() -> None:
    large = b"1" * LARGEST_MUTANT_BYTES
    assert all(len(mutant) <= LARGEST_MUTANT_BYTES for mutant in _mutants(20, large))


@pytest.mark.parametrize(
    "piece",
    [
        b"1e999",
        b"NaN",
        b"-1",
        b"9" * 5_000,
        b"\x00",
        b"\xff",
        b"[" * 300,
        b":::SYSJSON ",
        b"a" * 5_000,
        b"../",
    ],
)
def test_every_kind_of_wound_occurs(piece: bytes) -> None:
    assert any(piece in mutant for mutant in _mutants(5_000))


def test_a_line_beyond_a_mebibyte_occurs_but_rarely() -> None:
    long = [mutant for mutant in _mutants(5_000) if len(mutant) > 1 << 20]
    assert 0 < len(long) < 50


def test_lines_are_swapped_and_names_repeated() -> None:
    swapped = [mutation._swap_lines(SEED, _rng(number)) for number in range(20)]
    assert any(mutant.startswith(b"second line\n") for mutant in swapped)
    repeated = [mutation._repeat_name(SEED, _rng(number)) for number in range(50)]
    assert any(mutant.count(b'"value": ') == 2 for mutant in repeated)


@pytest.mark.parametrize("wound", [mutation._repeat_name, mutation._blow_up_number, mutation._replace_text])
def test_a_wound_that_finds_no_place_leaves_the_data(wound: object) -> None:
    assert callable(wound)
    assert wound(b"no name here", _rng(0)) == b"no name here"
